// The oracle of contract `events`: the law EV-90, EV-91 to EV-94. What engines announce says what
// they hold, by counting copies; an answer is right for an engine if it is that number of blocks.
//
// Judged   each answer for each engine, or worker where the follower pools: exact while all
//          batches came, in order, or a replay closed the gap; at most the truth after a gap that
//          no replay closes.
// Skipped  engines whose stream breaks what EV-15 asks of it; engines after a fault of the channel
//          that shows in nothing that was delivered, or after any of it where llm-d-router asks for
//          replays (EV-78); answers that a declared weakness explains (EV-95): the weaknesses of
//          the kind in profile original, none in documented.
// Unseen   errors, sizes, lower tiers.
#include "properties/events/oracle.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/events/ledger.hpp"
#include "reference/contract/describe/json.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"

namespace kvo::events {
namespace {

/// How far the follower can know an engine.
enum class Known : std::uint8_t {
  kExactly,
  kAtMost,    ///< batches are lost for good: it may forget
  kUnclear,   ///< it may have taken a repetition for a new life, until a replay
  kNotAtAll,  ///< a fault that nothing showed
};

/// One engine: its publisher, and its cache after the batches that the follower has.
struct Stream {
  EngineLedger cache = {};
  std::vector<Batch> batches = {};  ///< of this life
  std::int64_t cursor = -1;
  Known known = Known::kExactly;
  bool restarted = false;  ///< since the follower got a batch
  bool broken = false;     ///< whether it ever broke a guarantee
  bool disturbed = false;  ///< whether a router that asks ever got another batch than the next
};

/// What weaknesses have made of the blocks of an engine, or of a worker.
struct Flaws {
  std::set<PrefixId> lost = {};
  std::set<PrefixId> outlive = {};
  std::set<PrefixId> uncounted = {};  ///< held by a rank, but a clear of another took its counts
};

class FollowerLaw final : public Oracle {
 public:
  FollowerLaw(Form form, const Config& config, QuirkSet<Quirk> weaknesses)
      : form_(form), config_(config), weak_(weaknesses) {}

  [[nodiscard]] Words check(const Op& op, const Observation& seen) override {
    Words words;
    ++operations_;
    if (seen.unsupported || (seen.error && seen.error->code != Code::kOther)) return words;
    visit_op(Ops(), op, [&](const auto& operation) {
      if constexpr (requires { note(operation); })
        note(operation);
      else if constexpr (requires { judge(operation, seen.as<QueryReturns>()); })
        if (!seen.error) words = judge(operation, seen.as<QueryReturns>());
    });
    return words;
  }
  bool keep_lookups() override {
    keeps_lookups_ = true;
    return true;
  }
  [[nodiscard]] std::span<const Lookup> lookups() const override { return lookups_; }

 private:
  [[nodiscard]] bool is_tree() const {
    return form_ == Form::kRadix || form_ == Form::kCrtc || form_ == Form::kDynamo;
  }
  [[nodiscard]] bool pools() const { return !answers_by_rank(form_, config_); }
  [[nodiscard]] bool asks() const { return form_ == Form::kLlmd && llmd_asks(config_); }
  [[nodiscard]] Engine owner_of(const Engine& engine) const {
    return pools() ? Engine{engine.worker, 0} : engine;
  }

  // ---- Events ----

