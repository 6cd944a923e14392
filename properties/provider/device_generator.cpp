// Random scripts for provider.device.
#include <algorithm>
#include <limits>
#include <span>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "reference/contract/values/tags.hpp"
#include "reference/provider/device_operations.hpp"

namespace kvo::provider {
namespace {

// States worth reaching. Half-way: K was written, V was not.
BOOST_DEFINE_FIXED_ENUM_CLASS(
    DeviceLabel, std::uint8_t, kLayerAppendedOutOfOrder, kLastLayerAloneAdvanced,
    kLayerWrittenTwiceAtOnePosition, kLayerRefusedThatHasThePosition, kCopyFailedHalfWay,
    kKernelFailedHalfWay, kNoKernels, kCounterAndLengthParted,
    kCounterBroughtToTheLengthBeforeItsUse, kRowDroppedByACounterPastTheEnd, kZeroingFailedInReset,
    kAllocationOfThePointerArraysFailed, kCopyIntoThePointerArraysFailed, kPointerArraysMadeOnce,
    kFreeFailedInClose, kClosedCacheUsed, kClosedTwice, kBuffersLeftAfterClose,
    kNewUndoneAfterAFailure, kFreeFailedWhileNewWasUndone, kCacheReplaced, kNoAllocator,
    kSizeRefused, kSizeProductOverflows, kCacheFull, kPositionRefused, kRowOfAWrongLengthRefused,
    kCellsOfAnEarlierSequence, kLayerOutOfRange, kNoCacheYet, kFiveLayers, kBeyondSixteenPositions,
    kRowsOfAThousandCells, kEmptiedBeyondOneByte, kCountedBeyondTwoBytes)

// What the script knows of the cache, from what was observed.
struct DeviceKnown {
  NewDevice sizes = {};
  std::int64_t length = 0;
  std::vector<bool> held = {};               // layers written at the position `length`
  std::optional<std::int64_t> counter = {};  // if nothing changed it since it was shown
  bool was_reset = false;
  bool closed = false;

  [[nodiscard]] std::int64_t first_without() const {
    return std::ranges::find(held, false) - held.begin();
  }
  void set_length(std::int64_t to) {
    length = to;
    held.assign(held.size(), false);
  }
};

std::size_t failed_calls(const std::vector<DeviceCall>& calls) {
  return static_cast<std::size_t>(std::ranges::count_if(
      calls, [](const DeviceCall& call) { return call.error.value_or(false); }));
}

class DeviceScript final : public ScriptGenerator<DeviceScript, DeviceOps, DeviceLabel> {
  using S = DeviceScript;

 public:
  explicit DeviceScript(const CaseTerms& terms)
      : ScriptGenerator(terms),
        documented_(terms.profile == Profile::kDocumented),
        gpu_percent_(draw().one_of<std::uint64_t>({0, 40, 100})),
        sizes_{.num_layers = draw().percent(60) ? draw().between(1, 2) : draw().size(1, 9),
               .max_seq_len = draw().percent(60) ? draw().between(1, 3) : draw().size(1, 17),
               .num_heads = draw().size(1, 5),
               .head_dim = draw().size(1, 9),
               .kernels = draw().percent(93) ? Kernels::kHost : Kernels::kUnavailable},
        odd_values_(terms.seed) {
    if (is_large()) draw_large_sizes();
    if (is_long()) {
      sizes_ = {.num_layers = draw().between(1, 2),
                .max_seq_len = draw().between(8, 33),
                .num_heads = 1,
                .head_dim = draw().between(1, 2),
                .kernels = sizes_.kernels};
    }
  }

  std::optional<Op> choose() override {
    return !known_ && !has_plan() && !follows_plan() && draw().percent(92)
               ? make()
               : ScriptGenerator::choose();
  }

