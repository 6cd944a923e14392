// properties/positional/followed_cache.hpp: what a random script knows of the cells of its case.
//
// A reference of the script's own goes through the same operations. So it is right after every
// error, in both profiles, and what a script asks is read off its cells.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <type_traits>
#include <vector>

#include "reference/positional/causal_cache.hpp"
#include "reference/positional/operations.hpp"

namespace kvo::positional {

/// What a start_forward did that is worth a name, in any member.
struct PassEffects {
  bool cells_reused = false;  ///< a new token lies where one was evicted
  bool window_exceeded = false;
  bool chunk_crossed = false;
  bool range_rounded = false;
  bool unwound = false;      ///< a later member was full
  std::int64_t cells = 0;    ///< up to the highest that a token took
  std::int64_t evicted = 0;  ///< the most that one sequence has lost, in passes since it began
};

/// The reference that a script steps along.
class FollowedCache {
 public:
  /// Requires  the reference of `kind` takes the setup. Without `notes` passes have no effects, and
  /// cost less.
  FollowedCache(const CacheKind& kind, const Setup& setup, bool notes = true);

  /// Carries out any operation but start_forward.
  template <class T>
  void follow(const T& op) {
    (void)session_->apply(Op::of(op), probe_);
    // Who owns nothing, or gets other cells, begins anew.
    if constexpr (std::is_same_v<T, CopyPrefix>) lost_.erase(op.dst);
    if constexpr (std::is_same_v<T, Remove>)
      if (op.begin <= 0 && op.end == kMaxPosition) lost_.erase(op.seq);
  }
  /// `full`: it will have no room for the batch.
  PassEffects follow(const StartForward& pass, bool full);

  /// Cells of the largest pool.
  [[nodiscard]] std::int64_t pool() const;
  /// Free cells of the first member that has positions.
  [[nodiscard]] std::int64_t free() const;
  /// Whether some member has positions: an encoder has none.
  [[nodiscard]] bool has_positions() const { return first_causal() != nullptr; }
  /// A member, for those who look on; null for an encoder.
  [[nodiscard]] const CausalCache* causal(std::size_t member) const;
  // Of the first member that has positions; nothing without one.
  /// The positions of a sequence, ascending.
  [[nodiscard]] std::vector<std::int32_t> positions(std::int64_t sequence) const;
  /// The smallest position from which on the cells of a sequence are its own; kMaxPosition if the
  /// last one is shared, 0 if none is.
  [[nodiscard]] std::int32_t unshared_from(std::int64_t sequence) const;
  /// Whether a cell that stays as it is lies between cells that a removal moves (OK-65).
  [[nodiscard]] bool keeps_between(const Remove& remove) const;
  /// Whether two sequences, if they are two, have a cell in common; in any member.
  [[nodiscard]] bool share(std::int64_t one, std::int64_t other) const;

 private:
  using Cells = std::vector<CausalCache::Cell>;

  [[nodiscard]] const CausalCache* first_causal() const;
  [[nodiscard]] const Cells& first_cells() const;
  /// Whether the first member takes a batch that the cache as a whole has no room for.
  [[nodiscard]] bool first_has_room(const StartForward& pass) const;
  /// Compares a member with what it was before a pass.
  void note_evictions(std::size_t member, const Cells& before, PassEffects& effects);
  void note_tokens(std::size_t member, const StartForward& pass, PassEffects& effects) const;

  bool notes_;
  std::vector<MemberOptions> members_;
  std::vector<std::set<std::size_t>> evicted_;  ///< by member, cells that are free since then
  /// Cells that passes took from a sequence, by member.
  std::map<std::int64_t, std::map<std::size_t, std::int64_t>> lost_;
  const Cache* cache_ = nullptr;  ///< the session's
  std::unique_ptr<Session> session_;
  Probe probe_;
};

}  // namespace kvo::positional