  template <OneOf<Store, Remove, Clear> T>
  void note(const T& op) {
    apply(engine_of(op), event_of(op));
  }
  void note(const Leave& op) {
    if (op.rank) streams_[{op.worker, *op.rank}];  // a follower that pools loses the others
    for (auto& [engine, stream] : streams_) {
      if (engine.worker != op.worker || (op.rank && engine.rank != *op.rank)) continue;
      Flaws& flaws = flaws_[owner_of(engine)];
      std::set<PrefixId> outlive = flaws.outlive;
      for (const auto& [prefix, copies] : stream.cache.copies()) outlive.insert(prefix);
      apply(engine, {.kind = EventKind::kCleared});
      stream.disturbed = stream.disturbed || asks();
      if (form_ == Form::kLlmd && weak_.has(Quirk::kLeaveKeepsCounts)) flaws.outlive = outlive;
    }
  }
  void note(const Publish& op) { streams_[engine_of(op)].batches.push_back(op.events); }
  void note(const Restart& op) {
    Stream& stream = streams_[engine_of(op)];
    stream.batches.clear();
    if (stream.cursor >= 0) stream.restarted = true;
  }
  void note(const Resubscribe& op) {
    if (op.rank) streams_[{op.worker, *op.rank}];
    for (auto& [engine, stream] : streams_)
      if (engine.worker == op.worker && (!op.rank || engine.rank == *op.rank)) {
        emptied(engine);
        stream = {.batches = std::move(stream.batches),
                  .broken = stream.broken,
                  .disturbed = stream.disturbed || asks()};
      }
  }
  void note(const Deliver& op) {
    const Engine engine = engine_of(op);
    Stream& stream = streams_[engine];
    if (op.seq < 0 || op.seq >= std::ssize(stream.batches)) return;
    const bool is_next = !stream.restarted && op.seq == stream.cursor + 1;
    if (asks() && (!is_next || !config_.replay)) stream.disturbed = true;
    if (weak_.has(Quirk::kNumbersUnread) && form_ >= Form::kLlmd)
      deliver_unread(engine, stream, op.seq);
    else
      deliver(engine, stream, op.seq);
  }

  // A follower that reads no numbers: what is not the next batch leaves it with what it cannot
  // know, until the engine is cleared.
  void deliver_unread(const Engine& engine, Stream& stream, std::int64_t seq) {
    const bool is_next = !stream.restarted && seq == stream.cursor + 1;
    stream.restarted = false;
    if (!is_next) stream.known = Known::kNotAtAll;
    advance(engine, stream, seq, seq);
  }

  void deliver(const Engine& engine, Stream& stream, std::int64_t seq) {
    const Batch& batch = stream.batches[static_cast<std::size_t>(seq)];
    const bool says_so = !batch.empty() && batch.front().kind == EventKind::kCleared;
    const bool new_life = seq <= stream.cursor && (says_so || (seq <= 1 && stream.cursor >= 2)) &&
                          !weak_.has(Quirk::kRestartUnseen);
    if (new_life) {
      stream.known = stream.restarted ? Known::kExactly : Known::kUnclear;
      stream.restarted = false;
      emptied(engine);
      stream.cursor = says_so ? seq - 1 : -1;
      stream.cache = EngineLedger();
    } else if (stream.restarted) {
      stream.known = Known::kNotAtAll;
      if (seq <= stream.cursor) return;
      stream.restarted = false;
    }
    if (seq <= stream.cursor) return;
    const std::int64_t missing = stream.cursor + 1;
    if (seq == missing) return advance(engine, stream, seq, seq);
    const std::int64_t last = std::ssize(stream.batches) - 1;
    const std::int64_t oldest = std::max<std::int64_t>(0, last + 1 - config_.buffer);
    const bool closes = config_.replay && missing >= oldest;
    if (closes && stream.known == Known::kUnclear) stream.known = Known::kExactly;
    if (!closes)
      stream.known = weak_.has(Quirk::kLateReplayTaken) ? Known::kNotAtAll : Known::kAtMost;
    if (config_.replay)
      advance(engine, stream, std::max(missing, oldest), last);
    else
      advance(engine, stream, seq, seq);
  }

