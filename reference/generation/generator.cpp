#include "reference/generation/generator.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "reference/generation/text_out.hpp"

namespace kvo::generation {
namespace {

bool has(const Ids& ids, std::int64_t id) {
  return std::ranges::find(ids, id) != ids.end();
}

}  // namespace

Ids stop_set(const SamplingConfig& sampling, std::int64_t eos, QuirkSet<Quirk> quirks) {
  Ids stops = sampling.stop_token_ids;
  if (eos > 0 || quirks.has(Quirk::kUnsetEosStops)) stops.push_back(eos);
  return stops;
}

std::int64_t most_tokens(const SamplingConfig& sampling) {
  return sampling.max_new_tokens > 0 ? sampling.max_new_tokens : SamplingConfig().max_new_tokens;
}

Result<Ids> encoded(Tokenizer& tokenizer, std::string_view prompt) {
  auto ids = tokenizer.encode(prompt);
  if (ids && ids->empty()) return fail_other("prompt_empty");
  return ids;
}

Error at_stage(Error error, std::string_view stage) {
  error.detail = stage;
  return error;
}

bool is_endless(const Ids& text, const CacheSource& caches) {
  return (std::ssize(text) - 2) / 2 > caches.most_positions();
}

Result<std::string> Generator::generate(const Request& request, const Context& context) {
  TextOut out(parts_.tokenizer, request.sampling.stop_strings, nullptr, quirks_);
  if (const Status done = run(request, context, out); !done) return done.error();
  return out.text();
}

Status Generator::generate_stream(const Request& request, const Context& context,
                                  const Stream& stream) {
  TextOut out(parts_.tokenizer, request.sampling.stop_strings, &stream, quirks_);
  return run(request, context, out);
}

Status Generator::run(const Request& request, const Context& context, TextOut& out) {
  auto slot = this->slot();
  if (!slot) return slot.error();
  Status done = run_over(*slot, request, context, out);
  if (prefill_.keep_prefix) {
    kept_ = std::move(*slot);
  } else if (!quirks_.has(Quirk::kBlocksNeverReturn)) {
    const Status returned = parts_.caches.give_back(*slot->cache);
    if (done && !returned) return returned;
  }
  return done;
}

Result<Generator::Slot> Generator::slot() {
  if (kept_) return *std::exchange(kept_, std::nullopt);
  auto cache = parts_.caches.make();
  if (!cache) return cache.error();
  return Slot{.cache = std::move(*cache)};
}

Status Generator::cut_to_prefix(Slot& slot, const Ids& prompt) const {
  if (!prefill_.keep_prefix) return {};
  const auto part = std::ranges::mismatch(slot.tokens, prompt).in1 - slot.tokens.begin();
  const auto alike = std::min(part, std::ssize(prompt) - 1);
  slot.tokens.resize(static_cast<std::size_t>(alike));
  if (slot.cache->seq_len() <= alike) return {};
  const Status cut = slot.cache->truncate(alike);
  return cut ? cut : Status(at_stage(cut.error(), "prefix"));
}

Result<Tensor> Generator::feed(Slot& slot, std::span<const std::int64_t> ids,
                               const Context& context) {
  const std::size_t most =
      prefill_.chunk > 0 ? static_cast<std::size_t>(prefill_.chunk) : ids.size();
  while (true) {
    if (context.cancelled && !quirks_.has(Quirk::kCancelIsNoError)) return fail_other("canceled");
    const auto chunk = ids.first(std::min(most, ids.size()));
    auto logits = parts_.model.forward(chunk, *slot.cache);
    if (!logits) return logits;
    slot.tokens.insert(slot.tokens.end(), chunk.begin(), chunk.end());
    ids = ids.subspan(chunk.size());
    if (ids.empty()) return logits;
  }
}

Status Generator::run_over(Slot& slot, const Request& request, const Context& context,
                           TextOut& out) {
  auto ids = encoded(parts_.tokenizer, request.prompt);
  if (!ids) return ids.error();
  if (sizes_.bos > 0) ids->insert(ids->begin(), sizes_.bos);
  if (const Status done = cut_to_prefix(slot, *ids); !done) return done;
  ids->erase(ids->begin(), ids->begin() + std::ssize(slot.tokens));
  const Ids stops = stop_set(request.sampling, sizes_.eos, quirks_);
  sampling::Random random(kDrawSeed);
  Ids fed = std::move(*ids);
  while (true) {
    const bool prefill = out.ids().empty();
    if (context.cancelled && quirks_.has(Quirk::kCancelIsNoError) && !prefill) break;
    const auto logits = feed(slot, fed, context);
    if (!logits) {
      const bool ends = logits.error().code == Code::kFull && !prefill;
      if (ends && !quirks_.has(Quirk::kFullLosesText)) break;
      return at_stage(logits.error(), prefill ? "prefill" : "decode");
    }
    const auto token = parts_.choose(view_of(*logits), request.sampling, out.ids(), random);
    if (!token) return at_stage(token.error(), prefill ? "sample_prefill" : "sample");
    if (has(stops, *token)) break;
    const auto ended = out.add(*token);
    if (!ended) return ended.error();
    if (*ended) return {};
    if (std::ssize(out.ids()) >= most_tokens(request.sampling)) break;
    if (is_endless(out.ids(), parts_.caches)) return fail_other("endless");
    fed = {*token};
  }
  return out.finish();
}

std::vector<Result<std::string>> Generator::batch_generate(const std::vector<Request>& requests,
                                                           const Context& context) {
  std::vector<Result<std::string>> texts;
  for (const Request& request : requests) texts.push_back(generate(request, context));
  return texts;
}

std::vector<Status> Generator::batch_generate_stream(const std::vector<Request>& requests,
                                                     const Context& context,
                                                     const std::vector<Stream>& streams) {
  std::vector<Status> ends;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (streams.size() == requests.size())
      ends.push_back(generate_stream(requests[i], context, streams[i]));
    else if (quirks_.has(Quirk::kWrongStreamsCancel))
      ends.emplace_back(fail_other("canceled"));
    else
      ends.emplace_back(fail(Code::kBadShape, "streams"));
  }
  return ends;
}

}  // namespace kvo::generation
