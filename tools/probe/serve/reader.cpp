#include "tools/probe/serve/reader.hpp"

#include <algorithm>
#include <utility>

namespace kvo::tools {
namespace {

constexpr std::size_t kNoRow = static_cast<std::size_t>(-1);

/// The rows of one head by position.
class RowsByPosition {
 public:
  RowsByPosition(const SeenRows& seen, std::size_t head, std::size_t positions)
      : seen_(seen), head_(head), last_(positions, kNoRow), before_(seen.rows.size(), kNoRow) {
    for (std::size_t row = 0; row < seen.rows.size(); ++row) {
      const ServedCell& cell = seen.rows[row][head];
      if (cell.key == kSinkKey) sinks_.push_back(row);
      if (cell.key == 0 || cell.key == kSinkKey) continue;
      const auto position = static_cast<std::size_t>(cell.position);
      if (position < positions) before_[row] = std::exchange(last_[position], row);
    }
  }

  [[nodiscard]] probe::Read read(std::size_t token, std::size_t position) const {
    probe::FoundCells found;
    for (std::size_t row = last_[position]; row != kNoRow; row = before_[row])
      if (seen_.has(token, row))
        found.add(seen_.rows[row][head_].key, seen_.rows[row][head_].value);
    const bool sees_sink =
        std::ranges::any_of(sinks_, [&](std::size_t row) { return seen_.has(token, row); });
    probe::Read read = found.read(sees_sink);
    std::ranges::replace(read, probe::kUnknown, std::int8_t{0});
    return read;
  }

 private:
  const SeenRows& seen_;
  std::size_t head_;
  std::vector<std::size_t> last_;    // by position: the last row there
  std::vector<std::size_t> before_;  // by row: the one before it at the same position
  std::vector<std::size_t> sinks_;
};

}  // namespace

std::vector<probe::PerHead<probe::Read>> read_rows(const probe::Tables& tables,
                                                   std::span<const probe::Token> tokens,
                                                   std::size_t first, const SeenRows& seen,
                                                   std::size_t far_end_hidden) {
  std::vector<probe::PerHead<probe::Read>> reads(tokens.size());
  for (std::size_t head = 0; head < probe::Shape::kHeads; ++head) {
    const RowsByPosition rows(seen, head, first + tokens.size());
    for (std::size_t token = 0; token < tokens.size(); ++token) {
      const probe::Meaning& meaning = tables[tokens[token]];
      const std::size_t distance = meaning.look_back[head];
      if (!meaning.is_value || distance > first + token) continue;
      const std::size_t position = first + token - distance;
      const bool at_far_end = distance + 1 == std::size_t{1} << meaning.token_class;
      if (position < far_end_hidden && at_far_end) continue;
      reads[token][head] = rows.read(token, position);
    }
  }
  return reads;
}

}  // namespace kvo::tools
