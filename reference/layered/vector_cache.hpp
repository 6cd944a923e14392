// reference/layered/vector_cache.hpp: the reference of contract `layered`.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "reference/layered/cache.hpp"

namespace kvo::layered {

/// The shortest cache that keeps the contract: a vector for each layer's K and V.
class VectorCache : public Cache {
 public:
  /// Errors  as of entry_elements and reserved_elements (RS-2).
  static Result<std::unique_ptr<Cache>> make(const Geometry& geometry,
                                             std::optional<std::uint64_t> max_seq_len,
                                             const Behaviour& behaviour) {
    if (!behaviour.quirks.has(Quirk::kSizesUnchecked)) {  // RS-1: else nothing is computed yet
      const auto entry = entry_elements(geometry, behaviour);
      if (!entry) return entry.error();
    }
    const auto reserved = max_seq_len ? reserved_elements(geometry, *max_seq_len, behaviour)
                                      : Result<std::uint64_t>(0);
    if (!reserved) return reserved.error();
    auto cache = std::make_unique<VectorCache>(geometry, behaviour);
    for (Layer& layer : cache->layers_) {
      layer.k.reserve(stored_bytes_of(geometry, *reserved, behaviour.storage));
      layer.v.reserve(stored_bytes_of(geometry, *reserved, behaviour.storage));
    }
    return cache;
  }

  VectorCache(const Geometry& geometry, const Behaviour& behaviour)
      : geometry_(geometry), behaviour_(behaviour), layers_(geometry.num_layers) {}

  [[nodiscard]] Geometry geometry() const override { return geometry_; }
  [[nodiscard]] Status append(const Append& op) override {
    if (!has(Quirk::kLayerAborts) && op.layer >= layers_.size()) return no_layer(op.layer);
    if (Status checked = check_lengths(op); !checked) return checked;
    if (op.layer >= layers_.size()) return no_layer(op.layer);  // RS-4 (d)
    Layer& to = layers_[op.layer];
    if (!has(Quirk::kSecondAppendTaken) && to.pending != 0)
      return fail(Code::kPrecondition,
                  "layer " + std::to_string(op.layer) + " has this token already");
    const std::vector<std::byte> key = stored(op.k.floats());
    const std::vector<std::byte> value = stored(op.v.floats());
    std::vector<std::byte> moved;  // V moves when K has its memory
    if (to.v.capacity() < to.v.size() + value.size()) {
      moved.reserve(std::max(2 * to.v.capacity(), to.v.size() + value.size()));
      moved.assign(to.v.begin(), to.v.end());
    }
    to.k.insert(to.k.end(), key.begin(), key.end());
    if (moved.capacity() > 0) to.v.swap(moved);
    to.v.insert(to.v.end(), value.begin(), value.end());
    ++to.pending;
    return {};
  }
  [[nodiscard]] Status advance() override {
    if (!has(Quirk::kAdvanceUnchecked))
      for (const Layer& layer : layers_)
        if (layer.pending != 1) return fail(Code::kPrecondition, "a layer lacks this token");
    for (Layer& layer : layers_) layer.pending = 0;
    ++len_;
    return {};
  }
  [[nodiscard]] Result<std::span<const std::byte>> k(const Keys& op) const override {
    if (op.layer >= layers_.size()) return no_layer(op.layer);
    return std::span<const std::byte>(layers_[op.layer].k);
  }
  [[nodiscard]] Result<std::span<const std::byte>> v(const Values& op) const override {
    if (op.layer >= layers_.size()) return no_layer(op.layer);
    return std::span<const std::byte>(layers_[op.layer].v);
  }
  [[nodiscard]] std::uint64_t len() const override { return len_; }
  [[nodiscard]] Result<std::uint64_t> entry_size() const override {
    return entry_elements(geometry_, behaviour_);
  }
  void clear() override {
    for (Layer& layer : layers_) {
      layer.k.clear();
      layer.v.clear();
      layer.pending = 0;
    }
    len_ = 0;
  }
  [[nodiscard]] std::unique_ptr<Cache> clone() const override {
    return std::make_unique<VectorCache>(*this);
  }

 protected:
  struct Layer {
    std::vector<std::byte> k;  ///< rows of head_dim elements, as they are stored
    std::vector<std::byte> v;
    std::uint64_t pending = 0;  ///< appends since the last advance or clear
  };
  [[nodiscard]] bool has(Quirk quirk) const { return behaviour_.quirks.has(quirk); }
  // RS-4 (a) to (c): in the original these are debug assertions.
  [[nodiscard]] Status check_lengths(const Append& op) const {
    const bool unchecked = has(Quirk::kLengthsUnchecked);
    if (unchecked && behaviour_.build == Build::kRelease) return {};
    const auto entry = entry_elements(geometry_, behaviour_);
    if (!entry) return entry.error();
    const Code code = unchecked ? Code::kPrecondition : Code::kBadShape;
    if (op.k.floats().size() != *entry) return fail(code, "k");
    if (op.v.floats().size() != *entry) return fail(code, "v");
    return {};
  }
  [[nodiscard]] std::vector<std::byte> stored(std::span<const float> entry) const {
    std::vector<std::byte> bytes(stored_bytes_of(geometry_, entry.size(), behaviour_.storage));
    // Of floats every element stands for itself, so that a row of f32 may be of any length.
    const std::uint64_t dim = in_groups(behaviour_.storage.type) ? geometry_.head_dim : 1;
    store_rows(behaviour_.storage, static_cast<std::int64_t>(dim), entry, bytes.data());
    return bytes;
  }
  [[nodiscard]] Error no_layer(std::uint64_t layer) const {
    return fail(has(Quirk::kLayerAborts) ? Code::kPrecondition : Code::kOutOfRange,
                "layer " + std::to_string(layer) + " of " + std::to_string(layers_.size()));
  }

  Geometry geometry_;
  Behaviour behaviour_;
  std::uint64_t len_ = 0;
  std::vector<Layer> layers_;
};

}  // namespace kvo::layered
