#include "optimized/prefix/slot_pool.hpp"

#include <algorithm>
#include <numeric>

#include "optimized/memory/growth.hpp"

namespace kvo::optimized {

using prefix::Ids;
using prefix::IdsView;

namespace {

// Without words: making it must not fail, for leaves may have been evicted and lists joined.
Error exhausted() {
  return fail(Code::kExhausted);
}
Error not_out() {
  return fail(Code::kPrecondition, "slots: one is not handed out");
}
Error no_pages() {
  return fail(Code::kNotSupported, "page_size: 1");
}

}  // namespace

SlotPool::SlotPool(const prefix::RadixConfig& config, bool frees_anything)
    : page_(config.page_size),
      slots_(config.slots),
      need_sort_(config.need_sort),
      frees_anything_(frees_anything) {
  clear();
}

void SlotPool::clear() {
  constexpr std::size_t kSpare = 8;
  free_.reserve(units() + kSpare - std::min(units() + kSpare, free_.size()));
  std::vector<bool> none_out(frees_anything_ ? 0 : units() + 1);
  free_.clear();
  for (std::size_t unit = 1; unit <= units(); ++unit)
    free_.push_back(static_cast<std::int64_t>(unit));
  out_.swap(none_out);
  staged_.clear();
  group_slots_.clear();
  group_pages_.clear();
  grouped_ = false;
}

Ids SlotPool::free_list() const {
  Ids list(free_.size());
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = free_[i];
  return list;
}

// PX-80: joins and sorts where the list is too short.
void SlotPool::sort_for(std::int64_t wanted) {
  if (!need_sort_ || staged_.empty() || wanted <= static_cast<std::int64_t>(free_.size())) return;
  free_.reserve(staged_.size());
  for (const std::int64_t unit : staged_) free_.push_back(unit);
  staged_.clear();
  free_.sort();
}

std::int64_t SlotPool::unit_of(std::int64_t slot) const {
  return slot / page_ - (slot % page_ < 0 ? 1 : 0);
}

void SlotPool::mark(std::int64_t unit, bool out) noexcept {
  const auto at = static_cast<std::size_t>(unit);
  if (at < out_.size()) out_[at] = out;
}

std::int64_t SlotPool::hand_out() noexcept {
  const std::int64_t unit = free_.pop_front();
  mark(unit, true);
  return unit;
}

// Slots in a row. Requires  space in result_.
void SlotPool::add_slots(std::int64_t first, std::int64_t count) noexcept {
  const auto end = static_cast<std::ptrdiff_t>(result_.size());
  result_.resize(result_.size() + static_cast<std::size_t>(count));
  std::iota(result_.begin() + end, result_.end(), first);
}

void SlotPool::reserve_result(std::int64_t count) {
  result_.clear();
  make_room(result_, static_cast<std::size_t>(count));
}

Result<IdsView> SlotPool::alloc(std::int64_t count) {
  const std::int64_t units = count / page_;
  reserve_result(units * page_ <= available() ? units * page_ : 0);
  sort_for(units);
  if (units > static_cast<std::int64_t>(free_.size())) return exhausted();
  for (std::int64_t i = 0; i < units; ++i) add_slots(hand_out() * page_, page_);
  return IdsView(result_);
}

Result<IdsView> SlotPool::alloc_extend(IdsView prefixes, IdsView lengths, IdsView last) {
  if (page_ == 1) return no_pages();
  std::int64_t tokens = 0;
  std::int64_t pages = 0;
  const auto whole = [&](std::int64_t count) { return (count + page_ - 1) / page_; };
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    tokens += lengths[i] - prefixes[i];
    pages += whole(lengths[i]) - whole(prefixes[i]);
  }
  reserve_result(pages <= available() / page_ ? tokens : 0);
  sort_for(tokens / page_ + std::ssize(prefixes) + 1);
  if (pages > static_cast<std::int64_t>(free_.size())) return exhausted();
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    std::int64_t at = prefixes[i];
    const std::int64_t open = std::min(lengths[i], whole(at) * page_);
    add_slots(last[i] + 1, open - at);
    for (at = open; at < lengths[i]; at += page_)
      add_slots(hand_out() * page_, std::min(page_, lengths[i] - at));
  }
  return IdsView(result_);
}

Result<IdsView> SlotPool::alloc_decode(IdsView lengths, IdsView last) {
  if (page_ == 1) return no_pages();
  const auto begins = [&](std::int64_t length) { return length % page_ == 1; };
  reserve_result(std::ssize(lengths));
  sort_for(std::ssize(lengths));
  if (std::ranges::count_if(lengths, begins) > static_cast<std::int64_t>(free_.size()))
    return exhausted();
  for (std::size_t i = 0; i < lengths.size(); ++i)
    result_.push_back(begins(lengths[i]) ? hand_out() * page_ : last[i] + 1);
  return IdsView(result_);
}

