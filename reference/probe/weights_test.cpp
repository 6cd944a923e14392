// The weights do what the rules say: shown by a forward pass in double precision.
#include "reference/probe/weights.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "reference/probe/rows.hpp"

namespace kvo::probe {
namespace {

constexpr std::size_t kDims[] = {64, 128};

TEST(ProbeAmplitudes, FindOneDistanceAlone) {
  for (const std::size_t dim : kDims) {
    const Amplitudes& amplitudes = amplitudes_of(dim);
    EXPECT_EQ(score_at(amplitudes, 0), 1);
    double largest = 0;
    for (std::size_t distance = 1; distance < amplitudes.positions; ++distance)
      largest = std::max(largest, std::abs(score_at(amplitudes, distance)));
    EXPECT_NEAR(largest, amplitudes.rho, 1e-12);
    for (const Pair& pair : amplitudes.pairs) EXPECT_GE(pair.amplitude, 0);
  }
}

TEST(ProbeAmplitudes, FrequenciesAreThoseOfRope) {
  for (const std::size_t dim : kDims) {
    const Amplitudes& amplitudes = amplitudes_of(dim);
    for (std::size_t i = 0; i < amplitudes.pairs.size(); ++i) {
      const double exact =
          std::pow(amplitudes.theta, -2 * static_cast<double>(i) / static_cast<double>(dim));
      EXPECT_DOUBLE_EQ(amplitudes.pairs[i].frequency, exact);
    }
  }
}

// Digits of each type, and the exponent of its smallest normal number.
struct Format {
  StorageType type;
  int digits;
  int least;
};
constexpr Format kFormats[] = {
    {StorageType::kF32, 24, -126}, {StorageType::kBf16, 8, -126}, {StorageType::kF16, 11, -14}};

// Units of the last digit of a double between `value` and the nearest number at which rounding
// goes the other way.
double slack(double value, const Format& format) {
  if (value == 0) return INFINITY;
  const int last_digit = std::max(std::ilogb(value), format.least) - (format.digits - 1);
  const double scaled = std::ldexp(std::abs(value), -last_digit);
  const double to_tie = std::abs(scaled - std::floor(scaled) - 0.5);
  return std::ldexp(to_tie, last_digit - std::ilogb(value) + 52);
}

TEST(ProbeWeights, NoPhasorDependsOnTheMathsLibrary) {
  // cos and sin of a good library are off by less than one unit in the last digit.
  for (const std::size_t dim : kDims)
    for (const Pair& pair : amplitudes_of(dim).pairs)
      for (std::size_t distance = 0; distance < Shape::kPositions; ++distance) {
        const double angle = -(pair.frequency * static_cast<double>(distance));
        for (const double value : {std::cos(angle), std::sin(angle)})
          for (const Format& format : kFormats)
            ASSERT_GT(slack(value, format), 2)
                << "distance " << distance << " frequency " << pair.frequency;
      }
}

TEST(ProbeWeights, RoundedOnceToTheNearestTiesToEven) {
  const double above_tie = 1 + std::ldexp(1, -8) + std::ldexp(1, -40);  // f32 rounds it to the tie
  EXPECT_EQ(rounded(above_tie, StorageType::kBf16), 1 + std::ldexp(1, -7));
  EXPECT_EQ(rounded(1 + std::ldexp(1, -8), StorageType::kBf16), 1);
  EXPECT_EQ(rounded(-1 - 3 * std::ldexp(1, -11), StorageType::kF16), -1 - std::ldexp(1, -9));
  EXPECT_EQ(rounded(std::ldexp(3, -26), StorageType::kF16), std::ldexp(4, -26));
  EXPECT_EQ(rounded(0.1, StorageType::kF32), 0.1F);
  for (int i = 0; i < 1000; ++i) {
    const double value =
        (static_cast<double>(mix({1, static_cast<std::uint64_t>(i)}) >> 11U)) * 1e-14;
    const auto as_float = static_cast<float>(value);
    EXPECT_EQ(rounded(as_float, StorageType::kBf16), f32_of_bf16(bf16_of(as_float)));
    EXPECT_EQ(rounded(as_float, StorageType::kF16), f32_of_f16(f16_of(as_float)));
  }
}

TEST(ProbeWeights, TensorsHaveTheNamesAndShapesOfLlama) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> shapes;
  for (const Tensor& tensor : tensors_of({.head_dim = 128}))
    shapes[tensor.name()] = {tensor.rows, tensor.columns};
  EXPECT_EQ(shapes.size(), 39U);
  const auto is = [&](const char* name, std::size_t rows, std::size_t columns) {
    EXPECT_EQ(shapes.at(name), std::pair(rows, columns)) << name;
  };
  is("model.embed_tokens.weight", 4416, 512);
  is("model.layers.0.self_attn.q_proj.weight", 1024, 512);
  is("model.layers.1.self_attn.k_proj.weight", 512, 512);
  is("model.layers.2.self_attn.v_proj.weight", 512, 512);
  is("model.layers.3.self_attn.o_proj.weight", 512, 1024);
  is("model.layers.3.input_layernorm.weight", 1, 512);
  is("model.layers.3.post_attention_layernorm.weight", 1, 512);
  is("model.layers.3.mlp.gate_proj.weight", 128, 512);
  is("model.layers.3.mlp.up_proj.weight", 128, 512);
  is("model.layers.3.mlp.down_proj.weight", 512, 128);
  is("model.norm.weight", 1, 512);
  is("lm_head.weight", 4416, 512);
}

TEST(ProbeWeights, EveryEmbeddingHasOneLength) {
  const Tables tables({.head_dim = 128});
  const Weights weights(tables);
  const Tensor embedding = tensors_of(tables.shape()).front();
  for (std::size_t token = 0; token < embedding.rows; ++token) {
    double square = 0;
    for (const double value : weights.row(embedding, token)) square += value * value;
    ASSERT_NEAR(square, 380, 1e-9) << "token " << token;
  }
}

// ---- a forward pass ----

using Vector = std::vector<double>;

/// A matrix without its zeroes.
class Matrix {
 public:
  Matrix(const Weights& weights, const Tensor& tensor) : rows_(tensor.rows) {
    for (std::size_t row = 0; row < tensor.rows; ++row) {
      const Vector full = weights.row(tensor, row);
      for (std::size_t column = 0; column < full.size(); ++column)
        if (full[column] != 0) rows_[row].emplace_back(column, full[column]);
    }
  }
  [[nodiscard]] Vector operator*(const Vector& input) const {
    Vector output;
    for (const auto& row : rows_) {
      double sum = 0;
      for (const auto& [column, weight] : row) sum += weight * input[column];
      output.push_back(sum);
    }
    return output;
  }

