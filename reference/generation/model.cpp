#include "reference/generation/model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace kvo::generation {
namespace {

constexpr std::int64_t kMostLayers = 1024;
constexpr std::int64_t kMostDim = 1 << 16;
constexpr std::int64_t kMostVocab = 1 << 20;
constexpr float kLayerStep = 64;  // what keys of a layer differ by from those of the next

std::int64_t modulo(std::int64_t value, std::int64_t by) {
  return (value % by + by) % by;
}

/// script, rows and hash: their logits depend on what the last layer shows.
class VectorModel final : public Model {
 public:
  explicit VectorModel(ModelConfig config) : config_(std::move(config)) {}

  [[nodiscard]] Result<Tensor> forward(std::span<const std::int64_t> ids,
                                       provider::Provider& cache) override {
    const std::int64_t length = std::ssize(ids);
    const std::int64_t fail_at = config_.fail_at.value_or(0);
    if (fail_at > 0 && cache.seq_len() + length > fail_at) return fail_other("model");
    for (std::int64_t layer = 0; layer < config_.layers; ++layer)
      if (const Status done = update(layer, ids, cache); !done) return done.error();
    const auto history = tokens_shown(cache);
    if (!history) return history.error();
    Tensor logits = make_tensor({1, length, config_.vocab});
    for (std::int64_t row = 0; row < length; ++row)
      fill(logits.floats().subspan(static_cast<std::size_t>(row * config_.vocab),
                                   static_cast<std::size_t>(config_.vocab)),
           *history, std::max<std::int64_t>(std::ssize(*history) - length + row, 0));
    if (config_.rank2.value_or(false)) logits.shape = {length, config_.vocab};
    return logits;
  }

 private:
  [[nodiscard]] Status update(std::int64_t layer, std::span<const std::int64_t> ids,
                              provider::Provider& cache) const {
    Tensor k = make_tensor({1, std::ssize(ids), config_.dim});
    Tensor v = k;
    for (std::size_t i = 0; i < k.floats().size(); ++i) {
      const auto dim = static_cast<std::size_t>(config_.dim);
      // ZF-80: ids are exact up to 2^24.
      k.floats()[i] = static_cast<float>(ids[i / dim]) + 0.25F * static_cast<float>(i % dim) +
                      kLayerStep * static_cast<float>(layer);
      v.floats()[i] = -k.floats()[i];
    }
    return cache.update(layer, {.k = &k, .v = &v});
  }
  /// The tokens as the last layer's first cells show them.
  [[nodiscard]] Result<std::vector<float>> tokens_shown(provider::Provider& cache) const {
    std::vector<float> tokens;
    const auto pair = cache.get(config_.layers - 1);
    if (!pair) return pair.error();
    if (!*pair || config_.dim == 0) return tokens;
    const Tensor k = materialize((*pair)->k);
    for (std::size_t i = 0; i < k.floats().size(); i += static_cast<std::size_t>(config_.dim))
      tokens.push_back(k.floats()[i] - kLayerStep * static_cast<float>(config_.layers - 1));
    return tokens;
  }

  void fill(std::span<float> logits, const std::vector<float>& history,
            std::int64_t position) const {
    if (config_.kind == ModelKind::kRows) return fill_row(logits, position);
    if (config_.kind == ModelKind::kHash) return fill_hashed(logits, history, position);
    if (!config_.script || config_.script->empty()) return;
    const auto last = std::ssize(*config_.script) - 1;
    const std::int64_t token =
        (*config_.script)[static_cast<std::size_t>(std::min<std::int64_t>(position, last))];
    if (token >= 0 && token < std::ssize(logits)) logits[static_cast<std::size_t>(token)] = 1;
  }
  void fill_row(std::span<float> logits, std::int64_t position) const {
    if (!config_.rows || config_.rows->empty()) return;
    const auto last = std::ssize(*config_.rows) - 1;
    const auto& row =
        (*config_.rows)[static_cast<std::size_t>(std::min<std::int64_t>(position, last))];
    std::copy_n(row.begin(), std::min(row.size(), logits.size()), logits.begin());
  }
  void fill_hashed(std::span<float> logits, const std::vector<float>& history,
                   std::int64_t position) const {
    constexpr std::int64_t kHashes = 101;
    std::int64_t hash = modulo(config_.salt.value_or(0), kHashes);
    for (std::int64_t j = 0; j <= position && j < std::ssize(history); ++j)
      hash = modulo(hash + modulo(j + 1, kHashes) *
                               modulo(whole(history[static_cast<std::size_t>(j)]) + 1, kHashes),
                    kHashes);
    const std::int64_t flip = config_.flip_mod.value_or(0);
    if (flip > 0 && hash % flip == 0) hash = modulo(hash + kHashes / 2, kHashes);
    for (std::int64_t v = 0; v < std::ssize(logits); ++v)
      logits[static_cast<std::size_t>(v)] = static_cast<float>((7 * v + 3) * (hash + 1) % 31 - 15);
  }

  ModelConfig config_;
};

bool within(std::int64_t value, std::int64_t most) {
  return value >= 0 && value <= most;
}

}  // namespace

std::int64_t whole(float cell) {
  constexpr float kMost = 1 << 24;
  constexpr std::int64_t kNone = 16'777'259;  // a prime, larger than any
  return std::abs(cell) <= kMost ? std::llround(cell) : kNone;
}

Result<std::unique_ptr<Model>> make_model(const ModelConfig& config) {
  if (!within(config.layers, kMostLayers) || !within(config.dim, kMostDim) ||
      !within(config.vocab, kMostVocab))
    return fail(Code::kPrecondition, "sizes of the model");
  if (config.kind == ModelKind::kAttention) {
    const std::int64_t heads = config.heads.value_or(1);
    if (heads <= 0 || config.dim % heads != 0) return fail(Code::kPrecondition, "heads");
    return make_attention_model(config);
  }
  return std::unique_ptr<Model>(std::make_unique<VectorModel>(config));
}

}  // namespace kvo::generation
