#include "tools/probe/serve/cache.hpp"

#include <array>

namespace kvo::tools {
namespace {

constexpr std::array<ServedKind, 4> kServedKinds{{{"prefix.blocks", open_served_blocks},
                                                  {"positional.causal", open_served_causal},
                                                  {"views.paged", open_served_views},
                                                  {"cells.kv", open_served_cells}}};

}  // namespace

std::span<const ServedKind> served_kinds() {
  return kServedKinds;
}

void write_cell(const ServedCell& cell, std::span<float> key, std::span<float> value) {
  key[0] = static_cast<float>(cell.position + cell.key);
  key[1] = static_cast<float>(cell.position);
  for (std::size_t bit = 0; bit < probe::Shape::kBits; ++bit)
    value[bit] = static_cast<float>(cell.value[bit]);
}

ServedCell cell_of(float moved_key, float position, const std::array<float, 2>& bits) {
  constexpr float kMost = 127;
  ServedCell cell;
  if (!(position >= 0 && position < 2 * probe::Shape::kPositions)) return cell;
  cell.position = static_cast<std::int32_t>(position);
  const float key = moved_key - position;
  if (key == -1.0F || key == 1.0F || key == kSinkKey) cell.key = static_cast<probe::Bit>(key);
  for (std::size_t bit = 0; bit < probe::Shape::kBits; ++bit)
    if (bits[bit] >= -kMost && bits[bit] <= kMost)
      cell.value[bit] = static_cast<std::int8_t>(bits[bit]);
  return cell;
}

}  // namespace kvo::tools
