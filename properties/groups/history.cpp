// The oracle of contract `groups`, from the definitions alone.
//
// Known are the tokens of all requests, what was written to which block, and the tables and the
// pool as they were last shown. Which blocks get keys, or are evicted, is not: what is shown is
// taken. Judged keys      are equal exactly if namespace and tokens are (PX-10). hits      no
// longer than any group can serve, as the pool was last shown: each block that the next
//           token needs is there, and carries the key of its place for its group; null blocks are
//           where no token looks; in profile documented no longer prefix is held by all groups
//           (GR-10 to GR-18).
// rows      a block that is hit holds the rows of the prefix that its key names, and a state is
//           that of the hit's length; not in profile original, whose quirks hit others (GR-60).
// slots     as many blocks as the tokens need, none of which another request has (GR-35, GR-36).
// figures   users are those of tables and those that were counted in by hand; each block is free or
//           pinned; sums; who follows the events knows what each group holds (GR-27).
// Skipped   what follows a stale hit, or a block that was released more often than pinned.
// Unit: an answer.
#include "properties/prefix/history.hpp"

#include <algorithm>
#include <concepts>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/prefix/contents.hpp"
#include "reference/contract/subject/named_quirks.hpp"
#include "reference/groups/layout.hpp"
#include "reference/groups/operations.hpp"
#include "reference/prefix/requests.hpp"
#include "reference/subjects.hpp"

namespace kvo::groups {
namespace {

using prefix::ceil_of;
using prefix::Content;
using prefix::floor_of;
using prefix::kNoContent;

constexpr Content kNotComputed = -2;

using Copy = std::pair<std::int64_t, std::int64_t>;  ///< a key, and the group that it is for

/// What is known of a request.
struct KnownRequest {
  std::vector<Content> prefixes = {};  ///< [tokens]
  Ids keys = {};                       ///< [unit]
  std::int64_t prompt = 0;
  bool skip_reading = false;
  bool report = false;
  std::int64_t computed = 0;
  std::int64_t preemptions = 0;
  std::optional<Tables> tables = Tables();   ///< as last shown; nothing: not known
  std::optional<std::int64_t> written = {};  ///< end of the chunk whose table is not known yet
  std::int64_t start = 0;                    ///< of that chunk
  std::int64_t own_from = 0;                 ///< tokens before are of other requests
  bool odd = false;                          ///< its rows may be those of other tokens

