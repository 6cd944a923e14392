// optimized/layered/control.hpp: what caches of `layered.vector` decide in any memory.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reference/layered/cache.hpp"

namespace kvo::optimized {

/// Which appends a cache takes, and when a token counts. `Layer` has `sides`, K and V, each with
/// clear(), and `pending`, its appends since the last advance or clear. `Self` stores rows: it has
/// shown(side), what a query returns.
template <class Self, class Layer>
class LayeredControl : public layered::Cache {
 public:
  using Quirk = layered::Quirk;
  using Shown = Result<std::span<const std::byte>>;

  [[nodiscard]] layered::Geometry geometry() const override { return geometry_; }
  [[nodiscard]] Status advance() override {
    if (!has(Quirk::kAdvanceUnchecked) &&
        std::ranges::any_of(layers_, [](const Layer& layer) { return layer.pending != 1; }))
      return fail(Code::kPrecondition, "a layer lacks this token");
    for (Layer& layer : layers_) layer.pending = 0;
    ++len_;
    return {};
  }
  [[nodiscard]] Shown k(const layered::Keys& op) const override { return side(op.layer, 0); }
  [[nodiscard]] Shown v(const layered::Values& op) const override { return side(op.layer, 1); }
  [[nodiscard]] std::uint64_t len() const override { return len_; }
  [[nodiscard]] Result<std::uint64_t> entry_size() const override {
    return layered::entry_elements(geometry_, behaviour_);
  }
  void clear() override {
    for (Layer& layer : layers_) {
      for (auto& side : layer.sides) side.clear();
      layer.pending = 0;
    }
    len_ = 0;
  }

 protected:
  LayeredControl(const layered::Geometry& geometry, const layered::Behaviour& behaviour)
      : geometry_(geometry), behaviour_(behaviour), layers_(geometry.num_layers) {}

  /// Elements of a side that a new cache reserves; 0: none. Errors  as of Cache's make (RS-2).
  [[nodiscard]] static Result<std::uint64_t> elements_to_reserve(
      const layered::Geometry& geometry, std::optional<std::uint64_t> max_seq_len,
      const layered::Behaviour& behaviour) {
    if (!behaviour.quirks.has(Quirk::kSizesUnchecked)) {
      const auto entry = layered::entry_elements(geometry, behaviour);
      if (!entry) return entry.error();
    }
    if (!max_seq_len) return std::uint64_t{0};
    return layered::reserved_elements(geometry, *max_seq_len, behaviour);
  }
  [[nodiscard]] bool has(Quirk quirk) const { return behaviour_.quirks.has(quirk); }
  /// Whether an append may store these rows (RS-4 to RS-7).
  [[nodiscard]] Status check(std::uint64_t layer, std::span<const float> k,
                             std::span<const float> v) const {
    if (!has(Quirk::kLayerAborts) && layer >= layers_.size()) return no_layer(layer);
    const bool unchecked = has(Quirk::kLengthsUnchecked);
    if (!unchecked || behaviour_.build == layered::Build::kDebug) {
      const auto entry = layered::entry_elements(geometry_, behaviour_);
      if (!entry) return entry.error();
      const Code code = unchecked ? Code::kPrecondition : Code::kBadShape;
      if (k.size() != *entry) return fail(code, "k");
      if (v.size() != *entry) return fail(code, "v");
    }
    if (layer >= layers_.size()) return no_layer(layer);
    if (layers_[layer].pending > 0 && !has(Quirk::kSecondAppendTaken))
      return fail(Code::kPrecondition, "appended");
    return {};
  }

  layered::Geometry geometry_;
  layered::Behaviour behaviour_;
  std::uint64_t len_ = 0;
  std::vector<Layer> layers_;

 private:
  [[nodiscard]] Shown side(std::uint64_t layer, std::size_t which) const {
    if (layer >= layers_.size()) return no_layer(layer);
    return static_cast<const Self*>(this)->shown(layers_[layer].sides[which]);
  }
  [[nodiscard]] Error no_layer(std::uint64_t layer) const {
    return fail(has(Quirk::kLayerAborts) ? Code::kPrecondition : Code::kOutOfRange,
                "layer " + std::to_string(layer) + " of " + std::to_string(layers_.size()));
  }
};

}  // namespace kvo::optimized