  // The cache after the batches up to the cursor.
  void rebuild(const Engine& engine, Stream& stream) {
    const EngineLedger before = std::exchange(stream.cache, EngineLedger());
    std::map<PrefixId, const Event*> events;  // the last one of each prefix
    for (std::int64_t at = 0; at <= stream.cursor && at < std::ssize(stream.batches); ++at)
      for (const Event& event : stream.batches[static_cast<std::size_t>(at)])
        stream.cache.apply(contents_, config_.block_size, event,
                           [&](PrefixId prefix, std::int64_t /*had*/, std::int64_t /*has*/) {
                             events[prefix] = &event;
                           });
    for (const auto& [prefix, event] : events) {
      const std::pair block{owner_of(engine), prefix};
      if (before.holds(prefix) != stream.cache.holds(prefix) || !touched_.contains(block))
        touched_[block] = {operations_, text_of(engine, *event)};
    }
    stream.broken = stream.broken || !stream.cache.broken().empty();
  }

  // The follower applied these batches. After a clear it knows the engine again.
  void advance(const Engine& engine, Stream& stream, std::int64_t first, std::int64_t to) {
    const bool in_order = first == stream.cursor + 1 && stream.known == Known::kExactly;
    stream.cursor = to;
    bool cleared = false;
    for (std::int64_t at = first; at <= to; ++at)
      for (const Event& event : stream.batches[static_cast<std::size_t>(at)]) {
        cleared = cleared || event.kind == EventKind::kCleared;
        if (in_order) apply(engine, event);
      }
    if (!in_order) rebuild(engine, stream);
    if (!cleared) return;
    stream.known = Known::kExactly;
    if (!in_order) emptied(engine);
  }

  void apply(const Engine& engine, const Event& event) {
    if (event.lora || event.salt) has_spaces_ = true;
    if (event.salt) has_salts_ = true;
    if (event.group || event.medium) has_groups_or_tiers_ = true;
    if (event.kind == EventKind::kRemoved && tier_of(event) == Tier::kHost) leaves_host_ = true;
    const bool has_half_a_group = event.group.has_value() != event.spec.has_value();
    const bool has_group_of_sglang = event.group && config_.adapter == Dialect::kSglang;
    if (event.kind == EventKind::kStored &&
        (has_half_a_group || has_group_of_sglang || tier_of(event) != Tier::kDevice))
      has_other_rows_ = true;
    EngineLedger& cache = streams_[engine].cache;
    const Engine owner = owner_of(engine);
    Flaws& flaws = flaws_[owner];
    const std::optional<PrefixId> parent =
        event.parent ? cache.prefix_of(*event.parent) : std::nullopt;
    PrefixId before = parent.value_or(kStart);
    bool refused = parent && flaws.lost.contains(*parent) && form_ != Form::kLlmd;
    cache.apply(contents_, config_.block_size, event,
                [&](PrefixId prefix, std::int64_t had, std::int64_t has) {
                  touched_[{owner, prefix}] = {operations_, text_of(engine, event)};
                  if (has > had) {
                    above_[prefix] = std::exchange(before, prefix);
                    if (refused)
                      flaws.lost.insert(prefix);
                    else
                      flaws.lost.erase(prefix);
                    return;
                  }
                  removed(engine, flaws, prefix, has, event.kind == EventKind::kCleared);
                });
    note_broken(engine);
    for (const Key key : event.keys)
      if (const auto prefix = cache.prefix_of(key))
        has_own_names_ |= names_.try_emplace(*prefix, key).first->second != key;
    if (event.kind == EventKind::kCleared) emptied(engine);
  }

