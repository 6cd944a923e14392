// reference/provider/tensor_cache.hpp: the reference of `provider.tensor`.
//
// Words    lane     positions that lie one behind the other. A buffer is lane after lane, each with
//                   room for max_seq_len positions: one for each row of the batch, or, with
//                   kFlatStorage, one for all (ZF-60). That is all in which the layouts differ.
//          piece    cells that lie together: some positions of one lane.
//          packed   without the room between lanes: as callers hand rows in and get them back.
// Memory   rows on the host lie in a device of their own, whose memory is that of the host: so
//          there is one sort of buffer.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reference/contract/device/host_device.hpp"
#include "reference/contract/device/jobs.hpp"
#include "reference/contract/values/mark.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/provider/tensor_parts.hpp"

namespace kvo::provider {

/// The shortest cache that keeps the contract, over any device.
class TensorCache : public TensorBacked, TensorParts {
 public:
  /// Errors  as MakeTensor says.
  static Result<std::unique_ptr<TensorBacked>> make(const TensorOptions& options,
                                                    QuirkSet<Quirk> quirks) {
    if (Status good = check(options, quirks); !good) return good.error();
    return std::make_unique<TensorCache>(options, quirks);
  }

  TensorCache(const TensorOptions& options, QuirkSet<Quirk> quirks)
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

  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    auto step = checked(layer, rows);
    if (!step) return step.error();
    auto next = placed(*step);
    if (!next) return next.error();
    std::array<std::vector<float>, 2> back;  // a layer on the host needs the cells there (ZF-56)
    for (const std::size_t side : kSides) {
      Source& source = step->sources[side];
      if (next->gpu || !source.device) continue;
      back[side].resize(static_cast<std::size_t>(source.cells));
      const auto bytes = std::as_writable_bytes(std::span(back[side]));
      if (const Status done = memory_->to_host(bytes, source.device); !done) return done;
      source = {.host = back[side], .cells = source.cells};
    }
    if (const Status planned = plan(*next, *step); !planned) return planned;

