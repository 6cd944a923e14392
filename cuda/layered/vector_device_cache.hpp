// cuda/layered/vector_device_cache.hpp: `layered.vector` with its rows on a device.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "cuda/memory/staging.hpp"
#include "reference/layered/cache.hpp"

namespace kvo::cuda {

/// K and V of a layer grow in device memory: a side that outgrows its buffer is copied, on the
/// device, to one of twice the size. A query's span is host memory: of each side there is a mirror,
/// to which a query copies what was appended since the last one. The mirror has room for what was
/// reserved, and for the largest length so far, so that it does not move before (RS-13).
class VectorDeviceCache final : public layered::Cache {
 public:
  /// Errors  as of layered::entry_elements and layered::reserved_elements (RS-2); kOutOfMemory; the
  ///         device's own.
  static Result<std::unique_ptr<layered::Cache>> make(const std::shared_ptr<Device>& device,
                                                      const layered::Geometry& geometry,
                                                      std::optional<std::uint64_t> max_seq_len,
                                                      const layered::Behaviour& behaviour);

  VectorDeviceCache(const std::shared_ptr<Device>& device, const layered::Geometry& geometry,
                    const layered::Behaviour& behaviour)
      : device_(device),
        staging_(device),
        geometry_(geometry),
        behaviour_(behaviour),
        layers_(geometry.num_layers) {}

  [[nodiscard]] layered::Geometry geometry() const override { return geometry_; }
  /// Errors beside those of the contract: kOutOfMemory; the device's own.
  [[nodiscard]] Status append(const layered::Append& op) override;
  [[nodiscard]] Status advance() override;
  /// Errors beside those of the contract: the device's own.
  [[nodiscard]] Result<std::span<const std::byte>> k(const layered::Keys& op) const override {
    return side(op.layer, 0);
  }
  [[nodiscard]] Result<std::span<const std::byte>> v(const layered::Values& op) const override {
    return side(op.layer, 1);
  }
  [[nodiscard]] std::uint64_t len() const override { return len_; }
  [[nodiscard]] Result<std::uint64_t> entry_size() const override {
    return layered::entry_elements(geometry_, behaviour_);
  }
  void clear() override;
  /// Throws std::bad_alloc without memory on the device; ErrorThrown when it fails.
  [[nodiscard]] std::unique_ptr<layered::Cache> clone() const override;

 private:
  /// K or V of a layer. Sizes are cells.
  struct Side {
    std::shared_ptr<DeviceStorage> cells;  ///< null while the capacity is 0
    std::uint64_t size = 0;
    std::uint64_t capacity = 0;
    std::uint64_t largest = 0;         ///< reserved, or the largest size so far
    mutable std::vector<float> shown;  ///< the first of its cells, as of the last query
  };
  struct Layer {
    std::array<Side, 2> sides;  ///< K, V
    std::uint64_t pending = 0;  ///< appends since the last advance or clear
  };

  [[nodiscard]] bool has(layered::Quirk quirk) const { return behaviour_.quirks.has(quirk); }
  [[nodiscard]] Status check(std::uint64_t layer, std::span<const float> k,
                             std::span<const float> v) const;
  [[nodiscard]] Result<std::span<const std::byte>> side(std::uint64_t layer,
                                                        std::size_t which) const;
  [[nodiscard]] Error no_layer(std::uint64_t layer) const;
  /// Sees to room for `needed` cells and keeps what the side holds. Errors leave it as it is.
  [[nodiscard]] Status reserve(Side& side, std::uint64_t needed) const;
  /// Copies what `from` holds to the beginning of `to`, on the device.
  [[nodiscard]] Status copy(const DeviceStorage& to, const Side& from) const;

  std::shared_ptr<Device> device_;
  Staging staging_;  ///< only its queue: rows are copied to where they stay
  layered::Geometry geometry_;
  layered::Behaviour behaviour_;
  std::uint64_t len_ = 0;
  std::vector<Layer> layers_;
};

}  // namespace kvo::cuda