  // The follower holds nothing of the engine now. If it pools, it forgot the worker's other ranks.
  void emptied(const Engine& engine) {
    Flaws& flaws = flaws_[owner_of(engine)];
    if (!pools()) flaws = Flaws();
    flaws.outlive.clear();
    if (!pools() || !weak_.has(Quirk::kRanksShareBlocks)) return;
    for (const auto& [other, stream] : streams_)
      if (owner_of(other) == owner_of(engine) && other != engine)
        for (const auto& [prefix, copies] : stream.cache.copies()) {
          flaws.lost.insert(prefix);
          flaws.uncounted.insert(prefix);
        }
  }
  void note_broken(const Engine& engine) {
    Stream& stream = streams_[engine];
    stream.broken = stream.broken || !stream.cache.broken().empty();
  }
  // What declared weaknesses make of a copy that was freed.
  void removed(const Engine& engine, Flaws& flaws, PrefixId prefix, std::int64_t copies,
               bool cleared) {
    // Counts are by pod and key: ranks with names of their own do not share them.
    const bool counts =
        form_ == Form::kLlmd && !cleared && !has_own_names_ && !flaws.uncounted.contains(prefix);
    const bool other_rank = pools() && std::ranges::any_of(streams_, [&](const auto& entry) {
                              return entry.first.worker == engine.worker && entry.first != engine &&
                                     entry.second.cache.holds(prefix);
                            });
    const bool lost_copy = copies > 0 && weak_.has(Quirk::kOneRemovalEnds) && !counts;
    const bool lost_rank = other_rank && weak_.has(Quirk::kRanksShareBlocks) && !counts;
    if (lost_copy || lost_rank)
      flaws.lost.insert(prefix);
    else if (copies == 0 && !other_rank)
      flaws.lost.erase(prefix);
    if (copies == 0 && !other_rank) flaws.uncounted.erase(prefix);
    if (!is_tree() || cleared || !weak_.has(Quirk::kHoleEndsEdge)) return;
    if (copies > 0 && !lost_copy) return;
    for (const auto& [held, number] : streams_[engine].cache.copies())
      for (PrefixId up = above(held); up != kStart; up = above(up))
        if (up == prefix) flaws.lost.insert(held);
  }
  [[nodiscard]] PrefixId above(PrefixId prefix) const {
    const auto found = above_.find(prefix);
    return found != above_.end() ? found->second : kStart;
  }

  // ---- Answers ----

  [[nodiscard]] Words judge(const Query& op, const QueryReturns& returns) {
    const Prompt prompt = prompt_of(op);
    const auto prefixes =
        contents_.prefixes(prompt.tokens, config_.block_size, {prompt.lora, prompt.salt});
    if (op.lora || op.salt) has_spaces_ = true;
    if (op.salt) has_salts_ = true;
    std::map<Engine, std::int64_t> answers;
    for (const auto& [engine, stream] : streams_) answers[owner_of(engine)];
    for (const Match& match : returns.matches)
      answers[{match.worker, pools() ? 0 : match.rank.value_or(0)}] = match.blocks.value_or(0);
    if (keeps_lookups_) {
      for (const auto& [owner, blocks] : answers)
        explain(owner, blocks, prefixes, std::ssize(prompt.tokens));
      ++queries_;
    }
    for (const auto& [owner, blocks] : answers)
      if (Words words = judge_owner(owner, blocks, prefixes)) return words;
    return std::nullopt;
  }

  // Why the follower does not say of an engine, or a worker, that it holds all of a prompt.
  void explain(const Engine& owner, std::int64_t answer, const std::vector<PrefixId>& prompt,
               std::int64_t tokens) {
    const std::int64_t size = config_.block_size;
    Lookup lookup{.operation = static_cast<std::int64_t>(operations_) - 1,
                  .request = queries_,
                  .tokens = tokens,
                  .reused = std::clamp<std::int64_t>(answer * size, 0, tokens),
                  .cache = text_of(owner)};
    bool gap = false;
    for (std::int64_t block = lookup.reused / size; block < std::ssize(prompt); ++block) {
      const PrefixId prefix = prompt[static_cast<std::size_t>(block)];
      const bool held = std::ranges::any_of(streams_, [&](const auto& entry) {
        return owner_of(entry.first) == owner && entry.second.cache.holds(prefix);
      });
      const auto touched = touched_.find({owner, prefix});
      MissedTokens missed{block * size, (block + 1) * size, Missing::kNotAnnounced};
      if (held) {
        missed.why = gap ? Missing::kBehindGap : Missing::kForgotten;
      } else if (touched != touched_.end()) {
        missed.why = Missing::kEvicted;
        missed.operation = static_cast<std::int64_t>(touched->second.first) - 1;
      }
      gap = gap || !held;
      lookup.miss(missed);
    }
    const std::int64_t whole = std::max(lookup.reused, std::ssize(prompt) * size);
    lookup.miss({whole, tokens, Missing::kLastBlockNotFull});
    lookups_.push_back(std::move(lookup));
  }