    Layer& now = layers_[step->layer];
    if (has(Quirk::kFailedUpdateAllocates)) now = *next;
    const Status written = write(*next, *step);
    if (written) {
      next->length += step->seq;
      now = std::move(*next);
    }
    const Status settled = settle_counters();
    return written ? settled : written;
  }
  [[nodiscard]] Result<std::optional<KvPair>> get(std::int64_t layer) override {
    const Layer* found = find(layer);
    if (found == nullptr || !found->pinned || found->length == 0) return std::nullopt;
    return show(*found, found->length);
  }
  [[nodiscard]] Result<std::optional<KvPair>> full_buffer(std::int64_t layer) override {
    const Layer* found = find(layer);
    if (found == nullptr || !found->pinned || !found->gpu) return std::nullopt;
    return show(*found, max_seq_len_);
  }
  [[nodiscard]] std::int64_t seq_len() const override {
    return layers_.empty() ? 0 : layers_.front().length;
  }
  [[nodiscard]] std::int64_t max_seq_len() const override { return max_seq_len_; }
  // ZF-63.
  [[nodiscard]] Status reset() override {
    const Status done = set_both(0);
    for (Layer& layer : layers_)
      if (done) layer.length = 0;
    return done;
  }
  // ZF-64.
  [[nodiscard]] Status truncate(std::int64_t n) override {
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
  [[nodiscard]] Status sync_counter() override {
    if (!gpu_counter_) return fail(Code::kNotSupported, "no_counter");
    const auto value = read_counter(*memory_, gpu_counter_->ptr());
    if (!value) return value.error();
    if (!has(Quirk::kSyncTakesAnyCounter) && (*value < 0 || *value > max_seq_len_))
      return fail(Code::kBadPosition);
    for (Layer& layer : layers_)
      if (layer.pinned || has(Quirk::kSyncFillsEmptyLayers)) layer.length = *value;
    return settle_counters();
  }
  [[nodiscard]] CounterPtrs counters() const override {
    return {gpu_counter_ ? gpu_counter_->ptr() : DevicePtr(),
            kv_seq_len_ ? kv_seq_len_->ptr() : DevicePtr()};
  }
  // ZF-66: results on the device dangle, those on the host stay.
  void free() override {
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
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    if (has(Quirk::kTensorNegativeLengths) || has(Quirk::kSyncTakesAnyCounter)) return std::nullopt;
    for (const Layer& layer : layers_)
      if (layer.length < 0 || layer.length > max_seq_len_)
        return "a layer has length " + std::to_string(layer.length);
    return std::nullopt;
  }

 private:
  /// The end of a buffer that is as large as can be.
  static constexpr std::int64_t kAnywhere = std::numeric_limits<std::int64_t>::max();

  using Buffer = std::shared_ptr<DeviceStorage>;
  struct Piece {
    std::int64_t stored = 0;  ///< its first cell in the buffer
    std::int64_t packed = 0;
    std::int64_t count = 0;  ///< cells
  };
  using Pieces = std::vector<Piece>;
  /// An update that passed the checks.
  struct Step {
    std::size_t layer = 0;
    std::int64_t batch = 0;
    std::int64_t seq = 0;
    std::int64_t dim = 0;
    std::array<Source, 2> sources = {};
    std::array<Pieces, 2> pieces = {};
    bool decode = false;  ///< written by the kernels of ZF-58
  };

  [[nodiscard]] bool has(Quirk quirk) const { return quirks_.has(quirk); }
  [[nodiscard]] const Layer* find(std::int64_t layer) const {
    const bool exists = layer >= 0 && layer < std::ssize(layers_);
    return exists ? &layers_[static_cast<std::size_t>(layer)] : nullptr;
  }
  [[nodiscard]] bool is_last(const Step& step) const { return step.layer + 1 == layers_.size(); }

  /// A piece a lane, for positions [first, first + positions); nothing when one would lie outside
  /// of a buffer of `cells`. Without cells there are no lanes but that of kFlatStorage.
  [[nodiscard]] std::optional<Pieces> pieces(std::int64_t batch, std::int64_t dim,
                                             std::int64_t first, std::int64_t positions,
                                             std::int64_t cells) const {
    const bool flat = has(Quirk::kFlatStorage);  // ZF-60
    const std::int64_t lanes = flat ? 1 : positions == 0 || dim == 0 ? 0 : batch;
    const std::int64_t rows = flat ? batch : 1;  // of the batch, in a lane
    Pieces found;
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const auto start = product({rows, dim, first});
      const auto count = product({rows, dim, positions});
      const auto before = product({lane, max_seq_len_, rows, dim});
      if (!start || !count || !before || *start < 0 || *count < 0 || *start > cells)
        return std::nullopt;
      if (*before > cells - *start || *count > cells - *start - *before) return std::nullopt;
      found.push_back({.stored = *before + *start, .packed = lane * *count, .count = *count});
    }
    return found;
  }
  // An update, in this order; everything that allocates comes before anything changes.
  // ZF-54, and what profile documented looks at besides.
  [[nodiscard]] Result<Step> checked(std::int64_t layer, const Rows& rows) const {
    const Layer* to = find(layer);
    if (to == nullptr) return fail(Code::kOutOfRange, "layer");
    if (Status good = check(rows, *to, max_seq_len_, half_, quirks_); !good) return good.error();
    const Shape& shape = rows.k->shape;
    return Step{.layer = static_cast<std::size_t>(layer),
                .batch = shape[0],
                .seq = shape[1],
                .dim = shape[2],
                .sources = sources_of(rows)};
  }
  // The layer with room for the rows (ZF-55); the cache does not know it yet.
  [[nodiscard]] Result<Layer> placed(const Step& step) const {
    Layer next = layers_[step.layer];
    const bool from_gpu = static_cast<bool>(step.sources[0].device);
    if (next.pinned && (next.gpu || !from_gpu)) return next;
    const auto bytes = product({step.batch, max_seq_len_, step.dim, kFloat});
    const Code overflow = has(Quirk::kOverflowAborts) ? Code::kPrecondition : Code::kOutOfRange;
    if (!bytes) return fail(overflow, "max_seq_len");
    if (*bytes < 0) return fail(Code::kPrecondition, "max_seq_len");
    const std::int64_t cells = *bytes / kFloat;
    if (!next.pinned) {
      next = {.pinned = step.batch != 0 || !has(Quirk::kBatchZeroUnallocated),
              .batch = step.batch,
              .dim = step.dim,
              .length = next.length,
              .cells = cells};
      if (from_gpu) next.buffers = allocate(memory_, cells, half_ ? kHalf : kFloat);
      next.gpu = next.buffers[0] != nullptr;
      next.half = next.gpu && half_;
      if (!next.gpu) next.buffers = allocate(host_, cells, kFloat);
      if (!next.gpu && from_gpu)
        KVO_MARK("provider.tensor", "gpu allocation failed layer fell back to the cpu");
    }
    if (next.gpu || !from_gpu) return next;
    return promoted(std::move(next), step, cells);
  }
  // Moves a layer to the device; it stays on the host when there is no memory (ZF-56).
  [[nodiscard]] Result<Layer> promoted(Layer layer, const Step& step, std::int64_t cells) const {
    const bool half = half_ && !has(Quirk::kPromotionToFp32);
    Buffers buffers = allocate(memory_, cells, half ? kHalf : kFloat);
    if (!buffers[0]) return layer;
    const auto held = pieces(step.batch, step.dim, 0, layer.length, std::min(cells, layer.cells));
    if (!held) return outside();
    for (const std::size_t side : kSides) {
      for (const Piece& piece : *held) {
        std::vector<float> floats(static_cast<std::size_t>(piece.count));
        std::vector<std::uint16_t> halves(half ? floats.size() : 0);
        layer.buffers[side]->read(piece.stored, floats);
        if (half) std::ranges::transform(floats, halves.begin(), f16_of);
        const auto bytes =
            half ? std::as_bytes(std::span(halves)) : std::as_bytes(std::span(floats));
        const DevicePtr to = buffers[side]->ptr() + piece.stored * (half ? kHalf : kFloat);
        if (const Status done = memory_->to_device(to, bytes); !done) return done.error();
      }
    }
    KVO_MARK("provider.tensor", "cpu layer promoted");
    layer.buffers = std::move(buffers);
    layer.gpu = true;
    layer.half = half;
    layer.cells = cells;
    return layer;
  }
  // Says what of each side goes where; an error where the original leaves a buffer (ZF-58, ZF-59).
  [[nodiscard]] Status plan(const Layer& layer, Step& step) const {
    step.decode = gpu_counter_ && step.seq == 1 && layer.gpu && step.sources[0].device &&
                  step.sources[1].device;
    const bool shared = step.decode && has(Quirk::kSharedPosition);
    const auto position =
        shared ? read_counter(*memory_, gpu_counter_->ptr()) : Result<std::int64_t>(layer.length);
    if (!position) return position.error();
    if (step.decode && *position < 0) return outside();
    const bool nowhere = step.decode && *position >= max_seq_len_;  // nothing is written (ZF-47)
    for (const std::size_t side : kSides) {
      const Source& source = step.sources[side];
      if (layer.half && !source.device) return {};  // an error of its own, after K is written
      auto found = pieces(step.batch, step.dim, *position, step.seq, layer.cells);
      if (!nowhere && (!found || !fit(layer, source, *found))) return outside();
      if (step.decode) found = pieces(step.batch, step.dim, 0, 1, kAnywhere);  // the lanes alone
      if (!found) return outside();
      step.pieces[side] = std::move(*found);
    }
    return {};
  }
  // Cuts pieces to what a source has: a short V leaves old cells, and host cells that go to the
  // device go there all (ZF-59). False when that leaves the buffer or the source.
  [[nodiscard]] static bool fit(const Layer& layer, const Source& source, Pieces& pieces) {
    for (Piece& piece : pieces) {
      piece.packed = std::min(piece.packed, source.cells);
      const std::int64_t left = source.cells - piece.packed;
      if (source.device && left < piece.count) return false;
      if (source.device) continue;
      piece.count = layer.gpu && pieces.size() == 1 ? left : std::min(left, piece.count);
      if (piece.count > layer.cells - piece.stored) return false;
    }
    return true;
  }
  // ZF-57 to ZF-59.
  [[nodiscard]] Status write(const Layer& layer, const Step& step) {
    if (kv_seq_len_ && step.seq == 1 && step.layer == 0) {
      const Status counted = memory_->run(IncrementJob{kv_seq_len_->ptr().as<std::int32_t>(), 1});
      if (!counted) return counted;
    }
    if (step.decode) return decode(layer, step);
    for (const std::size_t side : kSides)
      if (const Status done = store(layer, step, side); !done) return done;
    return step.seq > 1 && is_last(step) ? set_both(layer.length + step.seq) : Status();
  }
  // ZF-58: the kernels take the position from gpu_counter.
  [[nodiscard]] Status decode(const Layer& layer, const Step& step) {
    const auto held = read_counter(*memory_, gpu_counter_->ptr());
    if (!held) return held.error();
    if (*held != layer.length)
      KVO_MARK("provider.tensor", "decode step at the shared counter layer elsewhere");
    const bool shared = has(Quirk::kSharedPosition);
    Status done = shared ? Status() : set(gpu_counter_, layer.length);
    for (const std::size_t side : kSides)
      for (const Piece& lane : step.pieces[side])
        if (done) done = memory_->run(row_job(layer, step, side, lane));
    if (done && is_last(step))
      done = memory_->run(IncrementJob{gpu_counter_->ptr().as<std::int32_t>(), 1});
    if (!shared && !(done && is_last(step))) (void)set(gpu_counter_, *held);
    return done;
  }
  [[nodiscard]] Job row_job(const Layer& layer, const Step& step, std::size_t side,
                            const Piece& lane) const {
    const DevicePtr to = layer.at(side, lane.stored);
    const auto* from = (step.sources[side].device + lane.packed * kFloat).as<const std::uint32_t>();
    const auto* counter = gpu_counter_->ptr().as<const std::int32_t>();
    if (layer.half)
      return OffsetCopyHalfJob{to.as<std::uint16_t>(), from, counter, lane.count, max_seq_len_};
    return OffsetCopyJob{to.as<std::uint32_t>(), from, counter, lane.count, max_seq_len_};
  }
  // ZF-59.
  [[nodiscard]] Status store(const Layer& layer, const Step& step, std::size_t side) const {
    const Source& source = step.sources[side];
    if (layer.half && !source.device) return fail(Code::kNotSupported, "cpu_source");
    for (const Piece& piece : step.pieces[side]) {
      const DevicePtr to = layer.at(side, piece.stored);
      const DevicePtr from = source.device + piece.packed * kFloat;
      Status done;
      if (!source.device) {
        const std::span cells(source.host.data() + piece.packed,
                              static_cast<std::size_t>(piece.count));
        done = (layer.gpu ? memory_ : host_)->to_device(to, std::as_bytes(cells));
      } else {
        done = layer.half ? memory_->run(ToHalfJob{to.as<std::uint16_t>(),
                                                   from.as<const std::uint32_t>(), piece.count})
                          : memory_->copy(to, from, piece.count * kFloat);
      }
      if (!done) return done;
    }
    return {};
  }