  // Steps.
  Op make() {
    if (known_ && rarely()) return append();
    NewDevice made = sizes_;
    if (draw().percent(4)) made.nil_allocator = true;
    for (std::int64_t* size :
         {&made.num_layers, &made.max_seq_len, &made.num_heads, &made.head_dim})
      if (draw().percent(2)) *size = draw().between(-1, 0);
    if (draw().percent(2)) made.max_seq_len = std::numeric_limits<std::int64_t>::max();
    return Op::of(made);
  }
  Op append() {
    const bool full = known_ && known_->length >= sizes_.max_seq_len;
    if (is_long() && full && draw().percent(95)) return Op::of(ResetDevice{});
    return is_long() && known_ && draw().percent(95) ? append_to(known_->first_without())
                                                     : append_to(layer());
  }
  // The next layer of a forward pass, perhaps with all that follow: what an engine does.
  Op token() {
    if (is_long()) return append();
    const std::int64_t first = known_ ? known_->first_without() : 0;
    if (draw().percent(40))
      for (std::int64_t to = first + 1; to < sizes_.num_layers; ++to) plan(append_to(to));
    return append_to(first);
  }
  template <class T>
  Op plain() {
    return Op::of(T{});
  }
  Op pointers() { return Op::of(Pointers{layer()}); }
  Op read_buffer() { return Op::of(ReadBuffer{layer()}); }
  Op sync() {
    plan(SeqLen{});
    return Op::of(SyncDeviceCounter{});
  }
  Op close() {
    if (rarely()) return append();
    if (draw().percent(40)) plan(LiveBuffers{});
    return Op::of(Close{});
  }
  // Failures, each with what it is meant for.
  Op fail_new() {
    if (rarely()) return append();
    plan(make());
    return Op::of(InjectDevice{
        .alloc_fail_at = some_buffer(),
        .free_fail_at = draw().percent(25) ? std::optional<std::int64_t>(1) : std::nullopt});
  }
  Op fail_arrays() {
    if (rarely()) return append();
    plan(DevicePointerArrays{});
    const std::int64_t at = draw().between(1, 2);
    return Op::of(draw().percent(50) ? InjectDevice{.alloc_fail_at = at}
                                     : InjectDevice{.memcpy_fail_at = at});
  }
  Op fail_close() {
    if (rarely()) return append();
    plan(Close{});
    return Op::of(InjectDevice{.free_fail_at = some_buffer()});
  }
  Op fail_kernel() {
    if (rarely()) return append();
    return Op::of(InjectDevice{.kernel_fail_at = draw().between(1, 3)});
  }
  Op fail_reset() {
    if (rarely()) return append();
    plan(ResetDevice{});
    return Op::of(InjectDevice{.memcpy_fail_at = 1});
  }
  Op fail_append() {
    if (rarely()) return append();
    plan(append());
    return Op::of(InjectDevice{.memcpy_fail_at = draw().between(0, 3)});
  }

  static const CacheKind& order_kind() { return device_kind(); }
  static std::span<const OrderWord> order_words() {
    static constexpr auto kWords = std::to_array<OrderWord>({
        order_word<&S::is_open>("open"),
        order_word<&S::layers>("layers"),
        order_word<&S::first_without>("first_without"),
        order_word<&S::row_if_open>("row_on_device"),
    });
    return kWords;
  }
  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {60, "append", &S::append, true},
      {60, "token", &S::token, true},
      {6, "seq_len", &S::plain<SeqLen>},
      {4, "pointers", &S::pointers},
      {2, "counter_ptr", &S::plain<CounterPtr>},
      {10, "read_counter", &S::plain<ReadCounter>},
      {10, "device_pointer_arrays", &S::plain<DevicePointerArrays>},
      {18, "read_buffer", &S::read_buffer},
      {8, "live_buffers", &S::plain<LiveBuffers>},
      {12, "sync_counter", &S::sync},
      {6, "reset", &S::plain<ResetDevice>},
      {6, "close", &S::close},
      {3, "new with a failure", &S::fail_new},
      {5, "device_pointer_arrays with a failure", &S::fail_arrays},
      {3, "close with a failure", &S::fail_close},
      {3, "failing kernel", &S::fail_kernel},
      {3, "reset with a failure", &S::fail_reset},
      {3, "append with a failure", &S::fail_append},
      {6, "new", &S::make},
  });

