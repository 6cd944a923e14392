// reference/dynamic/layers.hpp: a list of layers, each with attention, a linear state, both, or
// nothing (HF-1 to HF-6, HF-50 to HF-54).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reference/dynamic/attention.hpp"
#include "reference/dynamic/linear.hpp"

namespace kvo::dynamic {

/// One layer; a copy shares static buffers with it. Methods: as of Attention.
class Layer {
 public:
  Layer(std::optional<LinearState> linear, std::unique_ptr<Attention> attention)
      : linear_(std::move(linear)), attention_(std::move(attention)) {}
  Layer(const Layer& other);
  Layer(Layer&&) noexcept = default;
  Layer& operator=(const Layer&) = delete;
  Layer& operator=(Layer&&) noexcept = default;
  ~Layer() = default;

  /// Null: it has none. @{
  [[nodiscard]] LinearState* linear() { return linear_ ? &*linear_ : nullptr; }
  [[nodiscard]] const LinearState* linear() const { return linear_ ? &*linear_ : nullptr; }
  [[nodiscard]] const Attention* attention() const { return attention_.get(); }
  /// @}

  Result<KeysValues> update(const Tensor* k, const Tensor* v, Writes& writes);
  Status crop(std::int64_t tokens_to_remove, QuirkSet<Quirk> quirks);
  Status reorder(std::span<const std::int64_t> beams);
  Status repeat(std::int64_t repeats);
  Status select(std::span<const std::int64_t> indices);
  void reset(Writes& writes);
  void record_past();
  Status initialize(std::int64_t batch, std::int64_t heads, std::int64_t dim);

  [[nodiscard]] Result<LayerState> state() const;
  [[nodiscard]] std::int64_t max_length() const;
  [[nodiscard]] bool is_sliding() const { return attention_ && attention_->is_sliding(); }
  [[nodiscard]] bool is_compileable() const { return !attention_ || attention_->is_static(); }
  [[nodiscard]] bool is_croppable(QuirkSet<Quirk> quirks) const;
  /// Whether early_initialization concerns it (HF-36).
  [[nodiscard]] bool takes_initialization() const { return attention_ && !linear_; }
  [[nodiscard]] std::optional<std::int64_t> batch_size(bool recorded) const;

 private:
  /// What a layer without attention answers to a change of the batch.
  [[nodiscard]] Status no_batch(std::string_view operation) const;
  [[nodiscard]] bool is_static_hybrid() const {
    return linear_ && attention_ && attention_->is_static();
  }

  std::optional<LinearState> linear_;
  std::unique_ptr<Attention> attention_;
};

/// A list of layers. Methods go through the layers in order and stop at the first error, with the
/// layers before it changed (HF-1).
class Layers {
 public:
  Layers(const ListOptions& options, QuirkSet<Quirk> quirks);

  Result<KeysValues> update(std::int64_t layer, const Tensor* k, const Tensor* v, Writes& writes);
  Status crop(std::int64_t tokens_to_remove);
  Status reorder(std::span<const std::int64_t> beams);
  Status repeat(std::int64_t repeats);
  Status select(std::span<const std::int64_t> indices);
  void reset(Writes& writes);
  void record_past();
  Status initialize(std::int64_t batch, std::int64_t heads, std::int64_t dim);

  [[nodiscard]] std::int64_t count() const { return std::ssize(layers_); }
  /// Errors  kOutOfRange. @{
  [[nodiscard]] Result<std::size_t> index_of(std::int64_t layer) const;
  [[nodiscard]] Result<const Layer*> at(std::int64_t layer) const;
  /// @}
  /// Errors  kOutOfRange; kNotSupported: it has no linear state.
  [[nodiscard]] Result<std::size_t> linear_at(std::int64_t layer) const;
  [[nodiscard]] LinearState& linear(std::size_t index) { return *layers_[index].linear(); }
  [[nodiscard]] const LinearState& linear(std::size_t index) const {
    return *layers_[index].linear();
  }
  /// The layer whose length a query about `layer` is for (HF-4); null: there is no such layer yet.
  /// Errors  as of Cache::length.
  [[nodiscard]] Result<const Attention*> counted(std::int64_t layer) const;
  [[nodiscard]] Result<std::int64_t> max_length(std::optional<std::int64_t> layer) const;
  [[nodiscard]] Result<bool> has_previous(std::optional<std::int64_t> layer) const;
  [[nodiscard]] Result<Properties> properties() const;

 private:
  QuirkSet<Quirk> quirks_;
  bool lazy_;
  std::vector<Layer> layers_;
};

}  // namespace kvo::dynamic
