// The history of a tree of token runs over a pool of slots.
//
// Known are what was put, with its slots, the locks of each node, and which slots are handed out.
// The order of eviction is not known: a node that the cache reports as evicted is accepted if it
// may be evicted. Judged:
// hits      are the longest prefix that was put and not evicted since, in whole pages; their slots
//           are those that were put, and still hold the rows of these tokens (PX-64 to PX-66).
// eviction  takes leaves without a lock, so that a prefix stays; as many as are asked for and no
//           leaf more, and fewer only where no other may be evicted (PX-70, PX-72, PX-83).
// slots     those that are handed out were free, and go on where a page is open; they are refused
//           only where too few are free (PX-80, PX-81).
// figures   evictable and protected units are all that was put; free slots and those handed out are
//           the whole pool; locks, nodes, leaves, rows, and who follows the events say the same.
// windows   slots that left a request's window are free; nothing after them is filed (PX-89).
// Skipped   in profile original, what follows an unlock without a lock, or one of a node that has
//           gone (PX-79); of the slots, what follows one that was free and is freed (PX-85). In
//           both, rows after slots that a request has were cleared (PX-80), and rows of pages that
//           two have because a caller inserted or freed them by hand; requests of a tree that keeps
//           nothing (PX-76).
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "properties/prefix/contents.hpp"
#include "properties/prefix/history.hpp"
#include "properties/prefix/tree_accounts.hpp"

namespace kvo::prefix {
namespace {

/// In a row, a slot that left the window.
constexpr std::int64_t kLeft = -1;

struct RadixRequest {
  std::vector<Content> prefixes = {};  ///< [tokens]
  std::int64_t prompt = 0;
  std::optional<std::int64_t> node = std::nullopt;  ///< that is locked, once admitted
  bool has_row = false;
  Ids row = {};
  std::int64_t protected_ = 0;
  std::int64_t inserted = 0;

  [[nodiscard]] std::int64_t tokens() const { return std::ssize(prefixes) - 1; }
  /// Slots before the first that left the window.
  [[nodiscard]] std::int64_t whole() const { return std::ranges::find(row, kLeft) - row.begin(); }
};

class RadixHistory final : public History<RadixHistory, RadixOps, RadixConfig, RadixRequest> {
 public:
  using History::History;

  // ---- Contents and rows ----

  std::int64_t pages(std::int64_t tokens) const {
    return std::max<std::int64_t>(tokens - (config_.eagle ? 1 : 0), 0) / config_.page_size;
  }

  Content start(const std::optional<std::string>& extra, const std::optional<std::string>& salt) {
    const bool salted = salt && !salt->empty();
    return contents_.start({extra, salted ? salt : std::nullopt});
  }

  Path path(const std::vector<Content>& prefixes, std::int64_t tokens) const {
    Path all;
    for (std::int64_t i = 1; i <= pages(tokens); ++i)
      all.push_back(
          prefixes[static_cast<std::size_t>(i * config_.page_size + (config_.eagle ? 1 : 0))]);
    return all;
  }

  template <class T>
  std::vector<Content> prefixes_of(const T& op) {
    std::vector<Content> prefixes{start(op.extra, op.salt)};
    contents_.extend(prefixes, op.tokens);
    return prefixes;
  }

  Words wrong_rows(const std::vector<Content>& prefixes, const Ids& slots) const {
    if (rows_lost_ || slots_lost_) return std::nullopt;
    const std::int64_t end = std::min(std::ssize(slots), std::ssize(prefixes) - 1);
    for (std::int64_t i = 0; i < end; ++i) {
      const std::int64_t slot = slots[static_cast<std::size_t>(i)];
      const auto row = rows_.find(slot);
      if (shared_.contains(slot / config_.page_size)) continue;
      if (row != rows_.end() && row->second != prefixes[static_cast<std::size_t>(i + 1)])
        return "slot " + std::to_string(row->first) + " has the row of another token than " +
               std::to_string(i);
    }
    return std::nullopt;
  }

