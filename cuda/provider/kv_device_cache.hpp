// cuda/provider/kv_device_cache.hpp: `provider.device` on a device with streams.
#pragma once

#include <memory>
#include <vector>

#include "cuda/decode/decode_graph.hpp"
#include "cuda/memory/staging.hpp"
#include "optimized/provider/device_control.hpp"

namespace kvo::cuda {

/// A buffer a layer and side, [max_seq_len][width], and the counter. The contract fixes which calls
/// the device gets, one by one and with their arguments (`calls`): so rows are not gathered in one
/// launch here. But K and V of the host are uploaded at once, and rows on the device wait for
/// nothing.
class KvMemory {
 public:
  explicit KvMemory(const provider::DeviceOptions& options);

  [[nodiscard]] Status allocate();
  [[nodiscard]] Status upload(std::int64_t layer, std::int64_t pos, std::span<const float> k,
                              std::span<const float> v);
  [[nodiscard]] Status launch(std::int64_t layer, DevicePtr k, DevicePtr v, bool last);
  [[nodiscard]] Status write(std::int64_t value) {
    return write_counter(*device_, counter(), value);
  }
  [[nodiscard]] Result<std::int64_t> read() { return read_counter(*device_, counter()); }
  [[nodiscard]] DevicePtr k(std::int64_t layer) const { return at(2 * layer); }
  [[nodiscard]] DevicePtr v(std::int64_t layer) const { return at(2 * layer + 1); }
  [[nodiscard]] DevicePtr counter() const { return at(2 * layers_); }
  [[nodiscard]] Result<provider::PointerArrays> arrays(bool stored);
  [[nodiscard]] Status close();

  [[nodiscard]] const std::shared_ptr<Device>& device() const { return device_; }
  /// A step of these rows, layer by layer.
  [[nodiscard]] DecodeStep step(std::span<const LayerRows> rows) const;

 private:
  [[nodiscard]] DevicePtr at(std::int64_t piece) const {
    return pieces_[static_cast<std::size_t>(piece)];
  }
  /// Frees pieces in order. Returns  the first error.
  [[nodiscard]] Status free(std::span<DevicePtr> pieces);

  std::shared_ptr<Device> device_;
  Staging staging_;
  std::int64_t layers_;
  std::int64_t max_seq_len_;
  std::int64_t width_;
  /// K and V of each layer, the counter, and arrays once there are some; null after close.
  std::vector<DevicePtr> pieces_;
};

/// A loop of decode steps without the contract's calls is a DecodeGraph. After close a graph that
/// was captured over the cache returns kClosed.
class KvDeviceCache final : public optimized::DeviceControl<KvMemory>, public DecodeCache {
 public:
  /// Errors  as provider::MakeDevice says.
  static Result<std::unique_ptr<provider::DeviceKv>> make(const Options& options,
                                                          QuirkSet<Quirk> quirks) {
    auto made = make_as<KvDeviceCache>(options, quirks);
    if (!made) return made.error();
    return std::move(*made);
  }
  KvDeviceCache(const Options& options, QuirkSet<Quirk> quirks) : DeviceControl(options, quirks) {}

  [[nodiscard]] Status close() override;
  [[nodiscard]] const std::shared_ptr<Device>& device() const override { return memory_.device(); }
  [[nodiscard]] Result<DecodeStep> decode_step(std::span<const LayerRows> rows) override;
  [[nodiscard]] Status before_replay() override { return run_ahead(); }

 private:
  friend DeviceControl;
  std::shared_ptr<const char> life_;  ///< of the buffers, for graphs; null until one is captured
};

}  // namespace kvo::cuda
