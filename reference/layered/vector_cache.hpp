// reference/layered/vector_cache.hpp: the reference of contract `layered`.
#pragma once

#include <vector>

#include "reference/layered/cache.hpp"

namespace kvo::layered {

/// The shortest cache that keeps the contract: a vector for each layer's K and V.
class VectorCache : public Cache {
 public:
  /// Errors  as of entry_elements and reserved_elements (RS-2).
  static Result<std::unique_ptr<Cache>> make(const Geometry& geometry,
                                             std::optional<std::uint64_t> max_seq_len,
                                             const Behaviour& behaviour);

  VectorCache(const Geometry& geometry, const Behaviour& behaviour)
      : geometry_(geometry), behaviour_(behaviour), layers_(geometry.num_layers) {}

  [[nodiscard]] Geometry geometry() const override { return geometry_; }
  [[nodiscard]] Status append(const Append& op) override;
  [[nodiscard]] Status advance() override;
  [[nodiscard]] Result<std::span<const std::byte>> k(const Keys& op) const override;
  [[nodiscard]] Result<std::span<const std::byte>> v(const Values& op) const override;
  [[nodiscard]] std::uint64_t len() const override { return len_; }
  [[nodiscard]] Result<std::uint64_t> entry_size() const override {
    return entry_elements(geometry_, behaviour_);
  }
  void clear() override;
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
  [[nodiscard]] Status check_lengths(const Append& op) const;
  [[nodiscard]] std::vector<std::byte> stored(std::span<const float> entry) const;
  [[nodiscard]] Error no_layer(std::uint64_t layer) const;

  Geometry geometry_;
  Behaviour behaviour_;
  std::uint64_t len_ = 0;
  std::vector<Layer> layers_;
};

}  // namespace kvo::layered
