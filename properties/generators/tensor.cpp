// Random scripts for provider.tensor.
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

#include "properties/generators/generators.hpp"
#include "properties/generators/provider_rows.hpp"
#include "reference/provider/contract_tensor.hpp"

namespace kvo::provider {
namespace {

// States worth reaching.
constexpr std::string_view kCounterBeyond = "counter beyond the length";
constexpr std::string_view kLengthParted = "kv_seq_len is not the length of layer 0";
constexpr std::string_view kElsewhere = "decode step at the shared counter, layer elsewhere";
constexpr std::string_view kOneCounter = "memory for one counter only";
constexpr std::string_view kNoCounters = "no memory for the counters";
constexpr std::string_view kPromoted = "CPU layer promoted";
constexpr std::string_view kFellBack = "GPU allocation failed, layer fell back to the CPU";
constexpr std::string_view kKernelFailed = "kernel failed in a decode step";
constexpr std::string_view kCpuRefused = "fp16 with a CPU source refused";
constexpr std::string_view kOverwritten = "fp16 scratch overwritten by a later get";
constexpr std::string_view kUndisturbed = "fp16 result read again after another get";
constexpr std::string_view kScratchGrown = "scratch grown, earlier result dangling";
constexpr std::string_view kDanglesFreed = "result dangling after free";
constexpr std::string_view kGetFailed = "conversion failed, layer looks absent";
constexpr std::string_view kPoisonReplaced = "poisoned row truncated and overwritten";
constexpr std::string_view kRagged = "layers at different lengths";
constexpr std::string_view kInside = "truncated inside";
constexpr std::string_view kBeyond = "truncate beyond the length";
constexpr std::string_view kNegative = "negative truncate";
constexpr std::string_view kNegativeLength = "layer of negative length used";
constexpr std::string_view kSyncedEmpty = "sync gave a length to a layer without rows";
constexpr std::string_view kNoCounter = "sync without a counter";
constexpr std::string_view kOtherLayout = "other batch or dim taken";
constexpr std::string_view kOtherRefused = "other batch or dim refused";
constexpr std::string_view kVTaken = "V of another shape taken";
constexpr std::string_view kVRefused = "V refused";
constexpr std::string_view kLaterRows = "later rows of a batch above 1";
constexpr std::string_view kNoBatch = "update of batch 0";
constexpr std::string_view kAfterFree = "used after free";
constexpr std::string_view kStale = "whole buffer with stale rows";
constexpr std::string_view kFull = "cache full";
constexpr std::string_view kNullTensor = "null tensor";
constexpr std::string_view kLayerRefused = "layer out of range";

struct KnownLayer {
  std::int64_t length = 0;
  bool pinned = false;
  std::int64_t batch = 0;
  std::int64_t dim = 0;
  bool from_host = false;     // where its first rows came from
  bool on_gpu = false;        // certain
  bool cut = false;           // rows behind the length
  std::uint64_t updates = 0;  // tried
  Poison poison = {};
};

// What the generator knows of a cache, from what was observed.
struct Known {
  std::int64_t max_seq_len = 0;
  bool has_device = false;
  bool half = false;
  bool starved = false;  // allocations of the device were made to fail
  bool freed = false;
  std::vector<KnownLayer> layers = {};
};

struct DeviceHandle : Handle {
  std::int64_t layer = 0;
  std::uint64_t updates = 0;  // of its layer, when it was first shown
  bool half = false;          // perhaps shown through a conversion
};

class TensorScript final : public OpStream {
 public:
  TensorScript(std::uint64_t seed, Profile profile)
      : draw_(seed), rows_(draw_), documented_(profile == Profile::kDocumented) {
    weights_ = swarm(draw_, {50, 16, 22, 6, 10, 2, 8, 2, 2, 8, 3, 2, 1, 7, 2}, 3);
    most_caches_ = draw_.one_of<std::uint64_t>({1, 1, 1, 2});
    batch_ = draw_.one_of<std::int64_t>({1, 1, 2, 3});
    dim_ = draw_.between(1, 3);
    cpu_percent_ = draw_.one_of<std::uint64_t>({0, 10, 30, 80});
  }

  std::optional<Op> next() override {
    if (!planned_.empty()) {
      Op op = std::move(planned_.front());
      planned_.pop_front();
      return op;
    }
    if (known_.size() < most_caches_ && (known_.empty() || draw_.percent(10)))
      return make(static_cast<std::int64_t>(known_.size()));
    return random_op(number());
  }

