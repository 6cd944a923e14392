#include "reference/generation/model.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
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

constexpr std::int64_t kPrime = 251;
constexpr std::int64_t kMiddle = kPrime / 2;
constexpr std::int64_t kMostWeight = 61;

using Values = std::vector<std::int64_t>;

std::int64_t remainder_of(std::int64_t value, std::int64_t by = kPrime) {
  return (value % by + by) % by;
}

/// The model's parameter of that name: a number that looks like chance, from 1 to kPrime - 1.
/// Source  the finalizer of SplitMix64: Steele, Lea and Flood, OOPSLA 2014.
std::int64_t parameter(std::uint64_t salt, std::uint64_t name, std::uint64_t one,
                       std::uint64_t two) {
  std::uint64_t z = salt * 0x9E3779B97F4A7C15U + (name << 48U) + (one << 24U) + two;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<std::int64_t>((z ^ (z >> 31U)) % (kPrime - 1)) + 1;
}

/// Rows that a cache shows: [position][dim].
struct ShownRows {
  std::vector<std::int64_t> k;
  std::vector<std::int64_t> v;
  std::int64_t count = 0;
};

/// attention: two sums over what the caches show of every layer and head, in whole numbers, so that
/// no machine and no order of additions gives another text. A row that is wrong, missing, doubled
/// or in another place changes the logits.
/// A value is a remainder of kPrime. The cache gets it minus kMiddle, so that cells are small, of
/// both signs, and exact in f32.
class AttentionModel final : public Model {
 public:
  explicit AttentionModel(const ModelConfig& config)
      : layers_(config.layers),
        dim_(config.dim),
        vocab_(config.vocab),
        head_dim_(dim_ / config.heads.value_or(1)),
        fail_at_(config.fail_at.value_or(0)),
        salt_(static_cast<std::uint64_t>(config.salt.value_or(0))) {}

  [[nodiscard]] Result<Tensor> forward(std::span<const std::int64_t> ids,
                                       provider::Provider& cache) override {
    const std::int64_t past = cache.seq_len();
    const std::int64_t length = std::ssize(ids);
    if (fail_at_ > 0 && past + length > fail_at_) return fail_other("model");
    std::vector<Values> hidden;
    for (const std::int64_t id : ids) hidden.push_back(embedded(id));
    for (std::int64_t layer = 0; layer < layers_; ++layer)
      if (const Status done = pass(layer, past, hidden, cache); !done) return done.error();
    Tensor logits = make_tensor({1, length, vocab_});
    for (std::int64_t i = 0; i < length * vocab_; ++i)
      logits.floats()[static_cast<std::size_t>(i)] =
          logit(hidden[static_cast<std::size_t>(i / vocab_)], i % vocab_);
    return logits;
  }

 private:
  enum Name : std::uint64_t { kEmbed, kQuery, kKey, kKeyPlace, kValue, kValuePlace, kOut, kLogit };

  [[nodiscard]] std::int64_t of(Name name, std::int64_t one, std::int64_t two) const {
    return parameter(salt_, name, static_cast<std::uint64_t>(one), static_cast<std::uint64_t>(two));
  }
  [[nodiscard]] Values embedded(std::int64_t id) const {
    Values values;
    for (std::int64_t d = 0; d < dim_; ++d)
      values.push_back(of(kEmbed, remainder_of(id, std::int64_t{1} << 24U), d));
    return values;
  }
  [[nodiscard]] float logit(const Values& hidden, std::int64_t token) const {
    std::int64_t sum = 0;
    for (std::int64_t d = 0; d < dim_; ++d)
      sum += hidden[static_cast<std::size_t>(d)] * of(kLogit, token, d);
    return static_cast<float>(remainder_of(sum) - kMiddle);
  }

