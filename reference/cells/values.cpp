#include "reference/cells/values.hpp"

#include <cstdlib>

#include <fmt/format.h>

namespace kvo::cells {

bool Window::masks(std::int64_t p0, std::int64_t p1) const {
  switch (type) {
    case WindowType::kNone:
      return false;
    case WindowType::kStandard:
      return p1 - p0 >= size;
    case WindowType::kChunked:
      return p0 < p1 / size * size;
    case WindowType::kSymmetric:
      return std::abs(p1 - p0) > size / 2;
  }
  return false;
}

Status check_in(std::string_view field, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return {};
  return fail(Code::kOutOfRange, fmt::format("{} {} is not in [{}, {}]", field, value, low, high));
}

Status check_batch(const Batch& batch) {
  if (batch.n_ubatch < 1) return refused(fmt::format("n_ubatch {}", batch.n_ubatch));
  if (batch.tokens() > static_cast<std::size_t>(kMostTokens) ||
      batch.sequences.size() > static_cast<std::size_t>(kMostTokens))
    return refused(fmt::format("{} tokens", batch.tokens()));
  if (batch.positions && batch.positions->size() != batch.tokens())
    return refused(
        fmt::format("{} positions of {} tokens", batch.positions->size(), batch.tokens()));
  std::size_t begin = 0;
  for (const std::size_t end : batch.ends) {
    if (end <= begin || end > batch.sequences.size()) return refused("a token without sequences");
    begin = end;
  }
  return {};
}

}  // namespace kvo::cells
