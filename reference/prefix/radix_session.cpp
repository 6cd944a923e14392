// How operations of kind `prefix.radix` reach a cache: one overload an operation.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"
#include "reference/prefix/keys_session.hpp"
#include "reference/prefix/radix_operations.hpp"

namespace kvo::prefix {
namespace {

// Most slots that one call may ask for, so that its answer is bounded.
constexpr std::int64_t kMostSlotsAtOnce = std::int64_t{1} << 26U;

Numbers list_of(NumbersView numbers) {
  return {numbers.begin(), numbers.end()};
}

// Lists of one length, with 0 <= prefix <= length and a last slot from -1 on.
Status check_growth(NumbersView prefixes, NumbersView lengths, NumbersView last) {
  if (prefixes.size() != lengths.size() || lengths.size() != last.size())
    return fail(Code::kPrecondition, "lists of several lengths");
  std::int64_t grown = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (Status sound = check_count("prefix_lens", prefixes[i]); !sound) return sound;
    if (Status sound = check_count("seq_lens", lengths[i]); !sound) return sound;
    if (Status sound = check_count("last_slots", last[i] + 1); !sound) return sound;
    if (lengths[i] < prefixes[i]) return fail(Code::kPrecondition, "seq_lens: below prefix_lens");
    grown += lengths[i] - prefixes[i];
    if (grown > kMostSlotsAtOnce) return fail(Code::kPrecondition, "seq_lens: too many slots");
  }
  return {};
}

template <class Op>
Namespace space_of(const Op& op) {
  Namespace space{.extra = std::nullopt, .salt = op.salt ? *op.salt : std::string_view()};
  if (op.extra) space.extra = *op.extra;
  return space;
}

class RadixSession final : public DispatchSession<RadixSession, RadixOps> {
 public:
  explicit RadixSession(const RadixOptions& options) : options_(options) {}

  /// Errors  as of MakeRadix.
  Status open(const MakeRadix& make, QuirkSet<Quirk> quirks) {
    auto made = make(options_, quirks);
    if (!made) return made.error();
    cache_ = std::move(*made);
    return {};
  }

  Result<FoundPrefix> operator()(const MatchTokens& op) {
    const auto what = lookup(op);
    if (!what) return what.error();
    return shown(probe()([&] { return cache_->match(*what); }));
  }
  Status operator()(const TouchTokens& op) {
    const auto what = lookup(op);
    if (!what) return what.error();
    return probe()([&] { return cache_->touch(*what); });
  }
  Result<Insert::Returns> operator()(const Insert& op) {
    const std::int64_t inserted = op.inserted.value_or(0);
    if (const Status sound = check_count("inserted", inserted); !sound) return sound.error();
    const std::int64_t priority = op.priority.value_or(0);
    if (const Status sound = check_priority(priority); !sound) return sound.error();
    Insertion what{.tokens = op.tokens,
                   .slots = std::nullopt,
                   .space = space_of(op),
                   .priority = priority,
                   .inserted = inserted};
    if (op.slots) what.slots = *op.slots;
    const auto done = probe()([&] { return cache_->insert(what); });
    if (!done) return done.error();
    return Insert::Returns{done->length, done->node};
  }
  Result<EvictUnits::Returns> operator()(const EvictUnits& op) {
    const auto gone = probe()([&] { return cache_->evict(op.tokens); });
    if (!gone) return gone.error();
    return EvictUnits::Returns{gone->tokens, list_of(gone->nodes)};
  }
  Result<Delta> operator()(const Lock& op) {
    return shown(probe()([&] { return cache_->lock(op.node); }));
  }
  Result<Delta> operator()(const Unlock& op) {
    return shown(probe()([&] { return cache_->unlock(op.node); }));
  }
  Status operator()(const ResetTree& /*op*/) {
    return probe()([&] { return cache_->reset(); });
  }
  Result<SlotsOnly> operator()(const AllSlots& /*op*/) {
    return shown(probe()([&] { return cache_->all_slots(); }));
  }

