#include "optimized/positional/cells.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace kvo::optimized {
namespace {

constexpr std::int64_t kWordBits = 64;

std::uint64_t bit_of(std::int64_t index) {
  return std::uint64_t{1} << static_cast<unsigned>(index % kWordBits);
}

std::size_t word_of(std::int64_t index) {
  return static_cast<std::size_t>(index / kWordBits);
}

bool earlier(const HeldCell& a, const HeldCell& b) {
  return a.position != b.position ? a.position < b.position : a.cell < b.cell;
}

}  // namespace

CellRange hull_of(std::span<const HeldCell> cells) {
  // In 32 bits, so that the compiler uses vectors.
  std::int32_t low = std::numeric_limits<std::int32_t>::max();
  std::int32_t high = -1;
  for (const HeldCell& held : cells) {
    low = std::min(low, held.cell);
    high = std::max(high, held.cell);
  }
  if (high < 0) return {};
  return {low, high};
}

// ---- FreeCells ----

FreeCells::FreeCells(std::int64_t count) : size_(count) {
  for (std::int64_t bits = count; bits > 0;) {
    const std::int64_t words = (bits + kWordBits - 1) / kWordBits;
    Words level(static_cast<std::size_t>(words), ~std::uint64_t{0});
    if (bits % kWordBits != 0) level.back() = bit_of(bits) - 1;
    levels_.push_back(std::move(level));
    bits = words > 1 ? words : 0;
  }
}

bool FreeCells::contains(std::int64_t cell) const {
  return (levels_[0][word_of(cell)] & bit_of(cell)) != 0;
}

std::int64_t FreeCells::lowest() const noexcept {
  std::int64_t index = 0;
  for (std::size_t level = levels_.size(); level-- > 0;)
    index = index * kWordBits + std::countr_zero(levels_[level][static_cast<std::size_t>(index)]);
  return index;
}

void FreeCells::take(std::int64_t cell) noexcept {
  --size_;
  for (Words& level : levels_) {
    std::uint64_t& word = level[word_of(cell)];
    word &= ~bit_of(cell);
    if (word != 0) return;
    cell /= kWordBits;
  }
}

void FreeCells::give(std::int64_t cell) noexcept {
  ++size_;
  for (Words& level : levels_) {
    std::uint64_t& word = level[word_of(cell)];
    const bool had_any = word != 0;
    word |= bit_of(cell);
    if (had_any) return;
    cell /= kWordBits;
  }
}

bool FreeCells::consistent() const {
  std::int64_t bits = 0;
  for (std::size_t level = 0; level < levels_.size(); ++level)
    for (std::size_t word = 0; word < levels_[level].size(); ++word) {
      if (level == 0) bits += std::popcount(levels_[0][word]);
      if (level + 1 == levels_.size()) continue;
      const auto index = static_cast<std::int64_t>(word);
      const bool above = (levels_[level + 1][word_of(index)] & bit_of(index)) != 0;
      if (above != (levels_[level][word] != 0)) return false;
    }
  return bits == size_;
}

// ---- CellPool ----

std::int32_t CellPool::take_lowest() noexcept {
  const auto cell = static_cast<std::int32_t>(free_.lowest());
  share(cell);
  return cell;
}

void CellPool::share(std::int32_t cell) noexcept {
  if (owners_[static_cast<std::size_t>(cell)]++ == 0) free_.take(cell);
}

void CellPool::release(std::int32_t cell) noexcept {
  if (--owners_[static_cast<std::size_t>(cell)] == 0) free_.give(cell);
}

std::optional<std::string> CellPool::broken(std::span<const std::uint32_t> expected) const {
  if (!free_.consistent()) return "the tree of free cells disagrees with itself";
  for (std::size_t cell = 0; cell < owners_.size(); ++cell) {
    if (owners_[cell] != expected[cell])
      return "cell " + std::to_string(cell) + " counts " + std::to_string(owners_[cell]) +
             " owners and has " + std::to_string(expected[cell]);
    if (free_.contains(static_cast<std::int64_t>(cell)) != (owners_[cell] == 0))
      return "cell " + std::to_string(cell) + " is free for one and owned for the other";
  }
  return std::nullopt;
}

// ---- SequenceCells ----

std::uint64_t SequenceCells::index_of(std::int64_t position) const {
  const auto cells = held();
  // Most questions are about the newest position.
  if (cells.empty() || cells.back().position < position) return end();
  const auto found = std::ranges::lower_bound(cells, position, {}, &HeldCell::position);
  return dropped_ + first_ + static_cast<std::uint64_t>(found - cells.begin());
}