  [[nodiscard]] std::int64_t tokens() const { return std::ssize(prefixes) - 1; }
};

class BlocksHistory final
    : public prefix::History<BlocksHistory, BlocksOps, Config, KnownRequest, Quirk> {
 public:
  BlocksHistory(const Config& config, QuirkSet<Quirk> quirks, const Layout& layout)
      : History(config, quirks), layout_(layout), groups_(std::ssize(config.groups)) {}

  // ---- Lookups ----

  Words check(const Op& op, const Observation& seen) override {
    Words words = History::check(op, seen);
    if (beside_) follow_reference(op);
    return words;
  }
  bool keep_lookups() override {
    Config config = config_;
    config.events = true;
    // Its events are of the first block that carries a key, and of the last one.
    Setup setup{.profile = Profile::kDocumented, .config = Record::of(config)};
    for (std::size_t row = 0; row < kQuirkRows.size(); ++row)
      if (const auto quirk = static_cast<Quirk>(row);
          has(quirk) && quirk != Quirk::kRemovedWhileHeld)
        setup.quirks.emplace_back(kQuirkRows[row].name());
    if (auto session = reference_.open(setup)) beside_ = std::move(*session);
    return History::keep_lookups();
  }

  // ---- Requests ----

  Words observe(const ShowSetup& /*op*/, const SetupReturns& shown) {
    std::int64_t block = 1;
    for (const Group& group : config_.groups)
      while (block % group.block_size != 0) ++block;
    return expect(shown.scheduler_block == block &&
                      (shown.alignment == block || shown.alignment == config_.hash_block),
                  "the scheduler's block is not the least common multiple");
  }

  // PX-10 to PX-13
  Words wrong_keys(KnownRequest& known, const Ids& shown) {
    const std::int64_t wanted =
        config_.enable_caching
            ? std::max<std::int64_t>(known.tokens() - config_.hash_lookahead, 0) /
                  config_.hash_block
            : 0;
    if (std::ssize(known.keys) + std::ssize(shown) != wanted)
      return std::to_string(wanted) + " units have keys";
    for (const std::int64_t key : shown) {
      const std::int64_t end = (std::ssize(known.keys) + 1) * config_.hash_block;
      const Content content =
          known.prefixes[static_cast<std::size_t>(end + config_.hash_lookahead)];
      const auto [number, is_new] = numbers_.try_emplace(content, std::ssize(ends_));
      if (is_new) {
        ends_.push_back(end);
        named_.push_back(content);
      }
      if (key != number->second)
        return "key " + std::to_string(key) + " is not that of its content, " +
               std::to_string(number->second);
      known.keys.push_back(key);
    }
    return std::nullopt;
  }

  Words observe(const MakeRequest& op, const prefix::KeysOnly& shown) {
    const bool named = op.salt && !op.salt->empty();
    const Content start = contents_.start(
        {named ? op.salt : std::nullopt, op.lora, op.lora ? op.lora_path.value_or("") : ""});
    KnownRequest& known = requests_[op.request];
    KnownRequest made{.prefixes = {start},
                      .prompt = std::ssize(op.tokens),
                      .skip_reading = op.skip_reading.value_or(false),
                      .report = op.report.has_value(),
                      .tables = std::move(known.tables)};
    made.odd = !made.tables || has_blocks(*made.tables);
    known = std::move(made);
    contents_.extend(known.prefixes, op.tokens);
    if (misses_) misses_->made(op.request, known.prefixes, op.tokens);
    return judged(wrong_keys(known, shown.keys));
  }

  Words observe(const prefix::Append& op, const prefix::KeysOnly& shown, KnownRequest& known) {
    contents_.extend(known.prefixes, op.tokens);
    if (misses_) misses_->grew(op.request, known.prefixes, op.tokens);
    return judged(wrong_keys(known, shown.keys));
  }

  Words observe(const prefix::SetRequest& op, KnownRequest& known) {
    known.computed = op.computed.value_or(known.computed);
    if (misses_) misses_->computed(op.request, known.computed);
    known.preemptions = op.preemptions.value_or(known.preemptions);
    return judged();
  }

  // ---- Hits ----

  // The key of a unit for a group, and whether the block carries it, as the pool was shown.
  bool carries(std::int64_t block, std::int64_t g, const KnownRequest& known,
               std::int64_t unit) const {
    if (unit >= std::ssize(known.keys)) return false;
    const auto& keys = pool_->keys[static_cast<std::size_t>(block)];
    const Ids wanted{known.keys[static_cast<std::size_t>(unit)], g};
    return keys.has_value() && std::ranges::find(*keys, wanted) != keys->end();
  }
  bool is_held(std::int64_t g, const KnownRequest& known, std::int64_t unit) const {
    if (unit >= std::ssize(known.keys)) return false;
    return held_.contains({known.keys[static_cast<std::size_t>(unit)], g});
  }
  const Group& group(std::int64_t g) const { return config_.groups[static_cast<std::size_t>(g)]; }
  std::int64_t units(std::int64_t g) const { return group(g).block_size / config_.hash_block; }

  /// The first block that the token after `length` needs.
  std::int64_t first_needed(std::int64_t g, std::int64_t length) const {
    const Group& one = group(g);
    if (is_state(one)) return std::max<std::int64_t>(ceil_of(length, one.block_size) - 1, 0);
    if (is_window(one)) return std::max<std::int64_t>(length - one.window + 1, 0) / one.block_size;
    if (one.kind == GroupKind::kChunkedLocal)
      return length / one.chunk * one.chunk / one.block_size;
    return 0;
  }

  // Whether the group can serve a hit of that length.
  bool serves(std::int64_t g, const KnownRequest& known, std::int64_t length) const {
    const std::int64_t size = group(g).block_size;
    const std::int64_t blocks = length / size;
    if (is_state(group(g)))
      return length % layout_.alignment == 0 && is_held(g, known, length / config_.hash_block - 1);
    for (std::int64_t i = first_needed(g, length); i < blocks; ++i)
      if (!is_held(g, known, (i + 1) * units(g) - 1)) return false;
    if (length % size == 0) return true;
    for (std::int64_t unit = length / config_.hash_block - 1; unit < (blocks + 1) * units(g);
         ++unit)
      if (is_held(g, known, unit)) return true;
    return false;
  }

  // `whole`: the group holds the whole length. A state that lags may end inside the same block, and
  // where is not shown (GR-18).
  Words wrong_block(const KnownRequest& known, std::int64_t g, const Ids& blocks, std::int64_t i,
                    std::int64_t length, bool whole) const {
    const std::int64_t block = blocks[static_cast<std::size_t>(i)];
    const std::string where = "block " + std::to_string(block) + ", " + std::to_string(i) +
                              " of group " + std::to_string(g);
    if (block == 0)
      return i < first_needed(g, length) ? Words()
                                         : "a null block, " + std::to_string(i) + " of group " +
                                               std::to_string(g) + ", is needed";
    const std::int64_t end = std::min((i + 1) * group(g).block_size, length);
    const std::int64_t last = end / config_.hash_block - 1;
    const bool lags = is_state(group(g)) && !whole;
    bool carried = false;
    for (std::int64_t unit = lags ? i * units(g) : last;
         unit < (is_state(group(g)) ? last + 1 : (i + 1) * units(g)); ++unit)
      carried = carried || carries(block, g, known, unit);
    return carried ? Words() : where + " does not carry the key of its place";
  }

  // The rows of a hit block, as far as they were written.
  Words wrong_rows(const KnownRequest& known, std::int64_t g, std::int64_t block, std::int64_t i,
                   std::int64_t length) const {
    const auto written = rows_.find(block);
    if (written == rows_.end() || written->second.group != g) return std::nullopt;
    const std::int64_t size = group(g).block_size;
    if (is_state(group(g))) {
      if (may_have_copies_) return std::nullopt;  // it may have moved since (GR-43)
      const Content state = written->second.state;
      if (state == kNoContent || state == known.prefixes[static_cast<std::size_t>(length)])
        return std::nullopt;
      return "block " + std::to_string(block) + " has the state of another prefix";
    }
    for (std::int64_t at = i * size; at < std::min((i + 1) * size, length); ++at) {
      const Content there = written->second.rows[static_cast<std::size_t>(at - i * size)];
      if (there != kNoContent && there != known.prefixes[static_cast<std::size_t>(at + 1)])
        return "block " + std::to_string(block) + " has the row of another token in the place of " +
               std::to_string(at);
    }
    return std::nullopt;
  }

  // A hit of all groups; `whole`: none may hold less.
  Words wrong_hit(const KnownRequest& known, const Tables& blocks, std::int64_t length,
                  std::int64_t limit, bool whole) {
    if (std::ssize(blocks) != groups_) return "not one list a group";
    if (!config_.enable_caching || known.skip_reading)
      return length == 0 ? Words() : Words("a request that may hit nothing has a hit");
    // An empty prompt has a hit of -1 tokens in profile original (GR-11).
    if (length == -1 && limit < 0 && has(Quirk::kNoPromptAborts)) return std::nullopt;
    if (length > std::max<std::int64_t>(limit, 0)) return "the hit is longer than the limit";
    if (length % (groups_ > 1 ? layout_.alignment : 1) != 0)
      return "the hit is no multiple of the alignment";
    for (std::int64_t g = 0; g < groups_; ++g) {
      const Ids& list = blocks[static_cast<std::size_t>(g)];
      if (!is_cacheable(group(g))) {
        if (!list.empty()) return "a group that cannot be shared has a hit";
        continue;
      }
      const std::int64_t size = group(g).block_size;
      if (whole && std::ssize(list) != ceil_of(length, size))
        return "group " + std::to_string(g) + " has " + std::to_string(list.size()) +
               " blocks of a hit of " + std::to_string(length);
      if (!whole && std::ssize(list) < ceil_of(length, size)) continue;
      for (std::int64_t i = 0; i < std::ssize(list); ++i) {
        const std::int64_t block = list[static_cast<std::size_t>(i)];
        if (pool_)
          if (auto words = wrong_block(known, g, list, i, length, whole)) return words;
        if (block != 0 && !has(Quirk::kStateOfAnotherLength) && (whole || !is_state(group(g))))
          if (auto words = wrong_rows(known, g, block, i, length)) return words;
      }
    }
    return std::nullopt;
  }

  // Profile documented: whether a longer prefix is held; draft heads and limits apart.
  Words too_short(const KnownRequest& known, std::int64_t length, std::int64_t limit) const {
    if (!pool_ || config_.eagle || has(Quirk::kDroppedTwice) || groups_ == 1) return std::nullopt;
    for (const Group& one : config_.groups)
      if (one.kind == GroupKind::kChunkedLocal || (is_window(one) && one.window == 1))
        return std::nullopt;
    const std::int64_t size = layout_.scheduler_block;
    for (std::int64_t longer = floor_of(limit, size) * size; longer > length; longer -= size) {
      bool all = true;
      for (std::int64_t g = 0; all && g < groups_; ++g)
        all = !is_cacheable(group(g)) || serves(g, known, longer);
      if (all) return "all groups hold " + std::to_string(longer) + " tokens";
    }
    return std::nullopt;
  }

  std::int64_t limit_of(const auto& op, const KnownRequest& known) const {
    return op.max_length.value_or(known.tokens() - 1);
  }

  // Where it is known what the groups hold.
  void explain_hit(std::int64_t request, std::int64_t hit, std::int64_t limit,
                   const KnownRequest& known) {
    if (!misses_ || (!pool_ && !beside_)) return;
    const std::int64_t most = std::max<std::int64_t>(limit, 0);
    prefix::Misses::Asked asked{.request = request,
                                .tokens = std::min(most + 1, known.tokens()),
                                .hit = hit,
                                .units = {},
                                .beyond = config_.hash_lookahead,
                                .reads = config_.enable_caching && !known.skip_reading,
                                .drops = config_.eagle,
                                .most_hit = most};
    for (const Group& one : config_.groups)
      asked.units.push_back(is_cacheable(one) ? one.block_size : 0);
    misses_->looked_up(asked, known.prefixes, [this](Content content, std::int64_t group) {
      const auto number = numbers_.find(content);
      return number != numbers_.end() && held_.contains({number->second, group});
    });
  }

  // What each group holds is known from a reference beside the cache, until the cache shows a pool
  // that holds other things. Then it is known from what is shown, which is the doing of the
  // operation before.
  template <class T>
  static constexpr bool kShows = std::same_as<T, ShowBlocks> || std::same_as<T, TakeEvents>;

  void follow_reference(const Op& op) {
    Probe unused;
    if (const auto* made = op.as<MakeRequest>()) {
      MakeRequest silent = *made;
      silent.report.reset();  // a report names keys as stored that are there already (GR-19)
      (void)beside_->apply(Op::of(std::move(silent)), unused);
    } else {
      (void)beside_->apply(op, unused);
    }
    const Observation taken = beside_->apply(Op::of(TakeEvents{}), unused);
    if (taken.error) return;  // of a setup that failed
    for (const ShownEvent& event : taken.as<TakeEvents::Returns>().events) {
      if (event.kind == EventKind::kCleared) follow(std::exchange(held_, {}));
      for (const std::int64_t key : event.keys.value_or(Ids())) {
        const Copy copy{key, *event.group};
        if (event.kind == EventKind::kStored && held_.insert(copy).second) came(copy);
        if (event.kind == EventKind::kRemoved && held_.erase(copy) > 0) went(copy);
      }
    }
  }
  void follow(const std::set<Copy>& before) {
    for (const Copy& copy : held_)
      if (!before.contains(copy)) came(copy);
    for (const Copy& copy : before)
      if (!held_.contains(copy)) went(copy);
  }
  // The first block that carries a key for a group came, or the last one went. @{
  void came(const Copy& copy) {
    if (is_named(copy)) misses_->stored(named_[static_cast<std::size_t>(copy.first)], copy.second);
  }
  void went(const Copy& copy) {
    if (is_named(copy)) misses_->gone(named_[static_cast<std::size_t>(copy.first)], copy.second);
  }
  bool is_named(const Copy& copy) const {
    return copy.first >= 0 && copy.first < std::ssize(named_);
  }
  // @}

  Words observe(const Match& op, const MatchReturns& hit, KnownRequest& known) {
    explain_hit(op.request, hit.length, limit_of(op, known), known);
    follow_report(known, hit.length);
    stale_ = false;
    if (hit.boundary != 0 && hit.boundary <= hit.length)
      return judged("the boundary is not beyond the hit");
    known_vetoes_[op.request] = std::max<std::int64_t>(hit.boundary - hit.length, 0);
    const std::int64_t limit = limit_of(op, known);
    Words words = wrong_hit(known, hit.blocks, hit.length, limit, true);
    if (!words && config_.enable_caching && !known.skip_reading)
      words = too_short(known, hit.length, limit);
    return judged(std::move(words));
  }
  Words observe(const MatchConnector& op, const MatchConnectorReturns& hit, KnownRequest& known) {
    follow_report(known, hit.length);
    stale_ = false;
    known_vetoes_[op.request] = std::max<std::int64_t>(hit.boundary - hit.length, 0);
    return judged(wrong_hit(known, hit.blocks, hit.length, limit_of(op, known),
                            !hit.diverged && !has(Quirk::kWindowBehindLoads)));
  }

  Words observe(const Split& op, const SplitReturns& shown, KnownRequest& /*known*/) {
    return expect(shown.tokens >= 0 && shown.tokens <= op.tokens,
                  "a chunk has more tokens than were wanted");
  }

  // ---- Slots ----

  static bool has_blocks(const Tables& tables) {
    return std::ranges::any_of(tables, [](const Ids& blocks) { return !blocks.empty(); });
  }

  Words observe(const Allocate& op, const Observation& seen, KnownRequest& known) {
    const std::optional<Tables> before = std::exchange(known.tables, std::nullopt);
    forget_pool();
    if (seen.error) {
      known.written.reset();
      return skip();
    }
    may_have_copies_ = true;
    const auto& got = seen.as<Allotment>();
    const std::int64_t start = known.computed + op.hit_tokens.value_or(0) + op.external.value_or(0);
    if (op.hit_blocks && has_blocks(*op.hit_blocks) && stale_) return lose_track();
    // Blocks of loaded tokens are not shown, nor what becomes of states of an unknown table.
    if (op.external.value_or(0) > 0 || !before) rows_.clear();
    if (start > config_.max_model_len) known.odd = true;
    known.start = known.computed + op.hit_tokens.value_or(0);
    if (before && !has_blocks(*before)) known.own_from = known.start;
    if (before) forget_states(*before, known.start);
    known.written = std::min(start, config_.max_model_len) + op.tokens;
    std::set<std::int64_t> fresh;
    for (std::int64_t g = 0; g < groups_; ++g) {
      const Ids& blocks = got.blocks[static_cast<std::size_t>(g)];
      for (const std::int64_t block : blocks) {
        if (block == 0) continue;
        if (!is_state(group(g)) && !fresh.insert(block).second)
          return judged("block " + std::to_string(block) + " is handed out twice");
        rows_.erase(block);
      }
      if (auto words = wrong_count(op, before, known, g, std::ssize(blocks))) return judged(words);
    }
    return judged();
  }

  // The running state goes on in its block.
  void forget_states(const Tables& tables, std::int64_t start) {
    for (std::int64_t g = 0; g < std::ssize(tables); ++g) {
      const Ids& table = tables[static_cast<std::size_t>(g)];
      for (std::int64_t i = start / group(g).block_size;
           is_state(group(g)) && i < std::ssize(table); ++i)
        rows_.erase(table[static_cast<std::size_t>(i)]);
    }
  }

  // Whether so many blocks of an attention group are what the tokens need, where the table before
  // is known and nothing is hit.
  Words wrong_count(const Allocate& op, const std::optional<Tables>& before,
                    const KnownRequest& known, std::int64_t g, std::int64_t count) const {
    const Group& one = group(g);
    if (!before || op.external.value_or(0) > 0 || is_state(one) || one.kind == GroupKind::kRing)
      return std::nullopt;
    if (op.hit_tokens.value_or(0) > 0 || (op.hit_blocks && has_blocks(*op.hit_blocks)))
      return std::nullopt;
    const std::int64_t slots = std::min(
        std::min(known.computed, config_.max_model_len) + op.tokens + op.lookahead.value_or(0),
        config_.max_model_len);
    const std::int64_t had =
        has_blocks(*before) ? std::ssize((*before)[static_cast<std::size_t>(g)]) : 0;
    const std::int64_t wanted = std::max<std::int64_t>(ceil_of(slots, one.block_size) - had, 0);
    if (count == wanted) return std::nullopt;
    return std::to_string(count) + " blocks are handed out to group " + std::to_string(g) + ", " +
           std::to_string(wanted) + " are needed";
  }

  // What the last chunk wrote, now that its table is known.
  void write(KnownRequest& known) {
    const auto end = std::exchange(known.written, std::nullopt);
    if (!end || known.odd || !known.tables || !has_blocks(*known.tables)) return;
    for (std::int64_t g = 0; g < groups_; ++g) {
      const Group& one = group(g);
      const Ids& table = (*known.tables)[static_cast<std::size_t>(g)];
      if (!is_cacheable(one)) continue;
      if (is_state(one)) {
        // Of a step with drafts it is not known which of its states is where.
        const std::int64_t index = ceil_of(*end, one.block_size) - 1;
        if (index < 0 || index >= std::ssize(table)) continue;
        const std::int64_t block = table[static_cast<std::size_t>(index)];
        const bool known_state = *end <= known.tokens() && one.checkpoints == 0;
        if (block != 0)
          rows_[block] = {
              .group = g,
              .state = known_state ? known.prefixes[static_cast<std::size_t>(*end)] : kNoContent};
        continue;
      }
      for (std::int64_t at = known.start; at < std::min(*end, known.tokens()); ++at) {
        const std::int64_t i = at / one.block_size;
        if (i >= std::ssize(table) || table[static_cast<std::size_t>(i)] == 0) continue;
        Written& block = rows_[table[static_cast<std::size_t>(i)]];
        if (block.group != g) block = {.group = g};
        block.rows.resize(static_cast<std::size_t>(one.block_size), kNoContent);
        block.rows[static_cast<std::size_t>(at % one.block_size)] =
            known.prefixes[static_cast<std::size_t>(at + 1)];
      }
    }
  }

  Words observe(const prefix::CacheTokens& /*op*/, KnownRequest& /*known*/) {
    forget_pool();
    return judged();
  }
  Words observe(const Skip& /*op*/, KnownRequest& known) {
    known.tables.reset();
    forget_pool();
    return judged();
  }

  // What a request wrote beyond what it computed was never computed.
  void end_request(KnownRequest& known) {
    if (known.tables)
      for (std::int64_t g = 0; g < groups_; ++g) {
        if (g >= std::ssize(*known.tables)) break;
        const Ids& table = (*known.tables)[static_cast<std::size_t>(g)];
        for (std::int64_t i = 0; i < std::ssize(table); ++i) {
          const auto written = rows_.find(table[static_cast<std::size_t>(i)]);
          if (written == rows_.end() || is_state(group(g))) continue;
          for (std::int64_t at =
                   std::max(std::max(known.computed, known.own_from), i * group(g).block_size);
               at < (i + 1) * group(g).block_size && !written->second.rows.empty(); ++at) {
            Content& row =
                written->second.rows[static_cast<std::size_t>(at - i * group(g).block_size)];
            if (row != kNoContent) row = kNotComputed;
          }
        }
      }
    known.tables = Tables();
    known.written.reset();
    known.odd = false;
    forget_pool();
  }
  Words observe(const prefix::FreeRequest& /*op*/, KnownRequest& known) {
    end_request(known);
    return judged();
  }
  Words observe(const prefix::Pop& /*op*/, const BlocksOnly& shown, KnownRequest& known) {
    Words words;
    if (known.tables && !known.written) {
      std::map<std::int64_t, std::int64_t> uses;
      for (const Ids& table : *known.tables)
        for (const std::int64_t block : table) ++uses[block];
      for (const std::int64_t block : shown.blocks) --uses[block];
      uses.erase(0);
      for (const auto& [block, count] : uses)
        if (count != 0)
          words = "pop does not give block " + std::to_string(block) + " of the table";
    }
    for (const std::int64_t block : shown.blocks)
      if (block != 0) ++by_hand_[block];
    end_request(known);
    return judged(std::move(words));
  }

  // ---- The pool by hand ----

  Words observe(const NextStep& /*op*/) { return judged(); }
  Words observe(const TakeCopies& /*op*/, const CopiesReturns& shown) {
    Ids ends;
    for (const Ids& copy : shown.copies) {
      if (copy.size() != 2) return judged("a copy is no pair");
      ends.insert(ends.end(), copy.begin(), copy.end());
      if (in_a_table(copy[1]))
        copy_rows(copy[0], copy[1]);
      else
        rows_.erase(copy[1]);  // a prompt's state, which has moved there (GR-43)
    }
    may_have_copies_ = false;
    for (const std::int64_t block : ends) ++by_hand_[block];
    return expect(ends == shown.retained, "not both ends of each copy are retained");
  }
  bool in_a_table(std::int64_t block) const {
    for (const auto& [request, known] : requests_)
      for (const Ids& table : known.tables.value_or(Tables()))
        if (std::ranges::find(table, block) != table.end()) return true;
    return false;
  }
  // What the request has written since stays.
  void copy_rows(std::int64_t from, std::int64_t to) {
    const auto source = rows_.find(from);
    if (source == rows_.end() || source->second.rows.empty()) return;
    Written& copy = rows_[to];
    copy.group = source->second.group;
    copy.rows.resize(source->second.rows.size(), kNoContent);
    for (std::size_t i = 0; i < copy.rows.size(); ++i)
      if (copy.rows[i] == kNoContent) copy.rows[i] = source->second.rows[i];
  }
  Words observe(const TakeOffloads& /*op*/, const OffloadsReturns& shown) {
    for (const Offload& one : shown.offloads)
      if (!one.request || !is_state(group(one.group)) || one.block == 0)
        return judged("an offload of no state");
    return judged();
  }
  Words observe(const Finalize& /*op*/, const OffloadsReturns& shown, KnownRequest& known) {
    for (const Offload& one : shown.offloads)
      if (one.tokens != known.computed)
        return judged("a state is offloaded that is not the request's last one");
    return judged();
  }
  Words observe(const TakeFresh& /*op*/, const BlocksOnly& shown) {
    return expect(shown.blocks.empty() || std::ranges::any_of(config_.groups, is_state),
                  "blocks are to be zeroed, and no group has states");
  }
  Words observe(const Zero& /*op*/) { return judged(); }
  Words observe(const Clip& op, const TablesReturns& shown, KnownRequest& known) {
    if (!known.tables || known.written) return skip();
    Tables wanted = *known.tables;
    wanted.resize(static_cast<std::size_t>(groups_));
    for (std::int64_t g = 0; g < groups_; ++g) {
      Ids& blocks = wanted[static_cast<std::size_t>(g)];
      const auto most = static_cast<std::size_t>(ceil_of(op.computed, group(g).block_size));
      if (!is_state(group(g)) && blocks.size() > most) blocks.resize(most);
    }
    return expect(wanted == shown.blocks, "the tables are not cut at the tokens");
  }
  Words observe(const prefix::Take& op, const Observation& seen) {
    stale_ = true;
    forget_pool();
    if (seen.error) return skip();
    const auto& got = seen.as<prefix::AllottedBlocks>();
    for (const std::int64_t block : got.blocks) {
      ++by_hand_[block];
      rows_.erase(block);
    }
    return expect(std::ssize(got.blocks) == op.count, "not as many blocks as were requested");
  }
  Words observe(const prefix::TouchBlocks& op) {
    for (const std::int64_t block : op.blocks)
      if (block != 0) ++by_hand_[block];
    forget_pool();
    return judged();
  }
  Words observe(const prefix::Release& op) {
    for (const std::int64_t block : op.blocks) {
      if (block == 0) continue;
      if (--by_hand_[block] < 0) return lose_track();
    }
    forget_pool();
    return judged();
  }
  Words observe(const prefix::EvictBlocks& op, const prefix::EvictBlocks::Returns& shown) {
    for (const std::int64_t block : shown.evicted)
      if (std::ranges::find(op.blocks, block) == op.blocks.end() &&
          std::ranges::find(op.blocks, block - config_.num_blocks) == op.blocks.end())
        return judged("a block is evicted that was not named");
    forget_pool();
    return judged();
  }
  Words observe(const prefix::ResetBlocks& /*op*/, const prefix::ResetBlocks::Returns& shown) {
    sums_.reset = sums_.reset || shown.done;
    forget_pool();
    return judged();
  }

  // ---- Figures ----

  Words observe(const ShowTables& /*op*/, const TablesReturns& shown, KnownRequest& known) {
    const bool knew = known.tables.has_value() && !known.written;
    if (knew && has_blocks(*known.tables) && *known.tables != shown.blocks)
      return judged("a table has changed that nothing was done to");
    known.tables = shown.blocks;
    write(known);
    return judged();
  }

  Words observe(const ShowBlocks& /*op*/, const ShowBlocksReturns& shown) {
    if (auto words = wrong_pool(shown)) return judged(words);
    pool_ = shown;
    const auto before = std::exchange(held_, {});
    for (const ShownHolders& one : shown.cached) held_.insert({one.key, one.group});
    if (held_ != before) beside_.reset();
    if (misses_) follow(before);
    return judged(wrong_users());
  }

  // Where the pool as it is shown contradicts itself (PX-14 to PX-17, GR-4).
  Words wrong_pool(const ShowBlocksReturns& shown) const {
    const std::int64_t count = config_.num_blocks;
    if (std::ssize(shown.refs) != count || std::ssize(shown.keys) != count ||
        std::ssize(shown.ends) != count || shown.free != std::ssize(shown.queue))
      return "not as many blocks as there are";
    std::set<std::int64_t> queued(shown.queue.begin(), shown.queue.end());
    if (queued.size() != shown.queue.size()) return "a block is queued twice";
    std::map<std::pair<std::int64_t, std::int64_t>, std::set<std::int64_t>> carriers;
    for (const ShownHolders& one : shown.cached)
      carriers[{one.key, one.group}] = {one.blocks.begin(), one.blocks.end()};
    std::size_t carried = 0;
    for (const auto& [key, blocks] : carriers) carried += blocks.size();
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (i != 0 && queued.contains(i) != (shown.refs[at] <= 0))
        return "block " + std::to_string(i) + " is neither free nor pinned, or both";
      if (shown.keys[at].has_value() != shown.ends[at].has_value())
        return "block " + std::to_string(i) + " has keys and no end, or an end and no keys";
      if (!shown.keys[at].has_value()) continue;
      for (const Ids& pair : *shown.keys[at]) {
        if (pair.size() != 2 || !carriers[{pair[0], pair[1]}].contains(i))
          return "block " + std::to_string(i) + " is not among those that carry its key";
        --carried;
      }
      const Ids& main = shown.keys[at]->front();
      if (main[0] < 0 || main[0] >= std::ssize(ends_) ||
          ends_[static_cast<std::size_t>(main[0])] != *shown.ends[at])
        return "block " + std::to_string(i) + " ends elsewhere than its key";
    }
    return carried == 0 ? Words() : Words("a key is carried by a block that does not know it");
  }

