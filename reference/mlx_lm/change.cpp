#include "reference/mlx_lm/change.hpp"

namespace kvo::mlx_lm {

void Writes::put(const Array& into, std::size_t axis, std::int64_t begin, std::int64_t end,
                 const Tensor& entries) {
  if (!into) throw Misuse("there is no buffer");
  blocks_.push_back({into, axis, begin, fitted(entries, *into, begin, end, axis)});
}

void Writes::commit() noexcept {
  for (const Block& each : blocks_) overwrite(*each.into, each.begin, each.entries, each.axis);
  for (auto& [into, numbers] : lists_) *into = std::move(numbers);
}

}  // namespace kvo::mlx_lm