  [[nodiscard]] Words judge_owner(const Engine& owner, std::int64_t answer,
                                  const std::vector<PrefixId>& prompt) {
    std::int64_t held = 0;
    Known known = Known::kExactly;
    for (const auto& [engine, stream] : streams_) {
      if (owner_of(engine) != owner) continue;
      held = std::max(held, stream.cache.held(prompt));
      known = std::max(known, stream.known);
      if (stream.broken || stream.disturbed || stream.restarted) known = Known::kNotAtAll;
    }
    if (known >= Known::kUnclear) return skip();
    if (answer == held || (answer < held && known == Known::kAtMost)) return judged();
    if (answer > held ? explains_phantom(owner, answer, held, prompt)
                      : explains_forgotten(owner, answer, prompt))
      return skip();
    return judged(words_of(owner, answer, held, prompt));
  }

  [[nodiscard]] bool explains_any() const {
    if (has_own_names_ && ((is_tree() && weak_.has(Quirk::kFirstNameStays)) ||
                           (pools() && weak_.has(Quirk::kRanksShareBlocks))))
      return true;
    const bool is_limited = config_.size < kMostNumbers / 2 || config_.pods_per_key < kEnoughPods;
    if (form_ == Form::kLlmd && weak_.has(Quirk::kLimitsForget) && is_limited) return true;
    if (form_ == Form::kLlmd && has_other_rows_) return true;                    // EV-76, EV-77
    if (form_ == Form::kLlmd && !config_.extra_keys && has_salts_) return true;  // EV-73
    if (form_ == Form::kDynamo && leaves_host_ && has_spaces_) return true;      // EV-68
    if (form_ == Form::kInfera && weak_.has(Quirk::kNamespacesShared) && has_spaces_) return true;
    return form_ == Form::kInfera && weak_.has(Quirk::kRemovalsUnfiltered) && has_groups_or_tiers_;
  }
  [[nodiscard]] bool explains_phantom(const Engine& owner, std::int64_t answer, std::int64_t held,
                                      const std::vector<PrefixId>& prompt) const {
    const auto at = [&](std::int64_t block) { return prompt[static_cast<std::size_t>(block)]; };
    if (explains_any()) return true;
    if (answer > std::ssize(prompt)) return false;
    const bool by_count = (form_ == Form::kCrtc && weak_.has(Quirk::kCountIsIdentity)) ||
                          (form_ == Form::kPositional && weak_.has(Quirk::kHolesUnseen));
    if (by_count && std::ranges::any_of(streams_, [&](const auto& entry) {
          return entry.second.cache.holds(at(answer - 1));
        }))
      return true;
    const auto flaws = flaws_.find(owner);
    if (flaws != flaws_.end() && flaws->second.outlive.contains(at(held))) return true;
    if (!pools() || !weak_.has(Quirk::kRanksShareBlocks)) return false;
    for (std::int64_t block = held; block < answer; ++block)
      if (std::ranges::none_of(streams_, [&](const auto& entry) {
            return owner_of(entry.first) == owner && entry.second.cache.holds(at(block));
          }))
        return false;
    return true;
  }
  [[nodiscard]] bool explains_forgotten(const Engine& owner, std::int64_t answer,
                                        const std::vector<PrefixId>& prompt) const {
    if (explains_any()) return true;
    if (form_ == Form::kLlmd && weak_.has(Quirk::kExtraKeysHashed) && config_.extra_keys &&
        has_spaces_)
      return true;
    if (form_ >= Form::kLlmd && weak_.has(Quirk::kMapsUnread) && wire_unread()) return true;
    if (form_ == Form::kPositional && weak_.has(Quirk::kForeignKeysUnfound) &&
        config_.hashes == Hashes::kEngine)
      return true;
    const auto flaws = flaws_.find(owner);
    return flaws != flaws_.end() &&
           flaws->second.lost.contains(prompt[static_cast<std::size_t>(answer)]);
  }
  [[nodiscard]] bool wire_unread() const {
    if (form_ == Form::kLlmd)
      return config_.adapter == Dialect::kSglang && config_.wire == Wire::kMap;
    return (config_.engine == Dialect::kVllm) != (config_.wire == Wire::kMap);
  }

