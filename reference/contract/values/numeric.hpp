// reference/contract/values/numeric.hpp: the types in which rows are stored, and what each
// promises.
//
// A row here is what one head of one token has of K or V. It is converted by itself: what is stored
// of it depends on nothing else, so that it shows nowhere how calls cut a text into chunks.
//
// Floats   f16, bf16, f8_e4m3, f8_e5m2 round each element to the nearest value, ties to even, and
//          keep subnormals and the sign of zero. What is too large becomes infinity in f16 and
//          bf16, and the largest finite value in f8 (448, 57344), infinities with it. NaNs become
//          quiet and keep their sign and upper payload bits in f16 and bf16; in f8 they are 0x7F.
//          f8 is what CUDA's __nv_cvt_float_to_fp8 makes with __NV_SATFINITE.
// Groups   q8 and q4 keep a code for each element, and for each group of 32, 64 or 128 elements a
//          scale in f16, with `offset` also an offset in f16. Groups are counted from the first
//          element of a row; the last one has what is left, and a scale of its own. An element is
//          shown as code * scale + offset in f32, which is rounded once: the product is exact.
//            symmetric    q8: scale = largest magnitude / 127, code = element / scale, rounded to
//                         nearest, ties away from zero; -127 to 127. q4: scale = e / -8, where e is
//                         the first element of the largest magnitude; code = element / scale,
//                         rounded up on a tie; -8 to 7.
//            with offset  offset = smallest element, scale = (largest - smallest) / 255 or 15, code
//                         = (element - offset) / scale, rounded up on a tie; 0 to 255 or 15.
//          Codes are found by the product with 1 / scale, both in f32, before scale and offset are
//          rounded to f16: with groups of 32 they are those of ggml's q8_0, q4_0 and q4_1.
//          Scales and offsets beyond +-65504 are limited to that, codes to their range.
//          A scale that rounds to zero in f16 is +0, and all codes are those of zero: groups of
//          zeros and of little else show their offset, 0 without one. Zero is shown as +0.
//          NaNs and infinities have no code: a group with one is shown as quiet NaNs throughout.
// Error    of a finite element that is within range; its derivation stands with error_bound.
// Source   IEEE 754-2019, binary16; bfloat16 is the upper half of binary32; OCP 8-bit Floating
//          Point Specification 1.0; ggml's quantize_row_q8_0_ref, _q4_0_ref and _q4_1_ref.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <boost/describe/enum.hpp>

#include "reference/contract/values/result.hpp"
#include "reference/contract/values/tensor.hpp"

namespace kvo {

// ---- Elements ----

[[nodiscard]] std::uint16_t f16_of(float value);
[[nodiscard]] float f32_of_f16(std::uint16_t bits);
[[nodiscard]] std::uint16_t bf16_of(float value);
[[nodiscard]] float f32_of_bf16(std::uint16_t bits);
/// S.EEEE.FFF, bias 7; S.1111.111 is NaN, and there is no infinity.
[[nodiscard]] std::uint8_t f8_e4m3_of(float value);
[[nodiscard]] float f32_of_f8_e4m3(std::uint8_t bits);
/// S.EEEEE.FF, bias 15: the upper half of binary16, infinities included.
[[nodiscard]] std::uint8_t f8_e5m2_of(float value);
[[nodiscard]] float f32_of_f8_e5m2(std::uint8_t bits);

// ---- Rows ----

/// How elements are stored; q8 and q4 in groups that share a scale.
enum class StorageType : std::uint8_t { kF32, kF16, kBf16, kF8E4m3, kF8E5m2, kQ8, kQ4 };
BOOST_DESCRIBE_ENUM(StorageType, kF32, kF16, kBf16, kF8E4m3, kF8E5m2, kQ8, kQ4)

struct StorageFormat {
  StorageType type = StorageType::kF32;
  std::int64_t group = 32;  ///< elements that share a scale: 32, 64, 128; q8 and q4 only
  bool offset = false;      ///< whether a group has an offset, too; q8 and q4 only
  friend bool operator==(const StorageFormat&, const StorageFormat&) = default;
};

/// What a description's dtype, group and offset ask for, each of which may be absent.
[[nodiscard]] inline StorageFormat storage_format(std::optional<StorageType> dtype,
                                                  std::optional<std::int64_t> group,
                                                  std::optional<bool> offset) {
  return {dtype.value_or(StorageType::kF32), group.value_or(32), offset.value_or(false)};
}

/// Errors  kOutOfRange: a group that is not 32, 64 or 128, or one or an offset for a type without
///         groups (where `group` stays 32).
[[nodiscard]] Status check(const StorageFormat& format);
/// Whether elements are codes that share a scale.
[[nodiscard]] bool in_groups(StorageType type);
/// The type in which a cache shows what it stores: floats as they are, groups decoded, as f32.
[[nodiscard]] DType dtype_of(StorageType type);

/// Bytes of a row: elements one after another; or group after group its scale, its offset and its
/// codes, one byte each, or for q4 element i of n in byte i mod ceil(n / 2), first low, then high.
[[nodiscard]] std::size_t stored_bytes(const StorageFormat& format, std::size_t elements);
/// Writes a row as it is stored, [stored_bytes].
void encode(const StorageFormat& format, std::span<const float> row, std::byte* to);
/// Reads it back. A row of zero bytes is a row of zeroes.
void decode(const StorageFormat& format, const std::byte* from, std::span<float> row);
/// Writes what a cache shows that stores the row: [elements] of dtype_of(format.type).
void show_stored(const StorageFormat& format, std::span<const float> row, std::byte* to);

/// Rows of `dim` elements, one behind the other, as they are stored: [rows, stored_bytes].
/// Requires dim >= 1 and whole rows.
void store_rows(const StorageFormat& format, std::int64_t dim, std::span<const float> rows,
                std::byte* to);
/// What a cache shows that stores rows so, of dtype_of(format.type). The last axis of the shape is
/// a row; no axis is below 0.
[[nodiscard]] Tensor show_rows(const StorageFormat& format, Shape shape, const std::byte* from);

/// How far an element of a group (or any elements of a float type) may be from what is shown of it;
/// infinity for what is not finite or is limited.
[[nodiscard]] double error_bound(const StorageFormat& format, std::span<const float> group);

}  // namespace kvo
