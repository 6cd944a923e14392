// How rows get into a TensorCache.
#include <algorithm>

#include "reference/contract/half.hpp"
#include "reference/provider/tensor_cache.hpp"

namespace kvo::provider {

Status TensorCache::update(std::int64_t layer, const Rows& rows) {
  auto step = checked(layer, rows);
  if (!step) return step.error();
  auto placed_layer = placed(*step);
  if (!placed_layer) return placed_layer.error();
  Layer next = std::move(*placed_layer);
  if (quirks_.shapes_unchecked && aborts(next, *step))
    return fail(Code::kPrecondition, "cells outside a buffer");

  std::vector<float> k_back;
  std::vector<float> v_back;
  if (next.host) {  // it needs the cells on the host (ZF-56)
    if (const Status read = read_back(step->k, k_back); !read) return read;
    if (const Status read = read_back(step->v, v_back); !read) return read;
  }
  step->runs = runs(next, *step);

  Layer& now = layers_[step->layer];
  const Layer before = now;
  if (quirks_.failures_leave_traces) now = next;
  const Status written = write(next, *step);
  if (written) {
    next.length += step->seq;
    now = std::move(next);
  }
  if (quirks_.counters_drift) return written;
  const Status shown = set_counters(last_length(), first_length());
  if (!shown) now = before;
  return written ? shown : written;
}

Status TensorCache::read_back(Source& source, std::vector<float>& cells) const {
  if (!source.device) return {};
  cells.resize(static_cast<std::size_t>(source.cells));
  source.host = cells;
  return memory_->to_host(std::as_writable_bytes(std::span(cells)), source.device);
}

// ZF-54.
Result<TensorCache::Step> TensorCache::checked(std::int64_t layer, const Rows& rows) const {
  if (!has(layer)) return fail(Code::kOutOfRange, "layer");
  if (rows.k == nullptr && quirks_.shapes_unchecked) return fail(Code::kPrecondition, "k is null");
  if (rows.k == nullptr || rows.k->shape.size() != 3) return fail(Code::kBadShape, "rank");
  const auto source = [](const Tensor& tensor, DevicePtr device) -> Source {
    return {device, device ? std::span<const float>() : tensor.floats(), tensor.elements()};
  };
  const Shape& shape = rows.k->shape;
  Step step{.layer = static_cast<std::size_t>(layer),
            .batch = shape[0],
            .seq = shape[1],
            .dim = shape[2],
            .k = source(*rows.k, rows.k_device),
            .v = {},
            .runs = {}};
  const Layer& to = layers_[step.layer];
  if (!quirks_.shapes_unchecked && to.pinned) {
    if (step.batch != to.batch) return fail(Code::kBadShape, "batch");
    if (step.dim != to.dim) return fail(Code::kBadShape, "dim");
  }
  std::int64_t end = 0;
  if (__builtin_add_overflow(to.length, step.seq, &end) || end > max_seq_len_)
    return fail(Code::kFull);
  if (!quirks_.shapes_unchecked) {
    if (const Status good = check_documented(to, rows); !good) return good.error();
  }
  if (rows.v == nullptr) return fail(Code::kPrecondition, "v is null");
  step.v = source(*rows.v, rows.v_device);
  return step;
}

// V's shape, and what fp16 storage asks of the sources, before anything is allocated.
Status TensorCache::check_documented(const Layer& layer, const Rows& rows) const {
  if (rows.v == nullptr || rows.v->shape != rows.k->shape) return fail(Code::kBadShape, "v");
  const bool to_gpu = layer.gpu || rows.k_device;
  if (half_ && to_gpu && !(rows.k_device && rows.v_device))
    return fail(Code::kNotSupported, "cpu_source");
  return {};
}

TensorCache::Pair<DeviceStorage> TensorCache::on_device(std::int64_t cells,
                                                        std::int64_t cell_bytes) const {
  auto k = DeviceStorage::make(memory_, cells, cell_bytes);
  if (!k) return {};
  auto v = DeviceStorage::make(memory_, cells, cell_bytes);
  if (!v) return {};
  return {std::move(*k), std::move(*v)};
}

// The layer with room for the rows (ZF-55, ZF-56); the cache does not know it yet.
Result<TensorCache::Layer> TensorCache::placed(const Step& step) const {
  Layer next = layers_[step.layer];
  const bool from_gpu = static_cast<bool>(step.k.device);
  if (next.pinned && (next.gpu || !from_gpu)) return next;
  const auto cells = product(step.batch, max_seq_len_, step.dim);
  if (!cells || *cells < 0)
    return fail(quirks_.sizes_unchecked ? Code::kPrecondition : Code::kOutOfRange, "max_seq_len");
  if (!next.pinned) {
    next = {.pinned = step.batch != 0 || !quirks_.batch_0_unpinned,
            .batch = step.batch,
            .dim = step.dim,
            .length = next.length,
            .cells = *cells};
    if (from_gpu) next.gpu = on_device(*cells, half_ ? kHalf : kFloat);
    next.half = next.gpu && half_;
    if (!next.gpu) {
      const auto count = static_cast<std::size_t>(*cells);
      next.host.k = std::make_shared<HostStorage>(count);
      next.host.v = std::make_shared<HostStorage>(count);
    }
  }
  if (next.host && from_gpu) {
    if (const Status moved = promote(next, step, *cells); !moved) return moved.error();
  }
  return next;
}

// Moves a layer to the device; it stays on the host when there is no memory (ZF-56).
Status TensorCache::promote(Layer& layer, const Step& step, std::int64_t cells) const {
  const bool half = half_ && !quirks_.promotes_to_fp32;
  auto gpu = on_device(cells, half ? kHalf : kFloat);
  if (!gpu) return {};
  const auto held =
      quirks_.flat_storage ? product(layer.length, step.dim, step.batch) : layer.cells;
  if (!held || *held < 0 || *held > std::min(cells, layer.cells))
    return fail(Code::kPrecondition, "cells outside a buffer");
  const auto count = static_cast<std::size_t>(*held);
  for (const auto& [from, to] :
       {std::pair(layer.host.k.get(), gpu.k->ptr()), std::pair(layer.host.v.get(), gpu.v->ptr())}) {
    const auto floats = std::span<const float>(from->cells).first(count);
    std::vector<std::uint16_t> halves;
    if (half) {
      halves.resize(count);
      std::ranges::transform(floats, halves.begin(), f16_of);
    }
    const Status copied =
        memory_->to_device(to, half ? std::as_bytes(std::span(halves)) : std::as_bytes(floats));
    if (!copied) return copied;
  }
  layer.gpu = std::move(gpu);
  layer.host = {};
  layer.half = half;
  layer.cells = cells;
  return {};
}

// Whether the original would read or write outside of its buffers (ZF-58, ZF-59, ZF-64).
bool TensorCache::aborts(const Layer& layer, const Step& step) const {
  const auto outside = [&](const std::optional<std::int64_t>& start, std::int64_t count) {
    return !start || *start < 0 || *start > layer.cells || count > layer.cells - *start;
  };
  const auto start = product(layer.length, step.dim, step.batch);
  const std::int64_t count = step.k.cells;
  if (layer.host) return outside(start, count);
  if (gpu_counter_ && step.seq == 1 && step.on_gpu()) {
    const auto position = read_counter(*gpu_counter_);
    if (!position || *position >= max_seq_len_) return false;
    return *position < 0 || step.v.cells < count ||
           outside(product(*position, step.dim, step.batch), count);
  }
  if (!step.k.device && layer.half) return false;  // an error instead
  if (outside(start, count)) return true;
  if (!step.v.device) return !layer.half && outside(start, step.v.cells);
  return step.v.cells < count;
}

// Where the rows go: as they are behind the earlier ones (ZF-60), or row by row of the batch.
std::vector<TensorCache::Run> TensorCache::runs(const Layer& layer, const Step& step) const {
  if (quirks_.flat_storage) {
    const auto start = product(layer.length, step.dim, step.batch);  // else nobody goes there
    return {{.from = 0, .to = start.value_or(0), .count = step.k.cells}};
  }
  std::vector<Run> found;
  if (step.k.cells == 0) return found;
  for (std::int64_t b = 0; b < step.batch; ++b)
    found.push_back({.from = b * step.seq * step.dim,
                     .to = (b * max_seq_len_ + layer.length) * step.dim,
                     .count = step.seq * step.dim});
  return found;
}

// ZF-57 to ZF-59.
Status TensorCache::write(const Layer& layer, const Step& step) {
  if (kv_seq_len_ && step.seq == 1 && step.layer == 0) {
    const Status counted = memory_->increment_counter(kv_seq_len_->ptr(), 1);
    if (!counted) return counted;
  }
  if (gpu_counter_ && step.seq == 1 && layer.gpu && step.on_gpu()) return decode(layer, step);
  if (layer.gpu) {
    if (const Status done = store_on_gpu(layer, step, true); !done) return done;
    if (const Status done = store_on_gpu(layer, step, false); !done) return done;
  } else {
    store_on_host(layer, step);
  }
  if (step.seq <= 1 || !is_last(step)) return {};
  return set_counters(layer.length + step.seq, layer.length + step.seq);
}

// ZF-58.
Status TensorCache::decode(const Layer& layer, const Step& step) {
  if (!quirks_.shared_position) {
    const Status moved = set_counter(gpu_counter_, layer.length);
    if (!moved) return moved;
  }
  const std::int64_t rows = quirks_.flat_storage ? 1 : std::ssize(step.runs);
  OffsetCopy row{.counter = gpu_counter_->ptr(),
                 .dim = quirks_.flat_storage ? step.k.cells : step.dim,
                 .max_seq_len = max_seq_len_,
                 .to_half = layer.half};
  for (const auto& [from, to] : {std::pair(step.k.device, layer.gpu.k->ptr()),
                                 std::pair(step.v.device, layer.gpu.v->ptr())}) {
    for (std::int64_t b = 0; b < rows; ++b) {
      row.src = from + b * row.dim * kFloat;
      row.dst = to + b * max_seq_len_ * row.dim * layer.cell_bytes();
      if (const Status done = memory_->offset_memcpy(row); !done) return done;
    }
  }
  return is_last(step) ? memory_->increment_counter(gpu_counter_->ptr(), 1) : Status();
}

// ZF-59: K's or V's cells into the buffers on the device.
Status TensorCache::store_on_gpu(const Layer& layer, const Step& step, bool keys) const {
  const Source& from = keys ? step.k : step.v;
  const DevicePtr base = (keys ? layer.gpu.k : layer.gpu.v)->ptr();
  if (layer.half && !from.device) return fail(Code::kNotSupported, "cpu_source");
  for (const Run& run : step.runs) {
    const DevicePtr to = base + run.to * layer.cell_bytes();
    const DevicePtr source = from.device + run.from * kFloat;
    Status done;
    if (layer.half) {
      done = memory_->to_half(to, source, run.count);
    } else if (from.device) {
      done = memory_->copy(to, source, run.count * kFloat);
    } else if (quirks_.flat_storage) {  // all cells, whatever their number
      done = memory_->to_device(to, std::as_bytes(from.host));
    } else {
      const auto row = from.host.subspan(static_cast<std::size_t>(run.from),
                                         static_cast<std::size_t>(run.count));
      done = memory_->to_device(to, std::as_bytes(row));
    }
    if (!done) return done;
  }
  return {};
}

// ZF-59: a short V leaves the rest as it was, a long one is cut.
void TensorCache::store_on_host(const Layer& layer, const Step& step) const {
  for (const Run& run : step.runs) {
    for (const auto& [from, to] :
         {std::pair(step.k.host, layer.host.k.get()), std::pair(step.v.host, layer.host.v.get())}) {
      const auto start = static_cast<std::size_t>(run.from);
      const auto count = std::min(static_cast<std::size_t>(run.count), from.size() - start);
      std::ranges::copy(from.subspan(start, count), to->cells.begin() + run.to);
    }
  }
}

}  // namespace kvo::provider
