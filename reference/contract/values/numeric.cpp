#include "reference/contract/values/numeric.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "reference/contract/values/strided_view.hpp"

namespace kvo {
namespace {

constexpr float kMostF16 = 65504.0F;
constexpr std::size_t kMostInGroup = 128;

/// A float of 8 bits.
struct SmallFloat {
  int fraction_bits;
  int least_exponent;      ///< of a normal value
  float most;              ///< the largest finite value
  std::uint8_t most_code;  ///< its code
};
constexpr SmallFloat kE4m3{3, -6, 448.0F, 0x7E};
constexpr SmallFloat kE5m2{2, -14, 57344.0F, 0x7B};

std::uint8_t small_code(const SmallFloat& type, float value) {
  if (std::isnan(value)) return 0x7F;
  const std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
  const float magnitude = std::fabs(value);
  if (magnitude >= type.most) return sign | type.most_code;
  const int exponent =
      magnitude == 0 ? type.least_exponent : std::max(std::ilogb(magnitude), type.least_exponent);
  // Steps from zero in the spacing of this exponent: a normal value has 2^fraction_bits and more,
  // which counts its exponent up by one. So does rounding up to the next power of two.
  const float steps = std::nearbyint(std::ldexp(magnitude, type.fraction_bits - exponent));
  const int binades = exponent - type.least_exponent;
  return static_cast<std::uint8_t>(sign + (binades << type.fraction_bits) +
                                   static_cast<int>(steps));
}

// ---- Groups ----

/// What all codes of a group are told by, in f32.
struct Scale {
  float step = 0;
  float offset = 0;
};

bool has_four_bits(const StorageFormat& format) {
  return format.type == StorageType::kQ4;
}

Scale scale_of(const StorageFormat& format, std::span<const float> group) {
  if (format.offset) {
    const auto [low, high] = std::ranges::minmax(group);
    const float step = (high - low) / (has_four_bits(format) ? 15.0F : 255.0F);
    // The sum makes +0 of -0.
    return {std::min(step, kMostF16), std::clamp(low, -kMostF16, kMostF16) + 0.0F};
  }
  float extreme = 0;
  for (const float value : group)
    if (std::fabs(value) > std::fabs(extreme)) extreme = value;
  const float step = has_four_bits(format) ? extreme / -8.0F : std::fabs(extreme) / 127.0F;
  return {std::clamp(step, -kMostF16, kMostF16), 0};
}

/// The code of an element, -8 of a symmetric q4 counted as 0; `inverse` is 1 / step.
std::uint8_t code_of(const StorageFormat& format, const Scale& scale, float inverse, float value) {
  const float most = has_four_bits(format) ? 15.0F : 255.0F;
  if (format.offset)
    return static_cast<std::uint8_t>(
        std::clamp((value - scale.offset) * inverse + 0.5F, 0.0F, most));
  if (has_four_bits(format))
    return static_cast<std::uint8_t>(std::clamp(value * inverse + 8.5F, 0.0F, most));
  const float code = std::clamp(std::round(value * inverse), -127.0F, 127.0F);
  return static_cast<std::uint8_t>(static_cast<std::int8_t>(code));
}

/// What an element is told by beside scale and offset.
float number_of(const StorageFormat& format, std::uint8_t code) {
  if (format.offset) return code;
  if (has_four_bits(format)) return static_cast<float>(int{code} - 8);
  return static_cast<std::int8_t>(code);
}

std::size_t group_bytes(const StorageFormat& format, std::size_t elements) {
  const std::size_t codes = has_four_bits(format) ? (elements + 1) / 2 : elements;
  return (format.offset ? 4 : 2) + codes;
}

void store_f16(std::uint16_t bits, std::byte*& to) {
  std::memcpy(to, &bits, sizeof(bits));
  to += sizeof(bits);
}

float load_f16(const std::byte*& from) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof(bits));
  from += sizeof(bits);
  return f32_of_f16(bits);
}

void encode_group(const StorageFormat& format, std::span<const float> group, std::byte* to) {
  constexpr std::uint16_t kNan = 0x7E00;
  const bool finite = std::ranges::all_of(group, [](float value) { return std::isfinite(value); });
  const Scale scale = finite ? scale_of(format, group) : Scale();
  const std::uint16_t step = f16_of(scale.step);
  const bool flat = (step & 0x7FFFU) == 0;
  const float inverse = flat ? 0 : 1.0F / scale.step;
  if (finite)
    store_f16(flat ? 0 : step, to);
  else
    store_f16(kNan, to);
  if (format.offset) store_f16(f16_of(scale.offset), to);
  const std::size_t half = has_four_bits(format) ? (group.size() + 1) / 2 : group.size();
  std::fill_n(to, half, std::byte{0});
  for (std::size_t i = 0; i < group.size(); ++i) {
    const std::uint8_t code = code_of(format, scale, inverse, finite ? group[i] : 0);
    to[i % half] |= static_cast<std::byte>(i < half ? code : code << 4U);
  }
}

