// cuda/provider/contiguous_device_cache.hpp: `provider.contiguous` with its rows on a device.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "cuda/jobs/rows.hpp"
#include "cuda/memory/staging.hpp"
#include "optimized/provider/contiguous_control.hpp"

namespace kvo::cuda {

/// The memory of a layer, and what it holds.
struct ContiguousDeviceLayer {
  std::shared_ptr<DeviceStorage> k;  ///< [batch][max_seq_len][dim]; null until pinned
  std::shared_ptr<DeviceStorage> v;
  std::int64_t cursor = 0;
  std::int64_t batch = 0;
  std::int64_t dim = 0;

  [[nodiscard]] bool exists() const { return k != nullptr; }
};

/// A buffer a layer and side in device memory. Rows of one lane are copied to their place; those of
/// several go through staging memory, and job append_rows puts all lanes in place at once. An
/// operation has taken effect when it returns.
class ContiguousDeviceCache final
    : public optimized::ContiguousControl<ContiguousDeviceCache, ContiguousDeviceLayer> {
 public:
  /// Errors  as provider::MakeContiguous says; kNotSupported: rows that are not f32.
  static Result<std::unique_ptr<provider::Contiguous>> make(
      const std::shared_ptr<Device>& device, const provider::ContiguousOptions& options,
      QuirkSet<Quirk> quirks) {
    if (Status good = store_f32_only(options.storage); !good) return good.error();
    if (Status good = provider::check(options, quirks); !good) return good.error();
    return std::make_unique<ContiguousDeviceCache>(device, options, quirks);
  }

  ContiguousDeviceCache(const std::shared_ptr<Device>& device,
                        const provider::ContiguousOptions& options, QuirkSet<Quirk> quirks)
      : ContiguousControl(options, quirks), device_(device), staging_(device) {}

 private:
  friend ContiguousControl;
  using Layer = ContiguousDeviceLayer;

  /// Errors  kOutOfMemory; the device's own. Nothing has changed.
  [[nodiscard]] Status put(Layer& to, const Rows& rows, std::int64_t cells, bool full) {
    Layer next = to;  // replaces it when nothing failed
    if (!next.exists()) {
      if (Status made = pin(next, *rows.k, cells); !made) return made;
    }
    if (!full && !rows.k->bytes.empty()) {
      if (Status stored = store(next, rows); !stored) return stored;
    }
    to = std::move(next);
    return {};
  }
  void stored(std::int64_t /*layer*/) {}
  [[nodiscard]] Result<std::optional<KvPair>> shown(const Layer& from) const {
    if (from.batch > 1 && from.dim > 0 && from.cursor < max_seq_len_) {
      auto pair = compact(from);
      if (!pair) return pair.error();
      return std::move(*pair);
    }
    const Shape shape{from.batch, from.cursor, from.dim};
    return KvPair{{shape, from.k}, {shape, from.v}};  // ZF-14
  }
  /// Makes the buffers of a layer, of `cells` each, and pins K's batch and dim.
  [[nodiscard]] Status pin(Layer& layer, const Tensor& k, std::int64_t cells) const {
    for (std::shared_ptr<DeviceStorage>* buffer : {&layer.k, &layer.v}) {
      auto made = make_cells(device_, cells);
      if (!made) return made.error();
      *buffer = std::move(*made);
    }
    layer.batch = k.shape[0];
    layer.dim = k.shape[2];
    return {};
  }
  /// Copies rows behind the layer's cursor.
  [[nodiscard]] Status store(const Layer& layer, const Rows& rows) {
    const std::int64_t seq = rows.k->shape[1];
    const std::int64_t run = seq * layer.dim;
    const std::int64_t row_bytes = layer.dim * kCellBytes;
    const bool straight = layer.batch == 1;
    const std::int64_t bytes = layer.batch * run * kCellBytes;
    if (Status there = staging_.reserve(straight ? 0 : bytes); !there) return there;

    const auto put = [&](std::size_t side, const DeviceStorage& buffer, const Tensor& from,
                         DevicePtr cells) {
      const DevicePtr place = buffer.ptr() + layer.cursor * row_bytes;
      const HostLanes lanes{from.floats().data(), layer.batch, run, run};
      if (straight)
        return cells ? device_->copy(place, cells, bytes) : staging_.upload(side, place, lanes);
      if (!cells) {
        cells = staging_.room(side);
        if (Status queued = staging_.upload(side, cells, lanes); !queued) return queued;
      }
      return device_->run(append_rows(buffer.ptr(), cells, layer.batch, seq, row_bytes,
                                      layer.cursor, max_seq_len_));
    };
    return staging_.carry_out([&] {
      Status keys = put(0, *layer.k, *rows.k, rows.k_device);
      return keys ? put(1, *layer.v, *rows.v, rows.v_device) : keys;
    });
  }
  /// The rows of every lane behind each other, in buffers of their own.
  [[nodiscard]] Result<KvPair> compact(const Layer& layer) const {
    const std::int64_t run = layer.cursor * layer.dim;
    const std::int64_t side = layer.batch * run;
    auto both = make_cells(device_, 2 * side);  // one allocation holds both sides
    if (!both) return both.error();
    for (const auto& [first, from] :
         {std::pair(std::int64_t{0}, layer.k.get()), std::pair(side, layer.v.get())}) {
      for (std::int64_t lane = 0; lane < layer.batch; ++lane) {
        const DevicePtr to = (*both)->ptr() + (first + lane * run) * kCellBytes;
        const DevicePtr start = from->ptr() + lane * max_seq_len_ * layer.dim * kCellBytes;
        if (Status queued = device_->copy(to, start, run * kCellBytes); !queued)
          return queued.error();
      }
    }
    if (Status done = device_->synchronize(Stream()); !done) return done.error();
    const Shape shape{layer.batch, layer.cursor, layer.dim};
    return KvPair{{shape, *both, 0}, {shape, *both, side}};
  }
  std::shared_ptr<Device> device_;
  Staging staging_;
};

}  // namespace kvo::cuda
