// The kinds of contract `events`. A session has the publishers and the channel; what it hands to
// the follower are events and numbers, never what an engine holds.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"
#include "reference/events/operations.hpp"
#include "reference/events/publisher.hpp"
#include "reference/events/weaknesses.hpp"

namespace kvo::events {
namespace {

class EventsSession final : public DispatchSession<EventsSession, Ops> {
 public:
  EventsSession(Form form, const Config& config, std::unique_ptr<Follower> follower)
      : takes_wire_events_(form >= Form::kDynamo),
        config_(config),
        follower_(std::move(follower)) {}

  template <class T>
  [[nodiscard]] Result<Follower*> cache_of(const T& /*op*/) const {
    return follower_.get();
  }
  template <OneOf<Store, Remove, Clear> T>
  Status operator()(const T& op) {
    const Event event = event_of(op);
    if (const Status fits = check(event); !fits) return fits;
    return probe()([&] { return follower_->apply(engine_of(op), event); });
  }
  Result<QueryReturns> operator()(const Query& op) {
    const Prompt prompt = prompt_of(op);
    return QueryReturns{probe()([&] { return follower_->query(prompt); })};
  }
  Result<PublishReturns> operator()(const Publish& op) {
    for (const Event& event : op.events)
      if (const Status fits = check(event); !fits) return fits.error();
    return PublishReturns{publishers_[engine_of(op)].publish(op.events)};
  }
  Status operator()(const Restart& op) {
    publishers_[engine_of(op)] = Publisher();
    return {};
  }
  Result<Delivered> operator()(const Deliver& op) {
    const Publisher& publisher = publishers_[engine_of(op)];
    const Batch* const batch = publisher.batch(op.seq);
    if (batch == nullptr) return fail(Code::kOutOfRange, "seq: " + std::to_string(op.seq));
    return probe()([&] {
      return follower_->deliver(engine_of(op), op.seq, *batch, [&](std::int64_t from) {
        return config_.replay ? publisher.replay(from, config_.buffer) : Replayed();
      });
    });
  }

 private:
  // What a follower without a wire is never given (section 7 of the rules).
  [[nodiscard]] Status check(const Event& event) const {
    if (event.kind != EventKind::kStored) return {};
    const std::int64_t size = event.block_size.value_or(config_.block_size);
    if (takes_wire_events_) return {};
    if (size != config_.block_size) return fail(Code::kPrecondition, "block_size: another");
    if (std::ssize(event.tokens) != size * std::ssize(event.keys))
      return fail(Code::kPrecondition, "tokens: not block_size for each key");
    return {};
  }

