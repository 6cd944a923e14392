// optimized/prefix/slot_pool.hpp: the free slots of `prefix.radix`.
//
// Words    unit   here: what the lists hold, a slot, or a page where one has several slots.
// Source   rules PX-80 to PX-82, PX-85.
#pragma once

#include <cstdint>
#include <vector>

#include "optimized/prefix/ring.hpp"
#include "reference/prefix/radix.hpp"

namespace kvo::optimized {

class SlotPool {
 public:
  SlotPool(const prefix::RadixConfig& config, bool frees_anything);

  [[nodiscard]] std::int64_t available() const {
    return (std::ssize(staged_) + static_cast<std::int64_t>(free_.size())) * page_;
  }
  /// Errors  as prefix::RadixCache; so of the following.
  [[nodiscard]] Result<prefix::IdsView> alloc(std::int64_t count);
  [[nodiscard]] Result<prefix::IdsView> alloc_extend(prefix::IdsView prefixes,
                                                     prefix::IdsView lengths, prefix::IdsView last);
  [[nodiscard]] Result<prefix::IdsView> alloc_decode(prefix::IdsView lengths, prefix::IdsView last);
  [[nodiscard]] Status free(prefix::IdsView slots);
  [[nodiscard]] Status free_segment(prefix::IdsView slots, std::int64_t start);
  [[nodiscard]] Status group_begin();
  [[nodiscard]] Status group_end();
  void clear();

  /// Room for the slots of so many tokens, so that give_segment() needs none. Throws
  /// std::bad_alloc; nothing has changed then.
  void reserve(std::size_t tokens);
  /// Whether all slots of a segment may be freed; they are marked as free then, for
  /// give_segment(), or for mark_out() where it does not come to that.
  [[nodiscard]] bool mark_free(prefix::IdsView slots) {
    return all_out(slots, static_cast<std::size_t>(page_));
  }
  void mark_out(prefix::IdsView slots) noexcept;
  /// free_segment from the begin of a page, of slots that nobody checks. Requires  room.
  void give_segment(prefix::IdsView slots) noexcept;
  /// Room for the result of an alloc of so many. Throws std::bad_alloc.
  void reserve_result(std::int64_t count);

  [[nodiscard]] prefix::Ids free_list() const;
  [[nodiscard]] const prefix::Ids& staged_list() const { return staged_; }

 private:
  [[nodiscard]] std::size_t units() const { return static_cast<std::size_t>(slots_ / page_); }
  [[nodiscard]] std::int64_t unit_of(std::int64_t slot) const;
  void sort_for(std::int64_t wanted);
  [[nodiscard]] std::int64_t hand_out() noexcept;
  void add_slots(std::int64_t first, std::int64_t count) noexcept;
  /// Whether each is handed out, and none there twice; all are marked as free then.
  [[nodiscard]] bool all_out(prefix::IdsView slots, std::size_t step);
  void mark(std::int64_t unit, bool out) noexcept;
  void file(prefix::IdsView slots);
  void file_pages(prefix::IdsView pages);

  std::int64_t page_;
  std::int64_t slots_;
  bool need_sort_;
  bool frees_anything_;
  Ring free_;
  prefix::Ids staged_;
  std::vector<bool> out_;  ///< [unit]: handed out; only where that is checked
  bool grouped_ = false;
  prefix::Ids group_slots_;  ///< freed in the group
  prefix::Ids group_pages_;  ///< of its segments
  prefix::Ids result_;
  prefix::Ids pages_;  ///< used within a call
};

}  // namespace kvo::optimized
