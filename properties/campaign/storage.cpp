#include "properties/campaign/storage.hpp"

#include <bit>
#include <limits>

#include "properties/campaign/script_generator.hpp"

namespace kvo {

Generator with_storage_labels(Generator made) {
  const auto labels = label_texts_but<StorageLabel>({});
  for (auto* all : {&made.original_labels, &made.documented_labels})
    all->insert(all->end(), labels.begin(), labels.end());
  return made;
}

StorageFormat draw_narrow_storage(Draw& draw) {
  StorageFormat format{draw.one_of({StorageType::kF16, StorageType::kBf16, StorageType::kF8E4m3,
                                    StorageType::kF8E5m2, StorageType::kQ8, StorageType::kQ8,
                                    StorageType::kQ4, StorageType::kQ4})};
  if (!in_groups(format.type)) return format;
  if (draw.percent(50)) format.group = draw.one_of({64, 128});
  format.offset = draw.percent(40);
  return format;
}

void fill_oddly(Draw& draw, std::span<float> row) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::size_t kind = draw.weighted({3, 2, 1, 2, 2, 2});
  for (float& value : row) {
    const float unit = static_cast<float>(draw.below(1U << 12U)) * 0x1p-12F;
    if (kind == 0) value = 100 + unit;
    if (kind == 1) value = (2 * unit - 1) * 0x1p-18F;
    if (kind == 2) value = (2 * unit - 1) * 0x1p-130F;
    if (kind == 3) value = draw.one_of({0.0F, -0.0F, 0.0F, -0.0F, 1.0F, -0.5F});
    if (kind >= 4) value = 2 * unit - 1;
  }
  if (row.empty() || kind < 4) return;
  float& one = row[draw.below(row.size())];
  if (kind == 4) one = draw.one_of({-500.0F, 70'000.0F, 1e7F, -1e7F});
  if (kind == 5)
    one = draw.one_of({std::bit_cast<float>(0x7FC12345U), std::bit_cast<float>(0xFF812345U),
                       kInfinity, -kInfinity});
}

void fill_oddly(Draw& draw, Tensor& rows) {
  const auto size = static_cast<std::size_t>(rows.shape.back());
  const std::span<float> all = rows.floats();
  for (std::size_t i = 0; i < all.size(); i += size) fill_oddly(draw, all.subspan(i, size));
}

}  // namespace kvo
