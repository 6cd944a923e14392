// Requests as operations of contract `positional`: a slot is a sequence, all slots share one cache.
//
// Policy. One start_forward a step, with what every running sequence appends. A sequence that ends
// leaves its tokens in its slot; the next one keeps what of its prompt they or another slot's begin
// with, in whole blocks of the trace: removed behind that, or copied by copy_prefix, if can_resume
// allows it. A sequence that outgrows its context gives up half of what lies behind its first
// eighth, and moves the rest down (context shift); one that cannot is given up. The pool is too
// small for all contexts: a full one first loses the tokens of slots that run nothing, then
// preempts the last sequence of the batch. A layer of one narrow head is read after every pass, so
// that each mask is compared. Every third pass lets the later half of a prompt's chunk see ahead in
// every second layer, as images do. Cells that a draft or a copy changed are now and then followed
// by a set_causal of the pass before. Every 64th pass comes behind a reserve pass.

#include "properties/replay/lowering.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/positional/operations.hpp"

namespace kvo::positional {
namespace {

using replay::Lowering;
using replay::LoweringInput;
using replay::Request;
using replay::Step;
using replay::Turn;

constexpr std::string_view kFull = "pool full, and room made";
constexpr std::string_view kShifted = "context shifted";
constexpr std::string_view kShiftRefused = "context shift refused";
constexpr std::string_view kShared = "prefix copied from another sequence";
constexpr std::string_view kKept = "prefix of the slot kept";
constexpr std::string_view kNotResumed = "prefix found, but evicted in part";
constexpr std::string_view kAhead = "rows let see ahead";
constexpr std::string_view kLate = "rows let see ahead after cells have changed";
constexpr std::string_view kReserved = "reserve pass amid others";

constexpr std::int64_t kAheadEvery = 3;  // passes
constexpr std::int64_t kLateEvery = 4;
constexpr std::int64_t kReserveEvery = 64;

// Sizes that follow from the longest sequence of a case.
struct Sizes {
  std::int64_t context;   ///< most tokens of a sequence
  std::int64_t capacity;  ///< what init is told
  std::int64_t max_batch;

  explicit Sizes(const LoweringInput& input) {
    constexpr std::int64_t kContextPercent = 60;
    const std::int64_t chunk = std::max(input.schedule.chunk_tokens, input.schedule.draft_tokens);
    context = std::max(4 * chunk, input.longest_sequence() * kContextPercent / 100);
    capacity = std::max(context * input.policy.pool_percent / 100,
                        context / input.schedule.max_running + 1);
    max_batch = input.schedule.max_running * chunk;
  }
  [[nodiscard]] std::int32_t window() const { return static_cast<std::int32_t>(context / 8); }
  [[nodiscard]] std::int32_t memory() const { return static_cast<std::int32_t>(context / 5); }
  [[nodiscard]] std::int32_t chunk() const { return static_cast<std::int32_t>(context / 4); }
};

class PositionalStream final : public replay::LoweredOps {
 public:
  PositionalStream(const LoweringInput& input, std::int64_t members)
      : LoweredOps(input),
        sizes_(input),
        members_(members),
        slots_(static_cast<std::size_t>(input.schedule.max_running)) {
    emit(Init{input.schedule.max_running, sizes_.capacity, sizes_.max_batch,
              static_cast<StorageType>(policy().storage)});
    reserve(sizes_.max_batch);  // engines plan their largest pass first
  }

  void saw(const Op& op, const Observation& seen, Labels& labels) override {
    visit_op(Ops(), op, [&](const auto& operation) { follow(operation, seen, labels); });
  }

 protected:
  // Begins and context shifts one by one, for the answer to one decides what follows; then all
  // that is appended as one batch, which stays in the step until the pass has succeeded.
  void lower(Step& step) override {
    if (!step.begins.empty()) {
      begin(step.begins.front());
      step.begins.pop_front();
      return;
    }
    for (const Turn& turn : step.turns) {
      if (!turn.end) continue;
      at(turn.slot).running = false;
      read_due_ |= turn.read;
    }
    std::erase_if(step.turns, [](const Turn& turn) { return turn.end; });
    for (const Turn& turn : step.turns)
      if (at(turn.slot).length + turn.append > sizes_.context) return shift(turn.slot);
    if (step.turns.empty()) return;
    if (look_ahead_late()) return;
    if (passes_ % kReserveEvery == kReserveEvery - 1) reserve(std::ssize(step.turns));
    start_pass(step);
  }