  bool in_a_row(std::int64_t pool_page) const {
    return std::ranges::any_of(requests_, [&](const auto& request) {
      return std::ranges::any_of(request.second.row, [&](std::int64_t slot) {
        return slot / config_.page_size == pool_page;
      });
    });
  }

  // Rows of the tokens from `begin` on, in the slots of a row.
  void write(const std::vector<Content>& prefixes, const Ids& slots, std::int64_t begin) {
    const std::int64_t end = std::min(std::ssize(slots), std::ssize(prefixes) - 1);
    for (std::int64_t i = begin; i < end; ++i)
      if (const std::int64_t slot = slots[static_cast<std::size_t>(i)]; slot != kLeft)
        rows_[slot] = prefixes[static_cast<std::size_t>(i + 1)];
  }

  // ---- The tree ----

  Words wrong_hit(const std::vector<Content>& prefixes, std::int64_t tokens,
                  const FoundPrefix& hit) {
    const Path whole = config_.disable ? Path() : path(prefixes, tokens);
    const TreeAccounts::Reached reached = tree_.walk(whole);
    if (hit.length != reached.pages * config_.page_size)
      return std::to_string(hit.length) + " units are hit, " +
             std::to_string(reached.pages * config_.page_size) + " are held";
    if (hit.node != reached.node)
      return "node " + std::to_string(hit.node) + " is hit, the prefix ends with node " +
             std::to_string(reached.node);
    if (hit.slots != tree_.slots(whole, reached.pages))
      return "the slots are not those that were put";
    return wrong_rows(prefixes, hit.slots);
  }

  Words observe(const MatchTokens& op, const FoundPrefix& hit) {
    return judged(wrong_hit(prefixes_of(op), std::ssize(looked_up(op)), hit));
  }

  Words observe(const TouchTokens& op) {
    if (!config_.disable) (void)tree_.walk(path(prefixes_of(op), std::ssize(looked_up(op))));
    return judged();
  }

  Words observe(const Insert& op, const Insert::Returns& put) {
    if (config_.disable)
      return expect(put.length == 0 && !put.node.has_value(), "a disabled tree keeps tokens");
    const std::vector<Content> prefixes = prefixes_of(op);
    Ids slots = op.slots.value_or(Ids(op.tokens.begin(), op.tokens.end()));
    const Path whole = path(prefixes, std::ssize(op.tokens));
    slots.resize(whole.size() * static_cast<std::size_t>(config_.page_size));
    const Ids held = tree_.slots(whole, tree_.walk(whole).pages);
    // Slots of the pool that somebody has filled; others are only numbers, and may be anybody's.
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const bool own = op.slots && slots_.is_out(slots[i]);
      const bool others =
          tree_.uses(slots[i] / config_.page_size) && (i >= held.size() || held[i] != slots[i]);
      const auto row = rows_.find(slots[i]);
      const bool same = row != rows_.end() && row->second == prefixes[i + 1];
      const std::int64_t page = slots[i] / config_.page_size;
      if (!own || (!same && in_a_row(page))) shared_.insert(page);
      if (!own || others) rows_.erase(slots[i]);
      if (others) rows_lost_ = true;
      if (own && !others) rows_[slots[i]] = prefixes[i + 1];
    }
    const TreeAccounts::Reached reached = put_in(whole, slots);
    if (put.length != reached.pages * config_.page_size)
      return judged(std::to_string(put.length) + " units were there before, not " +
                    std::to_string(reached.pages * config_.page_size));
    return expect(put.node == Nullable<std::int64_t>(reached.node),
                  "the last node is not " + std::to_string(reached.node));
  }

  TreeAccounts::Reached put_in(const Path& whole, const Ids& slots) {
    const TreeAccounts::Reached reached = tree_.insert(whole, slots);
    if (misses_)
      for (std::int64_t i = reached.pages; i < std::ssize(whole); ++i)
        misses_->stored(whole[static_cast<std::size_t>(i)]);
    return reached;
  }