  Result<SlotsOnly> operator()(const AllocSlots& op) {
    if (const Status sound = check_count("count", op.count); !sound) return sound.error();
    return shown(probe()([&] { return cache_->alloc(op.count); }));
  }
  Result<SlotsOnly> operator()(const AllocExtend& op) {
    if (const Status sound = check_growth(op.prefix_lens, op.seq_lens, op.last_slots); !sound)
      return sound.error();
    return shown(
        probe()([&] { return cache_->alloc_extend(op.prefix_lens, op.seq_lens, op.last_slots); }));
  }
  Result<SlotsOnly> operator()(const AllocDecode& op) {
    Numbers prefixes;
    for (const std::int64_t length : op.seq_lens) prefixes.push_back(std::max(length, kLeast) - 1);
    if (const Status sound = check_growth(prefixes, op.seq_lens, op.last_slots); !sound)
      return sound.error();
    return shown(probe()([&] { return cache_->alloc_decode(op.seq_lens, op.last_slots); }));
  }
  Status operator()(const FreeSlots& op) {
    if (Status sound = check_slots(op.slots); !sound) return sound;
    return probe()([&] { return cache_->free(op.slots); });
  }
  Status operator()(const FreeSegment& op) {
    if (Status sound = check_slots(op.slots); !sound) return sound;
    if (Status sound = check_count("start", op.start); !sound) return sound;
    return probe()([&] { return cache_->free_segment(op.slots, op.start); });
  }
  Status operator()(const GroupBegin& /*op*/) {
    return probe()([&] { return cache_->group_begin(); });
  }
  Status operator()(const GroupEnd& /*op*/) {
    return probe()([&] { return cache_->group_end(); });
  }
  Status operator()(const ClearSlots& /*op*/) {
    return probe()([&] { return cache_->clear(); });
  }
  Result<NodesOnly> operator()(const MakeRoom& op) {
    if (const Status sound = check_count("tokens", op.tokens); !sound) return sound.error();
    const auto nodes = probe()([&] { return cache_->make_room(op.tokens); });
    if (!nodes) return nodes.error();
    return NodesOnly{list_of(*nodes)};
  }

  Status operator()(const FileRequest& op) {
    if (Status sound = check_request(op.request); !sound) return sound;
    const std::int64_t priority = op.priority.value_or(0);
    if (Status sound = check_priority(priority); !sound) return sound;
    const RadixRequest what{.tokens = op.tokens, .space = space_of(op), .priority = priority};
    return probe()([&] { return cache_->request(op.request, what); });
  }
  Result<FoundPrefix> operator()(const Admit& op) {
    if (const Status sound = check_request(op.request); !sound) return sound.error();
    return shown(probe()([&] { return cache_->admit(op.request); }));
  }
  Answer<Extend::Returns> operator()(const Extend& op) {
    if (const Status sound = check_request(op.request); !sound) return {.error = sound.error()};
    if (const Status sound = check_count("tokens", op.tokens); !sound)
      return {.error = sound.error()};
    const TokensView append = op.append ? TokensView(*op.append) : TokensView();
    const auto done = probe()([&] { return cache_->extend(op.request, op.tokens, append); });
    if (!done) return {.error = done.error()};
    Answer<Extend::Returns> answer{.returns = {.nodes = list_of(done->nodes)}};
    if (done->exhausted)
      answer.error = fail(Code::kExhausted);
    else
      answer.returns.slots = list_of(done->slots);
    return answer;
  }
  Result<Checkpoint::Returns> operator()(const Checkpoint& op) {
    if (const Status sound = check_request(op.request); !sound) return sound.error();
    const auto done = probe()([&] { return cache_->checkpoint(op.request); });
    if (!done) return done.error();
    return Checkpoint::Returns{done->node, done->protected_};
  }
  Status operator()(const Withdraw& op) {
    if (Status sound = check_request(op.request); !sound) return sound;
    return probe()([&] { return cache_->withdraw(op.request); });
  }
  Status operator()(const Finish& op) {
    if (Status sound = check_request(op.request); !sound) return sound;
    return probe()([&] { return cache_->finish(op.request, op.keep.value_or(true)); });
  }
  Result<ShowRow::Returns> operator()(const ShowRow& op) {
    if (const Status sound = check_request(op.request); !sound) return sound.error();
    const auto row = probe()([&] { return cache_->row(op.request); });
    if (!row) return row.error();
    return ShowRow::Returns{list_of(row->slots), row->protected_, row->inserted, row->node};
  }
  Result<TakeEvents::Returns> operator()(const TakeEvents& /*op*/) {
    const auto events = probe()([&] { return cache_->take_events(); });
    return TakeEvents::Returns{keys_.shown(events, options_.page_size)};
  }
  Result<ShowTree::Returns> operator()(const ShowTree& /*op*/) {
    RadixState state = probe()([&] { return cache_->state(); });
    ShowTree::Returns returns{.evictable = state.evictable,
                              .protected_ = state.protected_,
                              .total = state.total,
                              .available = state.available,
                              .free = std::move(state.free),
                              .staged = std::move(state.staged),
                              .nodes = {},
                              .leaves = std::move(state.leaves)};
    for (NodeState& node : state.nodes)
      returns.nodes.push_back({.node = node.node,
                               .parent = node.parent,
                               .tokens = std::move(node.tokens),
                               .slots = std::move(node.slots),
                               .lock = node.lock,
                               .hits = node.hits,
                               .priority = node.priority,
                               .extra = std::move(node.extra),
                               .salt = std::move(node.salt)});
    return returns;
  }

  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return cache_->broken_invariant();
  }