  // The first positions of a layer: a view where they lie together, else a copy.
  [[nodiscard]] Result<std::optional<KvPair>> show(const Layer& layer, std::int64_t positions) {
    if (positions < 0 && (layer.batch == 0 || layer.dim == 0)) return std::nullopt;  // ZF-2
    const Shape shape{layer.batch, positions, layer.dim};
    const auto cells = element_count(shape);
    auto parts = pieces(layer.batch, layer.dim, 0, positions, layer.cells);
    if (!cells || *cells > layer.cells || !parts)
      return fail(Code::kPrecondition, "length " + std::to_string(positions));
    if (parts->size() <= 1 || positions == max_seq_len_) parts = Pieces{{.count = *cells}};
    const bool view = parts->size() == 1 && !layer.half;
    if (view) parts->clear();                                   // nothing to copy
    KvPair pair{.k = {shape, nullptr}, .v = {shape, nullptr}};  // before a pair is released
    Buffers shown = view        ? layer.buffers
                    : layer.gpu ? result_buffers(*cells)
                                : allocate(host_, *cells, kFloat);
    if (!shown[0]) return std::nullopt;
    Device& memory = layer.gpu ? *memory_ : *host_;
    for (const std::size_t side : kSides) {
      for (const Piece& part : *parts) {
        const DevicePtr to = shown[side]->ptr() + part.packed * kFloat;
        const DevicePtr from = layer.at(side, part.stored);
        const Status done = layer.half
                                ? memory.run(ToFloatJob{to.as<std::uint32_t>(),
                                                        from.as<const std::uint16_t>(), part.count})
                                : memory.copy(to, from, part.count * kFloat);
        if (!done) return std::nullopt;
      }
    }
    pair.k.storage = std::move(shown[0]);
    pair.v.storage = std::move(shown[1]);
    return pair;
  }
  // Where a result on the device is put together: one pair for all, or a pair of its own.
  [[nodiscard]] Buffers result_buffers(std::int64_t cells) {
    if (!has(Quirk::kSharedScratch)) {
      std::erase_if(results_, [](const auto& result) { return result.expired(); });
      results_.reserve(results_.size() + 2);
      const Buffers made = allocate(memory_, cells, kFloat);
      if (made[0]) results_.insert(results_.end(), made.begin(), made.end());
      return made;
    }
    if (scratch_[0] && scratch_cells_ >= cells) return scratch_;
    scratch_ = allocate(memory_, cells, kFloat, &scratch_);
    scratch_cells_ = cells;
    return scratch_;
  }

