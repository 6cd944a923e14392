#include "optimized/cells/bitmap.hpp"

#include <algorithm>

#include "reference/contract/values/check.hpp"

namespace kvo::optimized {
namespace {

// The bits of a word from number `from` on.
std::uint64_t bits_from(std::uint64_t word, std::int64_t from) {
  return word & ~std::uint64_t{0} << (from & 63);
}

}  // namespace

CellBitmap::CellBitmap(std::int64_t size, bool full)
    : words_(word_of(size + 63)), bits_(words_ + (words_ + 63) / 64), size_(size) {
  KVO_CHECK(size >= 0 && size <= kMost);
  if (!full) return;
  count_ = size;
  for (std::int64_t cell = 0; cell < size; cell += 64) {
    bits_[word_of(cell)] = ~std::uint64_t{0} >> (std::max<std::int64_t>(cell + 64 - size, 0));
    word_above(cell) |= bit(cell >> 6);
    top_ |= bit(cell >> 12);
  }
}

std::int64_t CellBitmap::next(std::int64_t from) const noexcept {
  if (from >= size_) return size_;
  if (const std::uint64_t here = bits_from(bits_[word_of(from)], from); here != 0)
    return (from & ~std::int64_t{63}) + std::countr_zero(here);
  // Behind this word; then behind the group of 64 words that it is in.
  std::int64_t word = (from >> 6) + 1;
  if ((word & 63) != 0) {
    if (const std::uint64_t beside = bits_from(middle(word >> 6), word); beside != 0) {
      word = (word & ~std::int64_t{63}) + std::countr_zero(beside);
      return word * 64 + std::countr_zero(bits_[static_cast<std::size_t>(word)]);
    }
    word = (word | 63) + 1;
  }
  const std::int64_t group = word >> 6;
  if (group >= 64) return size_;
  const std::uint64_t above = bits_from(top_, group);
  if (above == 0) return size_;
  const std::int64_t found = std::countr_zero(above);
  word = found * 64 + std::countr_zero(middle(found));
  return word * 64 + std::countr_zero(bits_[static_cast<std::size_t>(word)]);
}

std::int64_t CellBitmap::next_missing(std::int64_t from, std::int64_t to) const noexcept {
  while (from < to) {
    const std::uint64_t missing = bits_from(~bits_[word_of(from)], from);
    if (missing != 0) return std::min((from & ~std::int64_t{63}) + std::countr_zero(missing), to);
    from = (from | 63) + 1;
  }
  return to;
}

std::int64_t CellBitmap::last() const noexcept {
  const std::int64_t group = 63 - std::countl_zero(top_);
  const std::int64_t word = group * 64 + 63 - std::countl_zero(middle(group));
  return word * 64 + 63 - std::countl_zero(bits_[static_cast<std::size_t>(word)]);
}

bool CellBitmap::consistent() const {
  std::int64_t members = 0;
  for (std::int64_t group = 0; group < 64; ++group) {
    const bool exists = static_cast<std::size_t>(group) * 64 < words_;
    if ((top_ >> group & 1U) != (exists && middle(group) != 0 ? 1U : 0U)) return false;
    for (std::int64_t i = 0; exists && i < 64; ++i) {
      const auto word = static_cast<std::size_t>(group * 64 + i);
      const std::uint64_t bits = word < words_ ? bits_[word] : 0;
      members += std::popcount(bits);
      if ((middle(group) >> i & 1U) != (bits != 0 ? 1U : 0U)) return false;
    }
  }
  return members == count_;
}

}  // namespace kvo::optimized
