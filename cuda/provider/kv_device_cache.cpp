#include "cuda/provider/kv_device_cache.hpp"

#include <array>
#include <utility>

#include "reference/contract/device/jobs.hpp"

namespace kvo::cuda {

using provider::DeviceKv;
using provider::DeviceOptions;
using provider::LayerPointers;
using provider::PointerArrays;
using provider::Quirk;

namespace {

constexpr std::int64_t kFloatBytes = sizeof(float);

/// Gives back what was allocated, unless all went well: the newest piece first, then the rest in
/// order.
class Unwind {
 public:
  Unwind(Device& device, std::size_t most) : device_(device) { rest_.reserve(most); }
  ~Unwind() {
    if (newest) (void)device_.free(newest);
    for (const DevicePtr ptr : rest_) (void)device_.free(ptr);
  }
  Unwind(const Unwind&) = delete;
  Unwind& operator=(const Unwind&) = delete;
  void keep(DevicePtr ptr) { rest_.push_back(ptr); }
  void dismiss() {
    newest = {};
    rest_.clear();
  }

  DevicePtr newest = {};

 private:
  Device& device_;
  std::vector<DevicePtr> rest_;
};

}  // namespace

Result<std::unique_ptr<DeviceKv>> KvDeviceCache::make(const DeviceOptions& options,
                                                      QuirkSet<Quirk> quirks) {
  if (Status good = check(options, quirks); !good) return good.error();
  auto cache = std::make_unique<KvDeviceCache>(options, quirks);
  if (Status done = cache->allocate(); !done) return done.error();
  return cache;
}

Status KvDeviceCache::check(const DeviceOptions& options, QuirkSet<Quirk> quirks) {
  if (!options.memory) return fail_other("nil_allocator");
  if (options.num_layers <= 0) return fail(Code::kOutOfRange, "num_layers");
  if (options.max_seq_len <= 0) return fail(Code::kOutOfRange, "max_seq_len");
  if (options.num_heads <= 0) return fail(Code::kOutOfRange, "num_heads");
  if (options.head_dim <= 0) return fail(Code::kOutOfRange, "head_dim");
  const std::array sizes{options.max_seq_len, options.num_heads, options.head_dim, kFloatBytes};
  if (element_count(sizes)) return {};
  return fail(quirks.has(Quirk::kOverflowAborts) ? Code::kPrecondition : Code::kOutOfRange,
              "max_seq_len");
}

KvDeviceCache::KvDeviceCache(const DeviceOptions& options, QuirkSet<Quirk> quirks)
    : device_(options.memory),
      staging_(device_),
      max_seq_len_(options.max_seq_len),
      width_(options.num_heads * options.head_dim),
      quirks_(quirks),
      layers_(static_cast<std::size_t>(options.num_layers)) {}

Status KvDeviceCache::allocate() {
  Unwind unwind(*device_, 2 * layers_.size());
  const std::int64_t bytes = max_seq_len_ * width_ * kFloatBytes;
  for (Layer& layer : layers_) {
    const auto k = device_->alloc(bytes);
    if (!k) return k.error();
    unwind.newest = layer.k = *k;
    const auto v = device_->alloc(bytes);
    if (!v) return v.error();
    layer.v = *v;
    unwind.newest = {};
    unwind.keep(layer.k);
    unwind.keep(layer.v);
  }
  const auto counter = device_->alloc(sizeof(std::int32_t));
  if (!counter) return counter.error();
  unwind.newest = counter_ = *counter;
  if (Status zeroed = write_counter(*device_, counter_, 0); !zeroed) return zeroed;
  unwind.dismiss();
  return {};
}

bool KvDeviceCache::completes(std::int64_t layer) const {
  if (has(Quirk::kLastLayerAdvances)) return layer + 1 == std::ssize(layers_);
  for (std::int64_t i = 0; i < std::ssize(layers_); ++i)
    if (i != layer && !layers_[static_cast<std::size_t>(i)].has_next) return false;
  return true;
}

bool KvDeviceCache::advance(std::int64_t layer) {
  if (completes(layer)) {
    set_length(length_ + 1);
    return true;
  }
  layers_[static_cast<std::size_t>(layer)].has_next = !has(Quirk::kLastLayerAdvances);
  return false;
}

void KvDeviceCache::set_length(std::int64_t length) {
  for (Layer& layer : layers_) layer.has_next = layer.has_next && length == length_;
  length_ = length;
}

Status KvDeviceCache::refresh_counter() {
  if (!counter_stale_) return {};
  Status written = write_counter(*device_, counter_, length_);
  counter_stale_ = !written;
  return written;
}

Status KvDeviceCache::check_open(std::int64_t layer) const {
  if (closed_ && !has(Quirk::kWorksWhenClosed)) return fail(Code::kClosed);
  if (!has(layer)) return fail(Code::kOutOfRange, "layer");
  if (ahead_) return fail(Code::kBadPosition, "the counter is ahead: sync_counter");
  return {};
}

Status KvDeviceCache::append(std::int64_t layer, std::span<const float> k, std::span<const float> v,
                             std::int64_t pos) {
  if (Status open = check_open(layer); !open) return open;
  const Layer& to = layers_[static_cast<std::size_t>(layer)];
  if (pos != length_ || to.has_next) return fail(Code::kBadPosition);
  if (pos >= max_seq_len_) return fail(Code::kFull);
  if (std::ssize(k) != width_) return fail(Code::kBadShape, "k");
  if (std::ssize(v) != width_) return fail(Code::kBadShape, "v");

  if (Status made = staging_.reserve(0); !made) return made;
  const std::int64_t offset = pos * width_ * kFloatBytes;
  Status stored = staging_.carry_out([&]() -> Status {
    if (Status after = staging_.after_work(); !after) return after;
    Status keys = staging_.upload(0, to.k + offset, std::as_bytes(k));
    return keys ? staging_.upload(1, to.v + offset, std::as_bytes(v)) : keys;
  });
  if (!stored) return stored;
  if (advance(layer) && !has(Quirk::kHostAppendsUncounted)) counter_stale_ = true;
  return {};
}

Status KvDeviceCache::append_gpu(std::int64_t layer, DevicePtr k, DevicePtr v) {
  if (Status open = check_open(layer); !open) return open;
  const Layer& to = layers_[static_cast<std::size_t>(layer)];
  if (to.has_next) return fail(Code::kBadPosition);
  if (length_ >= max_seq_len_) return fail(Code::kFull);
  if (Status fresh = refresh_counter(); !fresh) return fresh;

  const DecodeStep step{.counter = counter_, .max_seq_len = max_seq_len_};
  if (Status done = device_->run(step.job({to.k, k, width_})); !done) return done;
  if (Status done = device_->run(step.job({to.v, v, width_})); !done) return done;
  if (completes(layer)) {
    Status done = device_->run(IncrementJob{counter_.as<std::int32_t>(), 1});
    if (!done) return done;
  }
  advance(layer);
  return {};
}

Status KvDeviceCache::sync_counter() {
  if (!counter_) return fail(Code::kClosed);
  if (Status fresh = refresh_counter(); !fresh) return fresh;
  const auto value = read_counter(*device_, counter_);
  if (!value) return value.error();
  if (!has(Quirk::kSyncTakesAnyLength) && (*value < 0 || *value > max_seq_len_))
    return fail(Code::kBadPosition);
  set_length(*value);
  ahead_ = false;
  return {};
}

LayerPointers KvDeviceCache::pointers(std::int64_t layer) const {
  if (!has(layer)) return {};
  const Layer& found = layers_[static_cast<std::size_t>(layer)];
  return {found.k, found.v, length_};
}

Result<PointerArrays> KvDeviceCache::pointer_arrays() {
  if (closed_ && !has(Quirk::kWorksWhenClosed)) return fail(Code::kClosed);
  if (arrays_.k) return arrays_;
  std::vector<DevicePtr> keys;
  std::vector<DevicePtr> values;
  for (const Layer& layer : layers_) {
    keys.push_back(layer.k);
    values.push_back(layer.v);
  }
  Unwind unwind(*device_, 2);
  PointerArrays made;
  for (const auto& [array, content] : {std::pair(&made.k, &keys), std::pair(&made.v, &values)}) {
    const auto bytes = std::as_bytes(std::span(*content));
    const auto ptr = device_->alloc(std::ssize(bytes));
    if (!ptr) return ptr.error();
    unwind.keep(*array = *ptr);
    if (Status done = device_->to_device(*array, bytes); !done) return done.error();
  }
  unwind.dismiss();
  if (!has(Quirk::kArraysEachTime)) arrays_ = made;
  return made;
}

void KvDeviceCache::reset() {
  length_ = 0;
  ahead_ = false;
  for (Layer& layer : layers_) layer.has_next = false;
  if (!counter_) return;
  const Status zeroed = write_counter(*device_, counter_, 0);
  counter_stale_ = !zeroed && !has(Quirk::kResetForgetsFailure);
}

Status KvDeviceCache::close() {
  life_.reset();
  ahead_ = false;
  (void)device_->synchronize(Stream());  // kernels that were queued use what is freed
  Status first;
  const auto give_back = [&](DevicePtr& ptr) {
    if (!ptr) return;
    const Status done = device_->free(ptr);
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

Result<DecodeStep> KvDeviceCache::decode_step(std::span<const LayerRows> rows) {
  if (closed_) return fail(Code::kClosed);
  if (rows.size() != layers_.size()) return fail(Code::kOutOfRange, "layers");
  if (!life_) life_ = std::make_shared<const char>();
  DecodeStep step{
      .counted_last = {counter_}, .counter = counter_, .max_seq_len = max_seq_len_, .life = life_};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    step.rows.push_back({layers_[i].k, rows[i].k, width_});
    step.rows.push_back({layers_[i].v, rows[i].v, width_});
  }
  return step;
}

Status KvDeviceCache::before_replay() {
  if (closed_) return fail(Code::kClosed);
  if (ahead_) return {};
  for (const Layer& layer : layers_)
    if (layer.has_next) return fail(Code::kBadPosition, "a layer has the position already");
  if (length_ >= max_seq_len_) return fail(Code::kFull);
  if (Status fresh = refresh_counter(); !fresh) return fresh;
  ahead_ = true;
  return {};
}

}  // namespace kvo::cuda
