#include "reference/probe/weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "reference/contract/values/check.hpp"

namespace kvo::probe {
namespace {

constexpr std::size_t kConstant = 0;  // dimensions of the hidden vector
constexpr std::size_t kSinkMark = 1;
constexpr std::size_t kFirstClassBit = 2;
constexpr std::size_t kClassBits = 4;
constexpr std::size_t kFirstTokenBit = kFirstClassBit + kClassBits;
constexpr std::size_t kBitsPerLayer = Shape::kHeads * Shape::kBits;
constexpr std::size_t kFirstKeySign = kFirstTokenBit + kBitsPerLayer;
constexpr std::size_t kFirstReadBit = kFirstKeySign + Shape::kLayers * Shape::kHeads;
constexpr std::size_t kFirstPhasor = kFirstReadBit + Shape::kLayers * kBitsPerLayer;

// Most of the length of the hidden vector: reads of 0 change the rms by a few percent only.
constexpr double kConstantValue = 16;
constexpr double kKeyLength = 4;       // of each pair of a key
constexpr double kScore = 144;         // of the row that is read
constexpr double kLogit = 40;          // by which the right token leads
constexpr std::size_t kSinkPairs = 3;  // the slowest ones: RoPE hardly turns them

double class_code(std::size_t token_class, std::size_t bit) {
  return sign_of(token_class >> bit);
}

double value_code(std::size_t value, std::size_t bit) {
  return sign_of(value >> bit);
}

}  // namespace

bool Tensor::is_norm() const {
  return kind == Kind::kInputNorm || kind == Kind::kAttentionNorm || kind == Kind::kLastNorm;
}

std::string Tensor::name() const {
  constexpr std::array<std::string_view, 12> kNames{"model.embed_tokens",
                                                    "input_layernorm",
                                                    "self_attn.q_proj",
                                                    "self_attn.k_proj",
                                                    "self_attn.v_proj",
                                                    "self_attn.o_proj",
                                                    "post_attention_layernorm",
                                                    "mlp.gate_proj",
                                                    "mlp.up_proj",
                                                    "mlp.down_proj",
                                                    "model.norm",
                                                    "lm_head"};
  const std::string_view name = kNames[static_cast<std::size_t>(kind)];
  if (kind == Kind::kEmbedding || kind >= Kind::kLastNorm) return fmt::format("{}.weight", name);
  return fmt::format("model.layers.{}.{}.weight", layer, name);
}

std::vector<Tensor> tensors_of(const Shape& shape) {
  constexpr std::size_t kHidden = Shape::kHidden;
  const std::size_t queries = Shape::kQueryHeads * shape.head_dim;
  const std::size_t keys = Shape::kHeads * shape.head_dim;
  std::vector<Tensor> all{{Kind::kEmbedding, 0, Shape::kVocabulary, kHidden}};
  for (std::size_t layer = 0; layer < Shape::kLayers; ++layer)
    all.insert(all.end(), {{Kind::kInputNorm, layer, 1, kHidden},
                           {Kind::kQuery, layer, queries, kHidden},
                           {Kind::kKey, layer, keys, kHidden},
                           {Kind::kValue, layer, keys, kHidden},
                           {Kind::kOutput, layer, kHidden, queries},
                           {Kind::kAttentionNorm, layer, 1, kHidden},
                           {Kind::kGate, layer, Shape::kFeedForward, kHidden},
                           {Kind::kUp, layer, Shape::kFeedForward, kHidden},
                           {Kind::kDown, layer, kHidden, Shape::kFeedForward}});
  all.push_back({Kind::kLastNorm, 0, 1, kHidden});
  all.push_back({Kind::kHead, 0, Shape::kVocabulary, kHidden});
  return all;
}

float rounded(double value, StorageType type) {
  KVO_CHECK(type == StorageType::kF32 || type == StorageType::kBf16 || type == StorageType::kF16);
  if (type == StorageType::kF32 || value == 0) return static_cast<float>(value);
  const int digits = type == StorageType::kBf16 ? 8 : 11;
  const int least = type == StorageType::kBf16 ? -126 : -14;
  const int last_digit = std::max(std::ilogb(value), least) - (digits - 1);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(value, -last_digit)), last_digit));
}

