// reference/positional/shift.hpp: the shift functions that a case's config can ask for.
#pragma once

#include <optional>
#include <string>

#include "reference/contract/describe/describe.hpp"
#include "reference/positional/cache.hpp"

namespace kvo::positional {

enum class ShiftKind : std::uint8_t { kAdd, kRope, kFail };
BOOST_DESCRIBE_ENUM(ShiftKind, kAdd, kRope, kFail)

/// "shift" of a config.
KVO_RECORD(ShiftConfig,
           (ShiftKind, kind, "add, rope, or fail: every call is an error", ShiftKind::kAdd),
           (std::optional<float>, scale, "of add, per position; absent: 1"),
           (std::optional<float>, base, "of rope, of the angles; absent: 10000"),
           (std::optional<std::string>, message, "of fail, the error's words"))

/// The function of a config. add: key + scale * offset, in f32. rope: rotates the pairs (d, d + n)
/// of a head of 2n elements by offset * base^(-d/n); an odd last element stays. fail: {kOther,
/// message}.
/// Source  rotary embedding: Su et al., RoFormer, arXiv:2104.09864, in the order of halves.
[[nodiscard]] Shift make_shift(const ShiftConfig& config);
/// The same for a cache that moves keys itself.
[[nodiscard]] BeginShift make_begin_shift(const ShiftConfig& config);

/// Functions that first tell `note` of each call: the layer, the shape, the offsets.
using NoteShift = std::function<void(std::int64_t layer, const Shape& shape,
                                     std::span<const std::int32_t> offsets)>;
[[nodiscard]] Shift noted(Shift function, NoteShift note);
[[nodiscard]] BeginShift noted(BeginShift function, NoteShift note);

}  // namespace kvo::positional
