// What a TensorCache is made of, shows and counts; how rows get in: tensor_cache_update.cpp.
#include "reference/provider/tensor_cache.hpp"

#include <algorithm>

#include "reference/contract/device/jobs.hpp"

namespace kvo::provider {
namespace {

void release(std::array<std::shared_ptr<DeviceStorage>, 2>& buffers) {
  for (const auto& buffer : buffers)
    if (buffer) buffer->release();
  buffers = {};
}

}  // namespace

// ---- ZF-53 ----

Result<std::unique_ptr<TensorBacked>> TensorCache::make(const TensorOptions& options,
                                                        QuirkSet<Quirk> quirks) {
  const bool unchecked = quirks.has(Quirk::kTensorSizesUnchecked);
  if (options.num_layers < 0)
    return fail(unchecked ? Code::kPrecondition : Code::kOutOfRange, "num_layers");
  if (options.max_seq_len < 0 && !unchecked) return fail(Code::kOutOfRange, "max_seq_len");
  return std::make_unique<TensorCache>(options, quirks);
}

TensorCache::TensorCache(const TensorOptions& options, QuirkSet<Quirk> quirks)
    : memory_(options.memory),
      max_seq_len_(options.max_seq_len),
      half_(options.dtype == "fp16"),  // ZF-67
      quirks_(quirks),
      layers_(static_cast<std::size_t>(options.num_layers)) {
  if (!options.stream || !memory_) return;
  for (Buffer* counter : {&gpu_counter_, &kv_seq_len_}) {
    auto made = DeviceStorage::make(memory_, 1, sizeof(std::int32_t));
    if (made && set(*made, 0)) *counter = std::move(*made);
  }
  if (has(Quirk::kOneCounterAlone) || (gpu_counter_ && kv_seq_len_)) return;
  gpu_counter_.reset();
  kv_seq_len_.reset();
}

// ---- queries: ZF-61, ZF-62 ----

const TensorCache::Layer* TensorCache::find(std::int64_t layer) const {
  const bool exists = layer >= 0 && layer < std::ssize(layers_);
  return exists ? &layers_[static_cast<std::size_t>(layer)] : nullptr;
}

Result<std::optional<KvPair>> TensorCache::get(std::int64_t layer) {
  const Layer* found = find(layer);
  if (found == nullptr || !found->pinned || found->length == 0) return std::nullopt;
  return show(*found, found->length);
}

Result<std::optional<KvPair>> TensorCache::full_buffer(std::int64_t layer) {
  const Layer* found = find(layer);
  if (found == nullptr || !found->pinned || !found->gpu) return std::nullopt;
  return show(*found, max_seq_len_);
}

// The first positions of a layer: a view where they lie together, else a copy.
Result<std::optional<KvPair>> TensorCache::show(const Layer& layer, std::int64_t positions) {
  if (positions < 0 && (layer.batch == 0 || layer.dim == 0)) return std::nullopt;  // ZF-2
  const Shape shape{layer.batch, positions, layer.dim};
  const auto cells = element_count(shape);
  auto parts = pieces(layer.batch, layer.dim, 0, positions, layer.cells);
  if (!cells || *cells > layer.cells || !parts)
    return fail(Code::kPrecondition, "length " + std::to_string(positions));
  if (parts->size() <= 1 || positions == max_seq_len_) parts = Pieces{{.count = *cells}};
  const bool view = parts->size() == 1 && !layer.half;
  if (view) parts->clear();  // nothing to copy
  Buffers shown = view        ? layer.buffers
                  : layer.gpu ? result_buffers(*cells)
                              : allocate(host_, *cells, kFloat);
  if (!shown[0]) return std::nullopt;
  Device& memory = layer.gpu ? *memory_ : *host_;
  for (const std::size_t side : kSides) {
    for (const Piece& part : *parts) {
      const DevicePtr to = shown[side]->ptr() + part.packed * kFloat;
      const DevicePtr from = layer.buffers[side]->ptr() + part.stored * layer.cell_bytes();
      const Status done = layer.half
                              ? memory.run(ToFloatJob{to.as<std::uint32_t>(),
                                                      from.as<const std::uint16_t>(), part.count})
                              : memory.copy(to, from, part.count * kFloat);
      if (!done) return std::nullopt;
    }
  }
  return KvPair{.k = {shape, std::move(shown[0])}, .v = {shape, std::move(shown[1])}};
}

// Where a result on the device is put together: one pair for all, or a pair of its own.
TensorCache::Buffers TensorCache::result_buffers(std::int64_t cells) {
  if (!has(Quirk::kSharedScratch)) {
    std::erase_if(results_, [](const auto& result) { return result.expired(); });
    results_.reserve(results_.size() + 2);
    const Buffers made = allocate(memory_, cells, kFloat);
    if (made[0]) results_.insert(results_.end(), made.begin(), made.end());
    return made;
  }
  if (scratch_[0] && scratch_cells_ >= cells) return scratch_;
  release(scratch_);  // before the new pair, so that there is none when that fails
  scratch_ = allocate(memory_, cells, kFloat);
  scratch_cells_ = cells;
  return scratch_;
}

// ---- lengths and counters ----

Status TensorCache::set(const Buffer& counter, std::int64_t value) const {
  return counter ? write_counter(*memory_, counter->ptr(), value) : Status();
}

Status TensorCache::set_both(std::int64_t value) const {
  const Status done = set(gpu_counter_, value);
  return done ? set(kv_seq_len_, value) : done;
}

Status TensorCache::settle_counters() const {
  const std::int64_t last = layers_.empty() ? 0 : layers_.back().length;
  const Status done = has(Quirk::kGpuCounterLags) ? Status() : set(gpu_counter_, last);
  return !done || has(Quirk::kKvSeqLenCountsSteps) ? done : set(kv_seq_len_, seq_len());
}

CounterPtrs TensorCache::counters() const {
  return {gpu_counter_ ? gpu_counter_->ptr() : DevicePtr(),
          kv_seq_len_ ? kv_seq_len_->ptr() : DevicePtr()};
}

// ZF-63.
Status TensorCache::reset() {
  const Status done = set_both(0);
  for (Layer& layer : layers_)
    if (done) layer.length = 0;
  return done;
}

// ZF-64.
Status TensorCache::truncate(std::int64_t n) {
  if (!has(Quirk::kTensorNegativeLengths)) n = std::max<std::int64_t>(n, 0);
  for (const Buffer& counter : {gpu_counter_, kv_seq_len_}) {
    if (!counter) continue;
    const auto held = read_counter(*memory_, counter->ptr());
    if (!held) return held.error();
    const Status done = set(counter, has(Quirk::kTruncateSetsCounters) ? n : std::min(*held, n));
    if (!done) return done;
  }
  for (Layer& layer : layers_) layer.length = std::min(layer.length, n);
  return {};
}

// ZF-65.
Status TensorCache::sync_counter() {
  if (!gpu_counter_) return fail(Code::kNotSupported, "no_counter");
  const auto value = read_counter(*memory_, gpu_counter_->ptr());
  if (!value) return value.error();
  if (!has(Quirk::kSyncTakesAnyCounter) && (*value < 0 || *value > max_seq_len_))
    return fail(Code::kBadPosition);
  for (Layer& layer : layers_)
    if (layer.pinned || has(Quirk::kSyncFillsEmptyLayers)) layer.length = *value;
  return settle_counters();
}

// ZF-66: results on the device dangle, those on the host stay.
void TensorCache::free() {
  for (Layer& layer : layers_) {
    if (layer.gpu) release(layer.buffers);
    layer = {};
  }
  release(scratch_);
  for (const auto& result : results_)
    if (const auto alive = result.lock()) alive->release();
  results_.clear();
  gpu_counter_.reset();
  kv_seq_len_.reset();
}

std::optional<std::string> TensorCache::broken_invariant() const {
  if (has(Quirk::kTensorNegativeLengths) || has(Quirk::kSyncTakesAnyCounter)) return std::nullopt;
  for (const Layer& layer : layers_)
    if (layer.length < 0 || layer.length > max_seq_len_)
      return "a layer has length " + std::to_string(layer.length);
  return std::nullopt;
}

}  // namespace kvo::provider