  // What became of an operation.
  void observe(const NewDevice& made, const Observation& seen) {
    if (!seen.error) {
      if (known_) reach(DeviceLabel::kCacheReplaced);
      known_ = DeviceKnown{.sizes = made,
                           .held = std::vector<bool>(static_cast<std::size_t>(made.num_layers))};
      spend(static_cast<std::uint64_t>(made.num_layers) * side_cells());
      return;
    }
    if (made.nil_allocator) reach(DeviceLabel::kNoAllocator);
    const auto& calls = seen.as<Calls>().calls;
    if (calls.size() > 1) reach(DeviceLabel::kNewUndoneAfterAFailure);
    if (failed_calls(calls) > 1) reach(DeviceLabel::kFreeFailedWhileNewWasUndone);
    if (seen.error->code != Code::kOutOfRange && seen.error->code != Code::kPrecondition) return;
    const bool huge = made.max_seq_len == std::numeric_limits<std::int64_t>::max();
    reach(huge && seen.error->detail == "max_seq_len" ? DeviceLabel::kSizeProductOverflows
                                                      : DeviceLabel::kSizeRefused);
  }
  void observe(const Append& append, const Observation& seen) {
    if (is_there(seen)) saw_append(append.layer, false, seen);
  }
  void observe(const AppendGpu& append, const Observation& seen) {
    if (is_there(seen)) saw_append(append.layer, true, seen);
  }
  void observe(const SeqLen& /*op*/, const Observation& seen) {
    if (!is_there(seen) || seen.error) return;
    if (seen.as<Number>().n != known_->length) reach(DeviceLabel::kCounterAndLengthParted);
    known_->set_length(seen.as<Number>().n);
  }
  void observe(const ReadCounter& /*op*/, const Observation& seen) {
    if (is_there(seen) && !seen.error) known_->counter = seen.as<ReadCounter::Returns>().n.value;
  }
  void observe(const DevicePointerArrays& /*op*/, const Observation& seen) {
    if (!is_there(seen)) return;
    if (seen.error && seen.error->reason == "alloc_failed")
      reach(DeviceLabel::kAllocationOfThePointerArraysFailed);
    if (seen.error && seen.error->reason == "memcpy_failed")
      reach(DeviceLabel::kCopyIntoThePointerArraysFailed);
    if (!seen.error && seen.as<DevicePointerArrays::Returns>().calls.empty())
      reach(DeviceLabel::kPointerArraysMadeOnce);
  }
  void observe(const ReadBuffer& read, const Observation& seen) {
    if (!seen.error) spend(kReadCost * side_cells());
    if (!is_there(seen) || seen.error || !known_->was_reset || known_->length > 0) return;
    const auto& buffer = seen.as<ReadBuffer::Returns>();
    const auto filled = [](float cell) { return cell != 0; };
    if (buffer.found && !known_->held[static_cast<std::size_t>(read.layer)] &&
        std::ranges::any_of(buffer.k->floats(), filled))
      reach(DeviceLabel::kCellsOfAnEarlierSequence);
  }
  void observe(const LiveBuffers& /*op*/, const Observation& seen) {
    if (is_there(seen) && known_->closed && !seen.as<LiveBuffers::Returns>().bufs.empty())
      reach(DeviceLabel::kBuffersLeftAfterClose);
  }
  void observe(const SyncDeviceCounter& /*op*/, const Observation& seen) {
    if (!is_there(seen)) return;
    known_->counter.reset();
    if (known_->closed && seen.error) reach(DeviceLabel::kClosedCacheUsed);
    if (documented_ && seen.as<Calls>().calls.size() > 1)
      reach(DeviceLabel::kCounterBroughtToTheLengthBeforeItsUse);
  }
  void observe(const ResetDevice& /*op*/, const Observation& seen) {
    if (!is_there(seen)) return;
    known_->counter.reset();
    known_->set_length(0);
    known_->was_reset = true;
    constexpr std::uint64_t kOneByte = 0xFF;
    if (++emptied_ > kOneByte) reach(DeviceLabel::kEmptiedBeyondOneByte);
    if (failed_calls(seen.as<Calls>().calls) == 0) return;
    reach(DeviceLabel::kZeroingFailedInReset);
    if (!draw().percent(70)) return;
    plan(ReadCounter{});
    plan(append());
  }
  void observe(const Close& /*op*/, const Observation& seen) {
    if (!is_there(seen)) return;
    known_->counter.reset();
    if (known_->closed) reach(DeviceLabel::kClosedTwice);
    if (seen.error) reach(DeviceLabel::kFreeFailedInClose);
    known_->closed = true;
  }
  template <OneOf<Pointers, CounterPtr> T>
  void observe(const T& /*nothing to follow*/, const Observation& seen) {
    (void)is_there(seen);
  }

