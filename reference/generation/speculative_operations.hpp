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

KVO_RECORD_WITH((static constexpr std::array<std::string_view, 4> kComparedIfShown{
                    "draft_forwards", "target_forwards", "decode_calls", "tokens"};),
                SpeculativeGenerateReturns,
                (std::optional<std::string>, text, "text behind the prompt; absent: an error"),
                (Forwards, draft_forwards, "each forward of the draft, in order"),
                (Forwards, target_forwards, "each forward of the target, in order"),
                (std::optional<std::int64_t>, decode_calls,
                 "times that ids were turned into text, failed ones included"),
                (std::optional<Ids>, tokens,
                 "ids that were turned into text last; empty: none were"))
KVO_OPERATION(SpeculativeGenerate, generate,
              "The target's text behind a prompt, by guesses of the draft (ZF-100 to ZF-109).",
              SpeculativeGenerateReturns, (std::string, prompt, "text"),
              (SamplingConfig, sampling, "when it ends; documented: greedy"),
              (std::optional<std::int64_t>, cancel_after_forward,
               "forward behind which the call is cancelled; 0: at once"),
              (std::optional<std::int64_t>, cancel_after_target_forward,
               "the same, counting those of the target only"))
KVO_RECORD(VerifyReturns, (Ids, accepted, "draft tokens that are accepted"),
           (std::int64_t, bonus, "the target's token behind them; -1: none", -1))
KVO_OPERATION_WITH((static constexpr std::array<std::string_view, 3> kAxes{"batch", "position",
                                                                           "token"};),
                   Verify, verify, "What becomes of the tokens of a draft (ZF-104).", VerifyReturns,
                   (Nullable<Tensor>, logits, "the target's, [1, rows, vocab]; null: none"),
                   (Nullable<Ids>, draft, "tokens of the draft"),
                   (Nullable<Ids>, stop, "ids that end a text; null: none"))
KVO_RECORD(Tracked, (std::int64_t, current, "draft length in tokens"),
           (double, rate, "accepted of the outcomes held; 1 without any", 1))
KVO_OPERATION(NewTracker, new_, "Makes a tracker without outcomes (ZF-110).", Tracked,
              (std::int64_t, initial, "draft length at first"),
              (std::int64_t, min, "least draft length"), (std::int64_t, max, "most draft length"),
              (std::int64_t, window, "outcomes that are held"))
KVO_OPERATION(RecordOutcomes, record, "Counts the outcomes of a round (ZF-111).", Tracked,
              (std::int64_t, accepted, "draft tokens that were right"),
              (std::int64_t, proposed, "draft tokens"))

#define KVO_SPECULATIVE_OPERATIONS generation::SpeculativeGenerate, generation::Verify
#define KVO_TRACKER_OPERATIONS generation::NewTracker, generation::RecordOutcomes
using SpeculativeOps = boost::mp11::mp_list<New, KVO_SPECULATIVE_OPERATIONS>;
using TrackerOps = boost::mp11::mp_list<KVO_TRACKER_OPERATIONS>;

}  // namespace kvo::generation

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_SPECULATIVE_OPERATIONS)
KVO_DECLARE_OPERATIONS(KVO_TRACKER_OPERATIONS)
}  // namespace kvo