// Hulls of blocks that were filled since the last question, each looked at once: appends, which
// must not fail, leave them alone.
void SequenceCells::catch_up() {
  const std::uint64_t oldest = (dropped_ + kBlock - 1) / kBlock;
  if (hulls_version_ != version_ || first_hull_ + hulls_.size() < oldest) {
    hulls_.clear();
    first_hull_ = oldest;
    hulls_version_ = version_;
  }
  if (const auto useless = static_cast<std::ptrdiff_t>(oldest - std::min(oldest, first_hull_));
      useless > static_cast<std::ptrdiff_t>(kBlock) && 2 * useless > std::ssize(hulls_)) {
    hulls_.erase(hulls_.begin(), hulls_.begin() + useless);
    first_hull_ = oldest;
  }
  for (std::uint64_t block = first_hull_ + hulls_.size(); (block + 1) * kBlock <= end(); ++block) {
    const CellRange hull = hull_of(between(block * kBlock, (block + 1) * kBlock));
    hulls_.push_back({static_cast<std::int32_t>(hull.low), static_cast<std::int32_t>(hull.high)});
  }
}

CellRange SequenceCells::hull_from(std::int64_t position) {
  catch_up();
  const std::uint64_t begin = index_of(position);
  const std::uint64_t first = (begin + kBlock - 1) / kBlock;
  const std::uint64_t last = first_hull_ + hulls_.size();
  if (first >= last) return hull_of(between(begin, end()));
  CellRange range = hull_of(between(begin, first * kBlock));
  BlockHull all{std::numeric_limits<std::int32_t>::max(), -1};
  for (const BlockHull& hull : std::span(hulls_).subspan(first - first_hull_)) {
    all.low = std::min(all.low, hull.low);
    all.high = std::max(all.high, hull.high);
  }
  range.extend({all.low, all.high});
  range.extend(hull_of(between(last * kBlock, end())));
  return range;
}

bool SequenceCells::covers(std::int64_t begin, std::int64_t end) const {
  std::int64_t wanted = begin;
  for (const HeldCell& held : from(begin)) {
    if (wanted >= end || held.position > wanted) break;
    wanted = std::int64_t{held.position} + 1;
  }
  return wanted >= end;
}

void SequenceCells::reserve(std::size_t more) {
  const std::size_t needed = cells_.size() + more;
  if (needed > cells_.capacity()) cells_.reserve(std::max(needed, 2 * cells_.capacity()));
  hulls_.reserve(cells_.capacity() / kBlock + 1);  // so that a pass over a decoded token makes none
}

void SequenceCells::append(HeldCell cell) noexcept {
  if (!empty() && cell.position < cells_.back().position) sorted_ = false;
  cells_.push_back(cell);
  range_.extend(cell.cell);
}

void SequenceCells::settle(CellPool& pool) noexcept {
  if (std::exchange(sorted_, true)) return;
  std::sort(first(), cells_.end(), earlier);
  version_ = pool.next_version();
}

std::size_t SequenceCells::evict_before(std::int64_t position, CellPool& pool) noexcept {
  const std::size_t before = first_;
  for (; first_ < cells_.size() && cells_[first_].position < position; ++first_)
    pool.release(cells_[first_].cell);
  return first_ - before;
}

void SequenceCells::restore(std::size_t evicted, CellPool& pool) noexcept {
  for (; evicted > 0; --evicted) pool.share(cells_[--first_].cell);
}

void SequenceCells::compact() noexcept {
  constexpr std::size_t kFew = 64;
  if (first_ < kFew || 2 * first_ < cells_.size()) return;
  cells_.erase(cells_.begin(), first());
  dropped_ += std::exchange(first_, 0);
}

void SequenceCells::cut(std::int32_t begin, std::int32_t end, std::optional<std::int32_t> limit,
                        CellPool& pool) noexcept {
  const std::int64_t offset = std::int64_t{begin} - end;
  bool lost_extreme = false;
  const auto start = static_cast<std::size_t>(index_of(std::min(begin, end)) - dropped_);
  std::size_t kept = start;
  for (std::size_t i = start; i < cells_.size(); ++i) {
    HeldCell held = cells_[i];
    if (!limit || held.cell < *limit) {
      if (held.position >= end) {
        held.position = static_cast<std::int32_t>(held.position + offset);
      } else {
        lost_extreme = lost_extreme || held.cell == range_.low || held.cell == range_.high;
        pool.release(held.cell);
        continue;
      }
    }
    cells_[kept++] = held;
  }
  cells_.erase(cells_.begin() + static_cast<std::ptrdiff_t>(kept), cells_.end());
  version_ = pool.next_version();
  if (limit) {
    std::sort(first(), cells_.end(), earlier);
    range_is_hull_ = false;
  } else if (lost_extreme || !range_is_hull_) {
    range_ = hull_of(held());
    range_is_hull_ = true;
  }
}

void SequenceCells::replace(std::vector<HeldCell> cells, CellPool& pool) noexcept {
  // Shared before released, since some may be in both.
  for (const HeldCell& held : cells) pool.share(held.cell);
  for (const HeldCell& held : held()) pool.release(held.cell);
  cells_ = std::move(cells);
  first_ = 0;
  dropped_ = 0;
  version_ = pool.next_version();
  range_ = hull_of(cells_);
  range_is_hull_ = true;
}

}  // namespace kvo::optimized