 private:
  static constexpr std::int64_t kLeast = 1;

  template <class Op>
  [[nodiscard]] static Result<RadixLookup> lookup(const Op& op) {
    TokensView tokens = op.tokens;
    if (op.limit) {
      if (const Status sound = check_count("limit", *op.limit); !sound) return sound.error();
      tokens = tokens.first(std::min(tokens.size(), static_cast<std::size_t>(*op.limit)));
    }
    return RadixLookup{.tokens = tokens, .space = space_of(op)};
  }
  [[nodiscard]] static Status check_slots(NumbersView slots) {
    return check_numbers("slots", slots, 0, kMostTokens);
  }
  [[nodiscard]] static Status check_priority(std::int64_t priority) {
    return check_numbers("priority", {&priority, 1}, -kMostTokens, kMostTokens);
  }
  [[nodiscard]] static Result<FoundPrefix> shown(const Result<RadixHit>& hit) {
    if (!hit) return hit.error();
    return FoundPrefix{hit->length, hit->node, list_of(hit->slots)};
  }
  [[nodiscard]] static Result<Delta> shown(const Result<std::int64_t>& delta) {
    if (!delta) return delta.error();
    return Delta{*delta};
  }
  [[nodiscard]] static Result<SlotsOnly> shown(const Result<NumbersView>& slots) {
    if (!slots) return slots.error();
    return SlotsOnly{list_of(*slots)};
  }

  RadixOptions options_;
  std::unique_ptr<RadixCache> cache_;
  KeyNumbers keys_;
};

Error not_offered(const char* what) {
  return fail(Code::kNotSupported, what);
}

}  // namespace

Result<RadixOptions> options_of(const RadixConfig& config, QuirkSet<Quirk> quirks) {
  if (config.policy == Policy::kTlru && !quirks.has(Quirk::kTlruAborts))
    return not_offered("policy: tlru");
  if (config.page_size < 1 || config.page_size > kMostTokens) return not_offered("page_size");
  if (!check_count("", config.slots) || config.slots / config.page_size > kMostUnits)
    return not_offered("slots");
  if (config.eagle && config.events) return not_offered("eagle with events");
  return RadixOptions{.policy = config.policy,
                      .slru_threshold = config.slru_threshold.value_or(2),
                      .page_size = config.page_size,
                      .slots = config.slots,
                      .pairs = config.eagle,
                      .disable = config.disable,
                      .events = config.events,
                      .need_sort = config.need_sort};
}

const CacheKind& radix_kind() {
  static constexpr auto kRows = rows_of(kQuirkRows, kRadixQuirks);
  static const CacheKind kKind{.contract = "prefix",
                               .cache = "radix",
                               .doc = "a tree of token runs over a pool of slots (SGLang)",
                               .operations = op_kinds(RadixOps()),
                               .config = &type_of<RadixConfig>(),
                               .quirks = kRows};
  return kKind;
}

Subject make_radix_subject(std::string variant, std::string doc, MakeRadix make) {
  return {.kind = &radix_kind(),
          .variant = std::move(variant),
          .doc = std::move(doc),
          .open = [make = std::move(make)](const Setup& setup) -> Result<std::unique_ptr<Session>> {
            const auto quirks = quirks_of<Quirk>(setup, kQuirkRows);
            if (!quirks) return quirks.error();
            const auto options = options_of(setup.config_as<RadixConfig>(), *quirks);
            if (!options) return options.error();
            auto session = std::make_unique<RadixSession>(*options);
            if (const Status made = session->open(make, *quirks); !made) return made.error();
            return std::unique_ptr<Session>(std::move(session));
          }};
}

}  // namespace kvo::prefix

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_PREFIX_RADIX_OPERATIONS)
}  // namespace kvo
