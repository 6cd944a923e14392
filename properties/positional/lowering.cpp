// Requests as operations of contract `positional`: a slot is a sequence, all slots share one cache.
//
// Policy of BatchOps, one start_forward a step. Prefixes are shared by remove or copy_prefix, if
// can_resume allows it. The pool is too small for all contexts. A layer of one narrow head is read
// after every pass, so that each mask is compared. Every third pass lets the later half of a
// prompt's chunk see ahead in every second layer, as images do. Now and then a set_causal of the
// last pass follows a draft or a copy that changed its cells. A reserve pass precedes every 64th
// pass.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/replay/engine.hpp"
#include "reference/positional/operations.hpp"

namespace kvo::positional {
namespace {

using replay::Lowering;
using replay::LoweringInput;
using replay::Step;
using replay::Turn;

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

class PositionalStream final : public replay::BatchOps {
 public:
  PositionalStream(const LoweringInput& input, std::int64_t members)
      : BatchOps(input, Sizes(input).context,
                 {.full = "pool full, and room made",
                  .refused = "context shift refused",
                  .lost = "prefix found, but evicted in part"}),
        members_(members) {
    const Sizes sizes(input);
    emit(
        Init{slots(), sizes.capacity, sizes.max_batch, static_cast<StorageType>(policy().storage)});
    reserve(sizes.max_batch);  // engines plan their largest pass first
  }

 protected:
  void share(std::int64_t slot, std::int64_t source, std::int64_t tokens) override {
    const auto end = static_cast<std::int32_t>(tokens);
    const bool longer = source == slot && at(slot).length() > tokens;
    if (source != slot) {
      emit(CopyPrefix{source, slot, end});
      changed_ = true;
    }
    emit_then(CanResume{slot, end}, [=, this](const Observation& seen) {
      const bool can = !seen.error && seen.as<CanResume::Returns>().value;
      if (can && longer) emit(Remove{slot, end, kMaxPosition});
      resume(slot, can);
    });
  }
  void drop(std::int64_t slot, std::int64_t begin) override {
    emit(Remove{slot, static_cast<std::int32_t>(std::max<std::int64_t>(begin, 0)), kMaxPosition});
    changed_ |= begin >= 0;
  }
  // OK-66: the caller clears a sequence that was not shifted.
  void shift(std::int64_t slot, std::int32_t begin, std::int32_t end) override {
    emit_then(Remove{slot, begin, end},
              [this, slot](const Observation& seen) { shifted(slot, !seen.error); });
  }
  bool prepare(Step& step) override {
    if (step.turns.empty()) return false;
    if (look_ahead_late()) return true;
    if (passes_ % kReserveEvery == kReserveEvery - 1) reserve(std::ssize(step.turns));
    return false;
  }
  void forward(const Step& step) override {
    StartForward pass;
    ahead_.clear();
    batch_ = 0;
    ++passes_;
    for (const Turn& turn : step.turns) {
      const std::int64_t first = std::ssize(pass.seqs);
      if (passes_ % kAheadEvery == 0 && !turn.draft)
        for (std::int64_t i = turn.append / 2 + 1; i < turn.append; ++i)
          ahead_.push_back(first + i);
      for (std::int64_t i = 0; i < turn.append; ++i) {
        pass.positions.push_back(static_cast<std::int32_t>(at(turn.slot).length() + i));
        pass.seqs.push_back(turn.slot);
      }
    }
    if (!ahead_.empty()) pass.multimodal = {ahead_.front()};
    const std::int64_t tokens = std::ssize(pass.seqs);
    emit_then(std::move(pass), [this, tokens](const Observation& seen) {
      if (!seen.error) batch_ = tokens;
      stored(!seen.error);
    });
  }
  void settle(bool read) override { rows(batch_, take_read() || read); }