  Words give_back(const Ids& pages) {
    if (slots_.give_back(pages) || slots_lost_) return std::nullopt;
    if (!has(Quirk::kFreesAnything)) return "slots are freed that were not handed out";
    slots_lost_ = true;
    return std::nullopt;
  }

  Words evict(const Ids& nodes, std::optional<std::int64_t> units, std::int64_t& gone) {
    for (const std::int64_t node : nodes) {
      if (units && gone >= *units) return "more is evicted than was asked for";
      Ids slots;
      if (misses_)
        for (const Content page : tree_.run_of(node)) misses_->gone(page);
      if (auto words = tree_.remove(node, slots)) return words;
      if (auto words = give_back(slots_.pages_of_segment(slots))) return words;
      gone += std::ssize(slots);
    }
    if (units && gone < *units && !config_.disable && tree_.has_evictable())
      return "less is evicted than was asked for, and more may go";
    return std::nullopt;
  }

  Words observe(const EvictUnits& op, const EvictUnits::Returns& went) {
    std::int64_t gone = 0;
    if (auto words = evict(went.nodes, op.tokens, gone)) return judged(words);
    return expect(gone == went.tokens,
                  std::to_string(went.tokens) + " units went, not " + std::to_string(gone));
  }

  std::optional<std::int64_t> missing(std::int64_t slots) const {
    return slots_lost_ ? std::nullopt : std::optional(slots - slots_.available());
  }

  Words observe(const MakeRoom& op, const NodesOnly& went) {
    std::int64_t gone = 0;
    return judged(evict(went.nodes, missing(op.tokens), gone));
  }

  Words observe(const Lock& op, const Delta& shown) {
    const auto delta = config_.disable ? std::optional<std::int64_t>(0) : tree_.lock(op.node);
    if (!delta && has(Quirk::kGoneNodesLocked)) return lose_track();
    return expect(delta == shown.delta, "the units protected are not the path's");
  }

  Words observe(const Unlock& op, const Delta& shown) {
    const auto delta = config_.disable ? std::optional<std::int64_t>(0) : tree_.unlock(op.node);
    if (!delta && has(Quirk::kUnlockUnguarded)) return lose_track();
    return expect(delta == shown.delta,
                  "the units that are no longer protected are not the path's");
  }

  Words observe(const ResetTree& /*op*/) {
    if (misses_)
      for (const Content page : tree_.all_pages()) misses_->gone(page);
    tree_.reset();
    return judged();
  }

  Words observe(const AllSlots& /*op*/, const SlotsOnly& shown) {
    const auto sorted = [](Ids slots) {
      std::ranges::sort(slots);
      return slots;
    };
    return expect(sorted(shown.slots) == sorted(tree_.all_slots()),
                  "the slots are not those that were put");
  }

  // ---- Requests ----

  Words observe(const FileRequest& op) {
    RadixRequest& known = requests_[op.request];
    known = {.prefixes = prefixes_of(op), .prompt = std::ssize(op.tokens)};
    if (misses_) misses_->made(op.request, known.prefixes, op.tokens);
    return judged();
  }

  void explain_hit(std::int64_t request, std::int64_t hit, const RadixRequest& known) {
    const std::int64_t pair = config_.eagle ? 1 : 0;
    misses_->looked_up({.request = request,
                        .tokens = known.tokens(),
                        .hit = hit,
                        .units = {config_.page_size},
                        .beyond = pair,
                        .reads = !config_.disable,
                        .most_hit = known.tokens() - 1 - pair},
                       known.prefixes, [this](Content content, std::int64_t /*group*/) {
                         return tree_.has(content);
                       });
  }

  // PX-86
  Words observe(const Admit& op, const FoundPrefix& hit, RadixRequest& known) {
    if (misses_) explain_hit(op.request, hit.length, known);
    if (config_.disable) return lose_track();
    if (known.node) return judged("a request is admitted twice");
    if (auto words = wrong_hit(known.prefixes, known.tokens() - 1, hit)) return judged(words);
    (void)tree_.lock(hit.node);
    known.node = hit.node;
    known.row = hit.slots;
    known.has_row = false;
    return judged();
  }

