// reference/probe/weights.hpp: the tensors of the probe as a Llama checkpoint, row by row.
//
// Words    rms       root of the mean square of the hidden vector. The probe knows it for each
//                    layer, so that weights can undo what the norms divide by.
//          phasor    (cos, sin) of the angle by which a query must be turned to find its row.
// Shapes   as in Hugging Face's Llama: [outputs, inputs]; a norm is [hidden].
// Numbers  Weights are computed in double and rounded once, ties to even. Sums and products have
//          one order, and cos and sin are the only functions that the C library may round in its
//          own way. weights_test.cpp shows that no such difference can reach a rounded weight.
// Source   docs/probe.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/contract/values/numeric.hpp"
#include "reference/probe/amplitudes.hpp"
#include "reference/probe/tables.hpp"

namespace kvo::probe {

enum class Kind : std::uint8_t {
  kEmbedding,
  kInputNorm,
  kQuery,
  kKey,
  kValue,
  kOutput,
  kAttentionNorm,  ///< after the attention, before the MLP
  kGate,
  kUp,
  kDown,
  kLastNorm,
  kHead,
};

/// One tensor of the checkpoint.
struct Tensor {
  Kind kind;
  std::size_t layer = 0;
  std::size_t rows = 1;
  std::size_t columns = 0;

  [[nodiscard]] bool is_norm() const;
  /// As Hugging Face names it: "model.layers.0.self_attn.q_proj.weight".
  [[nodiscard]] std::string name() const;
};

/// Every tensor, in the order of a forward pass.
[[nodiscard]] std::vector<Tensor> tensors_of(const Shape& shape);

/// `value` as `type` stores it, exactly.
/// Requires  kF32, kBf16 or kF16, and a value in its range.
[[nodiscard]] float rounded(double value, StorageType type);

/// The weights of a shape.
class Weights {
 public:
  /// Requires  `tables` outlives the weights.
  explicit Weights(const Tables& tables);

  /// Row `row` of `tensor`, unrounded: [tensor.columns].
  [[nodiscard]] std::vector<double> row(const Tensor& tensor, std::size_t row) const;
  /// The whole tensor, rounded: [tensor.rows, tensor.columns].
  [[nodiscard]] std::vector<float> values(const Tensor& tensor, StorageType type) const;

 private:
  using Row = std::span<double>;
  // Dimensions of the hidden vector, in this order. The rest is 0.
  [[nodiscard]] static std::size_t class_bit(std::size_t bit);
  [[nodiscard]] static std::size_t token_bit(std::size_t head, std::size_t bit);
  [[nodiscard]] static std::size_t key_sign(std::size_t layer, std::size_t head);
  [[nodiscard]] static std::size_t read_bit(std::size_t layer, std::size_t head, std::size_t bit);
  [[nodiscard]] std::size_t phasor(std::size_t head, std::size_t pair, bool sine) const;

  [[nodiscard]] double rms(std::size_t layer) const;
  void embedding(Token token, Row row) const;
  void query(std::size_t layer, std::size_t output, Row row) const;
  void key(std::size_t layer, std::size_t output, Row row) const;
  void value(std::size_t layer, std::size_t output, Row row) const;
  void output(std::size_t layer, std::size_t output, Row row) const;
  void head(Token token, Row row) const;

  const Tables* tables_;
  const Amplitudes* amplitudes_;
  std::size_t dim_;  // of a head
  double square_;    // of the length of every embedding
  double sink_;      // of a sink's embedding, in its own dimension
};

}  // namespace kvo::probe