  // Users are tables, where all are known, and what was counted in by hand.
  Words wrong_users() const {
    std::map<std::int64_t, std::int64_t> users = by_hand_;
    for (const auto& [request, known] : requests_) {
      if (!known.tables || known.written) return std::nullopt;
      for (const Ids& table : *known.tables)
        for (const std::int64_t block : table)
          if (block != 0) ++users[block];
    }
    for (std::int64_t i = 1; i < config_.num_blocks; ++i) {
      const auto found = users.find(i);
      const std::int64_t wanted = found != users.end() ? found->second : 0;
      const std::int64_t there = pool_->refs[static_cast<std::size_t>(i)];
      if (there != wanted && !copied_blocks_may_wait(there - wanted))
        return "block " + std::to_string(i) + " has " + std::to_string(there) + " users, " +
               std::to_string(wanted) + " are known";
    }
    return std::nullopt;
  }
  // A copy that is noted and not taken yet pins its ends.
  bool copied_blocks_may_wait(std::int64_t more) const {
    return more > 0 && layout_.partial && may_have_copies_;
  }

  Words observe(const prefix::ShowUsage& /*op*/, const prefix::ShowUsage::Returns& shown) {
    if (!pool_) return skip();
    const auto all = static_cast<double>(config_.num_blocks - 1);
    const double usage = config_.num_blocks == 1 ? 0 : 1 - static_cast<double>(pool_->free) / all;
    return expect(shown.usage == usage, "usage is not the part that is not free");
  }

