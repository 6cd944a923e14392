// optimized/provider/tensor_control.hpp: what a cache of `provider.tensor` decides.
//
// Words    lane     consecutive positions. A buffer is lane after lane, each of max_seq_len
//                   positions: one for each row of the batch, or, with kFlatStorage, one for all
//                   (ZF-60).
//          packed   without gaps between lanes: as callers pass rows and get them back.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reference/contract/device/host_device.hpp"
#include "reference/contract/device/jobs.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/provider/tensor_parts.hpp"

namespace kvo::optimized {

/// Where layers are, which cells an update writes, and what the counters hold. The host knows the
/// counters as long as it alone moves them: so a decode step with rows on the device is its
/// launches, and waits for nothing. Lanes are numbers, not lists: a step allocates nothing. A
/// derived class moves the cells.
class TensorControl : public provider::TensorBacked, protected provider::TensorParts {
 public:
  using KvPair = provider::KvPair;
  using Quirk = provider::Quirk;
  using Rows = provider::Rows;
  using Shown = Result<std::optional<KvPair>>;

  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    auto step = checked(layer, rows);
    if (!step) return step.error();
    auto next = placed(*step);
    if (!next) return next.error();
    std::array<std::vector<float>, 2> back;  // a layer on the host needs the cells there (ZF-56)
    if (!next->gpu)
      if (Status taken = take_back(*step, back); !taken) return taken;
    if (Status planned = plan(*next, *step); !planned) return planned;
    if (next->gpu)
      if (Status there = prepare(); !there) return there;

