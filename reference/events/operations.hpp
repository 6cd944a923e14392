// reference/events/operations.hpp: the operations of contract `events`.
//
// A follower without a stream takes events at once (stored, removed, cleared). With one, engines
// publish batches, and a case says which of them are delivered, in which order and how often.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <boost/json/value.hpp>

#include "reference/contract/describe/operation.hpp"
#include "reference/contract/subject/subject.hpp"
#include "reference/events/cache.hpp"

namespace kvo::events {

KVO_OPERATION(Store, stored, "Blocks of a run of one sequence are in the cache now (EV-10).",
              Nothing, (WorkerNumber, worker), (RankNumber, rank, "its rank", 0, may_be_absent),
              (Keys, keys, "the blocks"),
              (std::optional<Key>, parent, "the block before the run; absent: the start"),
              (TokenList, tokens, "block_size for each key"), (BlockSize, block_size, "", 1),
              (std::optional<std::string>, lora, "adapter"),
              (std::optional<std::string>, salt, "namespace within the adapter"),
              (std::optional<std::string>, medium, "where the copy is; absent: on the device"),
              (GroupNumber, group),
              (std::optional<std::string>, spec, "what the layers of the group attend to"))
KVO_OPERATION(Remove, removed, "A copy of each block is gone (EV-11).", Nothing,
              (WorkerNumber, worker), (RankNumber, rank, "its rank", 0, may_be_absent),
              (Keys, keys, "the blocks"),
              (std::optional<std::string>, medium, "where the copy was; absent: on the device"),
              (GroupNumber, group))
KVO_OPERATION(Clear, cleared, "The cache of the engine is empty (EV-12).", Nothing,
              (WorkerNumber, worker), (RankNumber, rank, "its rank", 0, may_be_absent))
KVO_OPERATION(Leave, leave, "The router lost a worker, or a rank (EV-30).", Nothing,
              (WorkerNumber, worker), (Maybe<RankNumber>, rank, "its rank; absent: all"))
KVO_OPERATION(Resubscribe, resubscribe, "The router drops a worker and takes it again (EV-39).",
              Nothing, (WorkerNumber, worker), (Maybe<RankNumber>, rank, "its rank; absent: all"))
KVO_OPERATION(Restart, restart, "The engine starts again: empty, numbering from 0 (EV-23).",
              Nothing, (WorkerNumber, worker), (RankNumber, rank, "its rank", 0, may_be_absent))

/// What engines hold, as recorders noted it (EV-4). It is read from logs and never written: no
/// follower in another program gets it, and a shortened script has no stale one. Two of them are
/// equal: it is no argument.
struct TruthNote {
  struct Row {
    Engine engine;
    std::int64_t blocks = 0;
  };
  std::optional<std::vector<Row>> rows = std::nullopt;

  [[nodiscard]] boost::json::value to_json() const;  ///< null
  [[nodiscard]] bool from_json(const boost::json::value& in);
  friend bool operator==(const TruthNote& /*a*/, const TruthNote& /*b*/) { return true; }
};
KVO_RECORD(QueryReturns, (Matches, matches, "who holds at least the first block, sorted"))
KVO_OPERATION(Query, query, "How many leading blocks of a prompt each engine holds (EV-31).",
              QueryReturns, (TokenList, tokens, "the prompt"),
              (std::optional<std::string>, lora, "adapter"),
              (std::optional<std::string>, salt, "namespace within the adapter"),
              (TruthNote, truth, "a note of the recorder; no follower gets it", TruthNote(),
               may_be_absent))
KVO_RECORD(SizeReturns, (std::int64_t, blocks, "blocks by engine, or by worker"))
KVO_OPERATION(Size, size, "How much the index holds (EV-44).", SizeReturns)
KVO_RECORD(HandoverReturns, (std::int64_t, failed, "events that the new index refused"))
KVO_OPERATION(Handover, handover, "A new index is fed with what the old one dumps (EV-37).",
              HandoverReturns)
KVO_RECORD(PublishReturns, (std::int64_t, seq, "number of the batch"))
KVO_OPERATION(Publish, publish, "The engine publishes a batch. No follower gets it yet (EV-20).",
              PublishReturns, (WorkerNumber, worker),
              (RankNumber, rank, "its rank", 0, may_be_absent), (Batch, events, "in order"))
KVO_OPERATION(Deliver, deliver, "The follower gets a batch (EV-24).", Delivered,
              (WorkerNumber, worker), (RankNumber, rank, "its rank", 0, may_be_absent),
              (std::int64_t, seq, "number of the batch"))

#define KVO_EVENTS_OPERATIONS                                                          \
  events::Store, events::Remove, events::Clear, events::Leave, events::Resubscribe,    \
      events::Restart, events::Query, events::Size, events::Handover, events::Publish, \
      events::Deliver
using Ops = boost::mp11::mp_list<KVO_EVENTS_OPERATIONS>;

/// The event of an operation. @{
[[nodiscard]] Event event_of(const Store& op);
[[nodiscard]] Event event_of(const Remove& op);
[[nodiscard]] Event event_of(const Clear& op);
/// @}
template <class T>
[[nodiscard]] Engine engine_of(const T& op) {
  return {op.worker, op.rank};
}
[[nodiscard]] Prompt prompt_of(const Query& op);

/// Those rows of kQuirkRows that concern a kind.
[[nodiscard]] std::span<const QuirkInfo> quirks_of_kind(Form form);
/// The kinds of this contract, in the order of Form.
[[nodiscard]] const CacheKind& kind_of(Form form);
/// Requires  a kind of this contract.
[[nodiscard]] Form form_of(const CacheKind& kind);

/// The config, if a follower can be made with it. Errors  kNotSupported: a size below 1.
[[nodiscard]] Result<Config> checked(const Config& config);

/// A subject whose followers come from `make`.
[[nodiscard]] Subject make_subject(Form form, std::string variant, std::string doc,
                                   MakeFollower make);

}  // namespace kvo::events

namespace kvo {
KVO_DECLARE_OPERATIONS(KVO_EVENTS_OPERATIONS)
}  // namespace kvo
