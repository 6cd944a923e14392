#include "properties/positional/visible_rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/strided_view.hpp"

namespace kvo::positional {
namespace {

float element(const Tensor& tensor, std::int64_t index) {
  return load_element(tensor.dtype, tensor.bytes.data() + static_cast<std::size_t>(index) *
                                                              dtype_bytes(tensor.dtype));
}

// The elements of one cell, whose axis is the first, or the last.
void append_cell(const Tensor& rows, std::int64_t cell, bool cell_is_last,
                 std::vector<float>& elements) {
  const std::int64_t cells = cell_is_last ? rows.shape.back() : rows.shape.front();
  const std::int64_t width = cells > 0 ? rows.elements() / cells : 0;
  for (std::int64_t i = 0; i < width; ++i)
    elements.push_back(element(rows, cell_is_last ? i * cells + cell : cell * width + i));
}

bool by_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::lexicographical_compare(a, b, {}, std::bit_cast<std::uint32_t, float>,
                                              std::bit_cast<std::uint32_t, float>);
}

Tensor rows_of_token(const Get::Returns& shown, std::int64_t token, bool permuted_v) {
  const std::int64_t cells = shown.mask->shape[1];
  std::vector<std::vector<float>> rows;
  for (std::int64_t cell = 0; cell < cells; ++cell) {
    const float mask = element(*shown.mask, token * cells + cell);
    if (std::isinf(mask)) continue;
    std::vector<float>& row = rows.emplace_back(1, mask);
    append_cell(*shown.k, cell, false, row);
    append_cell(*shown.v, cell, permuted_v, row);
  }
  std::ranges::sort(rows, by_bits);
  const std::size_t width = rows.empty() ? 0 : rows.front().size();
  std::vector<float> elements;
  for (const auto& row : rows) elements.insert(elements.end(), row.begin(), row.end());
  return tensor_of({std::ssize(rows), static_cast<std::int64_t>(width)}, elements);
}

}  // namespace

Observation visible_rows(const Observation& seen, bool permuted_v, std::int64_t tokens) {
  if (seen.error || !seen.returns) return seen;
  const auto& shown = seen.as<Get::Returns>();
  if (!shown.k.has_value() || !shown.v.has_value() || !shown.mask.has_value()) return seen;
  const std::int64_t count = shown.mask->shape[0];
  VisibleRows visible;
  for (std::int64_t token = std::max<std::int64_t>(count - tokens, 0); token < count; ++token)
    visible.tokens.push_back(rows_of_token(shown, token, permuted_v));
  return {.returns = Record::of(std::move(visible))};
}

void WrittenLayers::follow(const Op& op) {
  if (const auto* start = op.as<StartForward>()) {
    reserve_ = start->reserve;
    if (!reserve_) ++passes_;
    put_now_.clear();
    owners_changed_ = masked_anew_ = false;
  } else if (op.as<CopyPrefix>() != nullptr || op.as<Remove>() != nullptr) {
    owners_changed_ = true;
  } else if (op.as<SetCausal>() != nullptr) {
    masked_anew_ = masked_anew_ || owners_changed_;
  } else if (const auto* chosen = op.as<SetLayer>()) {
    layer_ = chosen->layer;
  } else if (op.as<Put>() != nullptr && !reserve_ && put_now_.insert(layer_).second) {
    ++puts_[layer_];
  }
}

}  // namespace kvo::positional