  Words observe(const Extend& op, const Observation& seen, RadixRequest& known) {
    if (!known.node || (seen.error && !seen.failed_with(Code::kExhausted))) return skip();
    contents_.extend(known.prefixes, op.append);
    if (misses_) misses_->grew(op.request, known.prefixes, op.append);
    const auto& went = seen.as<Extend::Returns>();
    if (went.left)
      if (auto words = leave(*went.left, known)) return judged(words);
    const std::int64_t page = config_.page_size;
    const std::int64_t before = std::ssize(known.row);
    std::int64_t gone = 0;
    if (auto words = evict(went.nodes, missing(op.tokens + (page > 1 ? page : 0)), gone))
      return judged(words);
    if (seen.error)
      return judged(refused((before + op.tokens + page - 1) / page - (before + page - 1) / page));
    const Ids slots = went.slots.value_or(Ids());
    const std::int64_t last = known.row.empty() ? -1 : known.row.back();
    if (auto words = taken(slots, op.tokens, before, last)) return judged(words);
    if (auto words = wrong_rows(known.prefixes, known.row)) return judged(words);
    if (!known.has_row) known.protected_ = before;
    known.has_row = true;
    known.row.insert(known.row.end(), slots.begin(), slots.end());
    write(known.prefixes, known.row, before);
    if (misses_) misses_->computed(op.request, std::ssize(known.row));
    return judged();
  }

  // PX-89
  Words leave(const Ids& slots, RadixRequest& known) {
    const auto first = known.row.begin() + known.protected_;
    const auto at = std::find_if(first, known.row.end(), [](auto slot) { return slot != kLeft; });
    if (known.row.end() - at < std::ssize(slots) || !std::equal(slots.begin(), slots.end(), at))
      return "slots left the window that are not the next of the request's own";
    std::fill_n(at, std::ssize(slots), kLeft);
    return give_back(slots_.pages_of_segment(slots));
  }

  // PX-79: who unlocked a request's node by hand took its lock.
  Words unlock(const RadixRequest& known) {
    if (tree_.unlock(*known.node)) return std::nullopt;
    lost_ = has(Quirk::kUnlockUnguarded);
    return lost_ ? Words() : Words("a request unlocks a node that it has not locked");
  }

  Words move_lock(RadixRequest& known, std::int64_t node) {
    if (auto words = unlock(known)) return words;
    (void)tree_.lock(node);
    known.node = node;
    return std::nullopt;
  }

  // PX-87
  Words file(RadixRequest& known) {
    const std::int64_t size = config_.page_size;
    if (std::ssize(known.row) > known.tokens())
      return "a row is filed that is longer than its tokens";
    const std::int64_t length = known.whole();
    write(known.prefixes, known.row, known.protected_);
    const Path whole = path(known.prefixes, length);
    const std::int64_t held = put_in(whole, known.row).pages * size;
    const std::int64_t units = std::ssize(whole) * size;
    known.inserted = std::max(known.inserted, units);
    const Path prompt = path(known.prefixes, std::min(known.prompt, length));
    if (!prompt.empty() && prompt.size() < whole.size()) (void)tree_.walk(prompt);
    if (held > known.protected_) {
      const auto twice =
          IdsView(known.row).subspan(static_cast<std::size_t>(known.protected_),
                                     static_cast<std::size_t>(held - known.protected_));
      if (auto words = give_back(slots_.pages_of_segment(twice))) return words;
    }
    const TreeAccounts::Reached reached = tree_.walk(whole);
    const Ids kept = tree_.slots(whole, reached.pages);
    std::ranges::copy(kept, known.row.begin());
    known.protected_ = units;
    return move_lock(known, reached.node);
  }

  Words observe(const Checkpoint& /*op*/, const Checkpoint::Returns& shown, RadixRequest& known) {
    if (!known.has_row) return skip();
    if (auto words = file(known)) return judged(words);
    if (lost_) return skip();
    if (shown.node != known.node) return judged("another node is locked than what was filed");
    return expect(shown.protected_ == known.protected_, "the row is not the tree's in whole pages");
  }

