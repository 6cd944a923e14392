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
struct Forward {
  Ids tokens;
  std::int64_t past = 0;
  std::optional<bool> error = std::nullopt;
};
KVO_DESCRIBE(Forward, (tokens, "ids that were fed"), (past, "positions that the cache held before"),
             (error, "true: it failed; else absent"))
using Forwards = std::optional<std::vector<Forward>>;

/// A piece of text that a stream was sent.
struct Event {
  std::string token;
  bool done = false;
};
KVO_DESCRIBE(Event, (token, "text"), (done, "whether it is the last one"))

/// How the work was done. Profile documented promises nothing of it, and shows nothing.
#define KVO_EFFORT_MEANINGS                                                         \
  (forwards, "each forward of the operation, in order"),                            \
      (decode_calls, "times that ids were turned into text, failed ones included"), \
      (tokens, "ids that were turned into text last; empty: none were")
inline constexpr std::array<std::string_view, 3> kEffort{"forwards", "decode_calls", "tokens"};

struct New {
  static constexpr std::string_view kName = "new";
  static constexpr std::string_view kDoc = "Makes the generator of the config (ZF-75, ZF-100).";
  using Returns = Nothing;
};
KVO_DESCRIBE(New)

struct Generate {
  static constexpr std::string_view kName = "generate";
  static constexpr std::string_view kDoc = "The text behind a prompt (ZF-77 to ZF-79).";
  struct Returns {
    static constexpr auto kComparedIfShown = kEffort;
    std::optional<std::string> text = std::nullopt;
    Forwards forwards = std::nullopt;
    std::optional<std::int64_t> decode_calls = std::nullopt;
    std::optional<Ids> tokens = std::nullopt;
  };
  std::string prompt;
  SamplingConfig sampling;
  std::optional<std::int64_t> cancel_after_forward = std::nullopt;
};
KVO_DESCRIBE(Generate, (prompt, "text"), (sampling, "how tokens are chosen, and when it ends"),
             (cancel_after_forward, "forward behind which the call is cancelled; 0: at once"))
KVO_DESCRIBE(Generate::Returns, (text, "text behind the prompt; absent: an error"),
             KVO_EFFORT_MEANINGS)

struct GenerateStream {
  static constexpr std::string_view kName = "generate_stream";
  static constexpr std::string_view kDoc =
      "The text behind a prompt, piece by piece (ZF-83 to ZF-87).";
  struct Returns {
    static constexpr auto kComparedIfShown = kEffort;
    std::vector<Event> events;
    Forwards forwards = std::nullopt;
    std::optional<std::int64_t> decode_calls = std::nullopt;
    std::optional<Ids> tokens = std::nullopt;
  };
  std::string prompt;
  SamplingConfig sampling;
  std::optional<std::int64_t> cancel_after_forward = std::nullopt;
  std::optional<std::int64_t> cancel_at_event = std::nullopt;
  std::optional<std::int64_t> fail_at_event = std::nullopt;
};
KVO_DESCRIBE(GenerateStream, (prompt, "text"),
             (sampling, "how tokens are chosen, and when it ends"),
             (cancel_after_forward, "forward behind which the call is cancelled; 0: at once"),
             (cancel_at_event, "event, from 0, at which the stream cancels the call"),
             (fail_at_event, "event, from 0, at which the stream answers an error"))
KVO_DESCRIBE(GenerateStream::Returns, (events, "what the stream was sent"), KVO_EFFORT_MEANINGS)

/// How one request of a batch ended.
struct BatchResult {
  static constexpr std::array<std::string_view, 2> kComparedIfShown{"stage", "detail"};
  std::optional<std::string> text = std::nullopt;
  std::optional<std::vector<Event>> events = std::nullopt;
  std::optional<std::string> error = std::nullopt;
  std::optional<std::string> stage = std::nullopt;
  std::optional<std::string> detail = std::nullopt;
};
KVO_DESCRIBE(BatchResult, (text, "text behind the prompt; absent: an error, or a stream"),
             (events, "what its stream was sent; absent: no stream"),
             (error, "code of the error; absent: none"), (stage, "where it failed, for people"),
             (detail, "more of the error, for people"))

struct BatchReturns {
  static constexpr auto kComparedIfShown = kEffort;
  std::vector<BatchResult> results;
  Forwards forwards = std::nullopt;
  std::optional<std::int64_t> decode_calls = std::nullopt;
  std::optional<Ids> tokens = std::nullopt;
};
KVO_DESCRIBE(BatchReturns, (results, "how each request ended, in order"), KVO_EFFORT_MEANINGS)

struct BatchGenerate {
  static constexpr std::string_view kName = "batch_generate";
  static constexpr std::string_view kDoc = "Several requests, one after the other (ZF-88).";
  using Returns = BatchReturns;
  std::vector<Request> requests;
};
KVO_DESCRIBE(BatchGenerate, (requests, "prompts with their sampling"))

struct BatchGenerateStream {
  static constexpr std::string_view kName = "batch_generate_stream";
  static constexpr std::string_view kDoc = "Several requests, a stream each (ZF-89).";
  using Returns = BatchReturns;
  std::vector<Request> requests;
  std::int64_t streams = 0;
};
KVO_DESCRIBE(BatchGenerateStream, (requests, "prompts with their sampling"),
             (streams, "streams, which should be as many"))

struct PoolAvailable {
  static constexpr std::string_view kName = "pool_available";
  static constexpr std::string_view kDoc = "Free blocks of the generator's pool (ZF-20, ZF-76).";
  struct Returns {
    Nullable<std::int64_t> n;
    std::optional<std::int64_t> cap = std::nullopt;
  };
};
KVO_DESCRIBE(PoolAvailable)
KVO_DESCRIBE(PoolAvailable::Returns, (n, "blocks that are free; null: there is no pool"),
             (cap, "blocks of the pool"))

struct PoolDrain {
  static constexpr std::string_view kName = "pool_drain";
  static constexpr std::string_view kDoc =
      "Takes and keeps blocks of the generator's pool until so many are free (ZF-23).";
  struct Returns {
    std::int64_t taken = 0;
  };
  std::int64_t leave = 0;
};
KVO_DESCRIBE(PoolDrain, (leave, "blocks to leave free"))
KVO_DESCRIBE(PoolDrain::Returns, (taken, "blocks that were taken"))

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

/// A subject of `kind`, one of the first three, over such caches.
[[nodiscard]] Subject make_generator_subject(const CacheKind& kind, const std::string& variant,
                                             const std::string& doc,
                                             const sampling::MakeSampler& make_sampler,
                                             const InnerSubjects& inner);
[[nodiscard]] Subject make_speculative_subject(const std::string& variant, const std::string& doc,
                                               const sampling::MakeSampler& make_sampler,
                                               const InnerSubjects& inner);

[[nodiscard]] Subject make_tracker_subject(const std::string& variant, const std::string& doc);

}  // namespace kvo::generation

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_GENERATION_OPERATIONS)
}  // namespace kvo