Weights::Weights(const Tables& tables)
    : tables_(&tables),
      amplitudes_(&amplitudes_of(tables.shape().head_dim)),
      dim_(tables.shape().head_dim) {
  // Every bit, sign and phasor has the square 1.
  const std::size_t ones =
      kBitsPerLayer + Shape::kLayers * Shape::kHeads + Shape::kHeads * amplitudes_->pairs.size();
  const double always = kConstantValue * kConstantValue + kClassBits;
  square_ = always + static_cast<double>(ones);
  sink_ = std::sqrt(square_ - always);
}

std::size_t Weights::class_bit(std::size_t bit) {
  return kFirstClassBit + bit;
}
std::size_t Weights::token_bit(std::size_t head, std::size_t bit) {
  return kFirstTokenBit + Shape::kBits * head + bit;
}
std::size_t Weights::key_sign(std::size_t layer, std::size_t head) {
  return kFirstKeySign + Shape::kHeads * layer + head;
}
std::size_t Weights::read_bit(std::size_t layer, std::size_t head, std::size_t bit) {
  return kFirstReadBit + kBitsPerLayer * layer + Shape::kBits * head + bit;
}
std::size_t Weights::phasor(std::size_t head, std::size_t pair, bool sine) const {
  const std::size_t pairs = amplitudes_->pairs.size();
  return kFirstPhasor + pairs * (2 * head + (sine ? 1 : 0)) + pair;
}

// The reads of each layer before this one have added 1 per bit.
double Weights::rms(std::size_t layer) const {
  return std::sqrt((square_ + static_cast<double>(kBitsPerLayer * layer)) / Shape::kHidden);
}

void Weights::embedding(Token token, Row row) const {
  const Meaning& meaning = (*tables_)[token];
  row[kConstant] = kConstantValue;
  for (std::size_t bit = 0; bit < kClassBits; ++bit)
    row[class_bit(bit)] = class_code(meaning.token_class, bit);
  if (is_sink(token)) row[kSinkMark] = sink_;
  // Void tokens have the same length by a dimension that nothing reads.
  if (!is_sink(token) && !meaning.is_value) row[phasor(Shape::kHeads, 0, false)] = sink_;
  if (!meaning.is_value) return;
  for (std::size_t head = 0; head < Shape::kHeads; ++head) {
    for (std::size_t bit = 0; bit < Shape::kBits; ++bit)
      row[token_bit(head, bit)] = meaning.bits[head][bit];
    for (std::size_t layer = 0; layer < Shape::kLayers; ++layer)
      row[key_sign(layer, head)] = meaning.sign[layer][head];
    for (std::size_t pair = 0; pair < amplitudes_->pairs.size(); ++pair) {
      // RoPE at position m then gives the angle of a key at position m - look_back.
      const double angle = -(amplitudes_->pairs[pair].frequency * meaning.look_back[head]);
      row[phasor(head, pair, false)] = std::cos(angle);
      row[phasor(head, pair, true)] = std::sin(angle);
    }
  }
}

// Two query heads for each KV head: the first one finds a row of sign +1, the second of -1. The
// other one finds the sink, whose score is halfway between the row and all other rows.
void Weights::query(std::size_t layer, std::size_t output, Row row) const {
  const std::size_t query_head = output / dim_;
  const std::size_t head = query_head / 2;
  const double sign = query_head % 2 == 0 ? 1 : -1;
  const std::size_t dim = output % dim_;
  const std::size_t half = dim_ / 2;
  const double scale = kScore * std::sqrt(static_cast<double>(dim_)) / kKeyLength;
  if (dim % half < amplitudes_->pairs.size())
    row[phasor(head, dim % half, dim >= half)] =
        sign * amplitudes_->pairs[dim % half].amplitude * scale * rms(layer);
  const double sink_score = amplitudes_->rho + 0.5 * (1 - amplitudes_->rho);
  if (dim < half && dim >= half - kSinkPairs)
    row[kConstant] = sink_score * scale / kSinkPairs * rms(layer) / kConstantValue;
}