 private:
  std::vector<std::vector<std::pair<std::size_t, double>>> rows_;
};

Vector normed(const Vector& input) {
  double square = 0;
  for (const double value : input) square += value * value;
  const double rms = std::sqrt(square / static_cast<double>(input.size()));
  Vector output = input;
  for (double& value : output) value /= rms;
  return output;
}

/// Llama without its MLP, which is 0. A copy has a cache of its own.
class Forward {
 public:
  explicit Forward(const Tables& tables)
      : dim_(tables.shape().head_dim), window_(tables.shape().window.value_or(Shape::kPositions)) {
    const Weights weights(tables);
    auto model = std::make_shared<Model>();
    for (const Tensor& tensor : tensors_of(tables.shape())) {
      if (tensor.kind == Kind::kEmbedding)
        for (std::size_t row = 0; row < tensor.rows; ++row)
          model->embedding.push_back(weights.row(tensor, row));
      if (!tensor.is_norm()) model->matrices.emplace(tensor.name(), Matrix(weights, tensor));
    }
    model_ = std::move(model);
  }

  // The logits that follow `token` at the next position.
  Vector step(Token token) {
    const auto position = static_cast<double>(keys_[0].size());
    Vector hidden = model_->embedding[token];
    for (std::size_t layer = 0; layer < Shape::kLayers; ++layer) {
      const std::string name = "model.layers." + std::to_string(layer) + ".self_attn.";
      const Vector input = normed(hidden);
      const Vector query = turned(model_->matrices.at(name + "q_proj.weight") * input, position);
      keys_[layer].push_back(turned(model_->matrices.at(name + "k_proj.weight") * input, position));
      values_[layer].push_back(model_->matrices.at(name + "v_proj.weight") * input);
      const Vector change = model_->matrices.at(name + "o_proj.weight") * attended(layer, query);
      for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] += change[i];
    }
    return model_->matrices.at("lm_head.weight") * normed(hidden);
  }