 private:
  struct Slot {
    bool running = false;
    bool copied = false;                  ///< what it begins with is another slot's
    bool shifted = false;                 ///< since it began
    std::int64_t length = 0;              ///< tokens held
    std::int64_t prompt = 0;              ///< of the request that came last
    std::int64_t unshifted = 0;           ///< tokens that still stand where the prompt has them
    std::vector<std::uint64_t> ids = {};  ///< of that prompt's blocks
  };

  // ---- What became of an operation: one overload each ----

  void follow(const CanResume& asked, const Observation& seen, Labels& labels) {
    resume(asked, !seen.error && seen.as<CanResume::Returns>().value, labels);
  }
  void follow(const Remove& removed, const Observation& seen, Labels& labels) {
    if (removed.end == kMaxPosition) return;  // no context shift
    labels.insert(seen.error ? kShiftRefused : kShifted);
    if (!seen.error) return;
    clear(removed.seq);  // OK-66: the caller clears it
    schedule().give_up(removed.seq);
  }
  void follow(const StartForward& pass, const Observation& seen, Labels& labels) {
    if (pass.reserve) {
      if (passes_ > 0) labels.insert(kReserved);
      return;
    }
    if (seen.error)
      make_room(labels);
    else
      settle(std::ssize(pass.positions));
  }
  void follow(const SetCausal& /*op*/, const Observation& /*seen*/, Labels& labels) const {
    labels.insert(late_ ? kLate : kAhead);
  }
  // What the schedule does not depend on, or what is not emitted.
  static void follow(const OneOf<SetConfig, Init, SetLayer, SetLayerType, UnderlyingCache, Put, Get,
                                 CopyPrefix, EncoderCached, Close> auto& /*op*/,
                     const Observation& /*seen*/, Labels& /*labels*/) {}

  Slot& at(std::int64_t slot) { return slots_[static_cast<std::size_t>(slot)]; }

  [[nodiscard]] std::int64_t scaled_prompt(const Request& request) {
    return replay::scaled(request.input_tokens, schedule().policy().scale);
  }

  // Tokens of the request's prompt that a slot begins with, in whole blocks; the last token of a
  // prompt is always computed.
  [[nodiscard]] std::int64_t shared_tokens(const Slot& held, const Request& request) {
    const auto [ours, theirs] = std::ranges::mismatch(request.block_ids, held.ids);
    const auto blocks = ours - request.block_ids.begin();
    if (blocks == 0) return 0;
    const std::int64_t prompt = scaled_prompt(request);
    const std::int64_t tokens = prompt * blocks / std::ssize(request.block_ids);
    return std::max<std::int64_t>(
        0, std::min({tokens, held.prompt, held.unshifted, held.length, prompt - 1}));
  }

  // Looks for the longest beginning of the prompt that a slot holds, first of all its own.
  void begin(std::int64_t slot) {
    Slot& own = at(slot);
    const Request& request = schedule().running(slot);
    std::int64_t source = slot;
    std::int64_t common = 0;
    for (std::int64_t other = 0; other < std::ssize(slots_); ++other) {
      const std::int64_t shared = shared_tokens(at(other), request);
      if (shared < common || shared == 0 || (shared == common && other != slot)) continue;
      common = shared;
      source = other;
    }
    own.running = true;
    own.copied = source != slot;
    own.shifted = false;
    own.ids = request.block_ids;
    own.prompt = scaled_prompt(request);
    if (common == 0) return clear(slot);
    const auto tokens = static_cast<std::int32_t>(common);
    if (own.copied) {
      emit(CopyPrefix{source, slot, tokens});
      changed_ = true;
      own.length = common;
    }
    emit(CanResume{slot, tokens});
  }

  void resume(const CanResume& asked, bool can, Labels& labels) {
    Slot& own = at(asked.seq);
    labels.insert(!can ? kNotResumed : own.copied ? kShared : kKept);
    if (!can) return clear(asked.seq);
    if (own.length > asked.pos) emit(Remove{asked.seq, asked.pos, kMaxPosition});
    own.length = own.unshifted = asked.pos;
    schedule().skip(asked.seq, asked.pos);
  }

