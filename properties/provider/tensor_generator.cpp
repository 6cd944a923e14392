// Random scripts for provider.tensor.
#include <span>

#include "properties/provider/provider_script.hpp"
#include "reference/provider/tensor.hpp"

namespace kvo::provider {
namespace {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(
    TensorLabel, std::uint8_t, kCounterBeyondTheLength, kKvSeqLenIsNotTheLengthOfLayer0,
    kMemoryForOneCounterOnly, kNoMemoryForTheCounters, kKernelFailedInADecodeStep,
    kFp16WithACpuSourceRefused, kFp16ScratchOverwrittenByALaterGet,
    kFp16ResultReadAgainAfterAnotherGet, kScratchGrownEarlierResultDangling,
    kResultDanglingAfterFree, kConversionFailedLayerLooksAbsent,
    kPoisonedRowTruncatedAndOverwritten, kLayersAtDifferentLengths, kTruncatedInside,
    kTruncateBeyondTheLength, kNegativeTruncate, kLayerOfNegativeLengthUsed,
    kSyncGaveALengthToALayerWithoutRows, kSyncWithoutACounter, kOtherBatchOrDimTaken,
    kOtherBatchOrDimRefused, kVOfAnotherShapeTaken, kVRefused, kLaterRowsOfABatchAbove1,
    kUpdateOfBatch0, kUsedAfterFree, kWholeBufferWithStaleRows, kCacheFull, kNullTensor,
    kLayerOutOfRange, kBeyondAThousandPositions, kPositionsOfAThousandCells, kBatchBeyondSixtyFour,
    kRowsOfACommonHeadSize, kFiveLayers, kBeyondSixteenCaches, kResultsBeyondOneByte,
    kEmptiedBeyondOneByte, kCountedBeyondTwoBytes)

struct TensorLayer : KnownLayer {
  bool on_gpu = false;   // certain
  bool cut_off = false;  // rows behind the length
};

struct TensorKnown {
  std::int64_t max_seq_len = 0;
  bool has_device = false;
  bool half = false;
  bool starved = false;  // allocations of the device were made to fail
  bool freed = false;
  std::optional<std::int64_t> counter =
      {};  // gpu_counter, if nothing changed it since it was shown
  std::vector<TensorLayer> layers = {};
};

class TensorScript final
    : public ProviderScript<TensorScript, TensorOps, TensorLabel, TensorKnown> {
  using S = TensorScript;

 public:
  explicit TensorScript(const CaseTerms& terms)
      : ProviderScript(terms),
        batch_(draw().percent(40) ? 1 : some_batch(9)),
        dim_(some_dim(9, batch_)),
        cpu_percent_(draw().one_of<std::uint64_t>({0, 10, 30, 80})) {}

  // Steps.
  Op make(std::int64_t cache) {
    NewTensor made{.cache = cache,
                   .num_layers = some_layers(),
                   .max_seq_len = some_room(batch_ * dim_),
                   .dtype = draw().one_of({"fp32", "fp16", "fp16", ""}),
                   .device = draw().percent(88) ? Place::kGpu : Place::kCpu,
                   .stream = draw().percent(80)};
    if (draw().percent(2)) made.num_layers = draw().between(-1, 0);
    if (draw().percent(2)) made.max_seq_len = draw().between(-1, 0);
    if (draw().percent(4)) made.malloc_fail = draw().between(0, 2);
    if (made.stream && draw().percent(5)) {  // no memory for some counter
      made.malloc_fail = draw().between(1, 2);
      plan(Counters{cache});
    }
    return Op::of(std::move(made));
  }
  Op update() { return update_of(number()); }
  // One update of each layer in turn: what an engine does.
  Op forward() {
    const std::int64_t cache = number();
    const TensorKnown* there = known(cache);
    if (there == nullptr || there->layers.empty()) return update_of(cache);
    const std::int64_t positions = draw().percent(70) ? 1 : draw().between(2, 3);
    const bool fits = draw().percent(85);
    for (std::int64_t to = 0; to < std::ssize(there->layers); ++to) {
      const std::int64_t room = there->max_seq_len - known(cache, to)->length;
      plan(rows_for(cache, to, fits ? std::clamp<std::int64_t>(room, 0, positions) : positions));
    }
    if (draw().percent(30)) plan(Counters{cache});
    return Op::of(SeqLen{cache});
  }
  Op full_buffer() {
    const std::int64_t cache = number();
    return Op::of(GetFullBuffer{cache, layer(cache), keep()});
  }
  // A result, another one, and the first one again: they may share memory.
  Op disturbed() {
    const std::int64_t cache = number();
    plan(Get{cache, layer(cache), std::nullopt});
    plan(Reread{std::ssize(handles())});
    return Op::of(Get{cache, layer(cache), std::nullopt});
  }
  Op sync() {
    const std::int64_t cache = number();
    plan(SyncTensorCounter{cache});
    return Op::of(Counters{cache});
  }
  Op free() {
    // In a long life hardly ever, else no cache would grow old.
    return is_long() && draw().percent(97) ? of_cache<SeqLen>() : Op::of(FreeTensor{number()});
  }
  // Failures, and what they are meant for.
  Op inject() {
    if (is_long() && draw().percent(97)) return update_of(number());
    InjectTensor failures;
    if (draw().percent(60)) failures.kernel_fail_at = draw().between(0, 4);
    if (draw().percent(50)) failures.malloc_fail = draw().between(0, 4);
    if (draw().percent(60)) plan(update_of(number()));
    return Op::of(failures);
  }

  Op rows_for(std::int64_t cache, std::int64_t to, std::int64_t positions) {
    const TensorKnown* there = known(cache);
    const TensorLayer* layer = known(cache, to);
    Shape shape{draw().percent(96) ? batch_ : draw().between(0, 3), positions,
                draw().percent(96) ? dim_ : draw().between(0, 3)};
    if (layer != nullptr && layer->pinned() && draw().percent(90)) {
      shape[0] = layer->batch;
      shape[2] = layer->dim;
    }
    RowPair pair = rows().rows(shape);
    UpdateTensor made{.cache = cache, .layer = to, .k = std::move(pair.k), .v = std::move(pair.v)};
    const bool device = there != nullptr && there->has_device;
    if (device ? !draw().percent(cpu_percent_) : draw().percent(1)) made.k_device = Place::kGpu;
    made.v_device = made.k_device;
    if (device && draw().percent(4)) made.v_device = made.k_device ? Place::kCpu : Place::kGpu;
    return Op::of(std::move(made));
  }

  static const CacheKind& order_kind() { return tensor_kind(); }
  static std::span<const OrderWord> order_words() {
    static constexpr auto kWords = S::layer_words();
    return kWords;
  }
  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {50, "update", &S::update, true},
      {16, "forward", &S::forward, true},
      {22, "get", &S::get, true},
      {6, "get_full_buffer", &S::full_buffer},
      {10, "reread", &S::reread},
      {6, "reread after another get", &S::disturbed},
      {2, "poke", &S::poke},
      {8, "truncate", &S::truncate},
      {2, "reset", &S::of_cache<Reset>},
      {2, "seq_len", &S::of_cache<SeqLen>},
      {8, "counters", &S::of_cache<Counters>},
      {3, "sync_counter", &S::sync},
      {2, "free", &S::free},
      {1, "max_seq_len", &S::of_cache<MaxSeqLen>},
      {7, "inject", &S::inject},
      {2, "new", &S::again},
  });

