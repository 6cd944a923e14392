#include "cuda/provider/contiguous_device_cache.hpp"

#include <utility>

#include "cuda/jobs/rows.hpp"

namespace kvo::cuda {

using provider::Contiguous;
using provider::ContiguousOptions;
using provider::KvPair;
using provider::Quirk;
using provider::Rows;

Result<std::unique_ptr<Contiguous>> ContiguousDeviceCache::make(
    const std::shared_ptr<Device>& device, const ContiguousOptions& options,
    QuirkSet<Quirk> quirks) {
  if (Status good = store_f32_only(options.storage); !good) return good.error();
  const bool aborts = quirks.has(Quirk::kNegativeSizesAbort);
  if (options.num_layers < 0)
    return fail(aborts ? Code::kPrecondition : Code::kOutOfRange, "num_layers");
  if (options.max_seq_len < 0 && !aborts) return fail(Code::kOutOfRange, "max_seq_len");
  return std::make_unique<ContiguousDeviceCache>(device, options, quirks);
}

Status ContiguousDeviceCache::pin(Layer& layer, const Tensor& k, std::int64_t cells) const {
  for (std::shared_ptr<DeviceStorage>* buffer : {&layer.k, &layer.v}) {
    auto made = make_cells(device_, cells);
    if (!made) return made.error();
    *buffer = std::move(*made);
  }
  layer.batch = k.shape[0];
  layer.dim = k.shape[2];
  return {};
}

Status ContiguousDeviceCache::update(std::int64_t layer, const Rows& rows) {
  if (!has(layer)) return fail(Code::kOutOfRange, "layer");
  if (rows.k == nullptr && has(Quirk::kNullAborts)) return fail(Code::kPrecondition, "k is null");
  if (rows.k == nullptr || rows.k->shape.size() != 3) return fail(Code::kBadShape, "rank");
  const std::int64_t batch = rows.k->shape[0];
  const std::int64_t seq = rows.k->shape[1];
  const std::int64_t dim = rows.k->shape[2];
  Layer next = layers_[static_cast<std::size_t>(layer)];  // put in place when all went well

  const bool pinned = next.k != nullptr;
  std::int64_t cells = 0;
  std::int64_t end = 0;
  if (pinned && batch != next.batch) return fail(Code::kBadShape, "batch");
  if (pinned && dim != next.dim) return fail(Code::kBadShape, "dim");
  if (!pinned && (__builtin_mul_overflow(batch, max_seq_len_, &cells) ||
                  __builtin_mul_overflow(cells, dim, &cells)))
    return size_error("max_seq_len");
  if (cells < 0) return fail(Code::kPrecondition, "max_seq_len");
  if (__builtin_add_overflow(next.cursor, seq, &end)) return size_error("seq");
  const bool full = end > max_seq_len_;
  if (full && (pinned || !has(Quirk::kFullPins))) return fail(Code::kFull);
  if (!full) {
    if (Status good = check_v(next, rows); !good) return good;
  }
  if (!pinned) {
    if (Status made = pin(next, *rows.k, cells); !made) return made;
  }
  if (!full && !rows.k->bytes.empty()) {
    if (Status stored = store(next, rows); !stored) return stored;
  }
  if (!full) next.cursor = end;
  layers_[static_cast<std::size_t>(layer)] = std::move(next);
  return full ? Status(fail(Code::kFull)) : Status();  // ZF-10
}

Status ContiguousDeviceCache::check_v(const Layer& layer, const Rows& rows) const {
  if (rows.v == nullptr)
    return fail(has(Quirk::kNullAborts) ? Code::kPrecondition : Code::kBadShape, "v");
  if (!has(Quirk::kContiguousVIgnored) && rows.v->shape != rows.k->shape)
    return fail(Code::kBadShape, "v");
  if (rows.v->bytes.size() < rows.k->bytes.size()) return fail(Code::kPrecondition, "v is short");
  if (layer.cursor < 0 && rows.k->shape[0] > 0 && rows.k->shape[2] > 0)  // ZF-18
    return fail(Code::kPrecondition, "cursor < 0");
  return {};
}

Status ContiguousDeviceCache::store(const Layer& layer, const Rows& rows) {
  const std::int64_t seq = rows.k->shape[1];
  const std::int64_t run = seq * layer.dim;
  const std::int64_t row_bytes = layer.dim * kCellBytes;
  const bool straight = layer.batch == 1;
  const std::int64_t bytes = layer.batch * run * kCellBytes;
  if (Status there = staging_.reserve(straight ? 0 : bytes); !there) return there;

  const auto put = [&](std::size_t side, const DeviceStorage& buffer, const Tensor& from,
                       DevicePtr cells) {
    const DevicePtr place = buffer.ptr() + layer.cursor * row_bytes;
    const HostLanes lanes{from.floats().data(), layer.batch, run, run};
    if (straight)
      return cells ? device_->copy(place, cells, bytes) : staging_.upload(side, place, lanes);
    if (!cells) {
      cells = staging_.room(side);
      if (Status queued = staging_.upload(side, cells, lanes); !queued) return queued;
    }
    return device_->run(
        append_rows(buffer.ptr(), cells, layer.batch, seq, row_bytes, layer.cursor, max_seq_len_));
  };
  return staging_.carry_out([&] {
    Status keys = put(0, *layer.k, *rows.k, rows.k_device);
    return keys ? put(1, *layer.v, *rows.v, rows.v_device) : keys;
  });
}

Result<std::optional<KvPair>> ContiguousDeviceCache::get(std::int64_t layer) {
  if (!has(layer)) return std::nullopt;
  const Layer& from = layers_[static_cast<std::size_t>(layer)];
  if (from.cursor <= 0) {
    if (from.cursor < 0 && from.batch > 0 && from.dim > 0)
      return fail(Code::kPrecondition, "cursor < 0");
    return std::nullopt;
  }
  if (from.batch > 1 && from.dim > 0 && from.cursor < max_seq_len_) {
    auto pair = compact(from);
    if (!pair) return pair.error();
    return std::move(*pair);
  }
  const Shape shape{from.batch, from.cursor, from.dim};
  return KvPair{{shape, from.k}, {shape, from.v}};  // ZF-14
}

Result<KvPair> ContiguousDeviceCache::compact(const Layer& layer) const {
  const std::int64_t run = layer.cursor * layer.dim;
  const std::int64_t side = layer.batch * run;
  auto both = make_cells(device_, 2 * side);  // one allocation holds both sides
  if (!both) return both.error();
  for (const auto& [first, from] :
       {std::pair(std::int64_t{0}, layer.k.get()), std::pair(side, layer.v.get())}) {
    for (std::int64_t lane = 0; lane < layer.batch; ++lane) {
      const DevicePtr to = (*both)->ptr() + (first + lane * run) * kCellBytes;
      const DevicePtr start = from->ptr() + lane * max_seq_len_ * layer.dim * kCellBytes;
      if (Status queued = device_->copy(to, start, run * kCellBytes); !queued)
        return queued.error();
    }
  }
  if (Status done = device_->synchronize(Stream()); !done) return done.error();
  const Shape shape{layer.batch, layer.cursor, layer.dim};
  return KvPair{{shape, *both, 0}, {shape, *both, side}};
}

std::int64_t ContiguousDeviceCache::seq_len() const {
  return layers_.empty() ? 0 : layers_.front().cursor;
}

Status ContiguousDeviceCache::reset() {
  for (Layer& layer : layers_) layer.cursor = 0;
  return {};
}

Status ContiguousDeviceCache::truncate(std::int64_t n) {
  if (n < 0 && !has(Quirk::kNegativeLengths)) n = 0;
  for (Layer& layer : layers_)
    if (layer.cursor > n) layer.cursor = n;
  return {};
}

std::optional<std::string> ContiguousDeviceCache::broken_invariant() const {
  for (const Layer& layer : layers_) {
    if (layer.cursor <= 0) continue;
    if (!layer.k || !layer.v) return "a layer without buffers has positions";
    if (layer.cursor > max_seq_len_) return "a cursor is past max_seq_len";
  }
  return std::nullopt;
}

}  // namespace kvo::cuda
