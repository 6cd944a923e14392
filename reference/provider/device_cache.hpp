// reference/provider/device_cache.hpp: the reference of `provider.device`.
#pragma once

#include <memory>
#include <vector>

#include "reference/provider/device.hpp"

namespace kvo::provider {

/// The shortest cache that keeps the contract, over any Device.
class DeviceCache : public DeviceKv {
 public:
  /// Errors  as MakeDevice says.
  static Result<std::unique_ptr<DeviceKv>> make(const DeviceOptions& options,
                                                QuirkSet<Quirk> quirks);

  DeviceCache(const DeviceOptions& options, QuirkSet<Quirk> quirks);

  [[nodiscard]] Status append(std::int64_t layer, std::span<const float> k,
                              std::span<const float> v, std::int64_t pos) override;
  [[nodiscard]] Status append_gpu(std::int64_t layer, DevicePtr k, DevicePtr v) override;
  [[nodiscard]] std::int64_t seq_len() const override { return length_; }
  [[nodiscard]] Status sync_counter() override;
  [[nodiscard]] DevicePtr counter() const override { return counter_; }
  [[nodiscard]] LayerPointers pointers(std::int64_t layer) const override;
  [[nodiscard]] Result<PointerArrays> pointer_arrays() override;
  void reset() override;
  [[nodiscard]] Status close() override;

 protected:
  struct Layer {
    DevicePtr k;
    DevicePtr v;
    bool has_next = false;  ///< holds position `length_` already; never with kLastLayerAdvances
  };

  [[nodiscard]] Status allocate();
  [[nodiscard]] bool has(std::int64_t layer) const;
  /// Whether this append of `layer` completes the position.
  [[nodiscard]] bool completes(std::int64_t layer) const;
  /// Counts the position that `layer` now holds; true if that completed it.
  bool advance(std::int64_t layer);
  void set_length(std::int64_t length);
  /// Brings a stale counter to the length before it is used.
  [[nodiscard]] Status refresh_counter();

  std::shared_ptr<Device> memory_;
  std::int64_t max_seq_len_;
  std::int64_t width_;
  QuirkSet<Quirk> quirks_;
  std::vector<Layer> layers_;
  DevicePtr counter_;
  PointerArrays arrays_;  ///< null with kArraysEachTime
  std::int64_t length_ = 0;
  bool counter_stale_ = false;  ///< to be set to the length before its next use
  bool closed_ = false;
};

}  // namespace kvo::provider