  /// One layer: writes its keys and values, and adds to `hidden` what attention finds.
  [[nodiscard]] Status pass(std::int64_t layer, std::int64_t past, std::vector<Values>& hidden,
                            provider::Provider& cache) const {
    Tensor k = make_tensor({1, std::ssize(hidden), dim_});
    Tensor v = k;
    for (std::int64_t i = 0; i < k.elements(); ++i) {
      const std::int64_t position = past + i / dim_ + 1;
      const std::int64_t d = i % dim_;
      const std::int64_t value =
          hidden[static_cast<std::size_t>(i / dim_)][static_cast<std::size_t>(d)];
      const auto cell = [&](Name by, Name place) {
        return static_cast<float>(
            remainder_of(value * of(by, layer, d) + position * of(place, layer, d)) - kMiddle);
      };
      k.floats()[static_cast<std::size_t>(i)] = cell(kKey, kKeyPlace);
      v.floats()[static_cast<std::size_t>(i)] = cell(kValue, kValuePlace);
    }
    if (const Status done = cache.update(layer, {.k = &k, .v = &v}); !done) return done;
    const auto pair = cache.get(layer);
    if (!pair) return pair.error();
    const ShownRows rows = *pair ? shown(**pair) : ShownRows();
    for (std::int64_t i = 0; i < std::ssize(hidden); ++i) {
      const std::int64_t last = rows.count - std::ssize(hidden) + i;  // what comes later is masked
      attend(layer, rows, std::max<std::int64_t>(last + 1, 0), hidden[static_cast<std::size_t>(i)]);
    }
    return {};
  }

  [[nodiscard]] ShownRows shown(const provider::KvPair& pair) const {
    ShownRows rows;
    const Tensor k = materialize(pair.k);
    const Tensor v = materialize(pair.v);
    std::ranges::transform(k.floats(), std::back_inserter(rows.k), whole);
    std::ranges::transform(v.floats(), std::back_inserter(rows.v), whole);
    if (dim_ > 0)
      rows.count = static_cast<std::int64_t>(std::min(rows.k.size(), rows.v.size())) / dim_;
    return rows;
  }

  /// Adds to a token's values what each head finds in the first `seen` rows. The weight of a row
  /// comes from query and key, and from how far away it stands.
  void attend(std::int64_t layer, const ShownRows& rows, std::int64_t seen, Values& hidden) const {
    Values query;
    for (std::int64_t d = 0; d < dim_; ++d)
      query.push_back(remainder_of(hidden[static_cast<std::size_t>(d)] * of(kQuery, layer, d)));
    for (std::int64_t first = 0; first < dim_; first += head_dim_) {
      Values found(static_cast<std::size_t>(head_dim_));
      for (std::int64_t j = 0; j < seen; ++j) {
        std::int64_t score = (first / head_dim_ + 1) * (seen - j);
        for (std::int64_t d = first; d < first + head_dim_; ++d)
          score +=
              query[static_cast<std::size_t>(d)] * rows.k[static_cast<std::size_t>(j * dim_ + d)];
        const std::int64_t weight = remainder_of(score, kMostWeight) + 1;
        for (std::int64_t d = 0; d < head_dim_; ++d) {
          std::int64_t& sum = found[static_cast<std::size_t>(d)];
          sum = remainder_of(sum + weight * rows.v[static_cast<std::size_t>(j * dim_ + first + d)]);
        }
      }
      for (std::int64_t d = 0; d < head_dim_; ++d) {
        std::int64_t& value = hidden[static_cast<std::size_t>(first + d)];
        value =
            remainder_of(value + found[static_cast<std::size_t>(d)] * of(kOut, layer, first + d));
      }
    }
  }

  std::int64_t layers_;
  std::int64_t dim_;
  std::int64_t vocab_;
  std::int64_t head_dim_;
  std::int64_t fail_at_;
  std::uint64_t salt_;
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
    return std::unique_ptr<Model>(std::make_unique<AttentionModel>(config));
  }
  return std::unique_ptr<Model>(std::make_unique<VectorModel>(config));
}

}  // namespace kvo::generation