  // As Rows::evict.
  void evict(std::size_t first, std::size_t last) {
    for (std::size_t row = first; row < last; ++row) lost_.insert(row);
  }
  // As Rows::overwrite.
  void overwrite(std::size_t position, const Forward& from, std::size_t source, const Part& part) {
    lost_.erase(position);
    const double turn =
        static_cast<double>(part.key_position.value_or(position)) - static_cast<double>(source);
    for (std::size_t layer = 0; layer < Shape::kLayers; ++layer)
      for (std::size_t head = 0; head < Shape::kHeads; ++head) {
        if (part.layer.value_or(layer) != layer || part.head.value_or(head) != head) continue;
        const std::size_t from_layer = part.from_layer.value_or(layer);
        const std::size_t begin = part.from_head.value_or(head) * dim_;
        const Vector key = turned(from.keys_[from_layer][source], turn);
        const Vector& value = from.values_[from_layer][source];
        for (std::size_t i = 0; i < dim_; ++i) {
          if (part.keys) keys_[layer][position][head * dim_ + i] = key[begin + i];
          if (part.values) values_[layer][position][head * dim_ + i] = value[begin + i];
        }
      }
  }

 private:
  [[nodiscard]] Vector turned(Vector heads, double position) const {
    for (std::size_t begin = 0; begin < heads.size(); begin += dim_)
      for (std::size_t i = 0; i < dim_ / 2; ++i) {
        const double frequency =
            std::pow(Shape::kRopeTheta, -2 * static_cast<double>(i) / static_cast<double>(dim_));
        const double angle = frequency * position;
        double& first = heads[begin + i];
        double& second = heads[begin + dim_ / 2 + i];
        const double kept_first = first;
        first = first * std::cos(angle) - second * std::sin(angle);
        second = kept_first * std::sin(angle) + second * std::cos(angle);
      }
    return heads;
  }
  [[nodiscard]] Vector attended(std::size_t layer, const Vector& query) const {
    Vector output(Shape::kQueryHeads * dim_);
    for (std::size_t query_head = 0; query_head < Shape::kQueryHeads; ++query_head) {
      const std::size_t begin = query_head / 2 * dim_;
      Vector scores;
      const std::size_t first = keys_[layer].size() - std::min(keys_[layer].size(), window_);
      for (std::size_t row = first; row < keys_[layer].size(); ++row) {
        double score = 0;
        for (std::size_t i = 0; i < dim_; ++i)
          score += query[query_head * dim_ + i] * keys_[layer][row][begin + i];
        scores.push_back(lost_.contains(row) ? -INFINITY
                                             : score / std::sqrt(static_cast<double>(dim_)));
      }
      const double largest = *std::ranges::max_element(scores);
      double sum = 0;
      for (double& score : scores) sum += score = std::exp(score - largest);
      constexpr double kNothing = 1e-12;
      for (std::size_t row = 0; row < scores.size(); ++row)
        for (std::size_t i = 0; scores[row] > kNothing * sum && i < dim_; ++i)
          output[query_head * dim_ + i] +=
              scores[row] / sum * values_[layer][first + row][begin + i];
    }
    return output;
  }

  struct Model {
    std::vector<Vector> embedding;
    std::map<std::string, Matrix> matrices;
  };

  std::size_t dim_;
  std::size_t window_;
  std::shared_ptr<const Model> model_;
  PerLayer<std::vector<Vector>> keys_;
  PerLayer<std::vector<Vector>> values_;
  std::set<std::size_t> lost_;
};

Token likeliest(const Vector& logits) {
  return static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
}

