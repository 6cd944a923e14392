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
    : bits_(static_cast<std::size_t>((size + 63) / 64), full ? ~std::uint64_t{0} : 0), size_(size) {
  KVO_CHECK(size >= 0 && size <= kMost);
  if (!full || size == 0) return;
  count_ = size;
  bits_.back() >>= -size & 63;
  for (std::int64_t word = 0; word < std::ssize(bits_); ++word) {
    words_[word_of(word)] |= bit(word);
    top_ |= bit(word >> 6);
  }
}

std::int64_t CellBitmap::next(std::int64_t from) const noexcept {
  if (from >= size_) return size_;
  if (const std::uint64_t here = bits_from(bits_[word_of(from)], from); here != 0)
    return (from & ~std::int64_t{63}) + std::countr_zero(here);
  // Behind this word; then behind the group of 64 words that it is in.
  std::int64_t word = (from >> 6) + 1;
  if ((word & 63) != 0) {
    if (const std::uint64_t beside = bits_from(words_[word_of(word)], word); beside != 0) {
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
  word = found * 64 + std::countr_zero(words_[static_cast<std::size_t>(found)]);
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
  const std::int64_t word =
      group * 64 + 63 - std::countl_zero(words_[static_cast<std::size_t>(group)]);
  return word * 64 + 63 - std::countl_zero(bits_[static_cast<std::size_t>(word)]);
}

bool CellBitmap::consistent() const {
  std::int64_t members = 0;
  for (std::size_t word = 0; word < words_.size() * 64; ++word) {
    const std::uint64_t bits = word < bits_.size() ? bits_[word] : 0;
    members += std::popcount(bits);
    if ((words_[word / 64] >> (word % 64) & 1U) != (bits != 0 ? 1U : 0U)) return false;
  }
  for (std::size_t group = 0; group < words_.size(); ++group)
    if ((top_ >> group & 1U) != (words_[group] != 0 ? 1U : 0U)) return false;
  return members == count_;
}

}  // namespace kvo::optimized
