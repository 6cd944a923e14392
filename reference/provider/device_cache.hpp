// reference/provider/device_cache.hpp: the reference of `provider.device`.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "reference/contract/device/jobs.hpp"
#include "reference/provider/device.hpp"

namespace kvo::provider {

/// The shortest cache that keeps the contract, over any Device.
class DeviceCache : public DeviceKv {
 public:
  /// Errors  as MakeDevice says.
  static Result<std::unique_ptr<DeviceKv>> make(const DeviceOptions& options,
                                                QuirkSet<Quirk> quirks) {
    if (Status good = check(options, quirks); !good) return good.error();
    auto cache = std::make_unique<DeviceCache>(options, quirks);
    if (const Status done = cache->allocate(); !done) return done.error();
    return cache;
  }

  DeviceCache(const DeviceOptions& options, QuirkSet<Quirk> quirks)
      : memory_(options.memory),
        max_seq_len_(options.max_seq_len),
        width_(options.num_heads * options.head_dim),
        quirks_(quirks),
        layers_(static_cast<std::size_t>(options.num_layers)) {}

  [[nodiscard]] Status append(std::int64_t layer, std::span<const float> k,
                              std::span<const float> v, std::int64_t pos) override {
    if (closed_ && !quirks_.has(Quirk::kWorksWhenClosed)) return fail(Code::kClosed);
    if (!has(layer)) return fail(Code::kOutOfRange, "layer");
    const Layer& to = layers_[static_cast<std::size_t>(layer)];
    if (pos != length_ || to.has_next) return fail(Code::kBadPosition);
    if (pos >= max_seq_len_) return fail(Code::kFull);
    if (static_cast<std::int64_t>(k.size()) != width_) return fail(Code::kBadShape, "k");
    if (static_cast<std::int64_t>(v.size()) != width_) return fail(Code::kBadShape, "v");

    const std::int64_t offset = pos * width_ * kCellBytes;
    if (const Status done = memory_->to_device(to.k + offset, std::as_bytes(k)); !done) return done;
    if (const Status done = memory_->to_device(to.v + offset, std::as_bytes(v)); !done) return done;
    if (advance(layer) && !quirks_.has(Quirk::kHostAppendsUncounted)) counter_stale_ = true;
    return {};
  }
  [[nodiscard]] Status append_gpu(std::int64_t layer, DevicePtr k, DevicePtr v) override {
    if (closed_ && !quirks_.has(Quirk::kWorksWhenClosed)) return fail(Code::kClosed);
    if (!has(layer)) return fail(Code::kOutOfRange, "layer");
    const Layer& to = layers_[static_cast<std::size_t>(layer)];
    if (to.has_next) return fail(Code::kBadPosition);
    if (length_ >= max_seq_len_) return fail(Code::kFull);
    if (const Status fresh = refresh_counter(); !fresh) return fresh;

    for (const auto& [buffer, row] : {std::pair(to.k, k), std::pair(to.v, v)}) {
      const Status done =
          memory_->run(OffsetCopyJob{buffer.as<std::uint32_t>(), row.as<const std::uint32_t>(),
                                     counter_.as<const std::int32_t>(), width_, max_seq_len_});
      if (!done) return done;
    }
    if (completes(layer)) {
      const Status done = memory_->run(IncrementJob{counter_.as<std::int32_t>(), 1});
      if (!done) return done;
    }
    advance(layer);
    return {};
  }
  [[nodiscard]] std::int64_t seq_len() const override { return length_; }
  [[nodiscard]] Status sync_counter() override {
    if (!counter_) return fail(Code::kClosed);
    if (const Status fresh = refresh_counter(); !fresh) return fresh;
    const auto value = read_counter(*memory_, counter_);
    if (!value) return value.error();
    if (!quirks_.has(Quirk::kSyncTakesAnyLength) && (*value < 0 || *value > max_seq_len_))
      return fail(Code::kBadPosition);
    set_length(*value);
    return {};
  }
  [[nodiscard]] DevicePtr counter() const override { return counter_; }
  [[nodiscard]] LayerPointers pointers(std::int64_t layer) const override {
    if (!has(layer)) return {};
    const Layer& found = layers_[static_cast<std::size_t>(layer)];
    return {found.k, found.v, length_};
  }
  [[nodiscard]] Result<PointerArrays> pointer_arrays() override {
    if (closed_ && !quirks_.has(Quirk::kWorksWhenClosed)) return fail(Code::kClosed);
    if (arrays_.k) return arrays_;
    std::vector<DevicePtr> keys;
    std::vector<DevicePtr> values;
    for (const Layer& layer : layers_) {
      keys.push_back(layer.k);
      values.push_back(layer.v);
    }
    Undo undo(*memory_, 2);
    PointerArrays made;
    for (const auto& [array, content] : {std::pair(&made.k, &keys), std::pair(&made.v, &values)}) {
      const auto bytes = std::as_bytes(std::span(*content));
      const auto ptr = memory_->alloc(static_cast<std::int64_t>(bytes.size()));
      if (!ptr) return ptr.error();
      undo.rest.push_back(*array = *ptr);
      if (const Status done = memory_->to_device(*array, bytes); !done) return done.error();
    }
    undo.dismiss();
    if (!quirks_.has(Quirk::kArraysEachTime)) arrays_ = made;
    return made;
  }
  void reset() override {
    length_ = 0;
    for (Layer& layer : layers_) layer.has_next = false;
    if (!counter_) return;
    const Status zeroed = write_counter(*memory_, counter_, 0);
    counter_stale_ = !zeroed && !quirks_.has(Quirk::kResetForgetsFailure);
  }
  [[nodiscard]] Status close() override {
    (void)memory_->synchronize(Stream());  // kernels that were queued use what is freed
    Status first;
    const auto give_back = [&](DevicePtr& ptr) {
      if (!ptr) return;
      const Status done = memory_->free(ptr);
      if (!done && first) first = done;
      ptr = {};
    };
    for (Layer& layer : layers_) {
      give_back(layer.k);
      give_back(layer.v);
    }
    give_back(counter_);
    give_back(arrays_.k);
    give_back(arrays_.v);
    closed_ = true;
    return first;
  }