  void saw(const Op& op, const Observation& seen, Labels& labels) override {
    if (const auto* made = op.as<NewTensor>()) saw_new(*made, seen);
    if (const auto* update = op.as<UpdateTensor>()) saw_update(*update, seen, labels);
    if (const auto* get = op.as<Get>()) saw_get(*get, seen, labels);
    if (const auto* full = op.as<GetFullBuffer>()) saw_full(*full, seen, labels);
    if (const auto* reread = op.as<Reread>()) saw_reread(*reread, seen, labels);
    if (const auto* poke = op.as<Poke>(); poke != nullptr && !seen.error)
      for (DeviceHandle& handle : handles_) handle.poked = true;
    if (const auto* truncate = op.as<Truncate>()) saw_truncate(*truncate, seen, labels);
    if (const auto* reset = op.as<Reset>(); reset != nullptr && !seen.error)
      cut(reset->cache, 0, labels);
    if (const auto* sync = op.as<SyncTensorCounter>()) saw_sync(*sync, seen, labels);
    if (const auto* free = op.as<FreeTensor>(); free != nullptr && !seen.error) saw_free(*free);
    if (const auto* inject = op.as<InjectTensor>(); inject != nullptr && inject->malloc_fail)
      for (auto& [number, known] : known_) known.starved = true;
    counter_.reset();
    if (const auto* counters = op.as<Counters>()) saw_counters(*counters, seen, labels);
  }

 private:
  Op random_op(std::int64_t cache) {
    switch (draw_.weighted(weights_)) {
      case 0:
        return update(cache);
      case 1:
        return forward(cache);
      case 2:
        return Op::of(Get{cache, layer(cache), keep()});
      case 3:
        return Op::of(GetFullBuffer{cache, layer(cache), keep()});
      case 4:
        return Op::of(Reread{handle()});
      case 5:
        return Op::of(
            Poke{handle(), draw_.percent(50) ? "k" : "v", draw_.between(-1, 6), rows_.cell()});
      case 6:
        return Op::of(Truncate{cache, end(cache)});
      case 7:
        return Op::of(Reset{cache});
      case 8:
        return Op::of(SeqLen{cache});
      case 9:
        return Op::of(Counters{cache});
      case 10:
        planned_.push_back(Op::of(SyncTensorCounter{cache}));
        return Op::of(Counters{cache});
      case 11:
        return Op::of(FreeTensor{cache});
      case 12:
        return Op::of(MaxSeqLen{cache});
      case 13:
        return inject(cache);
      default:
        return make(cache);
    }
  }

  std::int64_t number() {
    return draw_.percent(98) ? draw_.between(0, static_cast<std::int64_t>(known_.size()) - 1)
                             : draw_.between(-1, 4);
  }
  Known* known(const std::optional<std::int64_t>& cache) {
    const auto found = known_.find(cache.value_or(0));
    return found == known_.end() ? nullptr : &found->second;
  }
  KnownLayer* known(const std::optional<std::int64_t>& cache, std::int64_t layer) {
    Known* there = known(cache);
    if (there == nullptr || layer < 0 || layer >= std::ssize(there->layers)) return nullptr;
    return &there->layers[static_cast<std::size_t>(layer)];
  }
  std::int64_t layer(std::int64_t cache) {
    const Known* there = known(cache);
    const std::int64_t layers = there == nullptr ? 0 : std::ssize(there->layers);
    return layers > 0 && draw_.percent(97) ? draw_.between(0, layers - 1)
                                           : draw_.one_of<std::int64_t>({layers, -1});
  }
  std::optional<bool> keep() {
    return draw_.one_of<std::optional<bool>>({std::nullopt, std::nullopt, std::nullopt, false});
  }
  std::int64_t handle() {
    const std::int64_t handles = std::ssize(handles_);
    return handles == 0 || draw_.percent(3) ? draw_.one_of<std::int64_t>({-1, handles})
                                            : draw_.between(0, handles - 1);
  }

  Op make(std::int64_t cache) {
    NewTensor made{.cache = cache,
                   .num_layers = draw_.one_of<std::int64_t>({1, 1, 2, 2, 3}),
                   .max_seq_len = draw_.between(1, 6),
                   .dtype = draw_.one_of({"fp32", "fp16", "fp16", ""}),
                   .device = draw_.percent(88) ? Place::kGpu : Place::kCpu,
                   .stream = draw_.percent(80)};
    if (draw_.percent(2)) made.num_layers = draw_.between(-1, 0);
    if (draw_.percent(2)) made.max_seq_len = draw_.between(-1, 0);
    if (draw_.percent(4)) made.malloc_fail = draw_.between(0, 2);
    if (made.stream && draw_.percent(5)) {  // no memory for some counter
      made.malloc_fail = draw_.between(1, 2);
      planned_.push_back(Op::of(Counters{cache}));
    }
    return Op::of(std::move(made));
  }

