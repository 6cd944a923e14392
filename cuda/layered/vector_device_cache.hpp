// cuda/layered/vector_device_cache.hpp: `layered.vector` with its rows on a device.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "cuda/memory/staging.hpp"
#include "optimized/layered/control.hpp"

namespace kvo::cuda {

/// K or V of a layer. Sizes are cells.
struct DeviceSide {
  std::shared_ptr<DeviceStorage> cells;  ///< null while the capacity is 0
  std::uint64_t size = 0;
  std::uint64_t capacity = 0;
  std::uint64_t largest = 0;         ///< reserved, or the largest size so far
  mutable std::vector<float> shown;  ///< the first of its cells, as of the last query

  void clear() {
    size = 0;
    shown.clear();
  }
};
struct DeviceLayer {
  std::array<DeviceSide, 2> sides;  ///< K, V
  std::uint64_t pending = 0;        ///< appends since the last advance or clear
};

/// K and V of a layer grow in device memory: a side that outgrows its buffer is copied, on the
/// device, to one of twice the size. A query's span is host memory: of each side there is a mirror,
/// to which a query copies what was appended since the last one. The mirror has room for what was
/// reserved, and for the largest length so far, so that it does not move before (RS-13).
class VectorDeviceCache final : public optimized::LayeredControl<VectorDeviceCache, DeviceLayer> {
 public:
  /// Errors  as of layered::entry_elements and layered::reserved_elements (RS-2); kOutOfMemory; the
  ///         device's own.
  static Result<std::unique_ptr<layered::Cache>> make(const std::shared_ptr<Device>& device,
                                                      const layered::Geometry& geometry,
                                                      std::optional<std::uint64_t> max_seq_len,
                                                      const layered::Behaviour& behaviour);

  VectorDeviceCache(const std::shared_ptr<Device>& device, const layered::Geometry& geometry,
                    const layered::Behaviour& behaviour)
      : LayeredControl(geometry, behaviour), device_(device), staging_(device) {}

  /// Errors beside those of the contract: kOutOfMemory; the device's own.
  [[nodiscard]] Status append(const layered::Append& op) override;
  /// Errors  the device's own.
  [[nodiscard]] Shown shown(const DeviceSide& from) const;
  /// Throws std::bad_alloc without memory on the device; ErrorThrown when it fails.
  [[nodiscard]] std::unique_ptr<layered::Cache> clone() const override;

 private:
  using Side = DeviceSide;
  using Layer = DeviceLayer;

  /// Sees to room for `needed` cells and keeps what the side holds. Errors leave it as it is.
  [[nodiscard]] Status reserve(Side& side, std::uint64_t needed) const;
  /// Copies what `from` holds to the beginning of `to`, on the device.
  [[nodiscard]] Status copy(const DeviceStorage& to, const Side& from) const;

  std::shared_ptr<Device> device_;
  Staging staging_;  ///< only its queue: rows are copied to where they stay
};

}  // namespace kvo::cuda