  // What became of an operation.
  using ProviderScript::observe;
  void observe(const NewTensor& made, const Observation& seen) {
    if (seen.error) return;
    remember(made.cache,
             {.max_seq_len = made.max_seq_len,
              .has_device = made.device == Place::kGpu,
              .half = made.dtype == "fp16",
              .starved = made.malloc_fail.has_value(),
              .layers = std::vector<TensorLayer>(static_cast<std::size_t>(made.num_layers))});
  }
  void observe(const UpdateTensor& update, const Observation& seen) {
    TensorLayer* layer = updated(update);
    if (layer == nullptr) return;
    TensorKnown& there = *known(update.cache);
    there.counter.reset();
    if (!layer->pinned()) spend_on_buffers(update.k->shape, there.max_seq_len);
    if (seen.error) return saw_refusal(update, *layer, *seen.error);
    saw_layout(update, *layer);
    if (update.k_device == Place::kGpu && !there.starved) layer->on_gpu = true;
    added(there, *layer, *update.k);
    if (there.freed) reach(TensorLabel::kUsedAfterFree);
  }
  void observe(const Get& get, const Observation& seen) {
    const TensorLayer* layer = known(get.cache, get.layer);
    if (layer == nullptr) return;
    if (seen.error) {
      if (layer->length < 0) reach(TensorLabel::kLayerOfNegativeLengthUsed);
      return;
    }
    const auto& found = seen.as<Found>();
    if (found.found) return keep(get.cache, get.layer, found);
    if (layer->pinned() && layer->length > 0 && known(get.cache)->half)
      reach(TensorLabel::kConversionFailedLayerLooksAbsent);
  }
  void observe(const GetFullBuffer& full, const Observation& seen) {
    TensorLayer* layer = known(full.cache, full.layer);
    if (layer == nullptr || seen.error) return;
    const auto& found = seen.as<Found>();
    if (!found.found) return;
    layer->on_gpu = true;
    if (layer->cut_off) reach(TensorLabel::kWholeBufferWithStaleRows);
    keep(full.cache, full.layer, found);
  }
  void observe(const Reread& reread, const Observation& seen) {
    if (seen.error) return;
    const auto& again = seen.as<Again>();
    const Handle& handle = handles()[static_cast<std::size_t>(reread.handle)];
    spend_on(handle);
    if (again.dangling)
      return reach(handle.orphan ? TensorLabel::kResultDanglingAfterFree
                                 : TensorLabel::kScratchGrownEarlierResultDangling);
    const TensorLayer* layer = known(handle.cache, handle.layer);
    if (handle.orphan || handle.poked || layer == nullptr || !known(handle.cache)->half) return;
    const bool changed = *again.k != handle.k;
    if (changed && layer->updates == handle.updates)
      reach(TensorLabel::kFp16ScratchOverwrittenByALaterGet);
    if (!changed && layer->on_gpu && &handle != &handles().back())
      reach(TensorLabel::kFp16ResultReadAgainAfterAnotherGet);
  }
  void observe(const Truncate& truncate, const Observation& seen) {
    if (seen.error) return;
    if (truncate.n < 0) reach(TensorLabel::kNegativeTruncate);
    cut(truncate.cache, documented() ? std::max<std::int64_t>(truncate.n, 0) : truncate.n);
  }
  void observe(const Reset& reset, const Observation& seen) {
    if (seen.error) return;
    emptied();
    cut(reset.cache, 0);
  }
  void observe(const Counters& counters, const Observation& seen) {
    TensorKnown* there = known(counters.cache);
    if (there == nullptr || seen.error) return;
    const auto& held = seen.as<Counters::Returns>();
    there->counter = held.gpu_counter.value;
    if (there->starved && !there->freed && !there->counter)
      reach(held.kv_seq_len.has_value() ? TensorLabel::kMemoryForOneCounterOnly
                                        : TensorLabel::kNoMemoryForTheCounters);
    if (there->layers.empty()) return;
    const auto longest = std::ranges::max(there->layers, {}, &TensorLayer::length).length;
    if (there->counter.value_or(0) > longest) reach(TensorLabel::kCounterBeyondTheLength);
    if (held.kv_seq_len.has_value() && *held.kv_seq_len != there->layers.front().length)
      reach(TensorLabel::kKvSeqLenIsNotTheLengthOfLayer0);
  }
  void observe(const SyncTensorCounter& sync, const Observation& seen) {
    TensorKnown* there = known(sync.cache);
    if (there == nullptr) return;
    if (seen.error && seen.error->detail == "no_counter") reach(TensorLabel::kSyncWithoutACounter);
    if (seen.error || !there->counter) return;
    const std::int64_t counter = *there->counter;
    for (TensorLayer& layer : there->layers) {
      if (documented() && !layer.pinned()) continue;
      if (!layer.pinned() && counter > 0) reach(TensorLabel::kSyncGaveALengthToALayerWithoutRows);
      layer.length = counter;
    }
  }
  void observe(const FreeTensor& free, const Observation& seen) {
    if (seen.error) return;
    TensorKnown& there = *known(free.cache);
    there.freed = true;
    there.counter.reset();
    for (TensorLayer& layer : there.layers) {
      const std::uint64_t updates = layer.updates;
      layer = {};
      layer.updates = updates + 1;
    }
    orphan(free.cache);
  }
  void observe(const InjectTensor& inject, const Observation& /*seen*/) {
    if (!inject.malloc_fail) return;
    for (auto& [number, known] : all_known()) known.starved = true;
  }