 private:
  void draw_large_sizes() {
    if (draw().percent(40)) sizes_.num_layers = draw().edge(5, 65);
    if (draw().percent(40)) sizes_.max_seq_len = draw().edge(17, 257);
    if (draw().percent(40)) sizes_.num_heads = draw().edge(5, 33);
    if (draw().percent(40)) sizes_.head_dim = draw().edge(9, 257);
    constexpr std::int64_t kMostCells = std::int64_t{1} << 17U;  // of a side of a layer
    const std::int64_t width = sizes_.num_heads * sizes_.head_dim;
    sizes_.max_seq_len = std::clamp<std::int64_t>(kMostCells / width, 1, sizes_.max_seq_len);
  }
  // In a long life a cache is seldom made, closed or hurt, else it would not grow old.
  bool rarely() { return is_long() && draw().percent(97); }
  std::int64_t layer() {
    const std::int64_t layers = sizes_.num_layers;
    return draw().percent(96) ? draw().between(0, layers - 1)
                              : draw().one_of<std::int64_t>({layers, -1});
  }
  // Two buffers a layer, and the counter.
  std::int64_t some_buffer() { return draw().between(1, 2 * sizes_.num_layers + 1); }
  // ---- For orders ----
  [[nodiscard]] bool is_open() const { return known_ && !known_->closed; }
  [[nodiscard]] std::int64_t layers() const { return known_ ? known_->sizes.num_layers : 0; }
  [[nodiscard]] std::int64_t first_without() const { return known_ ? known_->first_without() : 0; }
  std::optional<Op> row_if_open(std::int64_t to) {
    return is_open() ? std::optional(row_on_device(to)) : std::nullopt;
  }
  Op row_on_device(std::int64_t to) {
    std::vector<float> k(static_cast<std::size_t>(sizes_.num_heads * sizes_.head_dim));
    std::vector<float> v(k.size());
    tagger_.fill(k, v);
    return Op::of(AppendGpu{to, std::move(k), std::move(v)});
  }
  Op append_to(std::int64_t to) {
    const std::int64_t width = sizes_.num_heads * sizes_.head_dim;
    std::vector<float> k(static_cast<std::size_t>(width));
    std::vector<float> v(k.size());
    tagger_.fill(k, v);
    odd_values_.put_into(k);
    odd_values_.put_into(v);
    if (draw().percent(gpu_percent_)) return Op::of(AppendGpu{to, std::move(k), std::move(v)});
    for (auto* side : {&k, &v})
      if (draw().percent(3)) side->resize(static_cast<std::size_t>(draw().between(0, width + 1)));
    std::int64_t position = known_ ? known_->length : 0;
    if (draw().percent(5)) position += draw().one_of<std::int64_t>({-1, 1});
    return Op::of(Append{to, position, std::move(k), std::move(v)});
  }

