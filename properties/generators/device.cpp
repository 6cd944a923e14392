// Random scripts for provider.device.
#include <algorithm>
#include <deque>
#include <limits>

#include "properties/generators/generators.hpp"
#include "reference/contract/tags.hpp"
#include "reference/provider/contract_device.hpp"

namespace kvo::provider {
namespace {

// States worth reaching.
constexpr std::string_view kOutOfOrder = "layer appended out of order";
constexpr std::string_view kLastAlone = "last layer alone advanced";
constexpr std::string_view kRewritten = "layer written twice at one position";
constexpr std::string_view kHasPosition = "layer refused that has the position";
constexpr std::string_view kHalfWay = "copy failed half-way: K written, V not";
constexpr std::string_view kKernelHalfWay = "kernel failed half-way: K written, V not";
constexpr std::string_view kNoKernels = "no kernels";
constexpr std::string_view kParted = "counter and length parted";
constexpr std::string_view kRefreshed = "counter brought to the length before its use";
constexpr std::string_view kDropped = "row dropped by a counter past the end";
constexpr std::string_view kNotZeroed = "zeroing failed in reset";
constexpr std::string_view kArraysFailed = "allocation of the pointer arrays failed";
constexpr std::string_view kArraysCopyFailed = "copy into the pointer arrays failed";
constexpr std::string_view kArraysAgain = "pointer arrays made once";
constexpr std::string_view kFreeFailed = "free failed in close";
constexpr std::string_view kClosedUsed = "closed cache used";
constexpr std::string_view kClosedTwice = "closed twice";
constexpr std::string_view kLeak = "buffers left after close";
constexpr std::string_view kNewUndone = "new undone after a failure";
constexpr std::string_view kUndoFailed = "free failed while new was undone";
constexpr std::string_view kReplaced = "cache replaced";
constexpr std::string_view kNoAllocator = "no allocator";
constexpr std::string_view kSizeRefused = "size refused";
constexpr std::string_view kOverflow = "size product overflows";
constexpr std::string_view kFull = "cache full";
constexpr std::string_view kWrongPosition = "position refused";
constexpr std::string_view kWrongLength = "row of a wrong length refused";
constexpr std::string_view kStale = "cells of an earlier sequence";
constexpr std::string_view kLayerRefused = "layer out of range";
constexpr std::string_view kNoCache = "no cache yet";

// What the generator knows of the cache, from what was observed.
struct Known {
  NewDevice sizes = {};
  std::int64_t length = 0;
  std::vector<bool> held = {};  // layers that were written at the position `length`
  bool was_reset = false;
  bool closed = false;

  [[nodiscard]] std::int64_t width() const { return sizes.num_heads * sizes.head_dim; }
  [[nodiscard]] std::int64_t first_without() const {
    return std::ranges::find(held, false) - held.begin();
  }
};

std::size_t failed_calls(const std::vector<Call>& calls) {
  return static_cast<std::size_t>(
      std::ranges::count_if(calls, [](const Call& call) { return call.error.value_or(false); }));
}

class DeviceScript final : public OpStream {
 public:
  DeviceScript(std::uint64_t seed, Profile profile)
      : draw_(seed), documented_(profile == Profile::kDocumented) {
    weights_ = swarm(draw_, {30, 30, 3, 2, 1, 5, 5, 9, 4, 6, 3, 3, 9, 3}, 2);
    gpu_percent_ = draw_.one_of<std::uint64_t>({0, 40, 100});
    sizes_ = {.num_layers = draw_.one_of<std::int64_t>({1, 1, 2, 2, 3}),
              .max_seq_len = draw_.one_of<std::int64_t>({1, 2, 3, 5}),
              .num_heads = draw_.between(1, 3),
              .head_dim = draw_.between(1, 3),
              .kernels = draw_.percent(93) ? Kernels::kHost : Kernels::kUnavailable};
  }

  std::optional<Op> next() override {
    if (!planned_.empty()) {
      Op op = std::move(planned_.front());
      planned_.pop_front();
      return op;
    }
    if (!known_ && draw_.percent(92)) return make();
    return random_op();
  }

