#include "optimized/positional/mask.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace kvo::optimized {
namespace {

constexpr std::int64_t kLineBytes = 64;
/// Rows have room for all cells, and so stay where they are, in buffers of up to this size.
constexpr std::int64_t kWholeBytes = std::int64_t{256} << 20U;
/// Rows that are kept for masks of a few rows, and the memory that they may take.
constexpr std::int64_t kKeptRows = 64;
constexpr std::int64_t kKeptBytes = std::int64_t{8} << 20U;

template <class Word>
struct Bits;
template <>
struct Bits<std::uint32_t> {
  static constexpr std::uint32_t kHidden = 0xFF800000U;  // f32 -inf
};
template <>
struct Bits<std::uint16_t> {
  static constexpr std::uint16_t kHidden = 0xFC00U;  // f16 -inf
};

std::uint64_t distance(std::uint64_t a, std::uint64_t b) {
  return a < b ? b - a : a - b;
}

}  // namespace

MaskRows::Grid MaskRows::grid_of(const Layout& layout) {
  const auto element = static_cast<std::int64_t>(dtype_bytes(layout.dtype));
  const auto stride_of = [&](std::int64_t cells) {
    return (cells * element + kLineBytes - 1) / kLineBytes * kLineBytes;
  };
  Grid grid{.stride = stride_of(layout.cells), .dtype = layout.dtype};
  if (layout.rows > kWholeBytes / std::max(grid.stride, kLineBytes)) {
    grid.base = layout.range.low;
    grid.stride = stride_of(layout.range.size());
    grid.rows = layout.rows;
  } else {
    const std::int64_t kept = kKeptBytes / std::max(grid.stride, kLineBytes);
    grid.rows = std::max(layout.rows, std::clamp<std::int64_t>(kept, 1, kKeptRows));
  }
  return grid;
}

void MaskRows::reserve(const Layout& layout) {
  const Grid grid = grid_of(layout);
  if (rows_.size() < static_cast<std::size_t>(grid.rows))
    rows_.resize(static_cast<std::size_t>(grid.rows));
  const auto needed = static_cast<std::size_t>(grid.rows * grid.stride);
  if (needed <= std::max(bytes_, larger_bytes_)) return;
  const std::size_t grown = std::min(bytes_ + bytes_ / 2, static_cast<std::size_t>(kWholeBytes));
  const std::size_t bytes = std::max(needed, grown);
  larger_ = make_cells((bytes + kLineBytes) / sizeof(float) + 1);
  larger_bytes_ = bytes;
}

void MaskRows::begin(const Layout& layout, const SeenCells& first) noexcept {
  Grid grid = grid_of(layout);
  const auto needed = static_cast<std::size_t>(grid.rows * grid.stride);
  const bool moves = needed > bytes_;
  if (moves) {
    buffer_ = std::move(larger_);
    bytes_ = std::exchange(larger_bytes_, 0);
    void* start = buffer_.get();
    std::size_t room = bytes_ + kLineBytes;
    start_ = static_cast<std::byte*>(std::align(kLineBytes, bytes_, start, room));
  }
  // More rows of the same kind leave those that are there in place.
  if (moves || grid.base != grid_.base || grid.stride != grid_.stride ||
      grid.dtype != grid_.dtype) {
    std::ranges::fill(rows_, Row{});
    next_row_ = 0;
  }
  grid_ = grid;
  layout_ = layout;
  if (layout.rows == 0) return;
  // The sequences of a batch were often a batch before, in the same order.
  const std::uint64_t version = first.sequence != nullptr ? first.sequence->version() : 0;
  for (std::int64_t row = 0; version != 0 && row + layout.rows <= grid_.rows; ++row)
    if (rows_[static_cast<std::size_t>(row)].version == version) {
      first_row_ = row;
      return;
    }
  first_row_ = next_row_ + layout.rows <= grid_.rows ? next_row_ : 0;
  next_row_ = first_row_ + layout.rows;
}

template <class Word>
Word* MaskRows::at(std::int64_t row, std::int64_t cell) const {
  auto* first = reinterpret_cast<Word*>(start_ + (first_row_ + row) * grid_.stride);
  return first + (cell - grid_.base);
}