  void shift(std::int64_t slot) {
    Slot& own = at(slot);
    const std::int64_t kept = sizes_.context / 8;
    const std::int64_t dropped = (own.length - kept) / 2;
    emit(Remove{slot, static_cast<std::int32_t>(kept), static_cast<std::int32_t>(kept + dropped)});
    own.length -= dropped;
    own.shifted = true;
    own.unshifted = std::min(own.unshifted, kept);
  }

  // Plans a pass that is not carried out: it must leave no trace but storage (OK-27).
  void reserve(std::int64_t batch) {
    StartForward planned{.reserve = true};
    for (std::int64_t i = 0; i < batch; ++i) {
      planned.positions.push_back(static_cast<std::int32_t>(i));
      planned.seqs.push_back(0);
    }
    emit(std::move(planned));
    ahead_.clear();
    batch_ = 0;
    rows(batch, false);
  }

  void start_pass(const Step& step) {
    StartForward pass;
    ahead_.clear();
    late_ = false;
    batch_ = 0;
    ++passes_;
    for (const Turn& turn : step.turns) {
      const std::int64_t first = std::ssize(pass.seqs);
      if (passes_ % kAheadEvery == 0 && !turn.draft)
        for (std::int64_t i = turn.append / 2 + 1; i < turn.append; ++i)
          ahead_.push_back(first + i);
      for (std::int64_t i = 0; i < turn.append; ++i) {
        pass.positions.push_back(static_cast<std::int32_t>(at(turn.slot).length + i));
        pass.seqs.push_back(turn.slot);
      }
    }
    if (!ahead_.empty()) pass.multimodal = {ahead_.front()};
    emit(std::move(pass));
  }

  // Cells of the last pass have changed since: its mask is built anew from what they are (OK-41).
  bool look_ahead_late() {
    const bool due = std::exchange(changed_, false) && passes_ % kLateEvery == 2 && batch_ > 0;
    if (!due) return false;
    late_ = true;
    ++looks_;
    const std::vector<std::int64_t> rows{batch_ - 1, 0};
    if (looks_ % 3 == 0) emit(SetCausal{rows, false});  // the list alone (OK-40)
    emit(SetCausal{rows});
    if (looks_ % 2 == 0) emit(Get{});
    return true;
  }

  // The pass failed, and is given again with fewer tokens in its way.
  void make_room(Labels& labels) {
    labels.insert(kFull);
    const auto idle = std::ranges::find_if(
        slots_, [](const Slot& slot) { return !slot.running && slot.length > 0; });
    if (idle != slots_.end()) return clear(idle - slots_.begin());
    const std::int64_t victim = schedule().step().turns.back().slot;
    preempt(victim, labels);
    clear(victim);
  }

  // The pass has succeeded: its rows, and what is taken back of them.
  void settle(std::int64_t batch) {
    Step& step = schedule().step();
    batch_ = batch;
    rows(batch, std::exchange(read_due_, false) || std::ranges::any_of(step.turns, &Turn::read));
    for (const Turn& turn : step.turns) {
      Slot& own = at(turn.slot);
      own.length += turn.append - turn.rejected;
      if (!own.shifted) own.unshifted = own.length;
      own.unshifted = std::min(own.unshifted, own.length);
      if (turn.rejected == 0) continue;
      emit(Remove{turn.slot, static_cast<std::int32_t>(own.length), kMaxPosition});
      changed_ = true;
    }
    step.turns.clear();
  }

  void clear(std::int64_t slot) {
    if (at(slot).length > 0) emit(Remove{slot, 0, kMaxPosition});
    at(slot).length = at(slot).unshifted = 0;
  }

  void rows(std::int64_t batch, bool read) {
    for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) {
      put(layer, layer % members_, {batch, policy().num_heads, policy().head_dim});
      if (!ahead_.empty()) emit(SetCausal{layer % 2 == 0 ? ahead_ : std::vector<std::int64_t>{}});
      if (read) emit(Get{});
    }
    for (std::int64_t member = 0; member < members_; ++member) {
      put(policy().num_layers + member, member, {batch, 1, 1});
      emit(Get{});
    }
  }
  void put(std::int64_t layer, std::int64_t member, const Shape& shape) {
    emit(SetLayer{layer});
    if (members_ > 1) emit(SetLayerType{member});
    auto [k, v] = tagger().pair(shape);
    for (Tensor* side : {&k, &v}) replay::make_storable(side->floats(), policy().storage);
    emit(Put{std::move(k), std::move(v)});
  }