  void saw(const Op& op, const Observation& seen, Labels& labels) override {
    if (!known_ && seen.error) saw_nothing(op, labels);
    if (const auto* made = op.as<NewDevice>()) saw_new(*made, seen, labels);
    if (!known_) return;
    if (const auto* append = op.as<Append>()) saw_append(append->layer, false, seen, labels);
    if (const auto* append = op.as<AppendGpu>()) saw_append(append->layer, true, seen, labels);
    if (op.as<SeqLen>() != nullptr && !seen.error) {
      if (seen.as<Number>().n != known_->length) labels.insert(kParted);
      set_length(seen.as<Number>().n);
    }
    counter_.reset();
    if (op.as<ReadCounter>() != nullptr && !seen.error)
      counter_ = seen.as<ReadCounter::Returns>().n.value;
    if (op.as<DevicePointerArrays>() != nullptr) saw_arrays(seen, labels);
    if (op.as<LiveBuffers>() != nullptr && known_->closed &&
        !seen.as<LiveBuffers::Returns>().bufs.empty())
      labels.insert(kLeak);
    if (const auto* read = op.as<ReadBuffer>()) saw_buffer(*read, seen, labels);
    if (op.as<SyncDeviceCounter>() != nullptr) saw_sync(seen, labels);
    if (op.as<ResetDevice>() != nullptr) saw_reset(seen, labels);
    if (op.as<Close>() != nullptr) saw_close(seen, labels);
  }

 private:
  Op random_op() {
    switch (draw_.weighted(weights_)) {
      case 0:
        return append(layer());
      case 1:
        return token();
      case 2:
        return Op::of(SeqLen{});
      case 3:
        return Op::of(Pointers{layer()});
      case 4:
        return Op::of(CounterPtr{});
      case 5:
        return Op::of(ReadCounter{});
      case 6:
        return Op::of(DevicePointerArrays{});
      case 7:
        return Op::of(ReadBuffer{layer()});
      case 8:
        return Op::of(LiveBuffers{});
      case 9:
        planned_.push_back(Op::of(SeqLen{}));
        return Op::of(SyncDeviceCounter{});
      case 10:
        return Op::of(ResetDevice{});
      case 11:
        if (draw_.percent(40)) planned_.push_back(Op::of(LiveBuffers{}));
        return Op::of(Close{});
      case 12:
        return inject();
      default:
        return make();
    }
  }

  std::int64_t layer() {
    const std::int64_t layers = sizes_.num_layers;
    return draw_.percent(96) ? draw_.between(0, layers - 1)
                             : draw_.one_of<std::int64_t>({layers, -1});
  }

  Op make() {
    NewDevice made = sizes_;
    if (draw_.percent(4)) made.nil_allocator = true;
    if (draw_.percent(2)) made.num_layers = draw_.between(-1, 0);
    if (draw_.percent(2)) made.max_seq_len = draw_.between(-1, 0);
    if (draw_.percent(2)) made.num_heads = draw_.between(-1, 0);
    if (draw_.percent(2)) made.head_dim = draw_.between(-1, 0);
    if (draw_.percent(2)) made.max_seq_len = std::numeric_limits<std::int64_t>::max();
    return Op::of(made);
  }

  Op append(std::int64_t to) {
    const std::int64_t width = sizes_.num_heads * sizes_.head_dim;
    std::vector<float> k(static_cast<std::size_t>(width));
    std::vector<float> v(k.size());
    tagger_.fill(k, v);
    if (draw_.percent(gpu_percent_)) return Op::of(AppendGpu{to, std::move(k), std::move(v)});
    if (draw_.percent(3)) k.resize(static_cast<std::size_t>(draw_.between(0, width + 1)));
    if (draw_.percent(3)) v.resize(static_cast<std::size_t>(draw_.between(0, width + 1)));
    std::int64_t position = known_ ? known_->length : 0;
    if (draw_.percent(5)) position += draw_.one_of<std::int64_t>({-1, 1});
    return Op::of(Append{to, position, std::move(k), std::move(v)});
  }