  Words observe(const Withdraw& /*op*/, RadixRequest& known) {
    if (!known.node) return skip();
    if (known.has_row) return judged("a request is withdrawn that has a row");
    if (auto words = unlock(known)) return judged(words);
    known.node.reset();
    known.row.clear();
    return judged();
  }

  // PX-88
  Words observe(const Finish& op, RadixRequest& known) {
    if (!known.has_row) return skip();
    if (op.keep)
      if (auto words = file(known)) return judged(words);
    Ids own(known.row.begin() + known.protected_, known.row.end());
    std::erase(own, kLeft);
    if (auto words = give_back(slots_.pages_of_segment(own))) return judged(words);
    if (auto words = unlock(known)) return judged(words);
    known = {.prefixes = std::move(known.prefixes), .prompt = known.prompt};
    return judged();
  }

  Words observe(const ShowRow& /*op*/, const ShowRow::Returns& row, RadixRequest& known) {
    if (!known.has_row) return skip();
    if (row.slots != known.row || row.protected_ != known.protected_ ||
        row.inserted != known.inserted || row.node != known.node)
      return judged("the row is not what was handed out and filed");
    return judged(wrong_rows(known.prefixes, row.slots));
  }

  // ---- Slots ----

  // So many slots for a row that ends with `last`.
  Words taken(const Ids& slots, std::int64_t wanted, std::int64_t from, std::int64_t last) {
    if (std::ssize(slots) != wanted)
      return std::to_string(slots.size()) + " slots are handed out, not " + std::to_string(wanted);
    if (slots_lost_) return std::nullopt;
    for (const std::int64_t slot : slots) {
      rows_.erase(slot);
      const std::int64_t page = slot / config_.page_size;
      if (slot % config_.page_size == 0 && (tree_.uses(page) || in_a_row(page)))
        shared_.insert(page);
    }
    return slots_.grow(from, last, slots);
  }

  Words refused(std::int64_t pages) {
    if (slots_lost_ || pages * config_.page_size > slots_.available()) return std::nullopt;
    return "slots are refused, and as many are free";
  }

  Words observe(const AllocSlots& op, const Observation& seen) {
    const std::int64_t pages = op.count / config_.page_size;
    if (seen.failed_with(Code::kExhausted)) return judged(refused(pages));
    if (seen.error) return skip();
    return judged(taken(seen.as<SlotsOnly>().slots, pages * config_.page_size, 0, -1));
  }

  Words observe(const AllocExtend& op, const Observation& seen) {
    const std::int64_t page = config_.page_size;
    std::int64_t pages = 0;
    std::int64_t all = 0;
    for (std::size_t i = 0; i < op.seq_lens.size() && i < op.prefix_lens.size(); ++i) {
      pages += (op.seq_lens[i] + page - 1) / page - (op.prefix_lens[i] + page - 1) / page;
      all += op.seq_lens[i] - op.prefix_lens[i];
    }
    if (seen.failed_with(Code::kExhausted)) return judged(refused(pages));
    if (seen.error) return skip();
    const Ids& slots = seen.as<SlotsOnly>().slots;
    if (std::ssize(slots) != all) return judged("not so many slots as were asked for");
    auto from = slots.begin();
    for (std::size_t i = 0; i < op.seq_lens.size(); ++i) {
      const auto to = from + (op.seq_lens[i] - op.prefix_lens[i]);
      if (auto words = taken(Ids(from, to), to - from, op.prefix_lens[i], op.last_slots[i]))
        return judged(words);
      from = to;
    }
    return judged();
  }

