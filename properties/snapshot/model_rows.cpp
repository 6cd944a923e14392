#include "properties/snapshot/model_rows.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <set>
#include <utility>

#include "reference/contract/values/strided_view.hpp"

namespace kvo::snapshot {
namespace {

using WrongRows = std::optional<std::string>;

// A tensor of one sequence, head and element a token.
bool is_column(const LayerPlan& layer, const Tensor& tensor) {
  return tensor.dtype == dtype_of(layer.storage.type) && tensor.shape.size() == 4 &&
         tensor.shape[0] == 1 && tensor.shape[1] == 1 && tensor.shape[3] == 1;
}

// Whether a row of a column shows a number, as the layer stores it.
bool shows(const LayerPlan& layer, const Tensor& column, std::int64_t row, std::int64_t number) {
  const std::array given{static_cast<float>(number)};
  std::array<std::byte, sizeof(float)> want{};
  show_stored(layer.storage, given, want.data());
  const std::size_t bytes = dtype_bytes(column.dtype);
  return std::memcmp(column.bytes.data() + static_cast<std::size_t>(row) * bytes, want.data(),
                     bytes) == 0;
}

// What a row shows.
std::string shown_in(const Tensor& column, std::int64_t row) {
  const std::size_t at = static_cast<std::size_t>(row) * dtype_bytes(column.dtype);
  return std::to_string(load_element(column.dtype, column.bytes.data() + at));
}

// Whether row `row` is that of a position, counted from 1; what lies behind the path has any key.
bool is_row(const LayerPlan& layer, const Tensor& k, const Tensor& v, std::int64_t row,
            std::int64_t position, const Tokens& path) {
  return shows(layer, v, row, position) &&
         (position > std::ssize(path) ||
          shows(layer, k, row, path[static_cast<std::size_t>(position - 1)]));
}

// Words if it is not.
WrongRows wrong_row(const LayerPlan& layer, const Tensor& k, const Tensor& v, std::int64_t row,
                    std::int64_t position, const Tokens& path) {
  if (is_row(layer, k, v, row, position, path)) return std::nullopt;
  if (!shows(layer, v, row, position))
    return "row " + std::to_string(row) + " has value " + shown_in(v, row);
  const std::int32_t token = path[static_cast<std::size_t>(position - 1)];
  return "token " + std::to_string(token) + " at position " + std::to_string(position - 1) +
         " has key " + shown_in(k, row);
}

// Tokens [from, from + rows) in order.
WrongRows wrong_range(const LayerPlan& layer, const Tensor& k, const Tensor& v, std::int64_t from,
                      std::int64_t to, const Tokens& path) {
  if (!is_column(layer, k) || !is_column(layer, v) || k.shape[2] != to - from ||
      v.shape[2] != to - from)
    return "rows are not " + std::to_string(to - from) + " tokens";
  for (std::int64_t i = 0; i < to - from; ++i)
    if (auto words = wrong_row(layer, k, v, i, from + i + 1, path)) return words;
  return std::nullopt;
}

// As many as the window and in order of time, which goes round.
WrongRows wrong_order(const LayerPlan& ring, const Contents& contents, const Tokens& path) {
  const std::int64_t count = contents.v->shape[2];
  const std::int64_t to = *contents.to;
  if (count < std::min(to, ring.window) || count > to)
    return std::to_string(count) + " rows of " + std::to_string(to) + " tokens";
  if (count == 0) return std::nullopt;
  const auto wrong_from = [&](std::int64_t first) -> WrongRows {
    for (std::int64_t i = 0; i < count; ++i)
      if (auto words = wrong_row(ring, *contents.k, *contents.v, i,
                                 to - count + 1 + (first + i) % count, path))
        return words;
    return std::nullopt;
  };
  if (contents.idx) return wrong_from((count - *contents.idx % count) % count);
  WrongRows words;
  for (std::int64_t first = 0; first < count; ++first)
    if (words = wrong_from(first); !words) break;
  return words;
}

// Each row is that of some token before the end. Which one, f32 tells: there none is twice.
WrongRows wrong_rows_left(const LayerPlan& ring, const Contents& contents, const Tokens& path) {
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < contents.v->shape[2]; ++i) {
    std::int64_t position = *contents.to;
    while (position > 0 && !is_row(ring, *contents.k, *contents.v, i, position, path)) --position;
    if (position == 0) return "row " + std::to_string(i) + " is that of no token";
    if (!seen.insert(position).second && ring.storage.type == StorageType::kF32)
      return "a token is there twice";
  }
  return std::nullopt;
}

// The newest tokens before the end, in an order that goes round; with an idx it is known where.
WrongRows wrong_window(const LayerPlan& ring, const Contents& contents, const Tokens& path) {
  if (!is_column(ring, *contents.k) || !is_column(ring, *contents.v) ||
      contents.k->shape != contents.v->shape)
    return "rows are no keys and values";
  if (ring.may_miss && *contents.to > ring.window) return wrong_rows_left(ring, contents, path);
  return wrong_order(ring, contents, path);
}

WrongRows wrong_sums(const Tensor& conv, const Tensor& delta, std::span<const std::int32_t> fed) {
  if (std::pair(conv, delta) == state_after(fed)) return std::nullopt;
  return "the recurrent state is not that of " + std::to_string(fed.size()) + " tokens";
}

}  // namespace