  // Failures, and what they are meant for.
  Op inject(std::int64_t cache) {
    InjectTensor failures;
    if (draw_.percent(60)) failures.kernel_fail_at = draw_.between(0, 4);
    if (draw_.percent(50)) failures.malloc_fail = draw_.between(0, 4);
    if (draw_.percent(60)) planned_.push_back(update(cache));
    return Op::of(failures);
  }

  Op update(std::int64_t cache) {
    const std::int64_t to = layer(cache);
    const std::int64_t positions = draw_.percent(50) ? 1 : draw_.between(0, 4);
    Op made = update(cache, to, positions);
    if (!draw_.percent(15)) return made;
    planned_.push_back(std::move(made));
    return Op::of(Counters{cache});
  }

  // One update of each layer in turn: what an engine does.
  Op forward(std::int64_t cache) {
    const Known* there = known(cache);
    if (there == nullptr || there->layers.empty()) return update(cache);
    const std::int64_t positions = draw_.percent(70) ? 1 : draw_.between(2, 3);
    for (std::int64_t to = 0; to < std::ssize(there->layers); ++to)
      planned_.push_back(update(cache, to, positions));
    if (draw_.percent(30)) planned_.push_back(Op::of(Counters{cache}));
    return Op::of(SeqLen{cache});
  }

  Op update(std::int64_t cache, std::int64_t to, std::int64_t positions) {
    const Known* there = known(cache);
    const KnownLayer* layer = known(cache, to);
    Shape shape{draw_.percent(96) ? batch_ : draw_.between(0, 3), positions,
                draw_.percent(96) ? dim_ : draw_.between(0, 3)};
    if (layer != nullptr && layer->pinned && draw_.percent(90)) {
      shape[0] = layer->batch;
      shape[2] = layer->dim;
    }
    if (layer != nullptr && layer->length >= 0 && draw_.percent(85))
      shape[1] = std::clamp<std::int64_t>(there->max_seq_len - layer->length, 0, positions);
    RowPair rows = rows_.rows(shape);
    UpdateTensor made{.cache = cache, .layer = to, .k = std::move(rows.k), .v = std::move(rows.v)};
    const bool device = there != nullptr && there->has_device;
    if (device ? !draw_.percent(cpu_percent_) : draw_.percent(1)) made.k_device = Place::kGpu;
    made.v_device = made.k_device;
    if (device && draw_.percent(4)) made.v_device = made.k_device ? Place::kCpu : Place::kGpu;
    return Op::of(std::move(made));
  }

  // Where to cut.
  std::int64_t end(std::int64_t cache) {
    const Known* there = known(cache);
    if (draw_.percent(6)) return draw_.between(-2, -1);
    return draw_.between(0,
                         there == nullptr ? 2 : std::max<std::int64_t>(0, there->max_seq_len) + 1);
  }

  void saw_new(const NewTensor& made, const Observation& seen) {
    if (seen.error) return;
    const std::int64_t number = made.cache.value_or(0);
    for (DeviceHandle& handle : handles_)
      if (handle.cache == number) handle.orphan = true;
    known_[number] = {.max_seq_len = made.max_seq_len,
                      .has_device = made.device == Place::kGpu,
                      .half = made.dtype == "fp16",
                      .starved = made.malloc_fail.has_value(),
                      .layers = std::vector<KnownLayer>(static_cast<std::size_t>(made.num_layers))};
  }

  void saw_update(const UpdateTensor& update, const Observation& seen, Labels& labels) {
    const Known* there = known(update.cache);
    if (there == nullptr) return;
    KnownLayer* layer = known(update.cache, update.layer);
    if (layer == nullptr) {
      labels.insert(kLayerRefused);
      return;
    }
    if (!update.k.has_value() || !update.v.has_value()) labels.insert(kNullTensor);
    if (!update.k.has_value() || update.k->shape.size() != 3) return;
    ++layer->updates;
    if (seen.error) {
      saw_refusal(update, *layer, *seen.error, labels);
      return;
    }
    saw_layout(update, *layer, labels);
    const std::int64_t seq = update.k->shape[1];
    const std::int64_t start = layer->length;
    const bool gpu = update.k_device == Place::kGpu;
    if (layer->on_gpu && gpu && update.v_device == Place::kGpu && seq == 1 && counter_ &&
        *counter_ != start)
      labels.insert(kElsewhere);
    if (gpu && !there->starved) layer->on_gpu = true;
    if (layer->from_host && layer->on_gpu) labels.insert(kPromoted);
    if (gpu && there->starved && !there->half && draw_.percent(50))
      planned_.push_front(Op::of(GetFullBuffer{update.cache, update.layer}));
    layer->length += seq;
    if (there->freed) labels.insert(kAfterFree);
    for (const KnownLayer& other : there->layers)
      if (other.length != layer->length) labels.insert(kRagged);
    if (layer->poison.overwritten(start, layer->length)) labels.insert(kPoisonReplaced);
    if (update.k->elements() > 0 && std::isnan(update.k->floats().front()))
      layer->poison.put(start, layer->length);
  }