TEST(ProbeWeights, AForwardPassGivesTheTokensOfTheRows) {
  for (const std::size_t dim : kDims) {
    const Tables tables({.head_dim = dim});
    Forward forward(tables);
    Rows rows(tables);
    Token token = kBegin;
    for (std::size_t position = 0; position < 120; ++position) {
      const Vector logits = forward.step(token);
      rows.extend({&token, 1});
      const Token best = likeliest(logits);
      ASSERT_EQ(best, rows.next()) << "head_dim " << dim << " position " << position;
      Vector sorted = logits;
      std::ranges::nth_element(sorted, sorted.begin() + 1, std::greater<>());
      EXPECT_GT(logits[best] - sorted[1], 39) << "the right token leads by 40";
      // As a prompt: classes 4 to 6, a sink and a byte. Then as a generation.
      token = position == 50   ? kSink
              : position == 51 ? kFirstByte
              : position < 80  ? static_cast<Token>(kFirstValue + kValues * (4 + position % 3) +
                                                   mix({3, position}) % kValues)
                               : rows.next();
    }
  }
}

// ---- faults ----

// Reads stay inside of the text. The last token reaches each row, and so does what follows.
std::vector<Token> text_of(std::uint64_t seed, std::size_t size) {
  std::vector<Token> text{kBegin};
  while (text.size() < size) {
    const std::size_t inside = std::bit_width(text.size()) - 1;
    const std::size_t token_class = text.size() + 1 == size ? inside + 1 : inside;
    text.push_back(static_cast<Token>(kFirstValue + kValues * token_class +
                                      mix({seed, text.size()}) % kValues));
  }
  return text;
}

/// A text in the cache of a forward pass, and as rows.
struct Both {
  Forward forward;
  Rows rows;
  Vector logits = {};

  Both(const Tables& tables, const Forward& empty, const std::vector<Token>& text)
      : forward(empty), rows(tables) {
    for (const Token token : text) append(token);
  }
  void append(Token token) {
    logits = forward.step(token);
    rows.extend({&token, 1});
  }
  void overwrite(std::size_t position, const Both& from, std::size_t source, const Part& part) {
    forward.overwrite(position, from.forward, source, part);
    rows.overwrite(position, from.rows, source, part);
  }
  void evict(std::size_t first, std::size_t last) {
    forward.evict(first, last);
    rows.evict(first, last);
  }
};

// Certain bits in which the token differs; beyond these, the class.
Token wrong_bits(const Rows& rows, Token token) {
  const Token different = (token - kFirstValue) ^ (rows.next() - kFirstValue);
  return different & (rows.certain_bits() | ~(kValues - 1));
}

/// `plant` gets a cache, the same without the fault, and that of another text.
struct PlantedFault {
  const char* name;
  void (*plant)(Both& cache, const Both& right, const Both& other);
};

constexpr std::size_t kFirst = 10;  // the faulty rows
constexpr std::size_t kLast = 30;

const std::vector<PlantedFault> kFaults{
    {"no fault", [](Both&, const Both&, const Both&) {}},
    {"foreign rows",
     [](Both& cache, const Both&, const Both& other) {
       for (std::size_t at = kFirst; at < kLast; ++at) cache.overwrite(at, other, at, {});
     }},
    {"rows of other positions",
     [](Both& cache, const Both&, const Both& other) {
       for (std::size_t at = kFirst; at < kLast; ++at) cache.overwrite(at, other, at + 20, {});
     }},
    {"rows that carry other positions",
     [](Both& cache, const Both&, const Both& other) {
       for (std::size_t at = kFirst; at < kLast; ++at)
         cache.overwrite(at, other, at + 20, {.key_position = at + 20});
     }},
    {"keys one position too late, in one layer",
     [](Both& cache, const Both& right, const Both&) {
       for (std::size_t at = 1; at < kLast; ++at)
         cache.overwrite(at, right, at, {.layer = 3, .values = false, .key_position = at + 1});
     }},
    {"lost rows", [](Both& cache, const Both&, const Both&) { cache.evict(kFirst, kLast); }},
    {"swapped heads",
     [](Both& cache, const Both& right, const Both&) {
       for (std::size_t at = 1; at < kLast; ++at) {
         cache.overwrite(at, right, at, {.head = 0, .from_head = 2});
         cache.overwrite(at, right, at, {.head = 2, .from_head = 0});
       }
     }},
    {"swapped layers",
     [](Both& cache, const Both& right, const Both&) {
       for (std::size_t at = 1; at < kLast; ++at) {
         cache.overwrite(at, right, at, {.layer = 1, .from_layer = 3});
         cache.overwrite(at, right, at, {.layer = 3, .from_layer = 1});
       }
     }},
    {"swapped values",
     [](Both& cache, const Both& right, const Both&) {
       for (std::size_t at = kFirst; at < kLast; ++at)
         cache.overwrite(at, right, kFirst + kLast - 1 - at, {.keys = false});
     }},
};