  bool takes_wire_events_;
  Config config_;
  std::unique_ptr<Follower> follower_;
  std::map<Engine, Publisher> publishers_;
};

struct KindRow {
  std::string_view cache;
  std::string_view doc;
  bool at_once;  ///< whether it takes events at once
  bool stream;   ///< whether it takes batches
  bool sized;
  bool handover;
  std::span<const QuirkInfo> quirks;
};
template <const auto& kOfKind>
std::span<const QuirkInfo> infos() {
  static constexpr auto kInfos = rows_of(kQuirkRows, kOfKind);
  return kInfos;
}
const std::array<KindRow, kForms.size()>& kind_rows() {
  static const std::array<KindRow, kForms.size()> kRows{
      {{"chain", "a map a worker from keys to places (kv-index of the SMG gateway)", true, false,
        true, false, infos<kChainQuirks>()},
       {"radix", "a tree of runs with the engines that cover them (Dynamo)", true, false, true,
        true, infos<kRadixQuirks>()},
       {"crtc", "the same tree for several threads (Dynamo)", true, false, true, true,
        infos<kCrtcQuirks>()},
       {"positional", "a map from positions and contents, which is probed (Dynamo)", true, false,
        true, true, infos<kPositionalQuirks>()},
       {"dynamo", "a standalone indexer: decoder, cursor, tree, lower tiers (Dynamo)", false, true,
        false, false, infos<kDynamoQuirks>()},
       {"llmd", "an index from blocks to pods with counts (llm-d-router)", true, true, true, false,
        infos<kLlmdQuirks>()},
       {"infera", "a set of hashes a worker (Infera)", true, true, true, false,
        infos<kInferaQuirks>()}}};
  return kRows;
}

CacheKind make_kind(Form form) {
  const KindRow& row = kind_rows().at(static_cast<std::size_t>(form));
  CacheKind kind{.contract = "events",
                 .cache = row.cache,
                 .doc = row.doc,
                 .operations = {},
                 .config = &type_of<Config>(),
                 .quirks = row.quirks,
                 .conventions = weaknesses_of(form)};
  const auto add = [&](bool has, std::initializer_list<const OpKind*> ops) {
    if (has) kind.operations.insert(kind.operations.end(), ops);
  };
  add(row.at_once, {&op_kind<Store>(), &op_kind<Remove>(), &op_kind<Clear>(), &op_kind<Leave>()});
  add(row.stream,
      {&op_kind<Publish>(), &op_kind<Deliver>(), &op_kind<Restart>(), &op_kind<Resubscribe>()});
  add(true, {&op_kind<Query>()});
  add(row.sized, {&op_kind<Size>()});
  add(row.handover, {&op_kind<Handover>()});
  return kind;
}

}  // namespace

boost::json::value TruthNote::to_json() const {
  return nullptr;
}

bool TruthNote::from_json(const boost::json::value& in) {
  rows.reset();
  if (in.is_null()) return true;
  if (!in.is_array()) return false;
  rows.emplace();
  for (const boost::json::value& one : in.get_array()) {
    const auto number = [&](const char* name, std::int64_t absent) {
      const boost::json::value* const member =
          one.is_object() ? one.get_object().if_contains(name) : nullptr;
      return member != nullptr && member->is_int64() ? member->get_int64() : absent;
    };
    const Row row{{number("worker", -1), number("rank", 0)}, number("blocks", -1)};
    if (row.engine.worker < 0 || row.blocks < 0) return false;
    rows->push_back(row);
  }
  return true;
}

Event event_of(const Store& op) {
  return {.kind = EventKind::kStored,
          .keys = op.keys,
          .parent = op.parent,
          .tokens = op.tokens,
          .block_size = op.block_size,
          .lora = op.lora,
          .salt = op.salt,
          .medium = op.medium,
          .group = op.group,
          .spec = op.spec};
}
Event event_of(const Remove& op) {
  return {.kind = EventKind::kRemoved, .keys = op.keys, .medium = op.medium, .group = op.group};
}
Event event_of(const Clear& /*op*/) {
  return {.kind = EventKind::kCleared};
}
Prompt prompt_of(const Query& op) {
  return {op.tokens, op.lora.value_or(""), op.salt.value_or("")};
}

Result<Config> checked(const Config& config) {
  for (const auto& [name, size] :
       {std::pair("block_size", config.block_size), std::pair("jump", config.jump),
        std::pair("buffer", config.buffer), std::pair("pods_per_key", config.pods_per_key),
        std::pair("size", config.size)})
    if (size < 1) return fail(Code::kNotSupported, std::string(name) + ": at least 1");
  return config;
}

std::span<const QuirkInfo> quirks_of_kind(Form form) {
  return kind_rows().at(static_cast<std::size_t>(form)).quirks;
}

const CacheKind& kind_of(Form form) {
  static const std::vector<CacheKind> kKinds = [] {
    std::vector<CacheKind> kinds;
    for (const Form each : kForms) kinds.push_back(make_kind(each));
    return kinds;
  }();
  return kKinds.at(static_cast<std::size_t>(form));
}

Form form_of(const CacheKind& kind) {
  for (const Form form : kForms)
    if (&kind_of(form) == &kind) return form;
  KVO_CHECK(false);
  return Form::kChain;
}

// Followers change several maps in turn and promise nothing after a failed allocation.
Subject make_subject(Form form, std::string variant, std::string doc, MakeFollower make) {
  Subject made = subject_of<Quirk>(
      kind_of(form), std::move(variant), std::move(doc),
      [form, make = std::move(make)](const Setup& setup,
                                     QuirkSet<Quirk> quirks) -> Result<std::unique_ptr<Session>> {
        const auto config = checked(setup.config_as<Config>());
        if (!config) return config.error();
        return std::unique_ptr<Session>(
            std::make_unique<EventsSession>(form, *config, make(form, *config, quirks)));
      },
      kQuirkRows);
  made.survives_failed_allocation = false;
  return made;
}

}  // namespace kvo::events

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_EVENTS_OPERATIONS)
}  // namespace kvo
