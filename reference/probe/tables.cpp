#include "reference/probe/tables.hpp"

#include <algorithm>
#include <set>

namespace kvo::probe {
namespace {

// The first number after the seed says what a number is drawn for.
constexpr std::uint64_t kForLookBack = 11;
constexpr std::uint64_t kForSign = 12;
constexpr std::uint64_t kForPattern = 77;

// Distances below `reach` at which caches have edges: the token itself, the sizes of blocks and
// buffers, the farthest row.
std::vector<std::uint32_t> edges_below(std::uint32_t reach, const Shape& shape) {
  std::set<std::uint32_t> edges{0, 1, 2, reach / 2, reach - 2, reach - 1, 4095, 4096};
  if (shape.past_window) edges.insert(static_cast<std::uint32_t>(*shape.window - 1));
  for (std::uint32_t size = 16; size <= 2048; size *= 2) edges.insert({size - 1, size, size + 1});
  return {edges.begin(), edges.lower_bound(reach)};
}

// A quarter of the tokens look back to an edge.
std::uint32_t look_back(std::uint64_t drawn, std::uint32_t reach,
                        const std::vector<std::uint32_t>& edges) {
  const std::uint64_t number = drawn >> 8U;
  if (drawn % 4 == 0) return edges[number % edges.size()];
  return static_cast<std::uint32_t>(number % reach);
}

}  // namespace

std::uint64_t mix(std::initializer_list<std::uint64_t> numbers) {
  constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15;
  std::uint64_t state = kStep;
  for (const std::uint64_t number : numbers) {
    state += number * 0xBF58476D1CE4E5B9 + kStep;
    state = (state ^ (state >> 30U)) * 0xBF58476D1CE4E5B9;
    state = (state ^ (state >> 27U)) * 0x94D049BB133111EB;
    state ^= state >> 31U;
  }
  return state;
}

Bit pattern(const Shape& shape, std::size_t layer, std::size_t head, std::size_t dim) {
  return sign_of(mix({shape.seed, kForPattern, layer, head, dim}));
}

Tables::Tables(const Shape& shape) : shape_(shape), meanings_(Shape::kVocabulary) {
  for (std::size_t token_class = 0; token_class < kClasses; ++token_class) {
    const std::size_t classes_reach = std::size_t{1} << token_class;
    const std::size_t most = shape.window.value_or(classes_reach) + (shape.past_window ? 2 : 0);
    const auto reach = static_cast<std::uint32_t>(std::min(classes_reach, most));
    const std::vector<std::uint32_t> edges = edges_below(reach, shape);
    for (std::size_t value = 0; value < kValues; ++value) {
      const std::size_t token = kFirstValue + token_class * kValues + value;
      Meaning& meaning = meanings_[token];
      meaning.is_value = true;
      meaning.token_class = static_cast<std::uint8_t>(token_class);
      meaning.value = static_cast<std::uint8_t>(value);
      const std::size_t scrambled = 167 * value + 13 * token_class + 91;
      for (std::size_t head = 0; head < Shape::kHeads; ++head) {
        meaning.look_back[head] =
            look_back(mix({shape.seed, kForLookBack, head, token}), reach, edges);
        for (std::size_t bit = 0; bit < Shape::kBits; ++bit)
          meaning.bits[head][bit] = sign_of(scrambled >> (Shape::kBits * head + bit));
        for (std::size_t layer = 0; layer < Shape::kLayers; ++layer)
          meaning.sign[layer][head] = sign_of(mix({shape.seed, kForSign, layer, head, token}));
      }
    }
  }
  const std::size_t half = shape.head_dim / Shape::kBits;
  for (std::size_t dim = 0; dim < shape.head_dim; ++dim) {
    std::array<Bit, kCells> signs{};
    for (std::size_t cell = 0; cell < kCells; ++cell)
      signs[cell] = pattern(shape, cell / Shape::kHeads, cell % Shape::kHeads, dim);
    for (std::size_t cell = 0; cell < kCells; ++cell)
      for (std::size_t other = 0; other < kCells; ++other)
        overlaps_[cell][other][dim / half] +=
            static_cast<float>(signs[cell] * signs[other]) / static_cast<float>(half);
  }
}

}  // namespace kvo::probe
