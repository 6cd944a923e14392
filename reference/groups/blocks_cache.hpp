// reference/groups/blocks_cache.hpp: the reference of kind `groups.blocks`.
//
// It shares requests, keys and pool with the reference of `prefix.blocks`, which it answers as,
// where there is one group (properties/groups/one_group_test.cpp). Lookup and slots it does not
// share: what is one line there is a rule for several groups and kinds here, and both are read
// beside their rules.
//
// The rules are written over a table of requests and a pool (reference/groups/parts.hpp): the
// reference has those of `prefix.blocks`, and the optimized cache has its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/groups/cache.hpp"
#include "reference/groups/layout.hpp"
#include "reference/groups/parts.hpp"
#include "reference/groups/undo.hpp"
#include "reference/prefix/journal.hpp"
#include "reference/prefix/parts.hpp"

namespace kvo::groups {

/// Requests with a table for each group. A key is the number of its content.
class Manager : public BlockCache {
 public:
  static Result<std::unique_ptr<BlockCache>> make(const Options& options, QuirkSet<Quirk> quirks);

  Manager(const Options& options, Layout layout, QuirkSet<Quirk> quirks, Parts parts);

  [[nodiscard]] SetupReturns setup() const override { return layout_.shown; }
  [[nodiscard]] Result<std::span<const Key>> request(const MakeRequest& op) override;
  [[nodiscard]] Result<std::span<const Key>> append(std::int64_t request,
                                                    TokensView tokens) override;
  [[nodiscard]] Status set(const prefix::SetRequest& op) override;
  [[nodiscard]] Result<MatchReturns> match(std::int64_t request,
                                           std::optional<std::int64_t> max_length) override;
  [[nodiscard]] Result<MatchConnectorReturns> match_connector(
      std::int64_t request, std::optional<std::int64_t> max_length) override;
  [[nodiscard]] Result<std::int64_t> split(const Split& op) const override;
  [[nodiscard]] Result<Allotment> allocate(const Allocate& op) override;
  [[nodiscard]] Status cache(std::int64_t request, std::int64_t tokens) override;
  [[nodiscard]] Status skip(std::int64_t request, std::int64_t computed,
                            std::optional<std::int64_t> prompt) override;
  [[nodiscard]] Status free(std::int64_t request) override;
  [[nodiscard]] Result<Ids> pop(std::int64_t request) override;
  void step() override;
  [[nodiscard]] CopiesReturns copies() override;
  [[nodiscard]] OffloadsReturns offloads() override;
  [[nodiscard]] Result<OffloadsReturns> finalize(std::int64_t request) override;
  [[nodiscard]] Ids fresh() override;
  [[nodiscard]] Status zero(std::int64_t request, std::int64_t start) override;
  [[nodiscard]] Tables clip(std::int64_t request, std::int64_t computed) const override;
  [[nodiscard]] Result<prefix::AllottedBlocks> take(std::int64_t count) override;
  [[nodiscard]] Status touch(IdsView blocks) override;
  [[nodiscard]] Status release(IdsView blocks) override;
  [[nodiscard]] Result<Ids> evict(IdsView blocks) override;
  [[nodiscard]] Result<bool> reset() override;
  [[nodiscard]] std::optional<std::int64_t> lookup(const Key& key,
                                                   std::int64_t group) const override;
  [[nodiscard]] Tables table(std::int64_t request) const override;
  [[nodiscard]] std::int64_t cached_tokens(std::int64_t request) const override;
  [[nodiscard]] std::int64_t free_blocks() const override { return pool_.free(); }
  [[nodiscard]] Status record(std::int64_t request, std::int64_t hits) override;
  [[nodiscard]] Statistics stats() override;
  [[nodiscard]] std::span<const Event> events() override { return pool_.take_events(); }
  [[nodiscard]] BlocksState state() const override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return pool_.broken_invariant();
  }
  void prefer(Ids blocks) override { pool_.prefer(std::move(blocks)); }

