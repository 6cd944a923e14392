// What a TensorDeviceCache shows and counts; how rows get in: tensor_device_cache_update.cpp.
#include "cuda/provider/tensor_device_cache.hpp"

#include <algorithm>
#include <utility>

#include "reference/contract/device/jobs.hpp"

namespace kvo::cuda {

using provider::CounterPtrs;
using provider::KvPair;
using provider::Quirk;
using provider::TensorBacked;
using provider::TensorOptions;

namespace {

void give_back(std::array<std::shared_ptr<DeviceStorage>, 2>& buffers) {
  for (const auto& buffer : buffers)
    if (buffer) buffer->release();
  buffers = {};
}

}  // namespace

Status TensorDeviceCache::check(const TensorOptions& options, QuirkSet<Quirk> quirks) {
  const bool unchecked = quirks.has(Quirk::kTensorSizesUnchecked);
  if (options.num_layers < 0)
    return fail(unchecked ? Code::kPrecondition : Code::kOutOfRange, "num_layers");
  if (options.max_seq_len < 0 && !unchecked) return fail(Code::kOutOfRange, "max_seq_len");
  return {};
}

Result<std::unique_ptr<TensorBacked>> TensorDeviceCache::make(const TensorOptions& options,
                                                              QuirkSet<Quirk> quirks) {
  auto made = make_as<TensorDeviceCache>(options, quirks);
  if (!made) return made.error();
  return std::move(*made);
}

TensorDeviceCache::TensorDeviceCache(const TensorOptions& options, QuirkSet<Quirk> quirks)
    : device_(options.memory),
      staging_(device_),
      max_seq_len_(options.max_seq_len),
      half_(options.dtype == "fp16"),  // ZF-67
      quirks_(quirks),
      layers_(static_cast<std::size_t>(options.num_layers)) {
  if (!options.stream || !device_) return;
  for (Counter* counter : {&gpu_counter_, &kv_seq_len_}) {
    auto made = DeviceStorage::make(device_, 1, sizeof(std::int32_t));
    if (made) *counter = {.cell = std::move(*made), .held = 0};  // alloc zeroes
  }
  if (has(Quirk::kOneCounterAlone) || (gpu_counter_.cell && kv_seq_len_.cell)) return;
  gpu_counter_ = {};
  kv_seq_len_ = {};
}

// ---- queries: ZF-61, ZF-62 ----

const TensorDeviceCache::Layer* TensorDeviceCache::find(std::int64_t layer) const {
  const bool exists = layer >= 0 && layer < std::ssize(layers_);
  return exists ? &layers_[static_cast<std::size_t>(layer)] : nullptr;
}

Result<std::optional<KvPair>> TensorDeviceCache::get(std::int64_t layer) {
  const Layer* found = find(layer);
  if (found == nullptr || !found->pinned || found->length == 0) return std::nullopt;
  return show(*found, found->length);
}

Result<std::optional<KvPair>> TensorDeviceCache::full_buffer(std::int64_t layer) {
  const Layer* found = find(layer);
  if (found == nullptr || !found->pinned || !found->gpu) return std::nullopt;
  return show(*found, max_seq_len_);
}

// The first positions of a layer: a view where they lie together, else a copy, which is queued.
Result<std::optional<KvPair>> TensorDeviceCache::show(const Layer& layer, std::int64_t positions) {
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
  Device& memory = layer.gpu ? *device_ : *host_;
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
TensorDeviceCache::Buffers TensorDeviceCache::result_buffers(std::int64_t cells) {
  if (!has(Quirk::kSharedScratch)) {
    std::erase_if(results_, [](const auto& result) { return result.expired(); });
    results_.reserve(results_.size() + 2);
    const Buffers made = allocate(device_, cells, kFloat);
    if (made[0]) results_.insert(results_.end(), made.begin(), made.end());
    return made;
  }
  if (scratch_[0] && scratch_cells_ >= cells) return scratch_;
  give_back(scratch_);  // before the new pair, so that there is none when that fails
  scratch_ = allocate(device_, cells, kFloat);
  scratch_cells_ = cells;
  return scratch_;
}

// ---- lengths and counters ----

Result<std::int64_t> TensorDeviceCache::held(Counter& counter) const {
  if (counter.held) return *counter.held;
  auto value = read_counter(*device_, counter.cell->ptr());
  if (value) counter.held = *value;
  return value;
}

Status TensorDeviceCache::set(Counter& counter, std::int64_t value) const {
  const std::int64_t cell = static_cast<std::int32_t>(value);
  if (!counter.cell || counter.held == cell) return {};
  counter.held.reset();
  Status written = write_counter(*device_, counter.cell->ptr(), cell);
  if (written) counter.held = cell;
  return written;
}

Status TensorDeviceCache::set_both(std::int64_t value) {
  Status done = set(gpu_counter_, value);
  return done ? set(kv_seq_len_, value) : done;
}

Status TensorDeviceCache::count(Counter& counter) const {
  Status queued = device_->run(IncrementJob{counter.cell->ptr().as<std::int32_t>(), 1});
  if (queued && counter.held)
    counter.held = static_cast<std::int32_t>(static_cast<std::uint32_t>(*counter.held) + 1U);
  return queued;
}

Status TensorDeviceCache::settle_counters() {
  const std::int64_t last = layers_.empty() ? 0 : layers_.back().length;
  Status done = has(Quirk::kGpuCounterLags) ? Status() : set(gpu_counter_, last);
  return !done || has(Quirk::kKvSeqLenCountsSteps) ? done : set(kv_seq_len_, seq_len());
}

CounterPtrs TensorDeviceCache::counters() const {
  return {gpu_counter_.cell ? gpu_counter_.cell->ptr() : DevicePtr(),
          kv_seq_len_.cell ? kv_seq_len_.cell->ptr() : DevicePtr()};
}

// ZF-63.
Status TensorDeviceCache::reset() {
  Status done = set_both(0);
  if (!done) return done;
  for (Layer& layer : layers_) layer.length = 0;
  ahead_ = false;
  return done;
}

// ZF-64.
Status TensorDeviceCache::truncate(std::int64_t n) {
  if (!has(Quirk::kTensorNegativeLengths)) n = std::max<std::int64_t>(n, 0);
  for (Counter* counter : {&gpu_counter_, &kv_seq_len_}) {
    if (!counter->cell) continue;
    const auto before = held(*counter);
    if (!before) return before.error();
    Status done = set(*counter, has(Quirk::kTruncateSetsCounters) ? n : std::min(*before, n));
    if (!done) return done;
  }
  for (Layer& layer : layers_) layer.length = std::min(layer.length, n);
  return {};
}

// ZF-65.
Status TensorDeviceCache::sync_counter() {
  if (!gpu_counter_.cell) return fail(Code::kNotSupported, "no_counter");
  const auto value = held(gpu_counter_);
  if (!value) return value.error();
  if (!has(Quirk::kSyncTakesAnyCounter) && (*value < 0 || *value > max_seq_len_))
    return fail(Code::kBadPosition);
  for (Layer& layer : layers_)
    if (layer.pinned || has(Quirk::kSyncFillsEmptyLayers)) layer.length = *value;
  ahead_ = false;
  return settle_counters();
}

// ZF-66: results on the device dangle, those on the host stay.
void TensorDeviceCache::free() {
  life_.reset();
  ahead_ = false;
  for (Layer& layer : layers_) {
    if (layer.gpu) give_back(layer.buffers);
    layer = {};
  }
  give_back(scratch_);
  for (const auto& result : results_)
    if (const auto alive = result.lock()) alive->release();
  results_.clear();
  gpu_counter_ = {};
  kv_seq_len_ = {};
}

std::optional<std::string> TensorDeviceCache::broken_invariant() const {
  if (has(Quirk::kTensorNegativeLengths) || has(Quirk::kSyncTakesAnyCounter)) return std::nullopt;
  for (const Layer& layer : layers_)
    if (layer.length < 0 || layer.length > max_seq_len_)
      return "a layer has length " + std::to_string(layer.length);
  return std::nullopt;
}

// ---- a step as a value ----

Result<DecodeStep> TensorDeviceCache::decode_step(std::span<const LayerRows> rows) {
  if (!gpu_counter_.cell) return fail(Code::kNotSupported, "no_counter");
  if (rows.size() != layers_.size()) return fail(Code::kOutOfRange, "layers");
  if (!life_) life_ = std::make_shared<const char>();
  DecodeStep step{.counter = gpu_counter_.cell->ptr(), .max_seq_len = max_seq_len_, .life = life_};
  if (kv_seq_len_.cell) step.counted_first.push_back(kv_seq_len_.cell->ptr());
  step.counted_last.push_back(step.counter);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Layer& layer = layers_[i];
    const auto lanes = pieces(layer.batch, layer.dim, 0, 1, layer.cells);
    if (!layer.gpu || !lanes)
      return fail(Code::kNotSupported, "layer " + std::to_string(i) + " is not on the device");
    for (const std::size_t side : kSides)
      for (const Piece& lane : *lanes)
        step.rows.push_back(row(layer, side == 0 ? rows[i].k : rows[i].v, side, lane));
  }
  return step;
}

Status TensorDeviceCache::before_replay() {
  if (!gpu_counter_.cell) return fail(Code::kNotSupported, "no_counter");
  if (!ahead_ && !has(Quirk::kSharedPosition)) {
    for (const Layer& layer : layers_)
      if (layer.length != seq_len()) return fail(Code::kBadPosition, "layers of several lengths");
    if (seq_len() >= max_seq_len_) return fail(Code::kFull);
    if (Status done = set(gpu_counter_, seq_len()); !done) return done;
  }
  gpu_counter_.held.reset();
  kv_seq_len_.held.reset();
  ahead_ = true;
  return {};
}

}  // namespace kvo::cuda
