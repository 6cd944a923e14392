// optimized/provider/device_control.hpp: what a cache of `provider.device` decides.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "reference/provider/device.hpp"

namespace kvo::optimized {

/// Which positions a cache takes, and when its counter is the length. An append costs the same for
/// any number of layers: it counts the layers that have the next position. `Memory` is made of
/// DeviceOptions and has
///   allocate()                 the buffers, and a counter of 0
///   upload(layer, pos, k, v)   stores rows of the host
///   launch(layer, k, v, last)  queues rows to the position in the counter, which goes up if `last`
///   write, read                the counter
///   k, v, counter              addresses; null after close()
///   arrays                     makes arrays of the addresses; close() frees them if `stored`
///   close()                    frees all; returns the first error
template <class Memory>
class DeviceControl : public provider::DeviceKv {
 public:
  using Quirk = provider::Quirk;
  using Options = provider::DeviceOptions;

  /// Errors  as provider::MakeDevice says.
  template <class Cache>
  [[nodiscard]] static Result<std::unique_ptr<Cache>> make_as(const Options& options,
                                                              QuirkSet<Quirk> quirks) {
    if (Status good = provider::check(options, quirks); !good) return good.error();
    auto cache = std::make_unique<Cache>(options, quirks);
    if (Status done = cache->memory_.allocate(); !done) return done.error();
    return cache;
  }

  [[nodiscard]] Status append(std::int64_t layer, std::span<const float> k,
                              std::span<const float> v, std::int64_t pos) override {
    if (Status taken = check(layer, pos); !taken) return taken;
    if (std::ssize(k) != width_) return fail(Code::kBadShape, "k");
    if (std::ssize(v) != width_) return fail(Code::kBadShape, "v");
    if (Status stored = memory_.upload(layer, pos, k, v); !stored) return stored;
    if (advance(layer) && !has(Quirk::kHostAppendsUncounted)) stale_ = true;
    return {};
  }
  [[nodiscard]] Status append_gpu(std::int64_t layer, DevicePtr k, DevicePtr v) override {
    if (Status taken = check(layer, length_); !taken) return taken;
    if (Status fresh = refresh(); !fresh) return fresh;
    if (Status queued = memory_.launch(layer, k, v, completes(layer)); !queued) return queued;
    (void)advance(layer);
    return {};
  }
  [[nodiscard]] std::int64_t seq_len() const override { return length_; }
  [[nodiscard]] Status sync_counter() override {
    if (!memory_.counter()) return fail(Code::kClosed);
    if (Status fresh = refresh(); !fresh) return fresh;
    const auto value = memory_.read();
    if (!value) return value.error();
    if (!has(Quirk::kSyncTakesAnyLength) && (*value < 0 || *value > max_seq_len_))
      return fail(Code::kBadPosition);
    if (*value != length_) start(*value);
    ahead_ = false;
    return {};
  }
  [[nodiscard]] DevicePtr counter() const override { return memory_.counter(); }
  [[nodiscard]] provider::LayerPointers pointers(std::int64_t layer) const override {
    if (!has(layer)) return {};
    return {memory_.k(layer), memory_.v(layer), length_};
  }
  [[nodiscard]] Result<provider::PointerArrays> pointer_arrays() override {
    if (closed_ && !has(Quirk::kWorksWhenClosed)) return fail(Code::kClosed);
    return memory_.arrays(!has(Quirk::kArraysEachTime));
  }
  void reset() override {
    start(0);
    ahead_ = false;
    if (memory_.counter()) stale_ = !memory_.write(0) && !has(Quirk::kResetForgetsFailure);
  }
  [[nodiscard]] Status close() override {
    ahead_ = false;
    closed_ = true;
    return memory_.close();
  }

 protected:
  DeviceControl(const Options& options, QuirkSet<Quirk> quirks)
      : memory_(options),
        max_seq_len_(options.max_seq_len),
        width_(options.num_heads * options.head_dim),
        quirks_(quirks),
        turns_(static_cast<std::size_t>(options.num_layers)) {}

  /// From now on the counter may be ahead of the length.
  /// Errors  kClosed; kFull; kBadPosition: a layer has the next position; the device's own.
  [[nodiscard]] Status run_ahead() {
    if (closed_) return fail(Code::kClosed);
    if (ahead_) return {};
    if (counted_ > 0) return fail(Code::kBadPosition, "a layer has the position already");
    if (length_ >= max_seq_len_) return fail(Code::kFull);
    Status fresh = refresh();
    ahead_ = fresh.has_value();
    return fresh;
  }
  [[nodiscard]] bool is_closed() const { return closed_; }
  [[nodiscard]] std::int64_t num_layers() const { return std::ssize(turns_); }

  Memory memory_;
  std::int64_t max_seq_len_;
  std::int64_t width_;

 private:
  [[nodiscard]] bool has(Quirk quirk) const { return quirks_.has(quirk); }
  [[nodiscard]] bool has(std::int64_t layer) const { return layer >= 0 && layer < num_layers(); }
  [[nodiscard]] Status check(std::int64_t layer, std::int64_t pos) const {
    if (closed_ && !has(Quirk::kWorksWhenClosed)) return fail(Code::kClosed);
    if (!has(layer)) return fail(Code::kOutOfRange, "layer");
    if (ahead_) return fail(Code::kBadPosition, "the counter is ahead: sync_counter");
    if (pos != length_ || turns_[static_cast<std::size_t>(layer)] == turn_)
      return fail(Code::kBadPosition);
    return pos < max_seq_len_ ? Status() : fail(Code::kFull);
  }
  /// Whether an append of `layer`, which lacks the next position, completes the position.
  [[nodiscard]] bool completes(std::int64_t layer) const {
    return (has(Quirk::kLastLayerAdvances) ? layer : counted_) + 1 == num_layers();
  }
  /// Counts the position that `layer` has now. Returns  whether that completed it.
  bool advance(std::int64_t layer) {
    const bool completed = completes(layer);
    if (completed) {
      start(length_ + 1);
    } else if (!has(Quirk::kLastLayerAdvances)) {
      turns_[static_cast<std::size_t>(layer)] = turn_;
      ++counted_;
    }
    return completed;
  }
  /// No layer has the position after `length`.
  void start(std::int64_t length) {
    length_ = length;
    counted_ = 0;
    ++turn_;
  }
  /// Makes the counter the length before it is used.
  [[nodiscard]] Status refresh() {
    if (!stale_) return {};
    Status written = memory_.write(length_);
    stale_ = !written;
    return written;
  }

  QuirkSet<Quirk> quirks_;
  std::int64_t length_ = 0;
  std::uint64_t turn_ = 1;            ///< goes up with each position, and with each reset
  std::vector<std::uint64_t> turns_;  ///< of each layer: the turn in which it got its position
  std::int64_t counted_ = 0;          ///< layers that have the next position
  bool stale_ = false;  ///< the counter is to be set to the length before its next use
  bool ahead_ = false;
  bool closed_ = false;
};

}  // namespace kvo::optimized