  Words observe(const LookUp& op, const LookUpReturns& shown) {
    if (!pool_) return skip();
    bool all = true;
    for (const std::int64_t g : op.groups) all = all && held_.contains({op.key, g});
    if (shown.blocks.has_value() != all)
      return judged("a key is found that some group lacks, or not found though all have it");
    for (std::size_t i = 0; all && i < op.groups.size(); ++i) {
      const auto& keys = pool_->keys[static_cast<std::size_t>((*shown.blocks)[i])];
      if (!keys.has_value() || std::ranges::find(*keys, Ids{op.key, op.groups[i]}) == keys->end())
        return judged("a block is found that does not carry the key for the group");
    }
    return judged();
  }

  // GR-21
  Words observe(const prefix::CachedTokens& /*op*/, const prefix::CachedTokens::Returns& shown,
                KnownRequest& known) {
    if (!pool_ || !known.tables || known.written) return skip();
    std::optional<std::int64_t> least;
    for (std::int64_t g = 0; g < groups_; ++g) {
      if (!is_cacheable(group(g))) continue;
      std::int64_t most = 0;
      if (g < std::ssize(*known.tables))
        for (const std::int64_t block : (*known.tables)[static_cast<std::size_t>(g)])
          most = std::max(most, pool_->ends[static_cast<std::size_t>(block)].value.value_or(0));
      least = std::min(least.value_or(most), most);
    }
    return expect(shown.tokens == least.value_or(0),
                  std::to_string(least.value_or(0)) + " tokens are cached by all groups");
  }

