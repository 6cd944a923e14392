#include "reference/prefix/slot_pool.hpp"

#include <algorithm>

namespace kvo::prefix {

SlotPool::SlotPool(const RadixConfig& config, QuirkSet<Quirk> quirks)
    : page_size_(config.page_size),
      pages_(config.slots / config.page_size),
      need_sort_(config.need_sort),
      quirks_(quirks),
      lists_(at_the_start()) {}

SlotPool::Lists SlotPool::at_the_start() const {
  Lists lists;
  for (std::int64_t page = 1; page <= pages_; ++page) lists.free.push_back(page);
  lists.out.resize(static_cast<std::size_t>(pages_ + 1));
  return lists;
}

std::int64_t SlotPool::available() const {
  return (std::ssize(lists_.free) + std::ssize(lists_.staged)) * page_size_;
}

SlotPool::Lists& SlotPool::change() {
  if (!before_) before_ = lists_;
  return lists_;
}

void SlotPool::roll_back() noexcept {
  if (before_) lists_ = std::move(*before_);
  before_.reset();
}

std::int64_t SlotPool::page_of(std::int64_t slot) const {
  return slot / page_size_ - (slot % page_size_ < 0 ? 1 : 0);
}

void SlotPool::sort_in() {
  if (lists_.staged.empty()) return;
  Lists& lists = change();
  lists.free.insert(lists.free.end(), lists.staged.begin(), lists.staged.end());
  lists.staged.clear();
  std::ranges::sort(lists.free);
}

void SlotPool::prefer(IdsView slots) {
  preferred_.clear();
  for (const std::int64_t slot : slots) preferred_.push_back(page_of(slot));
}

std::int64_t SlotPool::take() {
  Lists& lists = change();
  auto next = lists.free.begin();
  while (!preferred_.empty()) {
    const auto found = std::ranges::find(lists.free, preferred_.front());
    preferred_.pop_front();
    if (found == lists.free.end()) continue;
    next = found;
    break;
  }
  const std::int64_t page = *next;
  lists.free.erase(next);
  if (page >= 0 && page <= pages_) lists.out[static_cast<std::size_t>(page)] = true;
  return page;
}

// PX-80, PX-81
Status SlotPool::alloc(std::int64_t count, Ids& slots) {
  const std::int64_t pages = count / page_size_;
  if (pages > std::ssize(lists_.free)) sort_in();
  if (pages > std::ssize(lists_.free)) return fail(Code::kExhausted);
  for (std::int64_t i = 0; i < pages; ++i)
    for (std::int64_t slot = take() * page_size_, k = 0; k < page_size_; ++k)
      slots.push_back(slot + k);
  return {};
}

Status SlotPool::alloc_extend(IdsView prefixes, IdsView lengths, IdsView last, Ids& slots) {
  if (page_size_ == 1) return fail(Code::kNotSupported, "pages of one slot");
  const auto ceil = [&](std::int64_t tokens) { return (tokens + page_size_ - 1) / page_size_; };
  std::int64_t new_pages = 0;
  std::int64_t new_tokens = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    new_pages += ceil(lengths[i]) - ceil(prefixes[i]);
    new_tokens += lengths[i] - prefixes[i];
  }
  if (new_tokens / page_size_ + std::ssize(lengths) + 1 > std::ssize(lists_.free)) sort_in();
  if (new_pages > std::ssize(lists_.free)) return fail(Code::kExhausted);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    std::int64_t slot = last[i];
    for (std::int64_t position = prefixes[i]; position < lengths[i]; ++position) {
      slot = position % page_size_ == 0 ? take() * page_size_ : slot + 1;
      slots.push_back(slot);
    }
  }
  return {};
}

Status SlotPool::alloc_decode(IdsView lengths, IdsView last, Ids& slots) {
  if (page_size_ == 1) return fail(Code::kNotSupported, "pages of one slot");
  if (std::ssize(lengths) > std::ssize(lists_.free)) sort_in();
  const auto opens = [&](std::int64_t length) { return length % page_size_ == 1; };
  if (std::ranges::count_if(lengths, opens) > std::ssize(lists_.free))
    return fail(Code::kExhausted);
  for (std::size_t i = 0; i < lengths.size(); ++i)
    slots.push_back(opens(lengths[i]) ? take() * page_size_ : last[i] + 1);
  return {};
}

// The pages go to the end of what is staged, of the list if they are slots, else to its front.
void SlotPool::put(IdsView pages) {
  Lists& lists = change();
  if (need_sort_) {
    lists.staged.insert(lists.staged.end(), pages.begin(), pages.end());
  } else {
    const auto where = page_size_ == 1 ? lists.free.end() : lists.free.begin();
    lists.free.insert(where, pages.begin(), pages.end());
  }
}

Status SlotPool::give_back(IdsView pages) {
  std::vector<bool>& out = change().out;
  for (const std::int64_t page : pages) {
    const bool known = page >= 1 && page <= pages_;
    if (!quirks_.has(Quirk::kFreesAnything) && !(known && out[static_cast<std::size_t>(page)]))
      return fail(Code::kPrecondition, "slots: of page " + std::to_string(page) + " are free");
    if (known) out[static_cast<std::size_t>(page)] = false;
  }
  return {};
}

// The pages of the slots, each once, ascending; slots in their order where a page is one.
Ids SlotPool::pages_of(IdsView slots) const {
  Ids pages;
  for (const std::int64_t slot : slots) pages.push_back(page_of(slot));
  if (page_size_ == 1) return pages;
  std::ranges::sort(pages);
  const auto twice = std::unique(pages.begin(), pages.end());
  pages.erase(twice, pages.end());
  return pages;
}

Status SlotPool::free(IdsView slots) {
  if (slots.empty()) return {};
  const Ids pages = pages_of(slots);
  if (Status done = give_back(pages); !done) return done;
  if (lists_.in_group) {
    Ids& held = change().group_slots;
    held.insert(held.end(), slots.begin(), slots.end());
  } else {
    put(pages);
  }
  return {};
}

Status SlotPool::free_segment(IdsView slots, std::int64_t start) {
  if (page_size_ == 1) return free(slots);
  if (slots.empty()) return {};
  if (start % page_size_ != 0)
    return fail(Code::kPrecondition, "start: " + std::to_string(start) + " is within a page");
  Ids pages;
  for (std::size_t i = 0; i < slots.size(); i += static_cast<std::size_t>(page_size_))
    pages.push_back(page_of(slots[i]));
  if (Status done = give_back(pages); !done) return done;
  if (lists_.in_group) {
    Ids& held = change().group_pages;
    held.insert(held.end(), pages.begin(), pages.end());
  } else {
    put(pages);
  }
  return {};
}

Status SlotPool::group_begin() {
  if (lists_.in_group) return fail(Code::kPrecondition, "a group has begun already");
  change().in_group = true;
  return {};
}

void SlotPool::group_end() {
  Lists& lists = change();
  lists.in_group = false;
  const Ids slots = std::exchange(lists.group_slots, {});
  const Ids pages = std::exchange(lists.group_pages, {});
  put(pages_of(slots));
  put(pages);
}

void SlotPool::clear() {
  change() = at_the_start();
}

}  // namespace kvo::prefix
