// cuda/provider/kv_device_cache.hpp: `provider.device` on a device with streams.
#pragma once

#include <memory>
#include <vector>

#include "cuda/decode/decode_graph.hpp"
#include "cuda/memory/staging.hpp"
#include "reference/provider/device.hpp"

namespace kvo::cuda {

/// A buffer a layer and side, [max_seq_len][width]. The contract fixes which calls the device sees,
/// one by one and with their arguments (`calls`): so rows are not gathered in one launch here, but
/// K and V of the host are under way together, and rows on the device wait for nothing. A loop of
/// decode steps without the contract's calls is a DecodeGraph.
class KvDeviceCache final : public provider::DeviceKv, public DecodeCache {
 public:
  /// Errors  as provider::MakeDevice says.
  static Result<std::unique_ptr<provider::DeviceKv>> make(const provider::DeviceOptions& options,
                                                          QuirkSet<provider::Quirk> quirks);
  KvDeviceCache(const provider::DeviceOptions& options, QuirkSet<provider::Quirk> quirks);

  [[nodiscard]] Status append(std::int64_t layer, std::span<const float> k,
                              std::span<const float> v, std::int64_t pos) override;
  [[nodiscard]] Status append_gpu(std::int64_t layer, DevicePtr k, DevicePtr v) override;
  [[nodiscard]] std::int64_t seq_len() const override { return length_; }
  [[nodiscard]] Status sync_counter() override;
  [[nodiscard]] DevicePtr counter() const override { return counter_; }
  [[nodiscard]] provider::LayerPointers pointers(std::int64_t layer) const override;
  [[nodiscard]] Result<provider::PointerArrays> pointer_arrays() override;
  void reset() override;
  /// A graph that was captured over the cache refuses to go on.
  [[nodiscard]] Status close() override;

  [[nodiscard]] const std::shared_ptr<Device>& device() const override { return device_; }
  [[nodiscard]] Result<DecodeStep> decode_step(std::span<const LayerRows> rows) override;
  [[nodiscard]] Status before_replay() override;

 private:
  struct Layer {
    DevicePtr k;
    DevicePtr v;
    bool has_next = false;  ///< holds position `length_` already; never with kLastLayerAdvances
  };

  [[nodiscard]] static Status check(const provider::DeviceOptions& options,
                                    QuirkSet<provider::Quirk> quirks);
  [[nodiscard]] Status allocate();
  /// The errors that append and append_gpu share, in order.
  [[nodiscard]] Status check_open(std::int64_t layer) const;
  [[nodiscard]] bool has(provider::Quirk quirk) const { return quirks_.has(quirk); }
  [[nodiscard]] bool has(std::int64_t layer) const {
    return layer >= 0 && layer < std::ssize(layers_);
  }
  /// Whether this append of `layer` completes the position.
  [[nodiscard]] bool completes(std::int64_t layer) const;
  /// Counts the position that `layer` now holds; true if that completed it.
  bool advance(std::int64_t layer);
  void set_length(std::int64_t length);
  /// Brings a stale counter to the length before it is used.
  [[nodiscard]] Status refresh_counter();

  std::shared_ptr<Device> device_;
  Staging staging_;
  std::int64_t max_seq_len_;
  std::int64_t width_;
  QuirkSet<provider::Quirk> quirks_;
  std::vector<Layer> layers_;
  DevicePtr counter_;
  provider::PointerArrays arrays_;  ///< null with kArraysEachTime
  std::int64_t length_ = 0;
  bool counter_stale_ = false;  ///< to be set to the length before its next use
  bool ahead_ = false;
  bool closed_ = false;
  std::shared_ptr<const char> life_;  ///< of the buffers, for graphs; null until one asks
};

}  // namespace kvo::cuda