  // The shapes of an update that was taken.
  void saw_layout(const UpdateTensor& update, KnownLayer& layer, Labels& labels) const {
    const Shape& shape = update.k->shape;
    if (update.v->shape != shape) labels.insert(kVTaken);
    if (shape[0] == 0) labels.insert(kNoBatch);
    if (layer.pinned && (layer.batch != shape[0] || layer.dim != shape[2]))
      labels.insert(kOtherLayout);
    if (shape[0] > 1 && shape[1] > 0 && layer.length > 0) labels.insert(kLaterRows);
    if (layer.pinned || (shape[0] == 0 && !documented_)) return;
    layer.pinned = true;
    layer.batch = shape[0];
    layer.dim = shape[2];
    layer.from_host = update.k_device != Place::kGpu;
  }

  void saw_refusal(const UpdateTensor& update, KnownLayer& layer, const Error& error,
                   Labels& labels) const {
    const Shape& shape = update.k->shape;
    const bool gpu = update.k_device == Place::kGpu && update.v_device == Place::kGpu;
    if (error.reason == "kernel_failed" && shape[1] == 1 && gpu) labels.insert(kKernelFailed);
    if (error.detail == "cpu_source") labels.insert(kCpuRefused);
    if (error.detail == "batch" || error.detail == "dim") labels.insert(kOtherRefused);
    if (error.detail == "v") labels.insert(kVRefused);
    if (error.code == Code::kFull) labels.insert(kFull);
    if (layer.length < 0) labels.insert(kNegativeLength);
    // The original keeps what a failed first update has allocated.
    if (!documented_ && !layer.pinned &&
        (error.reason == "kernel_failed" || error.detail == "cpu_source")) {
      layer.pinned = true;
      layer.batch = shape[0];
      layer.dim = shape[2];
    }
  }

  void keep_handle(const std::optional<std::int64_t>& cache, std::int64_t layer,
                   const Found& found) {
    if (!found.handle) return;
    const KnownLayer* there = known(cache, layer);
    handles_.push_back({{cache.value_or(0), *found.k},
                        layer,
                        there == nullptr ? 0 : there->updates,
                        known(cache)->half});
  }

  void saw_get(const Get& get, const Observation& seen, Labels& labels) {
    const KnownLayer* layer = known(get.cache, get.layer);
    if (layer == nullptr) return;
    if (seen.error) {
      if (layer->length < 0) labels.insert(kNegativeLength);
      return;
    }
    const auto& found = seen.as<Found>();
    if (found.found) {
      keep_handle(get.cache, get.layer, found);
    } else if (layer->pinned && layer->length > 0 && known(get.cache)->half) {
      labels.insert(kGetFailed);
    }
  }

  void saw_full(const GetFullBuffer& full, const Observation& seen, Labels& labels) {
    KnownLayer* layer = known(full.cache, full.layer);
    if (layer == nullptr || seen.error) return;
    const auto& found = seen.as<Found>();
    if (found.found) {
      layer->on_gpu = true;
      if (layer->from_host) labels.insert(kPromoted);
      if (layer->cut) labels.insert(kStale);
      keep_handle(full.cache, full.layer, found);
    } else if (layer->pinned && !layer->from_host && !known(full.cache)->half) {
      labels.insert(kFellBack);
    }
  }

  void saw_reread(const Reread& reread, const Observation& seen, Labels& labels) {
    if (seen.error) return;
    const auto& again = seen.as<Again>();
    const DeviceHandle& handle = handles_[static_cast<std::size_t>(reread.handle)];
    if (again.dangling) {
      labels.insert(handle.orphan ? kDanglesFreed : kScratchGrown);
      return;
    }
    const KnownLayer* layer = known(handle.cache, handle.layer);
    if (handle.orphan || handle.poked || !handle.half || layer == nullptr) return;
    const bool changed = *again.k != handle.k;
    if (changed && layer->updates == handle.updates) labels.insert(kOverwritten);
    if (!changed && layer->on_gpu && &handle != &handles_.back()) labels.insert(kUndisturbed);
  }

