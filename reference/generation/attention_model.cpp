// Whole numbers only. A value is a remainder of kPrime; the cache gets it minus kMiddle, so that
// cells are small, of both signs, and exact in f32.
#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "reference/generation/model.hpp"

namespace kvo::generation {
namespace {

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

}  // namespace

std::unique_ptr<Model> make_attention_model(const ModelConfig& config) {
  return std::make_unique<AttentionModel>(config);
}

}  // namespace kvo::generation