void Weights::key(std::size_t layer, std::size_t output, Row row) const {
  const std::size_t dim = output % dim_;
  const std::size_t half = dim_ / 2;
  if (dim < amplitudes_->pairs.size())
    row[key_sign(layer, output / dim_)] = kKeyLength * rms(layer);
  if (dim < half && dim >= half - kSinkPairs) row[kSinkMark] = kKeyLength * rms(layer) / sink_;
}

void Weights::value(std::size_t layer, std::size_t output, Row row) const {
  const std::size_t head = output / dim_;
  const std::size_t dim = output % dim_;
  const std::size_t bit = dim / (dim_ / 2);
  const std::size_t source =
      layer == 0 ? token_bit(head, bit) : read_bit(layer - 1, (head + 1) % Shape::kHeads, bit);
  row[source] = rms(layer) * pattern(tables_->shape(), layer, head, dim);
}

// The mean over half of a head of the first query head, less that of the second.
void Weights::output(std::size_t layer, std::size_t output, Row row) const {
  const std::size_t half = dim_ / 2;
  for (std::size_t head = 0; head < Shape::kHeads; ++head)
    for (std::size_t dim = 0; dim < dim_; ++dim)
      if (output == read_bit(layer, head, dim / half)) {
        const double share =
            pattern(tables_->shape(), layer, head, dim) / static_cast<double>(half);
        row[2 * head * dim_ + dim] = share;
        row[(2 * head + 1) * dim_ + dim] = -share;
      }
}

// A half is taken off each read, so that 0 counts as a cleared bit. One wrong bit costs kLogit or
// more, and so does a wrong class.
void Weights::head(Token token, Row row) const {
  const Meaning& meaning = (*tables_)[token];
  if (!meaning.is_value) return;
  const double scale = kLogit * rms(Shape::kLayers);
  double sum = 0;
  for (std::size_t bit = 0; bit < kBitsPerLayer; ++bit) {
    row[read_bit(Shape::kLayers - 1, 0, bit)] = scale * value_code(meaning.value, bit);
    sum += value_code(meaning.value, bit);
  }
  row[kConstant] = -0.5 * scale / kConstantValue * sum;
  for (std::size_t bit = 0; bit < kClassBits; ++bit)
    row[class_bit(bit)] = scale * class_code(meaning.token_class, bit);
}

std::vector<double> Weights::row(const Tensor& tensor, std::size_t index) const {
  std::vector<double> row(tensor.columns, tensor.is_norm() ? 1 : 0);
  switch (tensor.kind) {
    case Kind::kEmbedding:
      embedding(static_cast<Token>(index), row);
      break;
    case Kind::kQuery:
      query(tensor.layer, index, row);
      break;
    case Kind::kKey:
      key(tensor.layer, index, row);
      break;
    case Kind::kValue:
      value(tensor.layer, index, row);
      break;
    case Kind::kOutput:
      output(tensor.layer, index, row);
      break;
    case Kind::kHead:
      head(static_cast<Token>(index), row);
      break;
    default:  // norms are 1, the MLP is 0
      break;
  }
  return row;
}

std::vector<float> Weights::values(const Tensor& tensor, StorageType type) const {
  std::vector<float> all;
  all.reserve(tensor.rows * tensor.columns);
  for (std::size_t index = 0; index < tensor.rows; ++index)
    for (const double value : row(tensor, index)) all.push_back(rounded(value, type));
  return all;
}

}  // namespace kvo::probe