    Layer& now = layers_[step->layer];
    if (has(Quirk::kFailedUpdateAllocates)) now = *next;
    Status written = write(*next, *step);
    if (written) {
      next->length += step->seq;
      now = std::move(*next);
    }
    Status settled = settle_counters();
    return written ? settled : written;
  }
  [[nodiscard]] Shown get(std::int64_t layer) override {
    const Layer* const of = find(layer);
    const bool shows = of != nullptr && of->pinned && of->length != 0;
    return shows ? show(*of, of->length) : Shown(std::nullopt);
  }
  [[nodiscard]] Shown full_buffer(std::int64_t layer) override {
    const Layer* const of = find(layer);
    const bool shows = of != nullptr && of->pinned && of->gpu;
    return shows ? show(*of, max_seq_len_) : Shown(std::nullopt);
  }
  [[nodiscard]] std::int64_t seq_len() const override {
    return layers_.empty() ? 0 : layers_.front().length;
  }
  [[nodiscard]] std::int64_t max_seq_len() const override { return max_seq_len_; }
  // ZF-63.
  [[nodiscard]] Status reset() override {
    if (Status done = set_both(0); !done) return done;
    for (Layer& layer : layers_) layer.length = 0;
    ahead_ = false;
    return {};
  }
  // ZF-64.
  [[nodiscard]] Status truncate(std::int64_t n) override {
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
  [[nodiscard]] Status sync_counter() override {
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
  [[nodiscard]] provider::CounterPtrs counters() const override {
    const auto address = [](const Counter& of) { return of.cell ? of.cell->ptr() : DevicePtr(); };
    return {address(gpu_counter_), address(kv_seq_len_)};
  }
  // ZF-66: results on the device dangle, those on the host stay.
  void free() override {
    ahead_ = false;
    for (Layer& layer : layers_) {
      if (layer.gpu) release(layer.buffers);
      layer = {};
    }
    release(scratch_);
    for (const auto& result : results_)
      if (const auto alive = result.lock()) alive->release();
    results_.clear();
    gpu_counter_ = {};
    kv_seq_len_ = {};
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    if (has(Quirk::kTensorNegativeLengths) || has(Quirk::kSyncTakesAnyCounter)) return std::nullopt;
    for (const Layer& layer : layers_)
      if (layer.length < 0 || layer.length > max_seq_len_)
        return "a layer has length " + std::to_string(layer.length);
    return std::nullopt;
  }

 protected:
  static constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();
  struct Counter {
    std::shared_ptr<DeviceStorage> cell = nullptr;
    std::optional<std::int64_t> held = std::nullopt;  ///< its value, where the host knows it
  };
  /// Cells that are moved: some positions of each lane.
  struct Lanes {
    struct Piece {
      std::int64_t stored = 0;  ///< its first cell in the buffer
      std::int64_t packed = 0;
      std::int64_t count = 0;  ///< cells
    };
    std::int64_t lanes = 0;
    std::int64_t stride = 0;      ///< cells from one lane to the next
    std::int64_t start = 0;       ///< of the first lane
    std::int64_t count = 0;       ///< cells of a lane
    std::int64_t given = kNoEnd;  ///< cells that the source has
    bool takes_all = false;       ///< a single lane takes all that is given

    [[nodiscard]] Piece piece(std::int64_t lane) const {
      const std::int64_t packed = std::min(lane * count, given);
      const std::int64_t left = given - packed;
      return {lane * stride + start, packed, takes_all ? left : std::min(left, count)};
    }
    /// Calls visit(piece), which returns a Status, until one fails.
    template <class Visit>
    [[nodiscard]] Status each(const Visit& visit) const {
      Status done;
      for (std::int64_t lane = 0; done && lane < lanes; ++lane) done = visit(piece(lane));
      return done;
    }
  };
  /// An update that passed the checks.
  struct Step {
    std::size_t layer = 0;
    std::int64_t batch = 0;
    std::int64_t seq = 0;
    std::int64_t dim = 0;
    std::array<Source, 2> sources = {};
    std::array<Lanes, 2> lanes = {};
    bool decode = false;  ///< written at gpu_counter (ZF-58)
  };

  TensorControl(const provider::TensorOptions& options, QuirkSet<Quirk> quirks)
      : device_(options.memory),
        max_seq_len_(options.max_seq_len),
        layers_(static_cast<std::size_t>(options.num_layers)),
        half_(options.dtype == "fp16"),  // ZF-67
        quirks_(quirks) {
    if (!options.stream || !device_) return;
    for (Counter* counter : {&gpu_counter_, &kv_seq_len_}) {
      auto made = DeviceStorage::make(device_, 1, sizeof(std::int32_t));
      if (made) *counter = {.cell = std::move(*made), .held = 0};  // alloc zeroes
    }
    if (has(Quirk::kOneCounterAlone) || (gpu_counter_.cell && kv_seq_len_.cell)) return;
    gpu_counter_ = {};
    kv_seq_len_ = {};
  }
  [[nodiscard]] bool has(Quirk quirk) const { return quirks_.has(quirk); }

  // ---- Memory. Errors of the device ----
  /// Sees to all that moving cells to the device needs.
  [[nodiscard]] virtual Status prepare() = 0;
  /// Copies the cells of a layer on the host to buffers on the device.
  [[nodiscard]] virtual Status promote(const Layer& from, const Layer& to, const Lanes& held) = 0;
  /// Stores both sides of a step that is no decode step.
  [[nodiscard]] virtual Status store_both(const Layer& layer, const Step& step) = 0;
  /// Queues the kernel that stores the row of a lane at the position in gpu_counter.
  [[nodiscard]] virtual Status store_row(const Layer& layer, DevicePtr source, std::size_t side,
                                         const Lanes::Piece& lane) = 0;

  /// Positions [first, first + positions); nothing when one is outside of a buffer of `cells`.
  /// Without cells there are no lanes but that of kFlatStorage.
  [[nodiscard]] std::optional<Lanes> lanes(std::int64_t batch, std::int64_t dim, std::int64_t first,
                                           std::int64_t positions, std::int64_t cells) const {
    const bool flat = has(Quirk::kFlatStorage);  // ZF-60
    Lanes found{.lanes = flat ? 1 : positions == 0 || dim == 0 ? 0 : batch};
    if (found.lanes == 0) return found;
    const std::int64_t rows = flat ? batch : 1;  // of the batch, in a lane
    const auto start = product({rows, dim, first});
    const auto count = product({rows, dim, positions});
    const auto stride = product({max_seq_len_, rows, dim});
    const auto last = product({found.lanes - 1, max_seq_len_, rows, dim});
    if (!start || !count || !last || *start < 0 || *count < 0 || *start > cells)
      return std::nullopt;
    if (*last > cells - *start || *count > cells - *start - *last) return std::nullopt;
    found.stride = stride.value_or(0);  // of a single lane it may leave 63 bits
    found.start = *start;
    found.count = *count;
    return found;
  }
  /// A counter that does not exist is not changed. Waits for the device where the value is unknown.
  [[nodiscard]] Result<std::int64_t> held(Counter& counter) const {
    if (counter.held) return *counter.held;
    auto value = read_counter(*device_, counter.cell->ptr());
    if (value) counter.held = *value;
    return value;
  }
  [[nodiscard]] Status set(Counter& counter, std::int64_t value) const {
    const std::int64_t cell = static_cast<std::int32_t>(value);
    if (!counter.cell || counter.held == cell) return {};
    counter.held.reset();
    Status written = write_counter(*device_, counter.cell->ptr(), cell);
    if (written) counter.held = cell;
    return written;
  }

  std::shared_ptr<Device> device_;
  std::shared_ptr<Device> host_ = std::make_shared<HostDevice>();  ///< memory of layers on the host
  std::int64_t max_seq_len_;
  std::vector<Layer> layers_;
  Counter gpu_counter_;
  Counter kv_seq_len_;
  bool ahead_ = false;  ///< the counters may be ahead of the lengths

 private:
  [[nodiscard]] const Layer* find(std::int64_t layer) const {
    const bool exists = layer >= 0 && layer < std::ssize(layers_);
    return exists ? &layers_[static_cast<std::size_t>(layer)] : nullptr;
  }
  [[nodiscard]] bool is_last(const Step& step) const { return step.layer + 1 == layers_.size(); }
  // An update, in this order; what allocates comes before anything changes.
  // ZF-54, and what profile documented looks at besides.
  [[nodiscard]] Result<Step> checked(std::int64_t layer, const Rows& rows) const {
    const Layer* to = find(layer);
    if (to == nullptr) return fail(Code::kOutOfRange, "layer");
    if (ahead_) return fail(Code::kBadPosition, "gpu_counter is ahead: sync_counter");
    if (Status good = check(rows, *to, max_seq_len_, half_, quirks_); !good) return good.error();
    const Shape& shape = rows.k->shape;
    return Step{.layer = static_cast<std::size_t>(layer),
                .batch = shape[0],
                .seq = shape[1],
                .dim = shape[2],
                .sources = sources_of(rows)};
  }
  // The layer with room for the rows (ZF-55); the cache does not know it yet.
  [[nodiscard]] Result<Layer> placed(const Step& step) {
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
      if (from_gpu) next.buffers = allocate(device_, cells, half_ ? kHalf : kFloat);
      next.gpu = next.buffers[0] != nullptr;
      next.half = next.gpu && half_;
      if (!next.gpu) next.buffers = allocate(host_, cells, kFloat);
    }
    if (next.gpu || !from_gpu) return next;
    return promoted(std::move(next), step, cells);
  }
  // Moves a layer to the device; it stays on the host when there is no memory (ZF-56).
  [[nodiscard]] Result<Layer> promoted(Layer layer, const Step& step, std::int64_t cells) {
    Layer next = layer;
    next.gpu = true;
    next.half = half_ && !has(Quirk::kPromotionToFp32);
    next.cells = cells;
    next.buffers = allocate(device_, cells, next.half ? kHalf : kFloat);
    if (!next.buffers[0]) return layer;
    const auto held = lanes(step.batch, step.dim, 0, layer.length, std::min(cells, layer.cells));
    if (!held) return outside();
    if (Status there = prepare(); !there) return there.error();
    if (Status done = promote(layer, next, *held); !done) return done.error();
    return next;
  }
  // Both sides at once.
  [[nodiscard]] Status take_back(Step& step, std::array<std::vector<float>, 2>& cells) const {
    Status queued;
    bool any = false;
    for (const std::size_t side : kSides) {
      Source& source = step.sources[side];
      if (!source.device) continue;
      any = true;
      cells[side].resize(static_cast<std::size_t>(source.cells));
    }
    for (const std::size_t side : kSides) {
      Source& source = step.sources[side];
      if (!source.device || !queued) continue;
      queued = device_->to_host_async(std::as_writable_bytes(std::span(cells[side])), source.device,
                                      Stream());
      source = {.host = cells[side], .cells = source.cells};
    }
    Status done = any ? device_->synchronize(Stream()) : Status();
    return queued ? done : queued;
  }
  // Says what of each side goes where; an error where the original leaves a buffer (ZF-58, ZF-59).
  // Lanes take what a source has: a short V leaves old cells, and host cells that go to the device
  // go there all.
  [[nodiscard]] Status plan(const Layer& layer, Step& step) {
    step.decode = gpu_counter_.cell && step.seq == 1 && layer.gpu && step.sources[0].device &&
                  step.sources[1].device;
    const bool shared = step.decode && has(Quirk::kSharedPosition);
    const auto position = shared ? held(gpu_counter_) : Result<std::int64_t>(layer.length);
    if (!position) return position.error();
    if (step.decode && *position < 0) return outside();
    const bool nowhere = step.decode && *position >= max_seq_len_;  // nothing is written (ZF-47)
    for (const std::size_t side : kSides) {
      const Source& source = step.sources[side];
      if (layer.half && !source.device) return {};  // an error of its own, after K is written
      auto found = lanes(step.batch, step.dim, *position, step.seq, layer.cells);
      if (found) {
        found->given = source.cells;
        found->takes_all = !source.device && layer.gpu && found->lanes == 1;
      }
      const auto fits = [&](const Lanes::Piece& piece) -> Status {
        if (piece.count > layer.cells - piece.stored ||
            (source.device && piece.count < found->count))
          return outside();
        return {};
      };
      if (!nowhere && (!found || !found->each(fits))) return outside();
      if (step.decode) found = lanes(step.batch, step.dim, 0, 1, kNoEnd);  // the lanes alone
      if (!found) return outside();
      step.lanes[side] = *found;
    }
    return {};
  }
  // ZF-57 to ZF-59.
  [[nodiscard]] Status write(const Layer& layer, const Step& step) {
    if (kv_seq_len_.cell && step.seq == 1 && step.layer == 0) {
      if (Status counted = count(kv_seq_len_); !counted) return counted;
    }
    if (step.decode) return decode(layer, step);
    if (Status stored = store_both(layer, step); !stored) return stored;
    return step.seq > 1 && is_last(step) ? set_both(layer.length + step.seq) : Status();
  }
  // ZF-58: the kernels take the position from gpu_counter.
  [[nodiscard]] Status decode(const Layer& layer, const Step& step) {
    const auto before = held(gpu_counter_);
    if (!before) return before.error();
    const bool shared = has(Quirk::kSharedPosition);
    Status done = shared ? Status() : set(gpu_counter_, layer.length);
    for (const std::size_t side : kSides)
      if (done)
        done = step.lanes[side].each([&](const Lanes::Piece& lane) {
          return store_row(layer, step.sources[side].device + lane.packed * kFloat, side, lane);
        });
    if (done && is_last(step)) done = count(gpu_counter_);
    if (!shared && !(done && is_last(step))) (void)set(gpu_counter_, *before);
    return done;
  }

  // The first positions of a layer: a view where they are together, else a copy, which is queued.
  [[nodiscard]] Shown show(const Layer& layer, std::int64_t positions) {
    if (positions < 0 && (layer.batch == 0 || layer.dim == 0)) return std::nullopt;  // ZF-2
    const Shape shape{layer.batch, positions, layer.dim};
    const auto cells = element_count(shape);
    auto parts = lanes(layer.batch, layer.dim, 0, positions, layer.cells);
    if (!cells || *cells > layer.cells || !parts)
      return fail(Code::kPrecondition, "length " + std::to_string(positions));
    const bool together = parts->lanes <= 1 || positions == max_seq_len_;
    if (together) *parts = {.lanes = 1, .count = *cells};
    const bool view = together && !layer.half;
    KvPair pair{.k = {shape, nullptr}, .v = {shape, nullptr}};  // before a pair is released
    Buffers shown = view        ? layer.buffers
                    : layer.gpu ? result_buffers(*cells)
                                : allocate(host_, *cells, kFloat);
    if (!shown[0]) return std::nullopt;
    Device& memory = layer.gpu ? *device_ : *host_;
    for (const std::size_t side : kSides) {
      const Status copied = view ? Status() : parts->each([&](const Lanes::Piece& part) {
        const DevicePtr to = shown[side]->ptr() + part.packed * kFloat;
        const DevicePtr from = layer.at(side, part.stored);
        if (!layer.half) return memory.copy(to, from, part.count * kFloat);
        return memory.run(
            ToFloatJob{to.as<std::uint32_t>(), from.as<const std::uint16_t>(), part.count});
      });
      if (!copied) return std::nullopt;
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
      const Buffers made = allocate(device_, cells, kFloat);
      if (made[0]) results_.insert(results_.end(), made.begin(), made.end());
      return made;
    }
    if (scratch_[0] && scratch_cells_ >= cells) return scratch_;
    scratch_ = allocate(device_, cells, kFloat, &scratch_);
    scratch_cells_ = cells;
    return scratch_;
  }

  [[nodiscard]] Status set_both(std::int64_t value) {
    Status done = set(gpu_counter_, value);
    return done ? set(kv_seq_len_, value) : done;
  }
  /// Queues an increment.
  [[nodiscard]] Status count(Counter& counter) const {
    Status queued = device_->run(IncrementJob{counter.cell->ptr().as<std::int32_t>(), 1});
    if (queued && counter.held)
      counter.held = static_cast<std::int32_t>(static_cast<std::uint32_t>(*counter.held) + 1U);
    return queued;
  }
  /// Makes the counters the lengths that they promise to be (ZF-57, ZF-59).
  [[nodiscard]] Status settle_counters() {
    const std::int64_t last = layers_.empty() ? 0 : layers_.back().length;
    Status done = has(Quirk::kGpuCounterLags) ? Status() : set(gpu_counter_, last);
    return !done || has(Quirk::kKvSeqLenCountsSteps) ? done : set(kv_seq_len_, seq_len());
  }

  bool half_;
  QuirkSet<Quirk> quirks_;
  Buffers scratch_;  ///< only with kSharedScratch
  std::int64_t scratch_cells_ = 0;
  std::vector<std::weak_ptr<DeviceStorage>> results_;  ///< only without
};

}  // namespace kvo::optimized