  void commit() noexcept;
  void roll_back() noexcept;

  using Text = prefix::RequestTable::Text;
  using Progress = prefix::RequestTable::Progress;

  // What scripts look at.
  [[nodiscard]] const prefix::RequestTable& requests() const { return requests_; }

 private:
  /// A state inside a chunk that its worker writes (GR-44).
  struct Checkpoint {
    std::int64_t position = 0;  ///< tokens
    std::int64_t index = 0;     ///< of the table
  };
  /// What a request holds of one group, beside its table.
  struct Holding {
    std::optional<std::int64_t> counted = {};      ///< registered blocks (GR-33)
    std::optional<std::int64_t> tail = {};         ///< index of the shared tail (GR-34, GR-46)
    std::optional<std::int64_t> prompt_tail = {};  ///< tokens of its own one
    std::int64_t retired = 0;                      ///< entries (GR-40)
    bool placed = false;                           ///< whether it had GR-42
    std::optional<std::int64_t> last = {};         ///< entry of the state two steps ago
    std::optional<Checkpoint> checkpoint = {};
  };
  /// The counts of an allotment (GR-30).
  struct Call {
    const Allocate& asked;
    std::int64_t external = 0;
    std::int64_t local = 0;  ///< computed and hit
    std::int64_t total = 0;  ///< and external: T, or within the model's length
    std::int64_t main = 0;   ///< and new
    std::int64_t slots = 0;  ///< and drafts
    bool admission = false;  ///< of the whole sequence
    bool adopts = false;     ///< whether hits or loaded tokens are adopted (GR-34)
  };

  // ---- lookup.cpp ----
  /// What a lookup of a set found.
  struct Found {
    Tables blocks = {};  ///< [group of the set]
    std::int64_t length = 0;
  };
  /// All groups.
  struct Hit {
    Tables blocks = {};
    std::int64_t length = 0;
    std::int64_t longest = 0;  ///< that some group holds
  };
  [[nodiscard]] const Group& group(std::int64_t g) const {
    return options_.groups[static_cast<std::size_t>(g)];
  }
  [[nodiscard]] const Group& first_of(const LookupSet& set) const { return group(set.groups[0]); }
  [[nodiscard]] std::int64_t limit_of(const Text& text,
                                      std::optional<std::int64_t> max_length) const;
  [[nodiscard]] bool is_held(const LookupSet& set, const Text& text, std::int64_t unit) const;
  [[nodiscard]] bool is_held_block(const LookupSet& set, const Text& text, std::int64_t i) const;
  bool add_unit(const LookupSet& set, const Text& text, std::int64_t unit, Found& found) const;
  void add_nulls(std::int64_t count, Found& found) const;
  [[nodiscard]] Result<std::int64_t> visible(const LookupSet& set, const Text& text,
                                             std::int64_t blocks) const;
  [[nodiscard]] bool looks_inside(const LookupSet& set) const;
  [[nodiscard]] std::int64_t bound_of(const LookupSet& set, const Text& text, std::int64_t length,
                                      bool drops) const;
  [[nodiscard]] Result<Found> look_up(const LookupSet& set, const Text& text, std::int64_t bound,
                                      bool drops) const;
  [[nodiscard]] Result<Found> look_in_full(const LookupSet& set, const Text& text,
                                           std::int64_t bound, bool drops) const;
  [[nodiscard]] Result<Found> look_in_window(const LookupSet& set, const Text& text,
                                             std::int64_t bound, bool drops) const;
  [[nodiscard]] Result<Found> look_in_chunk(const LookupSet& set, const Text& text,
                                            std::int64_t bound, bool drops) const;
  [[nodiscard]] Result<Found> look_for_state(const LookupSet& set, const Text& text,
                                             std::int64_t bound) const;
  [[nodiscard]] Result<Hit> reconcile(const Text& text, std::int64_t limit) const;
  [[nodiscard]] Result<Hit> intersect(const Text& text, std::int64_t limit) const;
  [[nodiscard]] bool serves(const LookupSet& set, const Text& text, std::int64_t length) const;
  [[nodiscard]] std::int64_t first_needed(const LookupSet& set, std::int64_t length) const;
  void put(const LookupSet& set, Found found, Hit& hit) const;
  [[nodiscard]] Result<Hit> longest_hit(const Text& text, std::int64_t limit) const;
  [[nodiscard]] Status report(const Text& text, const Hit& hit);
  [[nodiscard]] Result<MatchReturns> matched(std::int64_t row, std::int64_t limit);