  Words observe(const prefix::RecordHits& op, KnownRequest& known) {
    vetoed_ += known_vetoes_[op.request];
    if (!config_.enable_caching || known.skip_reading) return judged();
    const bool again = known.preemptions > 0;
    (again ? sums_.preempted_requests : sums_.requests) += 1;
    (again ? sums_.preempted_queries : sums_.queries) += known.tokens();
    (again ? sums_.preempted_hits : sums_.hits) += op.hits;
    return judged();
  }
  Words observe(const ShowStatistics& /*op*/, const Observation& seen) {
    if (seen.error) return skip();
    if (!has(Quirk::kVetoesUncounted)) sums_.vetoed = std::exchange(vetoed_, 0);
    const Observation want{.returns = Record::of(std::exchange(sums_, {}))};
    const auto difference = observation_difference(want, seen);
    return judged(difference ? Words("sums: " + difference->text()) : Words());
  }

  // GR-27: who follows the events knows what is held.
  void follow_report(const KnownRequest& known, std::int64_t length) {
    if (known.report && length > 0) follows_ = false;
  }
  Words observe(const TakeEvents& /*op*/, const TakeEventsReturns& shown) {
    if (!config_.events)
      return expect(shown.events.empty(), "there are events, and none are recorded");
    const bool each = has(Quirk::kRemovedWhileHeld);
    for (const ShownEvent& event : shown.events) {
      if (event.kind == EventKind::kCleared) {
        followed_.clear();
        continue;
      }
      for (const std::int64_t key : *event.keys) {
        std::int64_t& times = followed_[{key, *event.group}];
        if (event.kind == EventKind::kStored)
          ++times;
        else if (times == 0 && follows_)
          return judged("key " + std::to_string(key) + " is removed, and was not stored");
        else
          times = each ? times - 1 : 0;
        if (times <= 0) followed_.erase({key, *event.group});
      }
    }
    if (!follows_ || !pool_) return skip();
    for (const ShownHolders& one : pool_->cached) {
      const auto times = followed_.find({one.key, one.group});
      if (times == followed_.end() || (each && times->second != std::ssize(one.blocks)))
        return judged("key " + std::to_string(one.key) + " of group " + std::to_string(one.group) +
                      " is held, events do not say so");
    }
    return expect(followed_.size() == pool_->cached.size(),
                  "events say that a key is held which no block carries");
  }

