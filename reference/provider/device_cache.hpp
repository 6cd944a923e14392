// reference/provider/device_cache.hpp: the reference of `provider.device`.
#pragma once

#include <memory>
#include <vector>

#include "reference/provider/contract_device.hpp"

namespace kvo::provider {

/// The shortest cache that keeps the contract, over any DeviceMemory.
class DeviceCache : public DeviceKv {
 public:
  /// Errors  as MakeDevice says.
  static Result<std::unique_ptr<DeviceKv>> make(const DeviceSetup& setup, Profile profile);

  DeviceCache(const DeviceSetup& setup, Profile profile);

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
  /// Where the original departs from what it promises.
  struct Quirks {
    bool last_layer_advances;  ///< ZF-45: the other layers are not asked
    bool two_positions;        ///< ZF-45, ZF-48, ZF-51: nothing brings counter and length together
    bool sync_takes_anything;  ///< ZF-48
    bool arrays_each_time;     ///< ZF-50
    bool works_when_closed;    ///< ZF-52
    static Quirks of(Profile profile);
  };
  struct Layer {
    DevicePtr k;
    DevicePtr v;
    bool has_next = false;  ///< holds position `length_` already; only without last_layer_advances
  };

  [[nodiscard]] Status allocate();
  [[nodiscard]] bool has(std::int64_t layer) const;
  /// Whether this append of `layer` completes the position.
  [[nodiscard]] bool completes(std::int64_t layer) const;
  /// Counts the position that `layer` now holds; true if that completed it.
  bool advance(std::int64_t layer);
  void set_length(std::int64_t length);
  [[nodiscard]] Status write_counter(std::int64_t value);
  /// Brings a stale counter to the length before it is used.
  [[nodiscard]] Status refresh_counter();

  std::shared_ptr<DeviceMemory> memory_;
  std::int64_t max_seq_len_;
  std::int64_t width_;
  Quirks quirks_;
  std::vector<Layer> layers_;
  DevicePtr counter_;
  PointerArrays arrays_;  ///< only without arrays_each_time
  std::int64_t length_ = 0;
  bool counter_stale_ = false;  ///< only without two_positions
  bool closed_ = false;
};

}  // namespace kvo::provider