 private:
  Op update_of(std::int64_t cache) {
    const std::int64_t to = layer(cache);
    const TensorLayer* there = known(cache, to);
    const std::int64_t room = there == nullptr ? 3 : known(cache)->max_seq_len - there->length;
    if (is_long() && room <= 0 && draw().percent(95))
      return draw().percent(70) ? Op::of(Reset{cache}) : Op::of(Truncate{cache, end(cache)});
    Op made = rows_for(cache, to, some_positions(room));
    if (!draw().percent(is_long() ? 1 : 15)) return made;
    plan(std::move(made));
    return Op::of(Counters{cache});
  }

  // The shapes of an update that was taken.
  void saw_layout(const UpdateTensor& update, TensorLayer& layer) {
    const Shape& shape = update.k->shape;
    if (update.v->shape != shape) reach(TensorLabel::kVOfAnotherShapeTaken);
    if (shape[0] == 0) reach(TensorLabel::kUpdateOfBatch0);
    if (layer.pinned() && (layer.batch != shape[0] || layer.dim != shape[2]))
      reach(TensorLabel::kOtherBatchOrDimTaken);
    if (shape[0] > 1 && shape[1] > 0 && layer.length > 0)
      reach(TensorLabel::kLaterRowsOfABatchAbove1);
    if (layer.pinned() || (shape[0] == 0 && !documented())) return;
    layer.pin(shape);
  }
  void saw_refusal(const UpdateTensor& update, TensorLayer& layer, const Error& error) {
    const Shape& shape = update.k->shape;
    const bool gpu = update.k_device == Place::kGpu && update.v_device == Place::kGpu;
    if (error.reason == "kernel_failed" && shape[1] == 1 && gpu)
      reach(TensorLabel::kKernelFailedInADecodeStep);
    if (error.detail == "cpu_source") reach(TensorLabel::kFp16WithACpuSourceRefused);
    if (error.detail == "batch" || error.detail == "dim")
      reach(TensorLabel::kOtherBatchOrDimRefused);
    if (error.detail == "v") reach(TensorLabel::kVRefused);
    if (error.code == Code::kFull) reach(TensorLabel::kCacheFull);
    if (layer.length < 0) reach(TensorLabel::kLayerOfNegativeLengthUsed);
    // The original keeps what a failed first update has allocated.
    if (!documented() && !layer.pinned() &&
        (error.reason == "kernel_failed" || error.detail == "cpu_source"))
      layer.pin(shape);
  }
  void cut(const std::optional<std::int64_t>& cache, std::int64_t n) {
    bool longer = false;
    known(cache)->counter.reset();
    for (TensorLayer& layer : known(cache)->layers) {
      longer = longer || layer.length > n;
      layer.cut_off = layer.cut_off || layer.length > n;
      if (n > 0 && n < layer.length) reach(TensorLabel::kTruncatedInside);
      layer.cut(n);
    }
    if (!longer) reach(TensorLabel::kTruncateBeyondTheLength);
  }

  std::int64_t batch_;  // what most layers of the case are pinned to
  std::int64_t dim_;
  std::uint64_t cpu_percent_;  // updates with rows on the host
};

}  // namespace

Generator tensor_generator() {
  return with_orders<TensorScript>(script_generator<TensorLabel>(
      tensor_kind(), script_case<TensorScript>,
      {TensorLabel::kCounterBeyondTheLength, TensorLabel::kKvSeqLenIsNotTheLengthOfLayer0,
       TensorLabel::kMemoryForOneCounterOnly, TensorLabel::kFp16ScratchOverwrittenByALaterGet,
       TensorLabel::kScratchGrownEarlierResultDangling, TensorLabel::kLayerOfNegativeLengthUsed,
       TensorLabel::kSyncGaveALengthToALayerWithoutRows, TensorLabel::kOtherBatchOrDimTaken,
       TensorLabel::kVOfAnotherShapeTaken},
      {TensorLabel::kFp16ResultReadAgainAfterAnotherGet, TensorLabel::kOtherBatchOrDimRefused,
       TensorLabel::kVRefused}));
}

}  // namespace kvo::provider
