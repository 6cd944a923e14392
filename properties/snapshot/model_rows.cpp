#include "properties/snapshot/model_rows.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <span>
#include <utility>

namespace kvo::snapshot {
namespace {

using WrongRows = std::optional<std::string>;

// A tensor of one sequence, head and element a token.
bool is_column(const Tensor& tensor) {
  return tensor.dtype == DType::kF32 && tensor.shape.size() == 4 && tensor.shape[0] == 1 &&
         tensor.shape[1] == 1 && tensor.shape[3] == 1;
}

// The key of the token at a position, counted from 1.
WrongRows wrong_key(float key, float position, const Tokens& path) {
  const auto at = static_cast<std::int64_t>(position);
  if (at < 1 || static_cast<float>(at) != position)
    return "value " + std::to_string(position) + " is no position";
  if (at > std::ssize(path)) return std::nullopt;
  const std::int32_t token = path[static_cast<std::size_t>(at - 1)];
  if (static_cast<float>(token) == key) return std::nullopt;
  return "token " + std::to_string(token) + " at position " + std::to_string(at - 1) + " has key " +
         std::to_string(key);
}

// Tokens [from, from + rows) in order.
WrongRows wrong_range(const Tensor& k, const Tensor& v, std::int64_t from, std::int64_t to,
                      const Tokens& path) {
  if (!is_column(k) || !is_column(v) || k.shape[2] != to - from || v.shape[2] != to - from)
    return "rows are not " + std::to_string(to - from) + " tokens";
  for (std::int64_t i = 0; i < to - from; ++i) {
    const float position = v.floats()[static_cast<std::size_t>(i)];
    if (position != static_cast<float>(from + i + 1))
      return "row " + std::to_string(i) + " has value " + std::to_string(position);
    if (auto words = wrong_key(k.floats()[static_cast<std::size_t>(i)], position, path))
      return words;
  }
  return std::nullopt;
}

// As many as the window and in order of time, which goes round.
WrongRows wrong_order(const LayerPlan& ring, std::span<const float> positions, std::int64_t to,
                      std::optional<std::int64_t> idx) {
  const auto count = std::ssize(positions);
  if (count < std::min(to, ring.window) || count > to)
    return std::to_string(count) + " rows of " + std::to_string(to) + " tokens";
  if (count == 0) return std::nullopt;
  const std::int64_t oldest = to - count + 1;
  std::int64_t first = static_cast<std::int64_t>(positions.front()) - oldest;
  if (idx) first = (count - *idx % count) % count;
  for (std::int64_t i = 0; i < count; ++i)
    if (positions[static_cast<std::size_t>(i)] != static_cast<float>(oldest + (first + i) % count))
      return "rows are not in the order of time";
  return std::nullopt;
}

// The newest tokens before the end, in an order that goes round; with an idx it is known where.
WrongRows wrong_window(const LayerPlan& ring, const Contents& contents, const Tokens& path) {
  const Tensor& k = *contents.k;
  const Tensor& v = *contents.v;
  const std::int64_t to = *contents.to;
  if (!is_column(k) || !is_column(v) || k.shape != v.shape) return "rows are no keys and values";
  const std::span<const float> positions = v.floats();
  std::set<float> seen;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (auto words = wrong_key(k.floats()[i], positions[i], path)) return words;
    if (positions[i] > static_cast<float>(to)) return "a row behind the end";
    if (!seen.insert(positions[i]).second) return "a token is there twice";
  }
  if (ring.may_miss && to > ring.window) return std::nullopt;
  return wrong_order(ring, positions, to, contents.idx);
}

WrongRows wrong_sums(const Tensor& conv, const Tensor& delta, const Tokens& fed) {
  float last = 0;
  float before = 0;
  float sum = 0;
  for (const std::int32_t token : fed) {
    before = std::exchange(last, static_cast<float>(token));
    sum += static_cast<float>(token);
  }
  const std::vector<float> tail{before, last};
  const std::vector<float> sums{sum, static_cast<float>(fed.size())};
  if (conv == tensor_of({1, 2, 1}, tail) && delta == tensor_of({1, 1, 1, 2}, sums))
    return std::nullopt;
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
  return kind == Kind::kState ? kStateBytes : tokens * kRowBytes;
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
      return wrong_range(*first, *second, 0, offset, fed);
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
  if (contents.size != static_cast<std::int64_t>(first->bytes.size() + second->bytes.size()))
    return "its size is not that of its rows";
  if (layer.kind == LayerPlan::Kind::kKv)
    return wrong_range(*first, *second, *contents.from, *end, path);
  if (layer.kind == LayerPlan::Kind::kRing) return wrong_window(layer, contents, path);
  if (*end > std::ssize(path)) return std::nullopt;
  return wrong_sums(*first, *second, Tokens(path.begin(), path.begin() + *end));
}

}  // namespace kvo::snapshot