  [[nodiscard]] std::string words_of(const Engine& owner, std::int64_t answer, std::int64_t held,
                                     const std::vector<PrefixId>& prompt) const {
    std::string words = text_of(owner);
    words += answer > held ? ": phantom: " : ": forgotten: ";
    words += std::to_string(answer) + " blocks, but it holds " + std::to_string(held);
    std::pair<std::uint64_t, std::string> last;
    for (const PrefixId prefix : prompt)
      if (const auto touched = touched_.find({owner, prefix}); touched != touched_.end())
        last = std::max(last, touched->second);
    if (last.first > 0)
      words += ", since operation " + std::to_string(last.first - 1) + ": " + last.second;
    return words;
  }
  [[nodiscard]] std::string text_of(const Engine& owner) const {
    return "worker " + std::to_string(owner.worker) +
           (pools() ? "" : " rank " + std::to_string(owner.rank));
  }
  [[nodiscard]] static std::string text_of(const Engine& engine, const Event& event) {
    static constexpr std::array kWords{"stored", "removed", "cleared"};
    std::string text = kWords.at(static_cast<std::size_t>(event.kind));
    text += " by worker " + std::to_string(engine.worker) + " rank " + std::to_string(engine.rank);
    if (!event.keys.empty()) text += ", keys";
    for (const Key key : event.keys) text += " " + std::to_string(key);
    return text;
  }

  static constexpr std::int64_t kEnoughPods = 10;

  Form form_;
  Config config_;
  QuirkSet<Quirk> weak_;
  Contents contents_;
  std::map<Engine, Stream> streams_;
  std::map<Engine, Flaws> flaws_;
  std::map<PrefixId, PrefixId> above_;
  /// The last event that changed a block of an engine, or of a worker.
  std::map<std::pair<Engine, PrefixId>, std::pair<std::uint64_t, std::string>> touched_;
  std::uint64_t operations_ = 0;
  std::map<PrefixId, Key> names_;  ///< the first key of each prefix
  bool has_own_names_ = false;
  bool has_spaces_ = false;
  bool has_salts_ = false;
  bool has_groups_or_tiers_ = false;
  bool leaves_host_ = false;     ///< which ends a salt, too
  bool has_other_rows_ = false;  ///< of a group without its kind, or beyond the device
  bool keeps_lookups_ = false;
  std::int64_t queries_ = 0;
  std::vector<Lookup> lookups_;
};

}  // namespace

std::unique_ptr<Oracle> law_of(Form form, const Config& config, QuirkSet<Quirk> weaknesses) {
  return std::make_unique<FollowerLaw>(form, config, weaknesses);
}

std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup) {
  if (kind.contract != "events") return nullptr;
  const auto weaknesses = quirks_of<Quirk>(setup, kQuirkRows);
  return law_of(form_of(kind), setup.config_as<Config>(),
                weaknesses ? *weaknesses : QuirkSet<Quirk>());
}

}  // namespace kvo::events
