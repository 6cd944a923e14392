// reference/generation/speculative_operations.hpp: the operations of `generation.speculative` and
// `generation.adaptive`, described.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reference/generation/operations.hpp"

namespace kvo::generation {

struct SpeculativeGenerate {
  static constexpr std::string_view kName = "generate";
  static constexpr std::string_view kDoc =
      "The target's text behind a prompt, by guesses of the draft (ZF-100 to ZF-109).";
  struct Returns {
    static constexpr std::array<std::string_view, 4> kComparedIfShown{
        "draft_forwards", "target_forwards", "decode_calls", "tokens"};
    std::optional<std::string> text = std::nullopt;
    Forwards draft_forwards = std::nullopt;
    Forwards target_forwards = std::nullopt;
    std::optional<std::int64_t> decode_calls = std::nullopt;
    std::optional<Ids> tokens = std::nullopt;
  };
  std::string prompt;
  SamplingConfig sampling;
  std::optional<std::int64_t> cancel_after_forward = std::nullopt;
  std::optional<std::int64_t> cancel_after_target_forward = std::nullopt;
};
KVO_DESCRIBE(SpeculativeGenerate, (prompt, "text"), (sampling, "when it ends; documented: greedy"),
             (cancel_after_forward, "forward behind which the call is cancelled; 0: at once"),
             (cancel_after_target_forward, "the same, counting those of the target only"))
KVO_DESCRIBE(SpeculativeGenerate::Returns, (text, "text behind the prompt; absent: an error"),
             (draft_forwards, "each forward of the draft, in order"),
             (target_forwards, "each forward of the target, in order"),
             (decode_calls, "times that ids were turned into text, failed ones included"),
             (tokens, "ids that were turned into text last; empty: none were"))

struct Verify {
  static constexpr std::string_view kName = "verify";
  static constexpr std::string_view kDoc = "What becomes of the tokens of a draft (ZF-104).";
  struct Returns {
    Ids accepted;
    std::int64_t bonus = -1;
  };
  static constexpr std::array<std::string_view, 3> kAxes{"batch", "position", "token"};
  Nullable<Tensor> logits;
  Nullable<Ids> draft;
  Nullable<Ids> stop;
};
KVO_DESCRIBE(Verify, (logits, "the target's, [1, rows, vocab]; null: none"),
             (draft, "tokens of the draft"), (stop, "ids that end a text; null: none"))
KVO_DESCRIBE(Verify::Returns, (accepted, "draft tokens that are accepted"),
             (bonus, "the target's token behind them; -1: none"))

struct Tracked {
  std::int64_t current = 0;
  double rate = 1;
};
KVO_DESCRIBE(Tracked, (current, "draft length in tokens"),
             (rate, "accepted of the outcomes held; 1 without any"))

struct NewTracker {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc = "Makes a tracker without outcomes (ZF-110).";
  using Returns = Tracked;
  std::int64_t initial = 0;
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::int64_t window = 0;
};
KVO_DESCRIBE(NewTracker, (initial, "draft length at first"), (min, "least draft length"),
             (max, "most draft length"), (window, "outcomes that are held"))

struct RecordOutcomes {
  static constexpr std::string_view kName = "record";
  static constexpr std::string_view kDoc = "Counts the outcomes of a round (ZF-111).";
  using Returns = Tracked;
  std::int64_t accepted = 0;
  std::int64_t proposed = 0;
};
KVO_DESCRIBE(RecordOutcomes, (accepted, "draft tokens that were right"), (proposed, "draft tokens"))

#define KVO_SPECULATIVE_OPERATIONS generation::SpeculativeGenerate, generation::Verify
#define KVO_TRACKER_OPERATIONS generation::NewTracker, generation::RecordOutcomes
using SpeculativeOps = boost::mp11::mp_list<New, KVO_SPECULATIVE_OPERATIONS>;
using TrackerOps = boost::mp11::mp_list<KVO_TRACKER_OPERATIONS>;

}  // namespace kvo::generation

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_SPECULATIVE_OPERATIONS)
KVO_DECLARE_OPERATIONS(KVO_TRACKER_OPERATIONS)
}  // namespace kvo