void MaskRows::show(std::int64_t row, const SeenCells& seen,
                    std::optional<std::int64_t> like) noexcept {
  if (layout_.dtype == DType::kF16) {
    show_as<std::uint16_t>(row, seen, like);
  } else {
    show_as<std::uint32_t>(row, seen, like);
  }
}

template <class Word>
void MaskRows::show_as(std::int64_t row, const SeenCells& seen,
                       std::optional<std::int64_t> like) noexcept {
  if (layout_.range.empty()) return;
  Row& shown = row_at(row);
  const std::int64_t low = layout_.range.low;
  const std::int64_t width = layout_.range.size();
  // A column costs less in a copy than alone.
  constexpr std::uint64_t kCopied = 8;
  const bool known = seen.sequence != nullptr && shown.version == seen.sequence->version() &&
                     shown.begin >= seen.sequence->oldest_known();
  const bool near = known && distance(shown.begin, seen.begin) + distance(shown.end, seen.end) <=
                                 static_cast<std::uint64_t>(width) / kCopied;
  if (like && !near) {
    const Row& from = row_at(*like);
    std::memcpy(at<Word>(row, low), at<Word>(*like, low),
                static_cast<std::size_t>(width) * sizeof(Word));
    shown = {from.version, from.begin, from.end, layout_.range};
  } else if (known) {
    extend<Word>(row);
  } else {
    std::fill_n(at<Word>(row, low), width, Bits<Word>::kHidden);
    shown = {0, seen.begin, seen.begin, layout_.range};
  }
  if (seen.sequence == nullptr) return;
  change<Word>(row, seen);
}

template <class Word>
void MaskRows::extend(std::int64_t row) noexcept {
  CellRange& written = row_at(row).written;
  const CellRange range = layout_.range;
  if (range.low < written.low) {
    std::fill_n(at<Word>(row, range.low), written.low - range.low, Bits<Word>::kHidden);
    written.low = range.low;
  }
  if (range.high > written.high) {
    std::fill_n(at<Word>(row, written.high + 1), range.high - written.high, Bits<Word>::kHidden);
    written.high = range.high;
  }
}

template <class Word>
void MaskRows::change(std::int64_t row, const SeenCells& seen) noexcept {
  Row& shown = row_at(row);
  const auto low = static_cast<std::int32_t>(shown.written.low);
  const auto width = static_cast<std::uint32_t>(shown.written.size());
  Word* const columns = at<Word>(row, low);
  const auto write = [&](std::uint64_t from, std::uint64_t to, Word value) {
    if (from >= to) return;
    for (const HeldCell& held : seen.sequence->between(from, to)) {
      const auto column = static_cast<std::uint32_t>(held.cell - low);
      if (column < width) columns[column] = value;
    }
  };
  const Word hidden = Bits<Word>::kHidden;
  write(shown.begin, std::min(seen.begin, shown.end), hidden);
  write(std::max(seen.end, shown.begin), shown.end, hidden);
  write(seen.begin, std::min(shown.begin, seen.end), 0);
  write(std::max(shown.end, seen.begin), seen.end, 0);
  shown.version = seen.sequence->version();
  shown.begin = seen.begin;
  shown.end = seen.end;
}

void MaskRows::forget() noexcept {
  for (std::int64_t row = 0; row < layout_.rows; ++row) row_at(row).version = 0;
}

StridedView MaskRows::view() const {
  const auto element = static_cast<std::int64_t>(dtype_bytes(layout_.dtype));
  StridedView shown{{layout_.rows, layout_.range.size()}, {grid_.stride / element, 1}};
  shown.dtype = layout_.dtype;
  if (layout_.rows == 0 || layout_.range.empty()) return shown;
  const auto* first = layout_.dtype == DType::kF16
                          ? static_cast<const void*>(at<std::uint16_t>(0, layout_.range.low))
                          : static_cast<const void*>(at<std::uint32_t>(0, layout_.range.low));
  shown.data = static_cast<const std::byte*>(first);
  return shown;
}

}  // namespace kvo::optimized