 private:
  // Plans a pass that is not carried out: it must leave no trace but storage (OK-27).
  void reserve(std::int64_t batch) {
    StartForward planned{.reserve = true};
    for (std::int64_t i = 0; i < batch; ++i) {
      planned.positions.push_back(static_cast<std::int32_t>(i));
      planned.seqs.push_back(0);
    }
    if (passes_ > 0) reach(kReserved);
    emit(std::move(planned));
    ahead_.clear();
    batch_ = 0;
    rows(batch, false);
  }

  // Cells of the last pass have changed since: its mask is built anew from what they are (OK-41).
  bool look_ahead_late() {
    const bool due = std::exchange(changed_, false) && passes_ % kLateEvery == 2 && batch_ > 0;
    if (!due) return false;
    reach(kLate);
    ++looks_;
    const std::vector<std::int64_t> rows{batch_ - 1, 0};
    if (looks_ % 3 == 0) emit(SetCausal{rows, false});  // the list alone (OK-40)
    emit(SetCausal{rows});
    if (looks_ % 2 == 0) emit(Get{});
    return true;
  }

  void rows(std::int64_t batch, bool read) {
    for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) {
      put(layer, layer % members_, {batch, policy().num_heads, policy().head_dim});
      if (!ahead_.empty()) {
        reach(kAhead);
        emit(SetCausal{layer % 2 == 0 ? ahead_ : std::vector<std::int64_t>{}});
      }
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
    auto [k, v] = replay::next_tags(tagger(), shape, policy().storage);
    emit(Put{std::move(k), std::move(v)});
  }

  std::int64_t members_;
  bool changed_ = false;                  ///< cells of the last pass, since it
  std::int64_t passes_ = 0;               ///< but for reserve passes
  std::int64_t looks_ = 0;                ///< that were late
  std::int64_t batch_ = 0;                ///< tokens of the last pass; 0: it is not usable (OK-28)
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

ShiftConfig rope() {
  return {.kind = ShiftKind::kRope};
}

CacheConfig causal(const LoweringInput& input) {
  return {.shift = rope(), .backend = backend(input, false)};
}
CacheConfig swa(const LoweringInput& input) {
  return {.window = Sizes(input).window(), .shift = rope(), .backend = backend(input, true)};
}
CacheConfig swa_mem(const LoweringInput& input) {
  CacheConfig config = causal(input);
  config.window = Sizes(input).window();
  config.memory = Sizes(input).memory();
  return config;
}
CacheConfig chunked(const LoweringInput& input) {
  return {.chunk = Sizes(input).chunk(), .shift = rope(), .backend = backend(input, true)};
}
WrapperConfig wrapper(const LoweringInput& input) {
  WrapperConfig config{
      .caches = {{.cache = MemberKind::kSwa, .window = Sizes(input).window(), .shift = rope()},
                 {.cache = MemberKind::kCausal, .shift = rope()}}};
  config.backend = backend(input, false);
  return config;
}

// `get` reads the cells of a pool for every token.
double cost(const LoweringInput& input) {
  constexpr double kMostReads = 6e8;
  const double cells =
      static_cast<double>(input.schedule.max_running) * static_cast<double>(Sizes(input).capacity);
  return static_cast<double>(input.tokens()) * cells / kMostReads;
}

}  // namespace

std::vector<Lowering> lowerings() {
  using replay::lower_by;
  using replay::setup_by;
  constexpr auto kOne = lower_by<PositionalStream, std::int64_t{1}>;
  constexpr auto kTwo = lower_by<PositionalStream, std::int64_t{2}>;
  return {{&kind_of(MemberKind::kCausal), setup_by<causal>, kOne, cost},
          {&kind_of(MemberKind::kSwa), setup_by<swa>, kOne, cost},
          {&kind_of(MemberKind::kSwaMem), setup_by<swa_mem>, kOne, cost},
          {&kind_of(MemberKind::kChunked), setup_by<chunked>, kOne, cost},
          {&wrapper_kind(), setup_by<wrapper>, kTwo, cost}};
}

}  // namespace kvo::positional
