#include "properties/generation/recompute.hpp"

#include <algorithm>
#include <memory>
#include <span>

#include "reference/sampling/pipeline.hpp"

namespace kvo::generation {
namespace {

TensorView view_of_rows(const std::vector<float>& cells, std::int64_t positions, std::int64_t dim) {
  return {.shape = {1, positions, dim}, .storage = std::make_shared<HostStorage>(cells)};
}

/// Logits behind all of the tokens.
Result<Tensor> logits_behind(Model& model, const Ids& ids, std::int64_t chunk) {
  PlainRows rows;
  Result<Tensor> logits = fail(Code::kPrecondition, "no tokens");
  const std::int64_t most = chunk > 0 ? chunk : std::ssize(ids);
  for (std::int64_t at = 0; at < std::ssize(ids); at += most) {
    const std::int64_t count = std::min(most, std::ssize(ids) - at);
    logits = model.forward(
        std::span(ids).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count)),
        rows);
    if (!logits) break;
  }
  return logits;
}

/// Where the first stop string begins, if any is there.
std::optional<std::size_t> first_stop(const std::string& text,
                                      const std::vector<std::string>& stops) {
  std::size_t first = std::string::npos;
  for (const std::string& stop : stops)
    if (!stop.empty()) first = std::min(first, text.find(stop));
  if (first == std::string::npos) return std::nullopt;
  return first;
}

}  // namespace

Status PlainRows::update(std::int64_t layer, const provider::Rows& rows) {
  if (layer < 0) return fail(Code::kOutOfRange);
  if (std::ssize(layers_) <= layer) layers_.resize(static_cast<std::size_t>(layer) + 1);
  Layer& to = layers_[static_cast<std::size_t>(layer)];
  to.k.insert(to.k.end(), rows.k->floats().begin(), rows.k->floats().end());
  to.v.insert(to.v.end(), rows.v->floats().begin(), rows.v->floats().end());
  to.dim = rows.k->shape[2];
  to.positions += rows.k->shape[1];
  return {};
}

Result<std::optional<provider::KvPair>> PlainRows::get(std::int64_t layer) {
  if (layer < 0 || layer >= std::ssize(layers_)) return std::optional<provider::KvPair>();
  const Layer& of = layers_[static_cast<std::size_t>(layer)];
  return std::optional(provider::KvPair{view_of_rows(of.k, of.positions, of.dim),
                                        view_of_rows(of.v, of.positions, of.dim)});
}

std::int64_t PlainRows::seq_len() const {
  return layers_.empty() ? 0 : layers_.front().positions;
}

Status PlainRows::reset() {
  layers_.clear();
  return {};
}

Status PlainRows::truncate(std::int64_t n) {
  for (Layer& layer : layers_) {
    layer.positions = std::min(layer.positions, n);
    layer.k.resize(static_cast<std::size_t>(layer.positions * layer.dim));
    layer.v.resize(layer.k.size());
  }
  return {};
}

std::optional<std::string> plain_text(const Plain& plain, const Request& request,
                                      std::int64_t chunk) {
  const auto model = make_model(plain.model);
  const auto tokenizer = make_tokenizer(plain.tokenizer);
  auto prompt = tokenizer->encode(request.prompt);
  if (!model || !prompt || prompt->empty()) return std::nullopt;
  if (plain.bos > 0) prompt->insert(prompt->begin(), plain.bos);
  const auto sampler = sampling::make_pipeline(QuirkSet<sampling::Quirk>(plain.profile));
  Ids stops = request.sampling.stop_token_ids;
  if (plain.eos > 0 || plain.profile == Profile::kOriginal) stops.push_back(plain.eos);
  sampling::Random random(kDrawSeed);
  Ids all = *prompt;
  Ids text_ids;
  std::string text;
  const std::int64_t most = most_tokens(request.sampling);
  while (std::ssize(text_ids) < most) {
    if (plain.most_positions && std::ssize(all) > *plain.most_positions) {
      if (text_ids.empty()) return std::nullopt;
      break;
    }
    if (std::ssize(all) > kMostPlainTokens) return std::nullopt;
    const auto logits = logits_behind(**model, all, chunk);
    if (!logits) return std::nullopt;
    const auto token = sampler->sample(view_of(*logits), request.sampling, text_ids, random);
    if (!token) return std::nullopt;
    if (std::ranges::find(stops, *token) != stops.end()) break;
    text_ids.push_back(*token);
    all.push_back(*token);
    const auto decoded = tokenizer->decode(text_ids);
    if (!decoded) return std::nullopt;
    text = *decoded;
    if (const auto stop = first_stop(text, request.sampling.stop_strings))
      return text.substr(0, *stop);
  }
  return text;
}

}  // namespace kvo::generation