  void saw_truncate(const Truncate& truncate, const Observation& seen, Labels& labels) {
    if (seen.error) return;
    if (truncate.n < 0) labels.insert(kNegative);
    cut(truncate.cache, documented_ ? std::max<std::int64_t>(truncate.n, 0) : truncate.n, labels);
  }

  void cut(const std::optional<std::int64_t>& cache, std::int64_t n, Labels& labels) {
    bool longer = false;
    for (KnownLayer& layer : known_.at(cache.value_or(0)).layers) {
      longer = longer || layer.length > n;
      layer.cut = layer.cut || layer.length > n;
      if (n > 0 && n < layer.length) labels.insert(kInside);
      layer.length = std::min(layer.length, n);
      layer.poison.cut(n);
    }
    if (!longer) labels.insert(kBeyond);
  }

  void saw_counters(const Counters& counters, const Observation& seen, Labels& labels) {
    const Known* there = known(counters.cache);
    if (there == nullptr || seen.error) return;
    const auto& held = seen.as<Counters::Returns>();
    counter_ = held.gpu_counter.value;
    if (there->starved && !there->freed && !counter_)
      labels.insert(held.kv_seq_len.has_value() ? kOneCounter : kNoCounters);
    if (there->layers.empty()) return;
    const auto longest = std::ranges::max(there->layers, {}, &KnownLayer::length).length;
    if (counter_ && *counter_ > longest) labels.insert(kCounterBeyond);
    if (held.kv_seq_len.has_value() && *held.kv_seq_len != there->layers.front().length)
      labels.insert(kLengthParted);
  }

  void saw_sync(const SyncTensorCounter& sync, const Observation& seen, Labels& labels) {
    Known* there = known(sync.cache);
    if (there == nullptr) return;
    if (seen.error && seen.error->detail == "no_counter") labels.insert(kNoCounter);
    if (seen.error || !counter_) return;
    for (KnownLayer& layer : there->layers) {
      if (documented_ && !layer.pinned) continue;
      if (!layer.pinned && *counter_ > 0) labels.insert(kSyncedEmpty);
      layer.length = *counter_;
    }
  }

  void saw_free(const FreeTensor& free) {
    Known& there = known_.at(free.cache.value_or(0));
    there.freed = true;
    for (KnownLayer& layer : there.layers) layer = {.updates = layer.updates + 1};
    for (DeviceHandle& handle : handles_)
      if (handle.cache == free.cache.value_or(0)) handle.orphan = true;
  }

  Draw draw_;
  RowDraw rows_;
  bool documented_;
  std::vector<std::uint64_t> weights_;
  std::uint64_t most_caches_ = 1;
  std::int64_t batch_ = 1;  // what most layers of the case are pinned to
  std::int64_t dim_ = 1;
  std::uint64_t cpu_percent_ = 0;        // updates with rows on the host
  std::optional<std::int64_t> counter_;  // gpu_counter, if the last operation showed it
  std::deque<Op> planned_;
  std::map<std::int64_t, Known> known_;
  std::vector<DeviceHandle> handles_;
};

GeneratedCase make_case(std::uint64_t seed, Profile profile) {
  return {.setup = {.profile = profile}, .ops = std::make_unique<TensorScript>(seed, profile)};
}

Generator make_generator() {
  const std::vector<std::string_view> both{
      kNoCounters,   kPromoted,  kFellBack,  kKernelFailed,   kCpuRefused,
      kDanglesFreed, kGetFailed, kRagged,    kPoisonReplaced, kInside,
      kBeyond,       kNegative,  kNoCounter, kLaterRows,      kNoBatch,
      kAfterFree,    kStale,     kFull,      kNullTensor,     kLayerRefused};
  Generator generator{.kind = &tensor_kind(),
                      .make = make_case,
                      .original_labels = both,
                      .documented_labels = both};
  auto& original = generator.original_labels;
  original.insert(original.end(),
                  {kCounterBeyond, kLengthParted, kElsewhere, kOneCounter, kOverwritten,
                   kScratchGrown, kNegativeLength, kSyncedEmpty, kOtherLayout, kVTaken});
  auto& documented = generator.documented_labels;
  documented.insert(documented.end(), {kUndisturbed, kOtherRefused, kVRefused});
  return generator;
}

}  // namespace
}  // namespace kvo::provider

namespace kvo {

Generator tensor_generator() {
  return provider::make_generator();
}

}  // namespace kvo