  // Whether there is a cache that the operation was about.
  bool is_there(const Observation& seen) {
    if (!known_ && seen.error) reach(DeviceLabel::kNoCacheYet);
    return known_.has_value();
  }
  void saw_append(std::int64_t layer, bool gpu, const Observation& seen) {
    const auto counter = std::exchange(known_->counter, std::nullopt);
    const auto& calls = seen.as<Calls>().calls;
    const auto index = static_cast<std::size_t>(layer);
    if (known_->closed && seen.error) reach(DeviceLabel::kClosedCacheUsed);
    if (layer < 0 || layer >= known_->sizes.num_layers) return reach(DeviceLabel::kLayerOutOfRange);
    if (documented_ && gpu && !calls.empty() && calls.front().fn == DeviceCallName::kMemcpy)
      reach(DeviceLabel::kCounterBroughtToTheLengthBeforeItsUse);
    if (seen.error) return saw_refusal(index, *seen.error, calls);
    if (gpu && counter && *counter >= known_->sizes.max_seq_len)
      reach(DeviceLabel::kRowDroppedByACounterPastTheEnd);
    if (layer != known_->first_without()) reach(DeviceLabel::kLayerAppendedOutOfOrder);
    if (known_->held[index]) reach(DeviceLabel::kLayerWrittenTwiceAtOnePosition);
    known_->held[index] = true;
    const bool last = layer + 1 == known_->sizes.num_layers;
    const bool all = std::ranges::find(known_->held, false) == known_->held.end();
    if (last && !all && !documented_) reach(DeviceLabel::kLastLayerAloneAdvanced);
    if (documented_ ? all : last) known_->set_length(known_->length + 1);
    constexpr std::int64_t kSixteen = 16;
    constexpr std::int64_t kThousand = 1'024;
    const std::int64_t width = known_->sizes.num_heads * known_->sizes.head_dim;
    spend(kAppendCost * static_cast<std::uint64_t>(width));
    if (layer >= 4) reach(DeviceLabel::kFiveLayers);
    if (known_->length > kSixteen) reach(DeviceLabel::kBeyondSixteenPositions);
    if (width > kThousand) reach(DeviceLabel::kRowsOfAThousandCells);
  }
  void saw_refusal(std::size_t layer, const Error& error, const std::vector<DeviceCall>& calls) {
    if (error.reason == "memcpy_failed" && calls.size() == 2 && !calls.front().error &&
        calls.front().fn == DeviceCallName::kMemcpy)
      reach(DeviceLabel::kCopyFailedHalfWay);
    if (error.reason == "kernel_failed" && calls.size() == 2 &&
        calls.back().fn == DeviceCallName::kOffsetMemcpy)
      reach(DeviceLabel::kKernelFailedHalfWay);
    if (error.detail == "kernels") reach(DeviceLabel::kNoKernels);
    if (error.code == Code::kFull) reach(DeviceLabel::kCacheFull);
    if (error.code == Code::kBadShape) reach(DeviceLabel::kRowOfAWrongLengthRefused);
    if (error.code == Code::kBadPosition)
      reach(known_->held[layer] ? DeviceLabel::kLayerRefusedThatHasThePosition
                                : DeviceLabel::kPositionRefused);
  }

  [[nodiscard]] std::uint64_t side_cells() const {
    const NewDevice& sizes = known_ ? known_->sizes : sizes_;
    return static_cast<std::uint64_t>(sizes.max_seq_len * sizes.num_heads * sizes.head_dim);
  }

  static constexpr std::uint64_t kReadCost = 8;     // of a cell of K
  static constexpr std::uint64_t kAppendCost = 16;  // of a cell of K

  bool documented_;
  Tagger tagger_;
  std::uint64_t gpu_percent_;  // appends with rows on the device
  NewDevice sizes_;            // of all caches of the case
  OddValues odd_values_;
  std::optional<DeviceKnown> known_;
  std::uint64_t emptied_ = 0;
};

}  // namespace

Generator device_generator() {
  return with_orders<DeviceScript>(script_generator<DeviceLabel>(
      device_kind(), script_case<DeviceScript>,
      {DeviceLabel::kLastLayerAloneAdvanced, DeviceLabel::kLayerWrittenTwiceAtOnePosition,
       DeviceLabel::kCounterAndLengthParted, DeviceLabel::kRowDroppedByACounterPastTheEnd},
      {DeviceLabel::kLayerRefusedThatHasThePosition,
       DeviceLabel::kCounterBroughtToTheLengthBeforeItsUse, DeviceLabel::kPointerArraysMadeOnce}));
}

}  // namespace kvo::provider