  // The next layer of a forward pass: what an engine does.
  Op token() { return append(known_ ? known_->first_without() : 0); }

  // A failure, and what it is meant for.
  Op inject() {
    InjectDevice failure;
    const auto soon = [&] { return draw_.between(1, 3); };
    switch (draw_.below(7)) {
      case 0:
        failure.alloc_fail_at = draw_.between(1, 2 * sizes_.num_layers + 1);
        if (draw_.percent(25)) failure.free_fail_at = 1;
        planned_.push_back(make());
        break;
      case 1:
        failure.alloc_fail_at = draw_.between(1, 2);
        planned_.push_back(Op::of(DevicePointerArrays{}));
        break;
      case 2:
        failure.memcpy_fail_at = draw_.between(1, 2);
        planned_.push_back(Op::of(DevicePointerArrays{}));
        break;
      case 3:
        failure.free_fail_at = draw_.between(1, 2 * sizes_.num_layers + 1);
        planned_.push_back(Op::of(Close{}));
        break;
      case 4:
        failure.kernel_fail_at = soon();
        break;
      case 5:
        failure.memcpy_fail_at = 1;
        planned_.push_back(Op::of(ResetDevice{}));
        break;
      default:
        failure.memcpy_fail_at = draw_.between(0, 3);
        planned_.push_back(append(layer()));
    }
    return Op::of(failure);
  }

  static void saw_nothing(const Op& op, Labels& labels) {
    if (op.as<NewDevice>() == nullptr) labels.insert(kNoCache);
  }

  void saw_new(const NewDevice& made, const Observation& seen, Labels& labels) {
    if (!seen.error) {
      if (known_) labels.insert(kReplaced);
      known_ = Known{.sizes = made,
                     .held = std::vector<bool>(static_cast<std::size_t>(made.num_layers))};
      return;
    }
    if (made.nil_allocator) labels.insert(kNoAllocator);
    const auto& calls = seen.as<Calls>().calls;
    if (calls.size() > 1) labels.insert(kNewUndone);
    if (failed_calls(calls) > 1) labels.insert(kUndoFailed);
    if (seen.error->code != Code::kOutOfRange && seen.error->code != Code::kPrecondition) return;
    const bool huge = made.max_seq_len == std::numeric_limits<std::int64_t>::max();
    labels.insert(huge && seen.error->detail == "max_seq_len" ? kOverflow : kSizeRefused);
  }

  void saw_append(std::int64_t layer, bool gpu, const Observation& seen, Labels& labels) {
    const auto& calls = seen.as<Calls>().calls;
    const auto index = static_cast<std::size_t>(layer);
    if (known_->closed && seen.error) labels.insert(kClosedUsed);
    if (layer < 0 || layer >= known_->sizes.num_layers) {
      labels.insert(kLayerRefused);
      return;
    }
    if (documented_ && gpu && !calls.empty() && calls.front().fn == CallName::kMemcpy)
      labels.insert(kRefreshed);
    if (seen.error) {
      saw_refusal(index, *seen.error, calls, labels);
      return;
    }
    if (gpu && counter_ && *counter_ >= known_->sizes.max_seq_len) labels.insert(kDropped);
    if (layer != known_->first_without()) labels.insert(kOutOfOrder);
    if (known_->held[index]) labels.insert(kRewritten);
    known_->held[index] = true;
    const bool last = layer + 1 == known_->sizes.num_layers;
    const bool all = std::ranges::find(known_->held, false) == known_->held.end();
    if (last && !all && !documented_) labels.insert(kLastAlone);
    if (documented_ ? all : last) set_length(known_->length + 1);
  }

