#include "reference/positional/shift.hpp"

#include <cmath>
#include <utility>

namespace kvo::positional {
namespace {

constexpr float kUsualBase = 10'000.0F;

std::string refusal(const ShiftConfig& config) {
  return config.message.value_or("shift refused");
}

// Turns the pairs of one head.
void rotate(std::span<float> head, std::int32_t offset, double base) {
  const std::size_t half = head.size() / 2;
  for (std::size_t d = 0; d < half; ++d) {
    const double angle =
        offset * std::pow(base, -static_cast<double>(d) / static_cast<double>(half));
    const double x = head[d];
    const double y = head[d + half];
    head[d] = static_cast<float>(x * std::cos(angle) - y * std::sin(angle));
    head[d + half] = static_cast<float>(x * std::sin(angle) + y * std::cos(angle));
  }
}

// Calls change(head, offset) for each head of each cell.
template <class Change>
Status each_head(const Shape& shape, std::span<float> keys, std::span<const std::int32_t> offsets,
                 Change&& change) {
  const auto heads = static_cast<std::size_t>(shape[1]);
  const auto dim = static_cast<std::size_t>(shape[2]);
  for (std::size_t cell = 0; cell < offsets.size(); ++cell)
    for (std::size_t head = 0; head < heads; ++head)
      change(keys.subspan((cell * heads + head) * dim, dim), offsets[cell]);
  return {};
}

}  // namespace

Shift make_shift(const ShiftConfig& config) {
  switch (config.kind) {
    case ShiftKind::kAdd:
      return [scale = config.scale.value_or(1.0F)](std::int64_t /*layer*/, const Shape& shape,
                                                   std::span<float> keys,
                                                   std::span<const std::int32_t> offsets) {
        return each_head(shape, keys, offsets, [&](std::span<float> head, std::int32_t offset) {
          for (float& key : head) key += scale * static_cast<float>(offset);
        });
      };
    case ShiftKind::kRope:
      return [base = static_cast<double>(config.base.value_or(kUsualBase))](
                 std::int64_t /*layer*/, const Shape& shape, std::span<float> keys,
                 std::span<const std::int32_t> offsets) {
        return each_head(shape, keys, offsets, [&](std::span<float> head, std::int32_t offset) {
          rotate(head, offset, base);
        });
      };
    case ShiftKind::kFail:
      return
          [message = refusal(config)](
              std::int64_t /*layer*/, const Shape& /*shape*/, std::span<float> /*keys*/,
              std::span<const std::int32_t> /*offsets*/) -> Status { return fail_other(message); };
  }
  return nullptr;
}

BeginShift make_begin_shift(const ShiftConfig& config) {
  return [config](std::int64_t /*layer*/, const Shape& /*shape*/,
                  std::span<const std::int32_t> /*offsets*/) -> Result<ShiftRule> {
    switch (config.kind) {
      case ShiftKind::kAdd:
        return ShiftRule(AddedOffset{config.scale.value_or(1.0F)});
      case ShiftKind::kRope:
        return ShiftRule(TurnedPairs{static_cast<double>(config.base.value_or(kUsualBase))});
      case ShiftKind::kFail:
        break;
    }
    return fail_other(refusal(config));
  };
}

Shift noted(Shift function, NoteShift note) {
  return [function = std::move(function), note = std::move(note)](
             std::int64_t layer, const Shape& shape, std::span<float> keys,
             std::span<const std::int32_t> offsets) {
    note(layer, shape, offsets);
    return function(layer, shape, keys, offsets);
  };
}

BeginShift noted(BeginShift function, NoteShift note) {
  return [function = std::move(function), note = std::move(note)](
             std::int64_t layer, const Shape& shape, std::span<const std::int32_t> offsets) {
    note(layer, shape, offsets);
    return function(layer, shape, offsets);
  };
}

}  // namespace kvo::positional
