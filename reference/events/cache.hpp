// reference/events/cache.hpp: the contract `events`: indexes that follow the prefix caches of
// engines by what these announce.
//
// Words    engine     one prefix cache with its publisher: a rank of a worker (EV-3).
//          block      block_size tokens of a prompt, counted from its start.
//          key        the name that engines give to a block and all that is before it (EV-2).
//          batch      the events that are published together, under one number (EV-20).
//          follower   an index: for a prompt it says how many leading blocks each engine holds.
//          pooled     of an answer: the ranks of a worker are one; it is that of the best rank.
// Source   rules EV-1 to EV-95.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "reference/contract/describe/describe.hpp"
#include "reference/contract/values/result.hpp"
#include "reference/events/quirks.hpp"

namespace kvo::events {

/// Numbers of workers, ranks and groups, and sizes beyond these are refused.
inline constexpr std::int64_t kMostNumbers = std::int64_t{1} << 20U;

struct WorkerNumber {
  using Value = std::int64_t;
  static constexpr Domain kDomain{
      .meaning = "number of the worker", .least = 0, .most = kMostNumbers};
};
struct RankNumber {
  using Value = std::int64_t;
  static constexpr Domain kDomain{.meaning = "its rank", .least = 0, .most = kMostNumbers};
};
struct TokenList {
  using Value = std::vector<std::int64_t>;
  static constexpr Domain kDomain{.least = 0, .most = (std::int64_t{1} << 32U) - 1};
};
struct BlockSize {
  using Value = std::int64_t;
  static constexpr Domain kDomain{.meaning = "tokens of a block", .least = 1, .most = kMostNumbers};
};
struct GroupNumber {
  using Value = std::optional<std::int64_t>;
  static constexpr Domain kDomain{
      .meaning = "group of layers; absent: there is one", .least = 0, .most = kMostNumbers};
};

using Key = std::int64_t;
using Keys = std::vector<Key>;

/// One prefix cache with its publisher.
struct Engine {
  std::int64_t worker = 0;
  std::int64_t rank = 0;
  friend auto operator<=>(const Engine&, const Engine&) = default;
};

enum class EventKind : std::uint8_t { kStored, kRemoved, kCleared };
BOOST_DESCRIBE_ENUM(EventKind, kStored, kRemoved, kCleared)

/// What an engine announces (EV-10 to EV-12). The members of other kinds are as in a new one.
KVO_RECORD(Event, (EventKind, kind, "stored, removed or cleared"),
           (Keys, keys, "the blocks", Keys(), may_be_absent),
           (std::optional<Key>, parent, "of stored: the block before; absent: the start"),
           (TokenList, tokens, "of stored: block_size for each key", std::vector<std::int64_t>(),
            may_be_absent),
           (Maybe<BlockSize>, block_size), (std::optional<std::string>, lora, "adapter"),
           (std::optional<std::string>, salt, "namespace within the adapter"),
           (std::optional<std::string>, medium, "where the copy is; absent: on the device (EV-7)"),
           (GroupNumber, group),
           (std::optional<std::string>, spec, "what its layers attend to (EV-6)"))

using Batch = std::vector<Event>;

/// What is looked up.
struct Prompt {
  std::vector<std::int64_t> tokens = {};
  std::string lora = {};  ///< empty: none; the same of salt
  std::string salt = {};
};

/// What a follower believes of one engine, or of one worker where it pools. Blocks of lower tiers
/// are those that the tier adds to the match before it. Members that are 0 are left out.
KVO_RECORD_WITH((static constexpr double kRecordedTolerance = 1e-12;), Match,
                (std::int64_t, worker, "number of the worker"),
                (std::optional<std::int64_t>, rank, "its rank, where answers are by rank"),
                (std::optional<std::int64_t>, blocks, "leading blocks on the device"),
                (std::optional<std::int64_t>, host, "further ones on the host"),
                (std::optional<std::int64_t>, disk, "further ones on a disk"),
                (std::optional<std::int64_t>, external, "further ones elsewhere"),
                (std::optional<double>, score, "blocks by the weight of their tier, if it differs"))
using Matches = std::vector<Match>;

/// What came of a batch.
KVO_RECORD(Delivered, (bool, applied, "whether the batch itself was applied"),
           (std::optional<std::int64_t>, asked, "first number of the replay that was asked for"),
           (std::optional<std::vector<std::int64_t>>, replayed, "numbers that were applied of it"),
           (std::optional<bool>, degraded,
            "whether batches are lost for good: the engine is empty"))

/// The batches from a number on that the publisher still has, with the first one's number (EV-22).
struct Replayed {
  std::int64_t first = 0;
  std::vector<const Batch*> batches = {};
};
using Replay = std::function<Replayed(std::int64_t from)>;

/// A follower. Numbers that it never heard of are no error. An event that failed has changed
/// nothing but what its kind says.
class Follower {
 public:
  virtual ~Follower() = default;