  void saw_refusal(std::size_t layer, const Error& error, const std::vector<Call>& calls,
                   Labels& labels) const {
    if (error.reason == "memcpy_failed" && calls.size() == 2 && !calls.front().error &&
        calls.front().fn == CallName::kMemcpy)
      labels.insert(kHalfWay);
    if (error.reason == "kernel_failed" && calls.size() == 2 &&
        calls.back().fn == CallName::kOffsetMemcpy)
      labels.insert(kKernelHalfWay);
    if (error.detail == "kernels") labels.insert(kNoKernels);
    if (error.code == Code::kFull) labels.insert(kFull);
    if (error.code == Code::kBadShape) labels.insert(kWrongLength);
    if (error.code == Code::kBadPosition)
      labels.insert(known_->held[layer] ? kHasPosition : kWrongPosition);
  }

  void saw_arrays(const Observation& seen, Labels& labels) const {
    if (seen.error && seen.error->reason == "alloc_failed") labels.insert(kArraysFailed);
    if (seen.error && seen.error->reason == "memcpy_failed") labels.insert(kArraysCopyFailed);
    if (seen.error) return;
    if (seen.as<DevicePointerArrays::Returns>().calls.empty()) labels.insert(kArraysAgain);
  }

  void saw_buffer(const ReadBuffer& read, const Observation& seen, Labels& labels) const {
    if (seen.error || !known_->was_reset || known_->length > 0) return;
    const auto& buffer = seen.as<ReadBuffer::Returns>();
    const auto filled = [](float cell) { return cell != 0; };
    if (buffer.found && !known_->held[static_cast<std::size_t>(read.layer)] &&
        std::ranges::any_of(buffer.k->floats(), filled))
      labels.insert(kStale);
  }

  void saw_sync(const Observation& seen, Labels& labels) const {
    if (known_->closed && seen.error) labels.insert(kClosedUsed);
    if (documented_ && seen.as<Calls>().calls.size() > 1) labels.insert(kRefreshed);
  }

  void saw_reset(const Observation& seen, Labels& labels) {
    set_length(0);
    known_->was_reset = true;
    if (failed_calls(seen.as<Calls>().calls) == 0) return;
    labels.insert(kNotZeroed);
    if (!draw_.percent(70)) return;
    planned_.push_back(Op::of(ReadCounter{}));
    planned_.push_back(append(layer()));
  }

  void saw_close(const Observation& seen, Labels& labels) {
    if (known_->closed) labels.insert(kClosedTwice);
    if (seen.error) labels.insert(kFreeFailed);
    known_->closed = true;
  }

  void set_length(std::int64_t length) {
    known_->length = length;
    known_->held.assign(known_->held.size(), false);
  }

  Draw draw_;
  bool documented_;
  Tagger tagger_;
  std::vector<std::uint64_t> weights_;
  std::uint64_t gpu_percent_ = 0;        // appends with rows on the device
  NewDevice sizes_;                      // of all caches of the case
  std::optional<std::int64_t> counter_;  // if the last operation showed it
  std::deque<Op> planned_;
  std::optional<Known> known_;
};

GeneratedCase make_case(std::uint64_t seed, Profile profile) {
  return {.setup = {.profile = profile}, .ops = std::make_unique<DeviceScript>(seed, profile)};
}

Generator make_generator() {
  const std::vector<std::string_view> both{
      kOutOfOrder,    kHalfWay,      kKernelHalfWay, kNoKernels,
      kNotZeroed,     kArraysFailed, kFreeFailed,    kArraysCopyFailed,
      kClosedUsed,    kClosedTwice,  kLeak,          kNewUndone,
      kUndoFailed,    kReplaced,     kNoAllocator,   kSizeRefused,
      kOverflow,      kFull,         kWrongLength,   kStale,
      kWrongPosition, kNoCache,      kLayerRefused};
  Generator generator{.kind = &device_kind(),
                      .make = make_case,
                      .original_labels = both,
                      .documented_labels = both};
  auto& original = generator.original_labels;
  original.insert(original.end(), {kLastAlone, kRewritten, kParted, kDropped});
  auto& documented = generator.documented_labels;
  documented.insert(documented.end(), {kHasPosition, kRefreshed, kArraysAgain});
  return generator;
}

}  // namespace
}  // namespace kvo::provider

namespace kvo {

Generator device_generator() {
  return provider::make_generator();
}

}  // namespace kvo