 private:
  /// What a block holds.
  struct Written {
    std::int64_t group = -1;
    std::vector<Content> rows = {};  ///< [place], of attention
    Content state = kNoContent;
  };

  void forget_pool() { pool_.reset(); }

  Subject reference_ = references()[0];
  std::unique_ptr<Session> beside_ = nullptr;  ///< once lookups are kept
  Layout layout_;
  std::int64_t groups_;
  prefix::Contents contents_ = {};
  std::map<Content, std::int64_t> numbers_ = {};       ///< of keys
  Ids ends_ = {};                                      ///< [key], tokens
  std::vector<Content> named_ = {};                    ///< by key
  std::map<std::int64_t, Written> rows_ = {};          ///< [block]
  std::map<std::int64_t, std::int64_t> by_hand_ = {};  ///< [block], users that are no table
  std::optional<ShowBlocksReturns> pool_ = {};         ///< as it is; nothing: not known
  std::set<Copy> held_ = {};                           ///< what blocks carry, as far as is known
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> followed_ = {};  ///< by events
  bool follows_ = true;
  bool may_have_copies_ = false;
  bool stale_ = false;  ///< blocks were taken since the last match
  std::map<std::int64_t, std::int64_t> known_vetoes_ = {};  ///< [request], of its last match
  std::int64_t vetoed_ = 0;
  Statistics sums_ = {};
};

}  // namespace

std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup) {
  const auto quirks = quirks_of<Quirk>(setup, kQuirkRows);
  if (!quirks || &kind != &blocks_kind()) return nullptr;
  // Of a config that is refused all answers are errors, which are skipped.
  const Config config = setup.config_as<Config>();
  const auto options = options_of(config);
  const auto layout = options ? layout_of(*options, *quirks) : Result<Layout>(options.error());
  return std::make_unique<BlocksHistory>(config, *quirks, layout ? *layout : Layout());
}

}  // namespace kvo::groups
