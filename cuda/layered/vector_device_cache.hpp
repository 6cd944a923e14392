// cuda/layered/vector_device_cache.hpp: `layered.vector` with its rows on a device.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuda/memory/staging.hpp"
#include "optimized/layered/control.hpp"
#include "reference/contract/values/thrown.hpp"

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
  using Behaviour = layered::Behaviour;
  using Geometry = layered::Geometry;

  /// Errors  as of layered::entry_elements and layered::reserved_elements (RS-2); kOutOfMemory; the
  ///         device's own.
  static Result<std::unique_ptr<layered::Cache>> make(const std::shared_ptr<Device>& device,
                                                      const Geometry& geometry,
                                                      std::optional<std::uint64_t> max_seq_len,
                                                      const Behaviour& behaviour) {
    if (behaviour.storage.type != StorageType::kF32) return not_on_device(behaviour.storage.type);
    const auto reserved = LayeredControl::elements_to_reserve(geometry, max_seq_len, behaviour);
    if (!reserved) return reserved.error();
    auto cache = std::make_unique<VectorDeviceCache>(device, geometry, behaviour);
    if (*reserved == 0) return cache;
    for (Layer& layer : cache->layers_) {
      for (Side& side : layer.sides) {
        if (Status there = cache->reserve(side, *reserved); !there) return there.error();
        side.largest = *reserved;
      }
    }
    return cache;
  }

  VectorDeviceCache(const std::shared_ptr<Device>& device, const Geometry& geometry,
                    const Behaviour& behaviour)
      : LayeredControl(geometry, behaviour), device_(device), staging_(device) {}

  /// Errors beside those of the contract: kOutOfMemory; the device's own.
  [[nodiscard]] Status append(const layered::Append& op) override {
    const std::array<std::span<const float>, 2> rows{op.k.floats(), op.v.floats()};
    if (Status checked = check(op.layer, rows[0], rows[1]); !checked) return checked;
    Layer& to = layers_[op.layer];
    if (Status there = staging_.reserve(0); !there) return there;
    for (const std::size_t which : {0U, 1U}) {
      Side& side = to.sides[which];
      if (Status there = reserve(side, side.size + rows[which].size()); !there) return there;
    }
    Status stored = staging_.carry_out([&]() -> Status {
      for (const std::size_t which : {0U, 1U}) {
        const Side& side = to.sides[which];
        if (rows[which].empty()) continue;
        const DevicePtr end = side.cells->ptr() + bytes_of(side.size);
        Status queued = staging_.upload(which, end, std::as_bytes(rows[which]));
        if (!queued) return queued;
      }
      return {};
    });
    if (!stored) return stored;
    for (const std::size_t which : {0U, 1U}) {
      Side& side = to.sides[which];
      side.size += rows[which].size();
      side.largest = std::max(side.largest, side.size);
    }
    ++to.pending;
    return {};
  }
  /// Errors  the device's own.
  [[nodiscard]] Shown shown(const DeviceSide& from) const {
    std::vector<float>& shown = from.shown;
    shown.reserve(from.largest);
    const std::size_t known = shown.size();
    if (known < from.size) {
      shown.resize(from.size);
      const auto fresh = std::as_writable_bytes(std::span(shown).subspan(known));
      Status read = device_->to_host(fresh, from.cells->ptr() + bytes_of(known));
      if (!read) {
        shown.resize(known);
        return error_of_device(read.error());
      }
    }
    return std::as_bytes(std::span(shown));
  }
  /// Throws std::bad_alloc without memory on the device; ErrorThrown when it fails.
  [[nodiscard]] std::unique_ptr<layered::Cache> clone() const override {
    auto made = std::make_unique<VectorDeviceCache>(device_, geometry_, behaviour_);
    made->len_ = len_;
    for (std::uint64_t layer = 0; layer < layers_.size(); ++layer) {
      made->layers_[layer].pending = layers_[layer].pending;
      for (const std::size_t which : {0U, 1U}) {
        const Side& from = layers_[layer].sides[which];
        Side& to = made->layers_[layer].sides[which];
        if (from.size == 0) continue;
        demand(made->reserve(to, from.size));
        demand(made->copy(*to.cells, from));
        to.size = to.largest = from.size;
      }
    }
    return made;
  }

 private:
  using Side = DeviceSide;
  using Layer = DeviceLayer;

  static std::int64_t bytes_of(std::uint64_t cells) {
    return static_cast<std::int64_t>(cells) * kCellBytes;
  }

  /// Sees to room for `needed` cells and keeps what the side holds. Errors leave it as it is.
  [[nodiscard]] Status reserve(Side& side, std::uint64_t needed) const {
    if (needed <= side.capacity) return {};
    const std::uint64_t capacity = std::max(needed, 2 * side.capacity);
    auto larger = make_cells(device_, static_cast<std::int64_t>(capacity));
    if (!larger) return larger.error();
    if (Status copied = copy(**larger, side); !copied) return copied;
    side.cells = std::move(*larger);
    side.capacity = capacity;
    return {};
  }
  /// Copies what `from` holds to the beginning of `to`, on the device.
  [[nodiscard]] Status copy(const DeviceStorage& to, const Side& from) const {
    if (from.size == 0) return {};
    Status queued = device_->copy(to.ptr(), from.cells->ptr(), bytes_of(from.size));
    return queued ? device_->synchronize(Stream()) : queued;
  }

  std::shared_ptr<Device> device_;
  Staging staging_;  ///< only its queue: rows are copied to where they stay
};

}  // namespace kvo::cuda