void decode_group(const StorageFormat& format, const std::byte* from, std::span<float> group) {
  const float step = load_f16(from);
  const float offset = format.offset ? load_f16(from) : 0;
  const std::size_t half = has_four_bits(format) ? (group.size() + 1) / 2 : group.size();
  for (std::size_t i = 0; i < group.size(); ++i) {
    auto code = static_cast<std::uint8_t>(from[i % half]);
    if (has_four_bits(format)) code = i < half ? code & 0xFU : code >> 4U;
    group[i] = number_of(format, code) * step + offset;
  }
}

/// Calls visit(first element, elements, first byte) for each group of a row.
template <class Visit>
void for_each_group(const StorageFormat& format, std::size_t elements, Visit&& visit) {
  const auto most = static_cast<std::size_t>(format.group);
  std::size_t byte = 0;
  for (std::size_t first = 0; first < elements; first += most) {
    const std::size_t count = std::min(most, elements - first);
    visit(first, count, byte);
    byte += group_bytes(format, count);
  }
}

// Error bounds. An element x has x / step = code + r, where |r| <= 1/2; the quotient is found in
// f32 with three roundings, less than 2^-14 of a step for 255 steps. Shown is code * step' +
// offset', where step' is step within 2^-11 of it, or 2^-25 if that is more, and offset' likewise.
// So |x - shown| <= (1/2 + 2^-14) step + most code * |step - step'| + |offset - offset'| + the
// rounding of the sum. Where step' is 0 the code is not the quotient but 0, and the quotient at
// most `most code`: its product with step, which is at most 2^-25, is what the second term allows.
// A symmetric q4 has no code 8, so what is 7.5 steps or more from zero on the other side than its
// extreme is off by up to one step.
double group_error_bound(const StorageFormat& format, std::span<const float> group) {
  const Scale scale = scale_of(format, group);
  const double step = std::fabs(scale.step);
  const double offset = std::fabs(scale.offset);
  if (step >= kMostF16 || offset >= kMostF16) return std::numeric_limits<double>::infinity();
  const auto rounding = [](double value) { return std::max(value * 0x1p-11, 0x1p-25); };
  const double half_step = has_four_bits(format) && !format.offset ? 1.0 : 0.5;
  double most_code = has_four_bits(format) ? 15.0 : 255.0;
  if (!format.offset) most_code = has_four_bits(format) ? 8.0 : 127.0;
  const double largest = offset + most_code * step;
  double bound = (half_step + 0x1p-14) * step + most_code * rounding(step);
  if (format.offset) bound += rounding(offset) + 0x1p-22 * largest;
  return bound;
}

}  // namespace

// ---- Elements ----

std::uint16_t f16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
  if (std::isnan(value))
    return static_cast<std::uint16_t>(sign | 0x7E00U | ((bits >> 13U) & 0x3FFU));
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0F) return static_cast<std::uint16_t>(sign | 0x7C00U);
  if (magnitude < 0x1p-14F) {
    // Subnormal: the spacing is 2^-24, and adding 0.5 lets the hardware round to that grid, to
    // even.
    const auto grid =
        std::bit_cast<std::uint32_t>(magnitude + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
    return static_cast<std::uint16_t>(sign | grid);
  }
  const std::uint32_t lifted = (bits & 0x7FFFFFFFU) - ((127U - 15U) << 23U);
  const std::uint32_t odd = (lifted >> 13U) & 1U;
  return static_cast<std::uint16_t>(sign | ((lifted + 0xFFFU + odd) >> 13U));
}

float f32_of_f16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0x1FU) return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13U));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 127U - 15U) << 23U) | (fraction << 13U));
}

std::uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

float f32_of_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

std::uint8_t f8_e4m3_of(float value) {
  return small_code(kE4m3, value);
}

float f32_of_f8_e4m3(std::uint8_t bits) {
  const auto exponent = static_cast<int>((bits >> 3U) & 0xFU);
  const auto fraction = static_cast<int>(bits & 7U);
  float magnitude = std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
  if (exponent == 0) magnitude = std::ldexp(static_cast<float>(fraction), -9);
  if ((bits & 0x7FU) == 0x7FU) magnitude = std::numeric_limits<float>::quiet_NaN();
  return (bits & 0x80U) != 0 ? -magnitude : magnitude;
}

std::uint8_t f8_e5m2_of(float value) {
  return small_code(kE5m2, value);
}

float f32_of_f8_e5m2(std::uint8_t bits) {
  return f32_of_f16(static_cast<std::uint16_t>(bits << 8U));
}

// ---- Rows ----

Status check(const StorageFormat& format) {
  if (!in_groups(format.type) && format.offset)
    return fail(Code::kOutOfRange, "offset: of a type without groups");
  const bool known = format.group == 32 || format.group == 64 || format.group == 128;
  if (in_groups(format.type) ? !known : format.group != 32)
    return fail(Code::kOutOfRange, "group: " + std::to_string(format.group));
  return {};
}