TEST(ProbeWeights, AFaultInTheCacheGivesTheTokensOfTheRows) {
  const Tables tables;
  const Forward empty(tables);
  const Both right(tables, empty, text_of(1, 50));
  const Both other(tables, empty, text_of(2, 50));
  for (const PlantedFault& fault : kFaults) {
    Both cache = right;
    fault.plant(cache, right, other);
    Rows healthy = right.rows;
    std::size_t certain = 0;
    std::size_t differs = 0;
    for (int step = 0; step < 20; ++step) {
      const Token got = likeliest(cache.logits);
      certain += static_cast<std::size_t>(std::popcount(cache.rows.certain_bits()));
      ASSERT_EQ(wrong_bits(cache.rows, got), 0U) << fault.name << ", token " << step;
      differs += got == healthy.next() ? 0 : 1;
      cache.append(got);
      healthy.extend({&got, 1});
    }
    EXPECT_GT(certain, 140U) << fault.name << ": of 160";
    EXPECT_EQ(differs > 2, &fault != &kFaults.front()) << fault.name << ' ' << differs;
  }
}

TEST(ProbeWeights, WithoutASinkAClearedBitStays) {
  const Tables tables;
  const Forward empty(tables);
  std::size_t certain = 0;
  std::size_t set = 0;
  std::size_t wrong = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Both cache(tables, empty, text_of(seed, 45 + 5 * seed));
    EXPECT_EQ(cache.rows.certain_bits(), 0xFFU);
    cache.evict(0, 1);
    cache.append(likeliest(cache.logits));
    for (int step = 0; step < 16; ++step) {
      const Token got = likeliest(cache.logits);
      certain += static_cast<std::size_t>(std::popcount(cache.rows.certain_bits()));
      set += static_cast<std::size_t>(std::popcount(wrong_bits(cache.rows, got)));
      wrong += got == cache.rows.next() ? 0 : 1;
      cache.append(got);
    }
  }
  EXPECT_GT(certain, 100U) << "of 512";
  EXPECT_LE(100 * set, 2 * certain);
  EXPECT_GT(wrong, 32U) << "of 64 tokens";
}

// docs/probe.md: with --past-window tokens look back past the window, and read nothing there.
TEST(ProbeWeights, AForwardPassWithAWindowGivesTheTokensOfTheRows) {
  constexpr std::size_t kWindow = 20;
  for (const bool past : {false, true}) {
    const Tables tables({.window = kWindow, .past_window = past});
    Forward forward(tables);
    Rows rows(tables);
    Rows too_long(tables, kWindow + 1);
    Token token = kBegin;
    std::size_t shown = 0;
    for (std::size_t position = 0; position < 120; ++position) {
      const Vector logits = forward.step(token);
      rows.extend({&token, 1});
      too_long.extend({&token, 1});
      const auto best = static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin());
      ASSERT_EQ(best, rows.next()) << "past " << past << " position " << position;
      Vector sorted = logits;
      std::ranges::nth_element(sorted, sorted.begin() + 1, std::greater<>());
      EXPECT_GT(logits[best] - sorted[1], 39) << "the right token leads by 40";
      shown += rows.next() == too_long.next() ? 0 : 1;
      token = position % (kWindow / 4) == kWindow / 4 - 1
                  ? kSink
                  : static_cast<Token>(kFirstValue + kValues * (4 + position % 3) +
                                       mix({5, position}) % kValues);
    }
    EXPECT_EQ(shown > 0, past) << shown << " tokens show a window that is one too long";
  }
}

}  // namespace
}  // namespace kvo::probe
