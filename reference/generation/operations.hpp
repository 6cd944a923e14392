// reference/generation/operations.hpp: the operations of contract `generation`, described.
//
// Text that is no UTF-8 is shown as logs can hold it: valid_utf8.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/describe/operation.hpp"
#include "reference/contract/subject/subject.hpp"
#include "reference/generation/generator.hpp"
#include "reference/generation/options.hpp"
#include "reference/sampling/sampler.hpp"

namespace kvo::generation {

/// A forward that an operation made.
KVO_RECORD(Forward, (Ids, tokens, "ids that were fed"),
           (std::int64_t, past, "positions that the cache held before"),
           (std::optional<bool>, error, "true: it failed; else absent"))

using Forwards = std::optional<std::vector<Forward>>;

/// A piece of text that a stream was sent.
KVO_RECORD(Event, (std::string, token, "text"), (bool, done, "whether it is the last one"))

/// How the work was done. Profile documented promises nothing of it and shows nothing.
#define KVO_EFFORT                                                    \
  (Forwards, forwards, "each forward of the operation, in order"),    \
      (std::optional<std::int64_t>, decode_calls,                     \
       "times that ids were turned into text, failed ones included"), \
      (std::optional<Ids>, tokens, "ids that were turned into text last; empty: none were")
inline constexpr std::array<std::string_view, 3> kEffort{"forwards", "decode_calls", "tokens"};

KVO_OPERATION(New, new_, "Makes the generator of the config (ZF-75, ZF-100).", Nothing)
KVO_RECORD_WITH((static constexpr auto kComparedIfShown = kEffort;), GenerateReturns,
                (std::optional<std::string>, text, "text after the prompt; absent: an error"),
                KVO_EFFORT)
KVO_OPERATION(Generate, generate, "The text after a prompt (ZF-77 to ZF-79).", GenerateReturns,
              (std::string, prompt, "text"),
              (SamplingConfig, sampling, "how tokens are chosen, and when it ends"),
              (std::optional<std::int64_t>, cancel_after_forward,
               "forward after which the call is cancelled; 0: at once"))
KVO_RECORD_WITH((static constexpr auto kComparedIfShown = kEffort;), GenerateStreamReturns,
                (std::vector<Event>, events, "what the stream was sent"), KVO_EFFORT)
KVO_OPERATION(GenerateStream, generate_stream,
              "The text after a prompt, piece by piece (ZF-83 to ZF-87).", GenerateStreamReturns,
              (std::string, prompt, "text"),
              (SamplingConfig, sampling, "how tokens are chosen, and when it ends"),
              (std::optional<std::int64_t>, cancel_after_forward,
               "forward after which the call is cancelled; 0: at once"),
              (std::optional<std::int64_t>, cancel_at_event,
               "event, from 0, at which the stream cancels the call"),
              (std::optional<std::int64_t>, fail_at_event,
               "event, from 0, at which the stream answers an error"))

/// How one request of a batch ended.
KVO_RECORD_WITH(
    (static constexpr std::array<std::string_view, 2> kComparedIfShown{"stage", "detail"};),
    BatchResult,
    (std::optional<std::string>, text, "text after the prompt; absent: an error, or a stream"),
    (std::optional<std::vector<Event>>, events, "what its stream was sent; absent: no stream"),
    (std::optional<std::string>, error, "code of the error; absent: none"),
    (std::optional<std::string>, stage, "where it failed, for people"),
    (std::optional<std::string>, detail, "more of the error, for people"))
KVO_RECORD_WITH((static constexpr auto kComparedIfShown = kEffort;), BatchReturns,
                (std::vector<BatchResult>, results, "how each request ended, in order"), KVO_EFFORT)
KVO_OPERATION(BatchGenerate, batch_generate, "Several requests, one after the other (ZF-88).",
              BatchReturns, (std::vector<Request>, requests, "prompts with their sampling"))
KVO_OPERATION(BatchGenerateStream, batch_generate_stream,
              "Several requests, a stream each (ZF-89).", BatchReturns,
              (std::vector<Request>, requests, "prompts with their sampling"),
              (std::int64_t, streams, "streams, which should be as many"))
KVO_RECORD(PoolAvailableReturns,
           (Nullable<std::int64_t>, n, "blocks that are free; null: there is no pool"),
           (std::optional<std::int64_t>, cap, "blocks of the pool"))
KVO_OPERATION(PoolAvailable, pool_available, "Free blocks of the generator's pool (ZF-20, ZF-76).",
              PoolAvailableReturns)
KVO_RECORD(PoolDrainReturns, (std::int64_t, taken, "blocks that were taken"))
KVO_OPERATION(PoolDrain, pool_drain,
              "Takes and keeps blocks of the generator's pool until so many are free (ZF-23).",
              PoolDrainReturns, (std::int64_t, leave, "blocks to leave free"))

#define KVO_GENERATION_OPERATIONS                                                               \
  generation::New, generation::Generate, generation::GenerateStream, generation::BatchGenerate, \
      generation::BatchGenerateStream, generation::PoolAvailable, generation::PoolDrain
using GeneratorOps = boost::mp11::mp_list<KVO_GENERATION_OPERATIONS>;

[[nodiscard]] const CacheKind& contiguous_kind();
[[nodiscard]] const CacheKind& paged_kind();
[[nodiscard]] const CacheKind& tensor_kind();
[[nodiscard]] const CacheKind& speculative_kind();
[[nodiscard]] const CacheKind& adaptive_kind();

/// The caches that generators have inside, one for each way in which a config may ask for one
/// (ZF-76). `contiguous` may be of any kind that can stand in its place.
struct InnerSubjects {
  Subject contiguous;  ///< of provider.contiguous, or of another kind, which then takes no more
                       ///< positions than the generator's
  Subject paged;       ///< of provider.paged
  Subject tensor;      ///< of provider.tensor
};
/// The references of contract `provider`.
[[nodiscard]] InnerSubjects reference_caches();

/// A subject of `kind`, one of the first four, over such caches.
[[nodiscard]] Subject make_generator_subject(const CacheKind& kind, const std::string& variant,
                                             const std::string& doc,
                                             const sampling::MakeSampler& make_sampler,
                                             const InnerSubjects& inner);

[[nodiscard]] Subject make_tracker_subject(const std::string& variant, const std::string& doc);

}  // namespace kvo::generation

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_GENERATION_OPERATIONS)
}  // namespace kvo
