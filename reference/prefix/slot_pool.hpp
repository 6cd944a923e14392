// reference/prefix/slot_pool.hpp: the slots of the reference (PX-80 to PX-82).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "reference/prefix/radix.hpp"

namespace kvo::prefix {

/// Free pages; a page of one slot is a slot. What calls change is taken back by roll_back(), and
/// for good after commit().
class SlotPool {
 public:
  SlotPool(const RadixConfig& config, QuirkSet<Quirk> quirks);

  /// Free slots.
  [[nodiscard]] std::int64_t available() const;
  [[nodiscard]] const std::deque<std::int64_t>& free_pages() const { return lists_.free; }
  [[nodiscard]] const Ids& staged_pages() const { return lists_.staged; }
  [[nodiscard]] bool in_group() const { return lists_.in_group; }

  /// Until the next time, takes the pages of these slots before others, if they are free.
  void prefer(IdsView slots);
  /// Each adds the slots that it takes to `slots`.
  /// Errors  kExhausted: what was staged may have been sorted in; alloc_extend and alloc_decode
  ///         kNotSupported: pages of one slot.
  [[nodiscard]] Status alloc(std::int64_t count, Ids& slots);
  [[nodiscard]] Status alloc_extend(IdsView prefixes, IdsView lengths, IdsView last, Ids& slots);
  [[nodiscard]] Status alloc_decode(IdsView lengths, IdsView last, Ids& slots);
  /// Errors  as of RadixCache; roll back then.
  [[nodiscard]] Status free(IdsView slots);
  [[nodiscard]] Status free_segment(IdsView slots, std::int64_t start);
  [[nodiscard]] Status group_begin();
  void group_end();
  void clear();

  void commit() noexcept { before_.reset(); }
  void roll_back() noexcept;

 private:
  struct Lists {
    std::deque<std::int64_t> free;  ///< pages, the next to be taken first
    Ids staged;                     ///< pages that are to be sorted in
    std::vector<bool> out;          ///< [page], whether it is handed out
    bool in_group = false;
    Ids group_slots;  ///< held back
    Ids group_pages;  ///< held back, of segments
  };

  [[nodiscard]] Lists at_the_start() const;
  [[nodiscard]] std::int64_t page_of(std::int64_t slot) const;
  /// The lists, to be changed.
  [[nodiscard]] Lists& change();
  /// What is staged joins the free pages, which are sorted then.
  void sort_in();
  /// The front of the list.
  [[nodiscard]] std::int64_t take();
  /// Errors  without kFreesAnything kPrecondition: a page is not handed out.
  [[nodiscard]] Status give_back(IdsView pages);
  [[nodiscard]] Ids pages_of(IdsView slots) const;
  void put(IdsView pages);

  std::int64_t page_size_;
  std::int64_t pages_;
  bool need_sort_;
  QuirkSet<Quirk> quirks_;
  Lists lists_;
  std::deque<std::int64_t> preferred_;  ///< pages
  std::optional<Lists> before_;
};

}  // namespace kvo::prefix