  // ---- slots.cpp ----
  [[nodiscard]] IdsView hits_of(const Allocate& asked, std::int64_t g) const;
  [[nodiscard]] static bool has_hits(const Allocate& asked);
  [[nodiscard]] bool is_counted(std::int64_t row) const;
  [[nodiscard]] Status may_adopt(std::int64_t row, const Call& call) const;
  [[nodiscard]] Status carries_keys(std::int64_t row, const Call& call) const;
  [[nodiscard]] std::int64_t free_hits(IdsView hits, std::int64_t from) const;
  [[nodiscard]] std::int64_t need(std::int64_t row, std::int64_t g, const Call& call) const;
  [[nodiscard]] std::int64_t need_of_states(std::int64_t row, std::int64_t g,
                                            const Call& call) const;
  [[nodiscard]] std::optional<Checkpoint> checkpoint_of(std::int64_t row, std::int64_t g,
                                                        const Call& call) const;
  [[nodiscard]] std::optional<Checkpoint> checkpoint_in(std::int64_t row, const Group& states,
                                                        std::int64_t start, std::int64_t end,
                                                        std::int64_t position,
                                                        std::int64_t block) const;
  void note_ends(std::int64_t row, const Call& call);
  void note_end(std::int64_t row, std::int64_t tokens);
  [[nodiscard]] bool enough(std::int64_t row, const Call& call, std::int64_t reserved) const;
  // ---- idle.cpp ----
  [[nodiscard]] bool is_idle(std::int64_t row, const Call& call) const;
  [[nodiscard]] bool has_slots(std::int64_t row, std::int64_t g, const Call& call) const;
  [[nodiscard]] bool releases(std::int64_t row, std::int64_t g, std::int64_t tokens) const;
  [[nodiscard]] bool registers(std::int64_t row, std::int64_t g, std::int64_t tokens) const;

  [[nodiscard]] Status release_unneeded(std::int64_t row, std::int64_t tokens,
                                        std::optional<std::int64_t> prompt);
  [[nodiscard]] Status release_of(std::int64_t row, std::int64_t g, std::int64_t tokens,
                                  std::optional<std::int64_t> prompt);
  [[nodiscard]] Status retire_states(std::int64_t row, std::int64_t g, std::int64_t tokens);
  [[nodiscard]] Status adopt(std::int64_t row, const Call& call);
  [[nodiscard]] Status load(std::int64_t row, const Call& call, Ids& evicted);
  [[nodiscard]] Status hand_out(std::int64_t count, Ids& blocks, Ids& evicted);
  [[nodiscard]] Status extend(std::int64_t row, std::int64_t g, std::int64_t length, Ids& blocks,
                              Ids& evicted, bool is_fresh);
  void copy_tail(std::int64_t row, std::int64_t g, std::int64_t block);
  [[nodiscard]] Status add_blocks(std::int64_t row, std::int64_t g, const Call& call, Ids& blocks,
                                  Ids& evicted);
  [[nodiscard]] Status add_states(std::int64_t row, std::int64_t g, const Call& call, Ids& blocks,
                                  Ids& evicted);
  [[nodiscard]] Status leave_own_tail(std::int64_t row, std::int64_t g, std::int64_t block);
  void note_fresh(std::int64_t g, IdsView blocks);
  /// The row of a group of a request.
  [[nodiscard]] std::int64_t at(std::int64_t row, std::int64_t g) const {
    return row * groups() + g;
  }
  [[nodiscard]] Holding& holding(std::int64_t row, std::int64_t g) {
    return holdings_.change(at(row, g));
  }
  [[nodiscard]] const Holding& held(std::int64_t row, std::int64_t g) const {
    return holdings_[at(row, g)];
  }
  [[nodiscard]] const Ids& table(std::int64_t row, std::int64_t g) const {
    return tables_[at(row, g)];
  }
  /// The entry is null from now on. Returns  its block.
  std::int64_t leave_entry(std::int64_t row, std::int64_t g, std::int64_t i);
  void release_keys(std::int64_t row);
  void forget(std::int64_t row);

