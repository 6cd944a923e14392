#include "optimized/cells/owned_cells.hpp"

#include <algorithm>

#include "reference/contract/values/check.hpp"

namespace kvo::optimized {

std::size_t OwnedCells::index_of(std::int64_t pos) const noexcept {
  const auto held = all();
  // Most ask for what comes next, or for everything.
  if (held.empty() || held.back().pos < pos) return held.size();
  if (held.front().pos >= pos) return 0;
  const auto found = std::ranges::lower_bound(
      held, pos, {}, [](const CellAt& cell) { return std::int64_t{cell.pos}; });
  return static_cast<std::size_t>(found - held.begin());
}

void OwnedCells::grow(std::size_t more) {
  if (first_ >= more && first_ >= size()) {
    // Half and more is given up: the place is used again, and each cell moves once for that.
    cells_.erase(cells_.begin(), cells_.begin() + static_cast<std::ptrdiff_t>(first_));
  } else {
    std::vector<CellAt> larger;
    constexpr std::size_t kFew = 8;  // a line of the processor's caches
    larger.reserve(std::max({size() + more, size() * 2, kFew}));
    larger.assign(all().begin(), all().end());
    cells_.swap(larger);
  }
  first_ = 0;
}

void OwnedCells::insert(CellAt cell) noexcept {
  if ((empty() || cells_.back() < cell) && cells_.size() < cells_.capacity()) {
    cells_.push_back(cell);
    return;
  }
  const auto begin = cells_.begin() + static_cast<std::ptrdiff_t>(first_);
  const auto place = std::lower_bound(begin, cells_.end(), cell);
  const bool no_room = cells_.size() == cells_.capacity();
  if (first_ > 0 && (no_room || place - begin < cells_.end() - place)) {
    std::move(begin, place, begin - 1);
    *(place - 1) = cell;
    --first_;
  } else {
    cells_.insert(place, cell);
  }
}

void OwnedCells::erase(CellAt cell) noexcept {
  const auto held = all();
  const auto found = std::ranges::lower_bound(held, cell);
  KVO_CHECK(found != held.end() && *found == cell);
  const auto index = static_cast<std::size_t>(found - held.begin());
  erase(index, index + 1);
}

void OwnedCells::erase(std::size_t begin, std::size_t end) noexcept {
  const auto first = cells_.begin() + static_cast<std::ptrdiff_t>(first_);
  const auto low = first + static_cast<std::ptrdiff_t>(begin);
  const auto high = first + static_cast<std::ptrdiff_t>(end);
  if (low - first < cells_.end() - high) {
    std::move_backward(first, low, high);
    first_ += end - begin;
  } else {
    cells_.erase(low, high);
  }
  if (empty()) clear();
}

void OwnedCells::clear() noexcept {
  cells_.clear();
  first_ = 0;
}

void OwnedCells::settle() noexcept {
  const auto held = unsettled();
  if (!std::ranges::is_sorted(held)) std::ranges::sort(held);
}

void OwnedCells::copy(const OwnedCells& other) {
  cells_.reserve(other.size());
  cells_.assign(other.all().begin(), other.all().end());
  first_ = 0;
}

bool OwnedCells::sorted() const {
  return std::ranges::adjacent_find(all(), std::greater_equal()) == all().end();
}

}  // namespace kvo::optimized