  /// A counter that does not exist is left alone.
  [[nodiscard]] Status set(const Buffer& counter, std::int64_t value) const {
    return counter ? write_counter(*memory_, counter->ptr(), value) : Status();
  }
  [[nodiscard]] Status set_both(std::int64_t value) const {
    const Status done = set(gpu_counter_, value);
    return done ? set(kv_seq_len_, value) : done;
  }
  /// Makes the counters the lengths that they promise to be (ZF-57, ZF-59).
  [[nodiscard]] Status settle_counters() const {
    const std::int64_t last = layers_.empty() ? 0 : layers_.back().length;
    const Status done = has(Quirk::kGpuCounterLags) ? Status() : set(gpu_counter_, last);
    return !done || has(Quirk::kKvSeqLenCountsSteps) ? done : set(kv_seq_len_, seq_len());
  }

  std::shared_ptr<Device> memory_;
  std::shared_ptr<Device> host_ = std::make_shared<HostDevice>();
  std::int64_t max_seq_len_;
  bool half_;
  QuirkSet<Quirk> quirks_;
  std::vector<Layer> layers_;
  Buffer gpu_counter_;
  Buffer kv_seq_len_;
  Buffers scratch_;  ///< only with kSharedScratch
  std::int64_t scratch_cells_ = 0;
  std::vector<std::weak_ptr<DeviceStorage>> results_;  ///< only without
};

}  // namespace kvo::provider