  // ---- registering.cpp ----
  [[nodiscard]] std::int64_t groups() const { return std::ssize(options_.groups); }
  [[nodiscard]] std::int64_t units(std::int64_t g) const {
    return units_[static_cast<std::size_t>(g)];
  }
  /// A key for a group, as the pool counts them.
  [[nodiscard]] std::int64_t entry(const Text& text, std::int64_t unit, std::int64_t g) const;
  [[nodiscard]] prefix::BlockKeys entries(const Text& text, std::int64_t g,
                                          std::int64_t blocks) const;
  [[nodiscard]] std::optional<std::int64_t> end_of(std::int64_t block) const;
  [[nodiscard]] Status register_tokens(std::int64_t row, std::int64_t tokens, Ids& evicted);
  [[nodiscard]] std::int64_t reach_of(std::int64_t g, std::int64_t tokens) const;
  [[nodiscard]] Status register_blocks(std::int64_t row, std::int64_t g, std::int64_t tokens);
  [[nodiscard]] bool is_wanted(std::int64_t row, std::int64_t g, std::int64_t block,
                               bool by_boundaries = true) const;
  [[nodiscard]] Ids boundaries(std::int64_t row, std::int64_t g) const;
  void set_key(std::int64_t row, std::int64_t g, std::int64_t block, std::int64_t unit);
  void register_tail(std::int64_t row, std::int64_t g, std::int64_t tokens);
  void register_state(std::int64_t row, std::int64_t g, std::int64_t tokens, Ids& evicted);
  void register_checkpoint(std::int64_t row, std::int64_t g, const Checkpoint& made, Ids& evicted);
  void tell_stored(const Text& text, std::int64_t g, std::int64_t first,
                   std::span<const std::int64_t> blocks, std::int64_t end);
  void tell_runs(const Text& text, std::int64_t g, std::span<const std::int64_t> blocks);
  void tell_unit(const Text& text, std::int64_t g, std::int64_t unit);

  Options options_;
  Layout layout_;
  QuirkSet<Quirk> quirks_;
  Ids units_;  ///< [group], of a block
  Parts parts_;
  prefix::RequestTable& requests_;
  prefix::Pool& pool_;
  Rows<Holding> holdings_;      ///< [row, group], as the next two
  Lists<std::int64_t> tables_;  ///< blocks
  Lists<std::int64_t> keyed_;   ///< block, key: what the request set; by turns
  Lists<std::int64_t> ends_;    ///< [row], tokens of which there is a state
  Rows<std::int64_t> vetoes_;   ///< [row], tokens, by the last match
  // What the caller has not taken yet.
  Lists<std::int64_t> copies_;  ///< [group], from, to; by turns
  Lists<std::int64_t> fresh_;   ///< [group]
  Lists<Offload> offloads_;     ///< one list
  NumberSet registered_;        ///< keys of states of this step (GR-47)
  std::int64_t vetoed_ = 0;
  std::vector<Key> keys_;  ///< of the last answer
};

}  // namespace kvo::groups
