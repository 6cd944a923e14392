#include "reference/positional/visible_rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "reference/contract/values/numeric.hpp"

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

namespace {

/// The same of two gets, to compare: of each token the visible rows, by a number that equal rows
/// share, ascending.
class RowNumbers {
 public:
  explicit RowNumbers(bool permuted_v) : permuted_v_(permuted_v) {}

  [[nodiscard]] std::vector<std::vector<std::pair<float, std::size_t>>> of(
      const Get::Returns& shown) {
    const std::int64_t tokens = shown.mask->shape[0];
    const std::int64_t cells = shown.mask->shape[1];
    std::vector<std::size_t> numbers;
    for (std::int64_t cell = 0; cell < cells; ++cell) {
      std::vector<float> row;
      append_cell(*shown.k, cell, false, row);
      append_cell(*shown.v, cell, permuted_v_, row);
      std::string bytes(row.size() * sizeof(float), '\0');
      if (!row.empty()) std::memcpy(bytes.data(), row.data(), bytes.size());
      numbers.push_back(numbers_.try_emplace(std::move(bytes), numbers_.size()).first->second);
    }
    std::vector<std::vector<std::pair<float, std::size_t>>> seen(static_cast<std::size_t>(tokens));
    for (std::int64_t token = 0; token < tokens; ++token) {
      auto& rows = seen[static_cast<std::size_t>(token)];
      for (std::int64_t cell = 0; cell < cells; ++cell) {
        const float mask = element(*shown.mask, token * cells + cell);
        if (!std::isinf(mask)) rows.emplace_back(mask, numbers[static_cast<std::size_t>(cell)]);
      }
      std::ranges::sort(rows);
    }
    return seen;
  }

 private:
  bool permuted_v_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

bool is_whole(const Get::Returns& shown) {
  return shown.k.has_value() && shown.v.has_value() && shown.mask.has_value();
}

class OwnCells final : public Relation {
 public:
  OwnCells(const CacheKind& kind, const Setup& setup)
      : permuted_v_(backend_of(kind, setup).permuted_v) {}

  [[nodiscard]] Observation settled(const Op& op, const Observation& want,
                                    Observation got) override {
    if (!want.error || op.as<Remove>() != nullptr) written_.follow(op);
    if (const auto* config = op.as<SetConfig>(); config != nullptr && !want.error)
      permuted_v_ = config->permuted_v;
    if (op.as<Remove>() != nullptr) got.returns = want.returns;
    if (want.error || got.error) return got;
    if (op.as<Get>() == nullptr) return got;
    if (!written_.complete()) return want;
    const auto& promised = want.as<Get::Returns>();
    const auto& shown = got.as<Get::Returns>();
    if (!is_whole(promised) || !is_whole(shown)) return got;
    if (promised.mask->dtype != shown.mask->dtype || promised.k->dtype != shown.k->dtype ||
        promised.v->dtype != shown.v->dtype)
      return got;
    RowNumbers numbers(permuted_v_);
    return numbers.of(promised) == numbers.of(shown) ? want : got;
  }

 private:
  bool permuted_v_;
  WrittenLayers written_;
};

}  // namespace

constexpr std::array<ConventionInfo, 1> kOwnCells{
    {{.name = "own_cells",
      .rules = "OK-4, OK-17, OK-20, OK-21, OK-23, OK-25, OK-35, OK-44, OK-47, OK-65",
      .sentence = "chooses in which cells rows are, how many cells a get shows, and how it calls "
                  "the shift function",
      .relation = [](const CacheKind& kind, const Setup& setup) -> std::unique_ptr<Relation> {
        return std::make_unique<OwnCells>(kind, setup);
      }}}};

}  // namespace kvo::positional