// Takes marks off as it goes, and puts them back where one is missing.
bool SlotPool::all_out(IdsView slots, std::size_t step) {
  if (frees_anything_) return true;
  std::size_t at = 0;
  const auto unit = [&](std::size_t i) { return static_cast<std::size_t>(unit_of(slots[i])); };
  for (; at < slots.size(); at += step) {
    if (unit(at) >= out_.size() || !out_[unit(at)]) break;
    out_[unit(at)] = false;
  }
  if (at >= slots.size()) return true;
  while (at >= step) {
    at -= step;
    out_[unit(at)] = true;
  }
  return false;
}

void SlotPool::mark_out(IdsView slots) noexcept {
  for (std::size_t i = 0; i < slots.size(); i += static_cast<std::size_t>(page_))
    mark(unit_of(slots[i]), true);
}

void SlotPool::reserve(std::size_t tokens) {
  const std::size_t units = tokens / static_cast<std::size_t>(page_) + 4;
  if (grouped_)
    make_room(page_ == 1 ? group_slots_ : group_pages_, units);
  else if (need_sort_)
    make_room(staged_, units);
  free_.reserve(units + staged_.size());
}

void SlotPool::give_segment(IdsView slots) noexcept {
  const auto step = static_cast<std::size_t>(page_);
  for (std::size_t i = 0; i < slots.size(); i += step) mark(unit_of(slots[i]), false);
  if (grouped_) {
    for (std::size_t i = 0; i < slots.size(); i += step)
      (page_ == 1 ? group_slots_ : group_pages_).push_back(unit_of(slots[i]));
  } else if (need_sort_) {
    for (std::size_t i = 0; i < slots.size(); i += step) staged_.push_back(unit_of(slots[i]));
  } else if (page_ == 1) {
    for (const std::int64_t slot : slots) free_.push_back(slot);
  } else {
    for (std::size_t i = (slots.size() + step - 1) / step; i > 0; --i)
      free_.push_front(unit_of(slots[(i - 1) * step]));
  }
}

// Puts pages to the front in this order, or stages them.
void SlotPool::file_pages(IdsView pages) {
  if (need_sort_) {
    staged_.insert(staged_.end(), pages.begin(), pages.end());
    return;
  }
  for (std::size_t i = pages.size(); i > 0; --i) free_.push_front(pages[i - 1]);
}

// Requires  room, also in pages_.
void SlotPool::file(IdsView slots) {
  if (page_ == 1) {
    give_segment(slots);
    return;
  }
  pages_.clear();
  for (const std::int64_t slot : slots) pages_.push_back(unit_of(slot));
  std::ranges::sort(pages_);
  pages_.erase(std::unique(pages_.begin(), pages_.end()), pages_.end());
  file_pages(pages_);
}

Status SlotPool::free(IdsView slots) {
  if (page_ == 1) return free_segment(slots, 0);
  pages_.clear();
  make_room(pages_, slots.size());
  if (!frees_anything_) {
    for (const std::int64_t slot : slots) pages_.push_back(unit_of(slot) * page_);
    std::ranges::sort(pages_);
    pages_.erase(std::unique(pages_.begin(), pages_.end()), pages_.end());
  }
  if (grouped_)
    make_room(group_slots_, slots.size());
  else
    reserve(slots.size() * static_cast<std::size_t>(page_));
  if (!all_out(pages_, 1)) return not_out();
  if (grouped_)
    group_slots_.insert(group_slots_.end(), slots.begin(), slots.end());
  else
    file(slots);
  return {};
}

Status SlotPool::free_segment(IdsView slots, std::int64_t start) {
  if (slots.empty()) return {};
  if (start % page_ != 0) return fail(Code::kPrecondition, "start: it is within a page");
  reserve(slots.size());
  if (!all_out(slots, static_cast<std::size_t>(page_))) return not_out();
  give_segment(slots);
  return {};
}

Status SlotPool::group_begin() {
  if (grouped_) return fail(Code::kPrecondition, "a group is open");
  grouped_ = true;
  return {};
}

Status SlotPool::group_end() {
  if (!grouped_) return {};
  const std::size_t units = group_slots_.size() + group_pages_.size();
  pages_.clear();
  make_room(pages_, group_slots_.size());
  if (need_sort_)
    make_room(staged_, units);
  else
    free_.reserve(units);
  grouped_ = false;
  file(group_slots_);
  file_pages(group_pages_);
  group_slots_.clear();
  group_pages_.clear();
  return {};
}

}  // namespace kvo::optimized
