#include "reference/provider/tensor_cache.hpp"

#include <algorithm>

namespace kvo::provider {
namespace {

std::span<std::byte> bytes_of(std::int32_t& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

std::optional<std::int64_t> TensorCache::product(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result) || __builtin_mul_overflow(result, c, &result))
    return std::nullopt;
  return result;
}

TensorCache::Quirks TensorCache::Quirks::of(Profile profile) {
  const bool original = profile == Profile::kOriginal;
  return {.sizes_unchecked = original,
          .one_counter_will_do = original,
          .shapes_unchecked = original,
          .batch_0_unpinned = original,
          .promotes_to_fp32 = original,
          .counters_drift = original,
          .shared_position = original,
          .failures_leave_traces = original,
          .flat_storage = original,
          .shared_scratch = original,
          .negative_truncate = original,
          .sync_takes_anything = original};
}

TensorCache::TensorCache(const TensorSetup& setup, Profile profile)
    : memory_(setup.memory),
      max_seq_len_(setup.max_seq_len),
      half_(setup.dtype == "fp16"),
      quirks_(Quirks::of(profile)),
      layers_(static_cast<std::size_t>(setup.num_layers)) {
  if (!setup.stream || !memory_) return;
  gpu_counter_ = make_counter();
  kv_seq_len_ = make_counter();
  if (quirks_.one_counter_will_do || (gpu_counter_ && kv_seq_len_)) return;
  gpu_counter_.reset();
  kv_seq_len_.reset();
}

Result<std::unique_ptr<TensorBacked>> TensorCache::make(const TensorSetup& setup, Profile profile) {
  const bool unchecked = Quirks::of(profile).sizes_unchecked;
  if (setup.num_layers < 0)
    return fail(unchecked ? Code::kPrecondition : Code::kOutOfRange, "num_layers");
  if (setup.max_seq_len < 0 && !unchecked) return fail(Code::kOutOfRange, "max_seq_len");
  return std::make_unique<TensorCache>(setup, profile);
}

// ---- queries ----

Result<std::optional<KvPair>> TensorCache::get(std::int64_t layer) {
  if (!has(layer)) return std::nullopt;
  const Layer& found = layers_[static_cast<std::size_t>(layer)];
  if (!found.pinned || found.length == 0) return std::nullopt;
  return show(found, found.length);
}

Result<std::optional<KvPair>> TensorCache::full_buffer(std::int64_t layer) {
  if (!has(layer)) return std::nullopt;
  const Layer& found = layers_[static_cast<std::size_t>(layer)];
  if (!found.pinned || !found.gpu) return std::nullopt;
  return show(found, max_seq_len_);
}

// The first positions of a layer: a view where they lie together, else a copy (ZF-60 to ZF-62).
Result<std::optional<KvPair>> TensorCache::show(const Layer& layer, std::int64_t positions) {
  const auto cells = product(layer.batch, positions, layer.dim);
  if (cells == 0 && positions < 0) return std::nullopt;  // no tensor has that shape (ZF-2)
  if (!cells || *cells < 0 || *cells > layer.cells)
    return fail(Code::kPrecondition, "length " + std::to_string(positions));
  const auto view = [&](const auto& pair) -> std::optional<KvPair> {
    const Shape shape{layer.batch, positions, layer.dim};
    return KvPair{.k = {shape, pair.k}, .v = {shape, pair.v}};
  };
  const std::vector<Run> parts = shown_runs(layer, positions);
  const bool together = parts.size() == 1;
  if (layer.host && together) return view(layer.host);
  if (layer.host) {
    const auto count = static_cast<std::size_t>(*cells);
    const Pair<HostStorage> copy{std::make_shared<HostStorage>(count),
                                 std::make_shared<HostStorage>(count)};
    for (const Run& run : parts) {
      std::copy_n(layer.host.k->cells.begin() + run.from, run.count,
                  copy.k->cells.begin() + run.to);
      std::copy_n(layer.host.v->cells.begin() + run.from, run.count,
                  copy.v->cells.begin() + run.to);
    }
    return view(copy);
  }
  if (!layer.half && together) return view(layer.gpu);
  const auto target = scratch(*cells);
  if (!target) return std::nullopt;
  if (!fill(*target.k, *layer.gpu.k, layer.half, parts)) return std::nullopt;
  if (!fill(*target.v, *layer.gpu.v, layer.half, parts)) return std::nullopt;
  return view(target);
}

std::vector<TensorCache::Run> TensorCache::shown_runs(const Layer& layer,
                                                      std::int64_t positions) const {
  const std::int64_t row = positions * layer.dim;
  if (quirks_.flat_storage || layer.batch <= 1 || row == 0 || positions == max_seq_len_)
    return {{.from = 0, .to = 0, .count = layer.batch * row}};
  std::vector<Run> found;
  for (std::int64_t b = 0; b < layer.batch; ++b)
    found.push_back({.from = b * max_seq_len_ * layer.dim, .to = b * row, .count = row});
  return found;
}

// Where a result on the device is put together: one pair for all, or a pair of its own (ZF-61).
TensorCache::Pair<DeviceStorage> TensorCache::scratch(std::int64_t cells) {
  if (!quirks_.shared_scratch) {
    std::erase_if(results_, [](const auto& result) { return result.expired(); });
    results_.reserve(results_.size() + 2);
    auto made = on_device(cells, kFloat);
    if (made) results_.insert(results_.end(), {made.k, made.v});
    return made;
  }
  if (scratch_ && scratch_cells_ >= cells) return scratch_;
  auto made = on_device(cells, kFloat);
  if (!made) return {};
  if (scratch_) {
    scratch_.k->release();
    scratch_.v->release();
  }
  scratch_ = std::move(made);
  scratch_cells_ = cells;
  return scratch_;
}

Status TensorCache::fill(const DeviceStorage& to, const DeviceStorage& from, bool half,
                         std::span<const Run> runs) const {
  for (const Run& run : runs) {
    const DevicePtr target = to.ptr() + run.to * kFloat;
    const DevicePtr source = from.ptr() + run.from * (half ? kHalf : kFloat);
    const Status done = half ? memory_->to_float(target, source, run.count)
                             : memory_->copy(target, source, run.count * kFloat);
    if (!done) return done;
  }
  return {};
}

// ---- lengths and counters ----

std::shared_ptr<DeviceStorage> TensorCache::make_counter() const {
  auto counter = DeviceStorage::make(memory_, 1, sizeof(std::int32_t));
  return counter && set_counter(*counter, 0) ? std::move(*counter) : nullptr;
}

Status TensorCache::set_counter(const std::shared_ptr<DeviceStorage>& counter,
                                std::int64_t value) const {
  if (!counter) return {};
  auto cell = static_cast<std::int32_t>(value);
  return memory_->to_device(counter->ptr(), bytes_of(cell));
}

Status TensorCache::set_counters(std::int64_t gpu_counter, std::int64_t kv_seq_len) const {
  if (const Status done = set_counter(gpu_counter_, gpu_counter); !done) return done;
  return set_counter(kv_seq_len_, kv_seq_len);
}

Result<std::int64_t> TensorCache::read_counter(const DeviceStorage& counter) const {
  std::int32_t value = 0;
  if (const Status done = memory_->to_host(bytes_of(value), counter.ptr()); !done)
    return done.error();
  return std::int64_t{value};
}

CounterPtrs TensorCache::counters() const {
  return {gpu_counter_ ? gpu_counter_->ptr() : DevicePtr(),
          kv_seq_len_ ? kv_seq_len_->ptr() : DevicePtr()};
}

// ZF-63.
Status TensorCache::reset() {
  if (const Status done = set_counters(0, 0); !done) return done;
  for (Layer& layer : layers_) layer.length = 0;
  return {};
}

// ZF-64.
Status TensorCache::truncate(std::int64_t n) {
  if (n < 0 && !quirks_.negative_truncate) n = 0;
  const Status done = quirks_.counters_drift
                          ? set_counters(n, n)
                          : set_counters(std::min(last_length(), n), std::min(first_length(), n));
  if (!done) return done;
  for (Layer& layer : layers_) layer.length = std::min(layer.length, n);
  return {};
}

// ZF-65.
Status TensorCache::sync_counter() {
  if (!gpu_counter_) return fail(Code::kNotSupported, "no_counter");
  const auto value = read_counter(*gpu_counter_);
  if (!value) return value.error();
  if (!quirks_.sync_takes_anything && (*value < 0 || *value > max_seq_len_))
    return fail(Code::kBadPosition);
  for (Layer& layer : layers_)
    if (layer.pinned || quirks_.sync_takes_anything) layer.length = *value;
  return quirks_.counters_drift ? Status() : set_counters(last_length(), first_length());
}

// ZF-66.
void TensorCache::free() {
  for (Layer& layer : layers_) {
    if (layer.gpu) {
      layer.gpu.k->release();
      layer.gpu.v->release();
    }
    layer = {};
  }
  if (scratch_) {
    scratch_.k->release();
    scratch_.v->release();
  }
  scratch_ = {};
  scratch_cells_ = 0;
  for (const auto& result : results_)
    if (const auto alive = result.lock()) alive->release();
  results_.clear();
  gpu_counter_.reset();
  kv_seq_len_.reset();
}

std::optional<std::string> TensorCache::broken_invariant() const {
  if (quirks_.counters_drift) return std::nullopt;  // lengths can be anything
  for (std::size_t i = 0; i < layers_.size(); ++i)
    if (layers_[i].length < 0 || layers_[i].length > max_seq_len_)
      return "layer " + std::to_string(i) + " has length " + std::to_string(layers_[i].length);
  return std::nullopt;
}

}  // namespace kvo::provider
