// cuda/provider/contiguous_device_cache.hpp: `provider.contiguous` with its rows on a device.
#pragma once

#include <memory>
#include <vector>

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
      QuirkSet<provider::Quirk> quirks);

  ContiguousDeviceCache(const std::shared_ptr<Device>& device,
                        const provider::ContiguousOptions& options,
                        QuirkSet<provider::Quirk> quirks)
      : ContiguousControl(options, quirks), device_(device), staging_(device) {}

 private:
  friend ContiguousControl;
  using Layer = ContiguousDeviceLayer;

  /// Errors  kOutOfMemory; the device's own. Nothing has changed.
  [[nodiscard]] Status put(Layer& to, const Rows& rows, std::int64_t cells, bool full);
  void stored(std::int64_t /*layer*/) {}
  [[nodiscard]] Result<std::optional<KvPair>> shown(const Layer& from) const;
  /// Makes the buffers of a layer, of `cells` each, and pins K's batch and dim.
  [[nodiscard]] Status pin(Layer& layer, const Tensor& k, std::int64_t cells) const;
  /// Copies rows behind the layer's cursor.
  [[nodiscard]] Status store(const Layer& layer, const provider::Rows& rows);
  /// The rows of every lane behind each other, in buffers of their own.
  [[nodiscard]] Result<provider::KvPair> compact(const Layer& layer) const;
  std::shared_ptr<Device> device_;
  Staging staging_;
};

}  // namespace kvo::cuda