 private:
  static constexpr std::int64_t kCellBytes = sizeof(float);

  /// Frees what was allocated unless all went well: the newest piece first, then the rest in order.
  struct Undo {
    explicit Undo(Device& device, std::size_t most) : memory(device) { rest.reserve(most); }
    ~Undo() {
      if (newest) (void)memory.free(newest);
      for (const DevicePtr ptr : rest) (void)memory.free(ptr);
    }
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;
    void dismiss() {
      newest = {};
      rest.clear();
    }

    Device& memory;
    DevicePtr newest = {};
    std::vector<DevicePtr> rest = {};
  };

  struct Layer {
    DevicePtr k;
    DevicePtr v;
    bool has_next = false;  ///< holds position `length_` already; never with kLastLayerAdvances
  };

  [[nodiscard]] Status allocate() {
    Undo undo(*memory_, 2 * layers_.size());
    const std::int64_t bytes = max_seq_len_ * width_ * kCellBytes;
    for (Layer& layer : layers_) {
      const auto k = memory_->alloc(bytes);
      if (!k) return k.error();
      undo.newest = layer.k = *k;
      const auto v = memory_->alloc(bytes);
      if (!v) return v.error();
      layer.v = *v;
      undo.newest = {};
      undo.rest.insert(undo.rest.end(), {layer.k, layer.v});
    }
    const auto counter = memory_->alloc(sizeof(std::int32_t));
    if (!counter) return counter.error();
    undo.newest = counter_ = *counter;
    if (const Status zeroed = write_counter(*memory_, counter_, 0); !zeroed) return zeroed;
    undo.dismiss();
    return {};
  }
  [[nodiscard]] bool has(std::int64_t layer) const {
    return layer >= 0 && layer < static_cast<std::int64_t>(layers_.size());
  }
  /// Whether this append of `layer` completes the position.
  [[nodiscard]] bool completes(std::int64_t layer) const {
    const auto index = static_cast<std::size_t>(layer);
    if (quirks_.has(Quirk::kLastLayerAdvances)) return index + 1 == layers_.size();
    for (std::size_t i = 0; i < layers_.size(); ++i)
      if (i != index && !layers_[i].has_next) return false;
    return true;
  }
  /// Counts the position that `layer` now holds; true if that completed it.
  bool advance(std::int64_t layer) {
    if (completes(layer)) {
      set_length(length_ + 1);
      return true;
    }
    layers_[static_cast<std::size_t>(layer)].has_next = !quirks_.has(Quirk::kLastLayerAdvances);
    return false;
  }
  void set_length(std::int64_t length) {
    for (Layer& layer : layers_) layer.has_next = layer.has_next && length == length_;
    length_ = length;
  }
  /// Brings a stale counter to the length before it is used.
  [[nodiscard]] Status refresh_counter() {
    if (!counter_stale_) return {};
    const Status written = write_counter(*memory_, counter_, length_);
    counter_stale_ = !written;
    return written;
  }

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
