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
  virtual ~KvMemory() = default;
  KvMemory(const KvMemory&) = delete;
  KvMemory& operator=(const KvMemory&) = delete;

  [[nodiscard]] Status allocate();
  [[nodiscard]] Status upload(std::int64_t layer, std::int64_t pos, std::span<const float> k,
                              std::span<const float> v);
  [[nodiscard]] Status launch(std::int64_t layer, DevicePtr k, DevicePtr v, bool last);
  [[nodiscard]] virtual Status write(std::int64_t value);
  [[nodiscard]] Result<std::int64_t> read() { return read_counter(*device_, counter()); }
  [[nodiscard]] DevicePtr k(std::int64_t layer) const { return at(2 * layer); }
  [[nodiscard]] DevicePtr v(std::int64_t layer) const { return at(2 * layer + 1); }
  [[nodiscard]] DevicePtr counter() const { return at(2 * layers_); }
  [[nodiscard]] Result<provider::PointerArrays> arrays(bool stored);
  [[nodiscard]] Status close();

  [[nodiscard]] const std::shared_ptr<Device>& device() const { return device_; }
  /// A step of these rows, layer by layer.
  [[nodiscard]] DecodeStep step(std::span<const LayerRows> rows) const;

 protected:
  /// Queues a row from the host to its place.
  [[nodiscard]] virtual Status upload_row(std::size_t side, DevicePtr to,
                                          std::span<const float> row);

  std::shared_ptr<Device> device_;

 private:
  [[nodiscard]] DevicePtr at(std::int64_t piece) const {
    return pieces_[static_cast<std::size_t>(piece)];
  }
  /// Frees pieces in order. Returns  the first error.
  [[nodiscard]] Status free(std::span<DevicePtr> pieces);

  Staging staging_;
  std::int64_t layers_;
  std::int64_t max_seq_len_;
  std::int64_t width_;
  /// K and V of each layer, the counter, and arrays once there are some; null after close.
  std::vector<DevicePtr> pieces_;
};

/// A loop of decode steps without the contract's calls is a DecodeGraph. After close a graph that
/// was captured over the cache returns kClosed.
template <class Memory>
class KvCache final : public optimized::DeviceControl<Memory>, public DecodeCache {
  using Base = optimized::DeviceControl<Memory>;
  friend Base;

 public:
  using Base::memory_;
  using typename Base::Options, typename Base::Quirk;

  /// Errors  as provider::MakeDevice says.
  static Result<std::unique_ptr<provider::DeviceKv>> make(const Options& options,
                                                          QuirkSet<Quirk> quirks) {
    auto made = make_own(options, quirks);
    if (!made) return made.error();
    return std::move(*made);
  }
  static Result<std::unique_ptr<KvCache>> make_own(const Options& options, QuirkSet<Quirk> quirks) {
    return Base::template make_as<KvCache>(options, quirks);
  }
  KvCache(const Options& options, QuirkSet<Quirk> quirks) : Base(options, quirks) {}

  [[nodiscard]] Status close() override {
    life_.reset();
    return Base::close();
  }
  [[nodiscard]] const std::shared_ptr<Device>& device() const override { return memory_.device(); }
  [[nodiscard]] Result<DecodeStep> decode_step(std::span<const LayerRows> rows) override {
    if (this->is_closed()) return fail(Code::kClosed);
    if (std::ssize(rows) != this->num_layers()) return fail(Code::kOutOfRange, "layers");
    if (!life_) life_ = std::make_shared<const char>();
    DecodeStep step = memory_.step(rows);
    step.life = life_;
    return step;
  }
  [[nodiscard]] Status before_replay() override { return this->run_ahead(); }

 private:
  std::shared_ptr<const char> life_;  ///< of the buffers, for graphs; null until one is captured
};
using KvDeviceCache = KvCache<KvMemory>;

}  // namespace kvo::cuda