bool in_groups(StorageType type) {
  return type == StorageType::kQ8 || type == StorageType::kQ4;
}

DType dtype_of(StorageType type) {
  constexpr std::array kShown{DType::kF32,    DType::kF16, DType::kBF16, DType::kF8E4M3,
                              DType::kF8E5M2, DType::kF32, DType::kF32};
  return kShown.at(static_cast<std::size_t>(type));
}

std::size_t stored_bytes(const StorageFormat& format, std::size_t elements) {
  if (!in_groups(format.type)) return elements * dtype_bytes(dtype_of(format.type));
  const auto most = static_cast<std::size_t>(format.group);
  const std::size_t rest = elements % most;
  return elements / most * group_bytes(format, most) + (rest > 0 ? group_bytes(format, rest) : 0);
}

void encode(const StorageFormat& format, std::span<const float> row, std::byte* to) {
  if (!in_groups(format.type)) return show_stored(format, row, to);
  for_each_group(format, row.size(), [&](std::size_t first, std::size_t count, std::size_t byte) {
    encode_group(format, row.subspan(first, count), to + byte);
  });
}

void decode(const StorageFormat& format, const std::byte* from, std::span<float> row) {
  const DType dtype = dtype_of(format.type);
  if (in_groups(format.type)) {
    for_each_group(format, row.size(), [&](std::size_t first, std::size_t count, std::size_t byte) {
      decode_group(format, from + byte, row.subspan(first, count));
    });
    return;
  }
  if (dtype == DType::kF32 && !row.empty()) {
    std::memcpy(row.data(), from, row.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < row.size(); ++i)
    row[i] = load_element(dtype, from + i * dtype_bytes(dtype));
}

void show_stored(const StorageFormat& format, std::span<const float> row, std::byte* to) {
  const DType dtype = dtype_of(format.type);
  if (format.type == StorageType::kF32) {
    if (!row.empty()) std::memcpy(to, row.data(), row.size_bytes());
    return;
  }
  for (std::size_t i = 0; !in_groups(format.type) && i < row.size(); ++i)
    store_element(dtype, row[i], to + i * dtype_bytes(dtype));
  if (!in_groups(format.type)) return;
  for_each_group(format, row.size(), [&](std::size_t first, std::size_t count, std::size_t) {
    std::array<std::byte, kMostInGroup + 2 * sizeof(std::uint16_t)> stored{};
    std::array<float, kMostInGroup> shown{};
    encode_group(format, row.subspan(first, count), stored.data());
    decode_group(format, stored.data(), std::span(shown).first(count));
    std::memcpy(to + first * sizeof(float), shown.data(), count * sizeof(float));
  });
}

void store_rows(const StorageFormat& format, std::int64_t dim, std::span<const float> rows,
                std::byte* to) {
  const auto size = static_cast<std::size_t>(dim);
  for (std::size_t at = 0; at < rows.size(); at += size, to += stored_bytes(format, size))
    encode(format, rows.subspan(at, size), to);
}

Tensor show_rows(const StorageFormat& format, Shape shape, const std::byte* from) {
  const auto size = static_cast<std::size_t>(shape.back());
  Tensor shown = make_tensor(std::move(shape), dtype_of(format.type));
  if (!in_groups(format.type)) {
    std::copy_n(from, shown.bytes.size(), shown.bytes.begin());
    return shown;
  }
  const std::span<float> rows = shown.floats();
  for (std::size_t at = 0; at < rows.size(); at += size, from += stored_bytes(format, size))
    decode(format, from, rows.subspan(at, size));
  return shown;
}

double error_bound(const StorageFormat& format, std::span<const float> group) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double largest = 0;
  for (const float value : group) {
    if (!std::isfinite(value)) return kNone;
    largest = std::max(largest, std::fabs(double{value}));
  }
  // Half the distance between neighbours at the largest magnitude, or between subnormals.
  const auto half_spacing = [largest](int fraction_bits, int least_exponent) {
    const int exponent = largest == 0 ? least_exponent : std::ilogb(largest);
    return std::ldexp(1.0, std::max(exponent, least_exponent) - fraction_bits - 1);
  };
  switch (format.type) {
    case StorageType::kF32:
      return 0;
    case StorageType::kF16:
      return largest > kMostF16 ? kNone : half_spacing(10, -14);
    case StorageType::kBf16:
      return largest > 0x1.FEp127 ? kNone : half_spacing(7, -126);
    case StorageType::kF8E4m3:
      return largest > double{kE4m3.most} ? kNone : half_spacing(3, kE4m3.least_exponent);
    case StorageType::kF8E5m2:
      return largest > double{kE5m2.most} ? kNone : half_spacing(2, kE5m2.least_exponent);
    case StorageType::kQ8:
    case StorageType::kQ4:
      break;
  }
  return group.empty() ? 0 : group_error_bound(format, group);
}

}  // namespace kvo