  Sizes sizes_;
  std::int64_t members_;
  std::vector<Slot> slots_;
  bool read_due_ = false;    ///< a sequence ended with a read: the next pass shows its rows
  bool changed_ = false;     ///< cells of the last pass, since it
  bool late_ = false;        ///< since the last pass, rows were let see ahead
  std::int64_t passes_ = 0;  ///< but for reserve passes
  std::int64_t looks_ = 0;   ///< that were late
  std::int64_t batch_ = 0;   ///< tokens of the last pass; 0: it is not usable (OK-28)
  std::vector<std::int64_t> ahead_ = {};  ///< rows of the pass that may see ahead
};

// What backends ask for differs from case to case.
BackendConfig backend(const LoweringInput& input, bool permuted_v) {
  constexpr std::array<std::int64_t, 4> kPaddings{8, 32, 1, 256};
  const bool even = input.seed % 2 == 0;
  return {.cache_padding = kPaddings.at(input.seed % kPaddings.size()),
          .permuted_v = permuted_v != even,
          .mask_dtype =
              input.policy.mask == replay::ElementType::kF32 ? MaskType::kF32 : MaskType::kF16};
}

Setup setup_with(const LoweringInput& input, CacheConfig config, bool permuted_v) {
  config.shift = ShiftConfig{.kind = ShiftKind::kRope};
  config.backend = backend(input, permuted_v);
  return {.config = Record::of(std::move(config))};
}

Setup setup_with(const LoweringInput& input, WrapperConfig config) {
  for (CacheConfig& member : config.caches) member.shift = ShiftConfig{.kind = ShiftKind::kRope};
  config.backend = backend(input, false);
  return {.config = Record::of(std::move(config))};
}

// The cells of a pool are looked at for every token: not by the reference's masks, but by get.
double cost(const LoweringInput& input) {
  constexpr double kMostLooks = 6e8;
  const double cells =
      static_cast<double>(input.schedule.max_running) * static_cast<double>(Sizes(input).capacity);
  const std::int64_t tokens = replay::tokens_at(input.requests, input.schedule.scale);
  return static_cast<double>(tokens) * cells / kMostLooks;
}

std::unique_ptr<OpStream> lower_on_one(const LoweringInput& input) {
  return std::make_unique<PositionalStream>(input, 1);
}
std::unique_ptr<OpStream> lower_on_two(const LoweringInput& input) {
  return std::make_unique<PositionalStream>(input, 2);
}

Lowering lowering(const CacheKind& kind, Setup (*setup)(const LoweringInput& input)) {
  return {.kind = &kind, .setup = setup, .lower = lower_on_one, .cost = cost};
}

}  // namespace

std::vector<Lowering> lowerings() {
  std::vector<Lowering> all{
      lowering(kind_of(MemberKind::kCausal),
               [](const LoweringInput& input) { return setup_with(input, CacheConfig{}, false); }),
      lowering(kind_of(MemberKind::kSwa),
               [](const LoweringInput& input) {
                 return setup_with(input, CacheConfig{.window = Sizes(input).window()}, true);
               }),
      lowering(kind_of(MemberKind::kSwaMem),
               [](const LoweringInput& input) {
                 const Sizes sizes(input);
                 return setup_with(
                     input, CacheConfig{.window = sizes.window(), .memory = sizes.memory()}, false);
               }),
      lowering(kind_of(MemberKind::kChunked),
               [](const LoweringInput& input) {
                 return setup_with(input, CacheConfig{.chunk = Sizes(input).chunk()}, true);
               }),
      lowering(wrapper_kind(), [](const LoweringInput& input) {
        return setup_with(
            input,
            WrapperConfig{.caches = {{.cache = MemberKind::kSwa, .window = Sizes(input).window()},
                                     {.cache = MemberKind::kCausal}}});
      })};
  all.back().lower = lower_on_two;
  return all;
}

}  // namespace kvo::positional