  /// One event, at once. Errors  kOther by the kind: unknown_parent, unknown_block, unknown_worker,
  ///         bad_sequence, rejected; kPrecondition: what is out of contract.
  [[nodiscard]] virtual Status apply(const Engine& engine, const Event& event) = 0;
  /// A batch of the stream. `replay` asks its publisher for earlier ones.
  [[nodiscard]] virtual Delivered deliver(const Engine& engine, std::int64_t /*seq*/,
                                          const Batch& batch, const Replay& /*replay*/) {
    for (const Event& event : batch) static_cast<void>(apply(engine, event).has_value());
    return {.applied = true};
  }
  /// The router lost the worker, or one rank (EV-30).
  virtual void leave(std::int64_t worker, std::optional<std::int64_t> rank) = 0;
  /// The router drops the worker and takes it again (EV-39).
  virtual void resubscribe(std::int64_t worker, std::optional<std::int64_t> rank) {
    leave(worker, rank);
  }
  /// Those that hold at least the first block, sorted.
  [[nodiscard]] virtual Matches query(const Prompt& prompt) = 0;
  /// How much it holds. Errors  kNotSupported.
  [[nodiscard]] virtual Result<std::int64_t> size() const { return fail(Code::kNotSupported); }
  /// A new index takes over what the old one dumps (EV-37). Returns  how many events it refused.
  /// Errors  kNotSupported.
  [[nodiscard]] virtual Result<std::int64_t> handover() { return fail(Code::kNotSupported); }
};

enum class Form : std::uint8_t { kChain, kRadix, kCrtc, kPositional, kDynamo, kLlmd, kInfera };
inline constexpr std::array kForms{Form::kChain,  Form::kRadix, Form::kCrtc,  Form::kPositional,
                                   Form::kDynamo, Form::kLlmd,  Form::kInfera};

enum class Search : std::uint8_t { kStrided, kBinary };
BOOST_DESCRIBE_ENUM(Search, kStrided, kBinary)
enum class Hashes : std::uint8_t { kOwn, kEngine };
BOOST_DESCRIBE_ENUM(Hashes, kOwn, kEngine)
enum class Dialect : std::uint8_t { kVllm, kSglang };
BOOST_DESCRIBE_ENUM(Dialect, kVllm, kSglang)
enum class Wire : std::uint8_t { kMap, kArray };
BOOST_DESCRIBE_ENUM(Wire, kMap, kArray)
enum class Identity : std::uint8_t { kTopic, kEndpoint };
BOOST_DESCRIBE_ENUM(Identity, kTopic, kEndpoint)

/// The config of a case.
KVO_RECORD(Config, (BlockSize, block_size, "tokens of a block of the follower", 1),
           (std::int64_t, jump, "positional: positions between probes", 32, may_be_absent),
           (Search, search, "positional: how positions are probed", Search::kStrided,
            may_be_absent),
           (Hashes, hashes, "positional: whether keys are the follower's own hashes", Hashes::kOwn,
            may_be_absent),
           (std::int64_t, buffer, "batches that a publisher keeps", 10000, may_be_absent),
           (bool, replay, "whether publishers answer requests for them", true, may_be_absent),
           (Dialect, adapter, "llmd: whose events it expects", Dialect::kVllm, may_be_absent),
           (Wire, wire, "how events are written (EV-25)", Wire::kMap, may_be_absent),
           (Identity, identity, "llmd: whether ranks of a worker are one pod", Identity::kTopic,
            may_be_absent),
           (bool, extra_keys, "llmd: whether blocks come with extra keys (EV-73)", false,
            may_be_absent),
           (bool, asks, "llmd: whether it requests replays, where each rank is a pod", false,
            may_be_absent),
           (std::int64_t, pods_per_key, "llmd: most entries of a block", 10, may_be_absent),
           (std::int64_t, size, "llmd: most blocks", 1000000, may_be_absent),
           (Dialect, engine, "infera: whose events it expects", Dialect::kVllm, may_be_absent),
           (bool, multiplexed, "infera: whether answers are by rank", false, may_be_absent))

/// Makes the follower of a kind. The config is checked.
using MakeFollower = std::function<std::unique_ptr<Follower>(Form form, const Config& config,
                                                             QuirkSet<Quirk> quirks)>;

}  // namespace kvo::events
