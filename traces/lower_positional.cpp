// Requests as operations of contract `positional`: a slot is a sequence, all slots share one cache.
//
// Policy. One start_forward a step, with what every running sequence appends. A sequence that ends
// leaves its tokens in its slot; the next one keeps what of its prompt they or another slot's begin
// with, in whole blocks of the trace: removed behind that, or copied by copy_prefix, if can_resume
// allows it. A sequence that outgrows its context gives up half of what lies behind its first
// eighth, and moves the rest down (context shift); one that cannot is given up. The pool is too
// small for all contexts: a full one first loses the tokens of slots that run nothing, then
// preempts the last sequence of the batch.
#include <algorithm>
#include <optional>
#include <utility>

#include "reference/positional/contract.hpp"
#include "traces/lower_kinds.hpp"

namespace kvo::traces {
namespace {

using positional::kMaxPosition;

constexpr std::string_view kFull = "pool full, and room made";
constexpr std::string_view kShifted = "context shifted";
constexpr std::string_view kShiftRefused = "context shift refused";
constexpr std::string_view kShared = "prefix copied from another sequence";
constexpr std::string_view kKept = "prefix of the slot kept";
constexpr std::string_view kNotResumed = "prefix found, but evicted in part";

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
  [[nodiscard]] std::int64_t window() const { return context / 8; }
  [[nodiscard]] std::int64_t memory() const { return context / 5; }
  [[nodiscard]] std::int64_t chunk() const { return context / 4; }
};

class PositionalOps final : public LoweredOps {
 public:
  PositionalOps(const LoweringInput& input, std::int64_t members)
      : LoweredOps(input),
        sizes_(input),
        members_(members),
        slots_(static_cast<std::size_t>(input.schedule.max_running)) {
    emit(positional::Init{input.schedule.max_running, sizes_.capacity, sizes_.max_batch,
                          positional::StorageType::kF32});
    // Engines plan their largest pass first.
    positional::StartForward planned{.reserve = true};
    for (std::int64_t i = 0; i < sizes_.max_batch; ++i) {
      planned.positions.push_back(static_cast<std::int32_t>(i));
      planned.seqs.push_back(0);
    }
    emit(std::move(planned));
    rows(sizes_.max_batch, false);
  }

 protected:
  void begin(std::int64_t slot) override {
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
    own.shifted = 0;
    own.ids = request.block_ids;
    own.prompt = scaled_prompt(request);
    if (common == 0) return clear(slot);
    if (source != slot)
      emit(positional::CopyPrefix{source, slot, static_cast<std::int32_t>(common)});
    if (source != slot) own.length = common;
    found_ = {slot, common, source != slot};
    emit(positional::CanResume{slot, static_cast<std::int32_t>(common)});
  }

  void append(std::int64_t slot, std::int64_t tokens) override {
    Slot& own = at(slot);
    if (own.length + tokens > sizes_.context) {
      const std::int64_t kept = sizes_.context / 8;
      const std::int64_t dropped = (own.length - kept) / 2;
      emit(positional::Remove{slot, static_cast<std::int32_t>(kept),
                              static_cast<std::int32_t>(kept + dropped)});
      own.length -= dropped;
      own.shifted += dropped;
      own.unshifted = std::min(own.unshifted, kept);
    }
    pending_.emplace_back(slot, tokens);
  }

  void truncate(std::int64_t slot, std::int64_t tokens) override {
    cuts_.emplace_back(slot, tokens);
  }
  void read(std::int64_t /*slot*/) override { reads_ = true; }
  void end(std::int64_t slot) override { at(slot).running = false; }

  void step() override {
    if (pending_.empty()) return;
    positional::StartForward pass;
    for (const auto& [slot, tokens] : pending_) {
      for (std::int64_t i = 0; i < tokens; ++i) {
        pass.positions.push_back(static_cast<std::int32_t>(at(slot).length + i));
        pass.seqs.push_back(slot);
      }
    }
    const auto batch = std::ssize(pass.positions);
    emit(std::move(pass));
    rows(batch, reads_);
  }

  void answered(const Op& op, const Observation& seen, Labels& labels) override {
    if (const auto* asked = op.as<positional::CanResume>(); asked != nullptr && found_) {
      const Found found = *std::exchange(found_, std::nullopt);
      resume(found, !seen.error && seen.as<positional::CanResume::Returns>().value, labels);
    } else if (const auto* removed = op.as<positional::Remove>();
               removed != nullptr && removed->end != kMaxPosition) {
      labels.insert(seen.error ? kShiftRefused : kShifted);
      if (!seen.error) return;
      emit(positional::Remove{removed->seq, 0, kMaxPosition});  // OK-66: the caller clears it
      forget(removed->seq);
      schedule().give_up(removed->seq);
    } else if (const auto* pass = op.as<positional::StartForward>();
               pass != nullptr && !pass->reserve) {
      if (seen.error) {
        labels.insert(kFull);
        make_room();
      } else {
        settle();
      }
    }
  }
  [[nodiscard]] std::optional<std::int64_t> appends_to(const Op& /*op*/) const override {
    return std::nullopt;
  }

 private:
  struct Slot {
    bool running = false;
    std::int64_t length = 0;              ///< tokens held
    std::int64_t shifted = 0;             ///< tokens that context shifts took out
    std::int64_t prompt = 0;              ///< of the request that came last
    std::int64_t unshifted = 0;           ///< tokens that still stand where the prompt has them
    std::vector<std::uint64_t> ids = {};  ///< of that prompt's blocks
  };
  struct Found {
    std::int64_t slot;
    std::int64_t tokens;
    bool copied;
  };

