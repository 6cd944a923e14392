// cuda/provider/kv_device_cache.hpp: `provider.device` on a device with streams.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "cuda/decode/decode_graph.hpp"
#include "cuda/memory/staging.hpp"
#include "optimized/provider/device_control.hpp"
#include "reference/contract/device/jobs.hpp"

namespace kvo::cuda {

/// A buffer a layer and side, [max_seq_len][width], and the counter. The contract fixes which calls
/// the device gets, one by one and with their arguments (`calls`): so rows are not gathered in one
/// launch here. But K and V of the host are uploaded at once, and rows on the device wait for
/// nothing.
class KvMemory {
 public:
  explicit KvMemory(const provider::DeviceOptions& options)
      : device_(options.memory),
        staging_(device_),
        layers_(options.num_layers),
        max_seq_len_(options.max_seq_len),
        width_(options.num_heads * options.head_dim) {}

  [[nodiscard]] Status allocate() {
    const std::int64_t count = 2 * layers_ + 1;
    pieces_.reserve(static_cast<std::size_t>(count + 2));
    Status done;
    while (done && std::ssize(pieces_) < count) {
      const bool last = std::ssize(pieces_) + 1 == count;
      const auto made = device_->alloc(last ? kCellBytes : max_seq_len_ * width_ * kCellBytes);
      if (made) {
        pieces_.push_back(*made);
      } else {
        done = made.error();
      }
    }
    if (done) done = write(0);
    if (done) return done;
    // K without its V, and the counter, go first.
    std::span<DevicePtr> rest(pieces_);
    if (rest.size() % 2 == 1) {
      (void)free(rest.last(1));
      rest = rest.first(rest.size() - 1);
    }
    (void)free(rest);
    return done;
  }
  [[nodiscard]] Status upload(std::int64_t layer, std::int64_t pos, std::span<const float> k_row,
                              std::span<const float> v_row) {
    if (Status made = staging_.reserve(0); !made) return made;
    const std::int64_t offset = pos * width_ * kCellBytes;
    return staging_.carry_out([&]() -> Status {
      if (Status after = staging_.after_work(); !after) return after;
      Status keys = staging_.upload(0, k(layer) + offset, std::as_bytes(k_row));
      return keys ? staging_.upload(1, v(layer) + offset, std::as_bytes(v_row)) : keys;
    });
  }
  [[nodiscard]] Status launch(std::int64_t layer, DevicePtr k_row, DevicePtr v_row, bool last) {
    const DecodeStep step{.counter = counter(), .max_seq_len = max_seq_len_};
    Status done = device_->run(step.job({k(layer), k_row, width_}));
    if (done) done = device_->run(step.job({v(layer), v_row, width_}));
    if (done && last) done = device_->run(IncrementJob{counter().as<std::int32_t>(), 1});
    return done;
  }
  [[nodiscard]] Status write(std::int64_t value) {
    return write_counter(*device_, counter(), value);
  }
  [[nodiscard]] Result<std::int64_t> read() { return read_counter(*device_, counter()); }
  [[nodiscard]] DevicePtr k(std::int64_t layer) const { return at(2 * layer); }
  [[nodiscard]] DevicePtr v(std::int64_t layer) const { return at(2 * layer + 1); }
  [[nodiscard]] DevicePtr counter() const { return at(2 * layers_); }
  [[nodiscard]] Result<provider::PointerArrays> arrays(bool stored) {
    const auto counter_at = static_cast<std::size_t>(2 * layers_);
    if (pieces_.size() > counter_at + 1 && at(2 * layers_ + 1))
      return provider::PointerArrays{at(2 * layers_ + 1), at(2 * layers_ + 2)};
    std::array<std::vector<DevicePtr>, 2> contents;
    for (std::size_t i = 0; i < counter_at; ++i) contents[i % 2].push_back(pieces_[i]);
    std::array<DevicePtr, 2> made;
    for (const std::size_t side : {0U, 1U}) {
      const auto bytes = std::as_bytes(std::span(contents[side]));
      const auto ptr = device_->alloc(std::ssize(bytes));
      Status done = ptr ? Status() : Status(ptr.error());
      if (ptr) done = device_->to_device(made[side] = *ptr, bytes);
      if (done) continue;
      (void)free(made);
      return done.error();
    }
    if (stored) {
      pieces_.resize(counter_at + 1);
      pieces_.insert(pieces_.end(), made.begin(), made.end());
    }
    return provider::PointerArrays{made[0], made[1]};
  }
  [[nodiscard]] Status close() {
    (void)device_->synchronize(Stream());  // kernels that were queued use what is freed
    return free(pieces_);
  }

  [[nodiscard]] const std::shared_ptr<Device>& device() const { return device_; }
  /// A step of these rows, layer by layer.
  [[nodiscard]] DecodeStep step(std::span<const LayerRows> rows) const {
    DecodeStep step{.counted_last = {counter()}, .counter = counter(), .max_seq_len = max_seq_len_};
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto layer = static_cast<std::int64_t>(i);
      step.rows.push_back({k(layer), rows[i].k, width_});
      step.rows.push_back({v(layer), rows[i].v, width_});
    }
    return step;
  }

 private:
  [[nodiscard]] DevicePtr at(std::int64_t piece) const {
    return pieces_[static_cast<std::size_t>(piece)];
  }
  /// Frees pieces in order. Returns  the first error.
  [[nodiscard]] Status free(std::span<DevicePtr> pieces) {
    Status first;
    for (DevicePtr& piece : pieces) {
      if (!piece) continue;
      const Status done = device_->free(std::exchange(piece, {}));
      if (!done && first) first = done;
    }
    return first;
  }

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

  [[nodiscard]] Status close() override {
    life_.reset();
    return DeviceControl::close();
  }
  [[nodiscard]] const std::shared_ptr<Device>& device() const override { return memory_.device(); }
  [[nodiscard]] Result<DecodeStep> decode_step(std::span<const LayerRows> rows) override {
    if (is_closed()) return fail(Code::kClosed);
    if (std::ssize(rows) != num_layers()) return fail(Code::kOutOfRange, "layers");
    if (!life_) life_ = std::make_shared<const char>();
    DecodeStep step = memory_.step(rows);
    step.life = life_;
    return step;
  }
  [[nodiscard]] Status before_replay() override { return run_ahead(); }

 private:
  friend DeviceControl;
  std::shared_ptr<const char> life_;  ///< of the buffers, for graphs; null until one is captured
};

}  // namespace kvo::cuda
