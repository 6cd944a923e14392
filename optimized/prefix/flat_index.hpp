// optimized/prefix/flat_index.hpp: numbers of things, found by hash.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace kvo::optimized {

/// Open addressing with linear probing over a power of two of slots, half of them empty at least.
/// A slot has 32 bits of the hash beside the number, so that hardly any thing is looked at in vain.
/// What is taken out leaves no mark: the gap is closed by what may stand there.
class FlatIndex {
 public:
  using Id = std::uint32_t;
  static constexpr Id kNone = ~Id{0};

  /// Room for so many more. Throws std::bad_alloc; nothing has changed then.
  void reserve(std::size_t more) {
    std::size_t slots = slots_.size();
    while (slots < 2 * (size_ + more)) slots *= 2;
    if (slots > slots_.size()) move_to(slots);
  }
  /// The first of that tag for which `is` holds, or kNone.
  template <class Is>
  [[nodiscard]] Id find(std::uint32_t tag, const Is& is) const {
    for (std::uint32_t at = tag & mask_; slots_[at].id != kNone; at = (at + 1) & mask_)
      if (slots_[at].tag == tag && is(slots_[at].id)) return slots_[at].id;
    return kNone;
  }
  /// Requires  room for one.
  void add(std::uint32_t tag, Id id) noexcept {
    std::uint32_t at = tag & mask_;
    while (slots_[at].id != kNone) at = (at + 1) & mask_;
    slots_[at] = {tag, id};
    ++size_;
  }
  /// Requires  that it is there; as the following.
  void replace(std::uint32_t tag, Id id, Id by) noexcept { slots_[place(tag, id)].id = by; }
  void remove(std::uint32_t tag, Id id) noexcept {
    std::uint32_t gap = place(tag, id);
    for (std::uint32_t at = (gap + 1) & mask_; slots_[at].id != kNone; at = (at + 1) & mask_) {
      const std::uint32_t strayed = (at - slots_[at].tag) & mask_;
      if (strayed < ((at - gap) & mask_)) continue;
      slots_[gap] = slots_[at];
      gap = at;
    }
    slots_[gap] = {};
    --size_;
  }
  void clear() noexcept {
    for (Slot& slot : slots_) slot = {};
    size_ = 0;
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Has the machine fetch what find() will look at.
  void prefetch(std::uint32_t tag) const { __builtin_prefetch(&slots_[tag & mask_]); }

 private:
  struct Slot {
    std::uint32_t tag = 0;
    Id id = kNone;
  };
  [[nodiscard]] std::uint32_t place(std::uint32_t tag, Id id) const noexcept {
    std::uint32_t at = tag & mask_;
    while (slots_[at].id != id) at = (at + 1) & mask_;
    return at;
  }
  void move_to(std::size_t slots) {
    std::vector<Slot> made(slots);
    const auto mask = static_cast<std::uint32_t>(slots - 1);
    for (const Slot& slot : slots_) {
      if (slot.id == kNone) continue;
      std::uint32_t at = slot.tag & mask;
      while (made[at].id != kNone) at = (at + 1) & mask;
      made[at] = slot;
    }
    slots_ = std::move(made);
    mask_ = mask;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(16);
  std::uint32_t mask_ = 15;
  std::size_t size_ = 0;
};

}  // namespace kvo::optimized