  Slot& at(std::int64_t slot) { return slots_[static_cast<std::size_t>(slot)]; }

  [[nodiscard]] std::int64_t scaled_prompt(const Request& request) {
    return scaled(request.input_tokens, schedule().policy().scale);
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

  void resume(const Found& found, bool can, Labels& labels) {
    labels.insert(!can ? kNotResumed : found.copied ? kShared : kKept);
    if (!can) return clear(found.slot);
    Slot& own = at(found.slot);
    if (own.length > found.tokens)
      emit(positional::Remove{found.slot, static_cast<std::int32_t>(found.tokens), kMaxPosition});
    own.length = own.unshifted = found.tokens;
    schedule().skip(found.slot, found.tokens);
  }

  void clear(std::int64_t slot) {
    if (at(slot).length > 0) emit(positional::Remove{slot, 0, kMaxPosition});
    at(slot).length = at(slot).unshifted = 0;
  }

  // A sequence is gone, and what was planned for it.
  void forget(std::int64_t slot) {
    clear(slot);
    std::erase_if(pending_, [&](const auto& planned) { return planned.first == slot; });
    std::erase_if(cuts_, [&](const auto& cut) { return cut.first == slot; });
  }

  // The pass that failed is given again, with fewer tokens in its way.
  void make_room() {
    drop_emitted();
    const auto idle = std::ranges::find_if(
        slots_, [](const Slot& slot) { return !slot.running && slot.length > 0; });
    if (idle != slots_.end()) {
      clear(idle - slots_.begin());
    } else {
      const std::int64_t victim = pending_.back().first;
      forget(victim);
      schedule().append_failed(victim);
    }
    step();
  }

  void settle() {
    for (const auto& [slot, tokens] : pending_) {
      at(slot).length += tokens;
      if (at(slot).shifted == 0) at(slot).unshifted = at(slot).length;
    }
    for (const auto& [slot, tokens] : cuts_) {
      Slot& own = at(slot);
      own.length = tokens - own.shifted;
      own.unshifted = std::min(own.unshifted, own.length);
      emit(positional::Remove{slot, static_cast<std::int32_t>(own.length), kMaxPosition});
    }
    pending_.clear();
    cuts_.clear();
    reads_ = false;
  }

  void rows(std::int64_t batch, bool read) {
    for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) {
      emit(positional::SetLayer{layer});
      if (members_ > 1) emit(positional::SetLayerType{layer % members_});
      auto [k, v] = tagger().pair({batch, policy().num_heads, policy().head_dim});
      emit(positional::Put{std::move(k), std::move(v)});
      if (read) emit(positional::Get{});
    }
  }

  Sizes sizes_;
  std::int64_t members_;
  std::vector<Slot> slots_;
  std::vector<std::pair<std::int64_t, std::int64_t>> pending_;  ///< slot, tokens to append
  std::vector<std::pair<std::int64_t, std::int64_t>> cuts_;     ///< slot, tokens to cut to
  std::optional<Found> found_;
  bool reads_ = false;
};

boost::json::object with_backend(boost::json::object config, bool permuted_v) {
  config["backend"] = {{"cache_padding", 32}, {"permuted_v", permuted_v}, {"mask_dtype", "unset"}};
  return config;
}

boost::json::object shifting(boost::json::object config) {
  config["shift"] = {{"kind", "rope"}};
  return config;
}

// The reference looks at every cell for every token.
std::int64_t scale(const LoweringInput& input) {
  constexpr double kMostLooks = 2.5e9;
  return scale_for([&](std::int64_t scale) {
    LoweringInput scaled = input;
    scaled.schedule.scale = scale;
    const double cells = static_cast<double>(input.schedule.max_running) *
                         static_cast<double>(Sizes(scaled).capacity);
    return static_cast<double>(tokens_at(input.requests, scale)) * cells <= kMostLooks;
  });
}

Lowering lowering(const CacheKind& kind, Setup (*setup)(const LoweringInput& input)) {
  return {.kind = &kind,
          .setup = setup,
          .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
            return std::make_unique<PositionalOps>(input, 1);
          },
          .scale = scale};
}

}  // namespace

Lowering causal_lowering() {
  return lowering(positional::kind_of(positional::Flavour::kCausal),
                  [](const LoweringInput& /*input*/) {
                    return Setup{.config = with_backend(shifting({}), false)};
                  });
}

Lowering swa_lowering() {
  return lowering(positional::kind_of(positional::Flavour::kSwa), [](const LoweringInput& input) {
    return Setup{.config = with_backend(shifting({{"window", Sizes(input).window()}}), true)};
  });
}

Lowering swa_mem_lowering() {
  return lowering(
      positional::kind_of(positional::Flavour::kSwaMem), [](const LoweringInput& input) {
        const Sizes sizes(input);
        return Setup{
            .config = with_backend(
                shifting({{"window", sizes.window()}, {"memory", sizes.memory()}}), false)};
      });
}

Lowering chunked_lowering() {
  return lowering(
      positional::kind_of(positional::Flavour::kChunked), [](const LoweringInput& input) {
        return Setup{.config = with_backend(shifting({{"chunk", Sizes(input).chunk()}}), true)};
      });
}

Lowering wrapper_lowering() {
  Lowering made = lowering(positional::wrapper_kind(), [](const LoweringInput& input) {
    const boost::json::array caches{shifting({{"cache", "swa"}, {"window", Sizes(input).window()}}),
                                    shifting({{"cache", "causal"}})};
    return Setup{.config = with_backend({{"caches", caches}}, false)};
  });
  made.lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
    return std::make_unique<PositionalOps>(input, 2);
  };
  return made;
}

}  // namespace kvo::traces
