// properties/campaign/storage.hpp: how random cases store rows, and rows that narrow types find
// hard.
#pragma once

#include <cstdint>
#include <span>

#include <boost/describe/enum.hpp>

#include "properties/campaign/generator.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/tensor.hpp"

namespace kvo {

/// States of narrow rows that are worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(StorageLabel, std::uint8_t, kEightBitFloats, kRowsOfCodes,
                              kGroupsCutShort, kOddRows)

/// Calls reach(label) for each of them that a row of `dim` elements, which was stored, is in.
template <class Reach>
void reach_stored(const StorageFormat& format, std::int64_t dim, bool odd_rows, Reach&& reach) {
  if (dtype_bytes(dtype_of(format.type)) == 1) reach(StorageLabel::kEightBitFloats);
  if (odd_rows) reach(StorageLabel::kOddRows);
  if (!in_groups(format.type)) return;
  reach(StorageLabel::kRowsOfCodes);
  if (dim > format.group && dim % format.group != 0) reach(StorageLabel::kGroupsCutShort);
}

/// The generator, which must reach these states, too, in both profiles.
[[nodiscard]] Generator with_storage_labels(Generator made);

/// What the storage of a case is drawn from: apart from its script, so that no other case changes.
[[nodiscard]] inline Draw storage_draw(std::uint64_t seed) {
  return Draw(seed + 0x9E3779B97F4A7C15U);
}
/// A type narrower than f32; codes in groups of any size, with an offset or without.
[[nodiscard]] StorageFormat draw_narrow_storage(Draw& draw);

/// Fills a row with what narrow types find hard: one side of zero alone, scales that are subnormal
/// in f16 or less, a few values and zeroes of either sign, one large value, and now and then what
/// is no number.
void fill_oddly(Draw& draw, std::span<float> row);
/// The same with each row of a tensor of f32, whose last axis is a row.
void fill_oddly(Draw& draw, Tensor& rows);

/// Sets the storage, group and offset of a config. Values that equal the default are sometimes
/// absent.
template <class Config>
void set_storage(Draw& draw, Config& config, const StorageFormat& format) {
  config.storage = format.type;
  if (!in_groups(format.type)) return;
  if (format.group != 32 || draw.percent(50)) config.group = format.group;
  if (format.offset || draw.percent(20)) config.offset = format.offset;
}

}  // namespace kvo