  Words observe(const AllocDecode& op, const Observation& seen) {
    std::int64_t pages = 0;
    for (const std::int64_t length : op.seq_lens) pages += length % config_.page_size == 1 ? 1 : 0;
    if (seen.failed_with(Code::kExhausted)) return judged(refused(pages));
    if (seen.error) return skip();
    const Ids& slots = seen.as<SlotsOnly>().slots;
    if (slots.size() != op.seq_lens.size()) return judged("not one slot for each request");
    for (std::size_t i = 0; i < slots.size(); ++i)
      if (auto words = taken({slots[i]}, 1, op.seq_lens[i] - 1, op.last_slots[i]))
        return judged(words);
    return judged();
  }

  // Slots that the tree has are not the caller's to free.
  Words free_pages(const Ids& pages) {
    if (std::ranges::any_of(pages, [&](std::int64_t page) { return tree_.uses(page); }))
      return lose_track();
    return judged(give_back(pages));
  }
  Words observe(const FreeSlots& op) { return free_pages(slots_.pages_of(op.slots)); }
  Words observe(const FreeSegment& op) { return free_pages(slots_.pages_of_segment(op.slots)); }

  Words observe(const GroupBegin& /*op*/) {
    slots_.begin_group();
    return judged();
  }

  Words observe(const GroupEnd& /*op*/) {
    slots_.end_group();
    return judged();
  }

  // PX-80
  Words observe(const ClearSlots& /*op*/) {
    slots_.clear();
    slots_lost_ = false;
    rows_.clear();
    shared_.clear();
    rows_lost_ = tree_.units() > 0;
    for (const auto& [number, known] : requests_) rows_lost_ = rows_lost_ || !known.row.empty();
    return judged();
  }

  // ---- Figures ----

  Words observe(const ShowTree& /*op*/, const ShowTree::Returns& shown) {
    if (auto words = tree_.compare(shown, contents_, config_.eagle)) return judged(words);
    return judged(slots_lost_ ? Words() : slots_.compare(shown));
  }

  Words wrong_event(const ShownEvent& event) {
    if (event.kind == EventKind::kCleared) {
      told_.clear();
      return std::nullopt;
    }
    const Ids keys = event.keys.value_or(Ids());
    const std::int64_t tokens = event.tokens ? std::ssize(*event.tokens) : 0;
    if (event.kind == EventKind::kStored && tokens != std::ssize(keys) * config_.page_size)
      return "an event has not a page of tokens for each key";
    for (const std::int64_t key : keys)
      if (event.kind == EventKind::kStored)
        ++told_[key];
      else if (--told_[key] < 0)
        return "key " + std::to_string(key) + " is removed, and was not stored";
    return std::nullopt;
  }

  // PX-77: who follows the events knows how much is held.
  Words observe(const TakeEvents& /*op*/, const TakeEvents::Returns& shown) {
    if (!config_.events) return expect(shown.events.empty(), "events are shown that are off");
    for (const ShownEvent& event : shown.events)
      if (auto words = wrong_event(event)) return judged(words);
    std::int64_t pages = 0;
    for (const auto& [key, times] : told_) {
      pages += times;
      if (times > 1 && !has(Quirk::kEventKeysLackExtra))
        return judged("key " + std::to_string(key) + " is stored twice");
    }
    return expect(pages * config_.page_size == tree_.units(),
                  "events say that " + std::to_string(pages * config_.page_size) +
                      " units are held, not " + std::to_string(tree_.units()));
  }

 private:
  Contents contents_ = {};
  TreeAccounts tree_{config_.page_size};
  SlotAccounts slots_{config_.slots, config_.page_size};
  /// [slot]: prefix that ends with its token
  std::unordered_map<std::int64_t, Content> rows_ = {};
  /// Pages of the pool with two holders, by what was done by hand: rows there are not judged.
  std::unordered_set<std::int64_t> shared_ = {};
  std::unordered_map<std::int64_t, std::int64_t> told_ = {};  ///< [key], by events
  bool slots_lost_ = false;
  bool rows_lost_ = false;
};

}  // namespace

std::unique_ptr<Oracle> radix_history(const RadixConfig& config, QuirkSet<Quirk> quirks) {
  return std::make_unique<RadixHistory>(config, quirks);
}

}  // namespace kvo::prefix