std::optional<LayerPlan> LayerPlan::of(const std::string& word) {
  if (word == "none") return LayerPlan{};
  if (word == "kv") return LayerPlan{.kind = Kind::kKv};
  if (word == "recurrent") return LayerPlan{.kind = Kind::kState};
  constexpr std::string_view kRing = "rotating:";
  LayerPlan ring{.kind = Kind::kRing};
  const char* end = word.data() + word.size();
  if (!word.starts_with(kRing) || word.size() == kRing.size() ||
      std::from_chars(word.data() + kRing.size(), end, ring.window).ptr != end)
    return std::nullopt;
  return ring;
}

std::int64_t LayerPlan::most_bytes(std::int64_t tokens) const {
  if (kind == Kind::kNone || tokens == 0) return 0;
  if (kind == Kind::kState) return kStateBytes;
  return tokens * 2 * static_cast<std::int64_t>(stored_bytes(storage, 1));
}

std::pair<Tensor, Tensor> state_after(std::span<const std::int32_t> fed) {
  std::vector<float> tail{0, 0};
  std::vector<float> sum{0, 0};
  for (const std::int32_t token : fed) {
    tail = {tail[1], static_cast<float>(token)};
    sum = {sum[0] + tail[1], sum[1] + 1};
  }
  return {tensor_of({1, 2, 1}, tail), tensor_of({1, 1, 1, 2}, sum)};
}

std::optional<std::string> wrong_state(const LayerPlan& layer, const LayerState& state,
                                       const Tokens& fed) {
  const auto offset = std::ssize(fed);
  if (state.offset != offset) return "offset is " + std::to_string(state.offset);
  if (!state.state.has_value()) return offset > 0 ? WrongRows("no buffer") : std::nullopt;
  if (state.state->size() != 2) return "no list of two";
  const auto& first = (*state.state)[0];
  const auto& second = (*state.state)[1];
  if (layer.kind == LayerPlan::Kind::kState && offset == 0 && !first.has_value() &&
      !second.has_value())
    return std::nullopt;
  if (!first.has_value() || !second.has_value()) return "half a state";
  switch (layer.kind) {
    case LayerPlan::Kind::kKv:
      return wrong_range(layer, *first, *second, 0, offset, fed);
    case LayerPlan::Kind::kRing:
      return wrong_window(layer, {.to = offset, .k = *first, .v = *second}, fed);
    case LayerPlan::Kind::kState:
      return wrong_sums(*first, *second, fed);
    case LayerPlan::Kind::kNone:
      break;
  }
  return "a layer without a cache has a state";
}

std::optional<std::string> wrong_snapshot(const LayerPlan& layer, const Contents& contents,
                                          const Tokens& path) {
  if (layer.kind == LayerPlan::Kind::kNone) return "a snapshot of a layer without a cache";
  const bool state = layer.kind == LayerPlan::Kind::kState;
  const auto& first = state ? contents.conv : contents.k;
  const auto& second = state ? contents.delta : contents.v;
  const auto end = state ? contents.offset : contents.to;
  if (!first || !second || !end || (!state && !contents.from)) return "no rows";
  const bool codes = !state && in_groups(layer.storage.type);
  const std::size_t element = codes ? stored_bytes(layer.storage, 1) : dtype_bytes(first->dtype);
  if (contents.size !=
      (first->elements() + second->elements()) * static_cast<std::int64_t>(element))
    return "its size is not that of its rows";
  if (layer.kind == LayerPlan::Kind::kKv)
    return wrong_range(layer, *first, *second, *contents.from, *end, path);
  if (layer.kind == LayerPlan::Kind::kRing) return wrong_window(layer, contents, path);
  if (*end > std::ssize(path)) return std::nullopt;
  return wrong_sums(*first, *second, std::span(path).first(static_cast<std::size_t>(*end)));
}

}  // namespace kvo::snapshot
