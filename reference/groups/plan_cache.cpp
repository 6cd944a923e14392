#include "reference/groups/plan_cache.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include <boost/pfr/ops_fields.hpp>

#include "reference/groups/layout.hpp"
#include "reference/prefix/requests.hpp"

namespace kvo::groups {
namespace {

using prefix::misuse;

bool is_full_layer(const Layer& layer) {
  return layer.kind == GroupKind::kFull || layer.kind == GroupKind::kMla;
}
bool is_window_layer(const Layer& layer) {
  return layer.kind == GroupKind::kSlidingWindow || layer.kind == GroupKind::kSlidingWindowMla;
}
bool is_mla_layer(const Layer& layer) {
  return layer.kind == GroupKind::kMla || layer.kind == GroupKind::kSlidingWindowMla;
}
bool is_chunk_layer(const Layer& layer) {
  return layer.kind == GroupKind::kChunkedLocal;
}

std::int64_t page_of(const Layer& layer) {
  constexpr std::int64_t kBytes = 4;  // of an element
  if (layer.padded) return *layer.padded;
  if (layer.kind == GroupKind::kMamba) return layer.state * kBytes;
  const std::int64_t rows = is_mla_layer(layer) ? 1 : 2;  // keys and values
  return layer.block_size * layer.heads * rows * layer.head_size * kBytes;
}

// A layer without its name and what its kind does not have.
Layer counted(Layer layer) {
  layer.name = "";
  if (layer.kind == GroupKind::kMla) layer.window.reset();  // of a window that became full
  if (layer.kind != GroupKind::kFull && !is_chunk_layer(layer)) layer.chunk.reset();
  if (layer.kind == GroupKind::kMamba)
    layer.heads = layer.head_size = 1;
  else
    layer.state = 1;
  return layer;
}

bool same(const Layer& a, const Layer& b) {
  return boost::pfr::eq_fields(counted(a), counted(b));
}

std::string word_of(GroupKind kind) {
  for (const Enumerator& one : type_of<GroupKind>().enumerators)
    if (one.value == static_cast<std::int64_t>(kind)) return one.word;
  return {};
}

template <class Member>
std::set<std::int64_t> values_of(const std::vector<Layer>& layers, Member member) {
  std::set<std::int64_t> values;
  for (const Layer& layer : layers)
    if (layer.*member) values.insert(*(layer.*member));
  return values;
}

// Whether all layers are equal, full ones that differ in a window or a chunk that some have, or
// windows of mla of one size (GR-51). Errors  kPrecondition: several windows or chunks.
Result<bool> are_equal(const std::vector<Layer>& layers) {
  const Layer& first = layers[0];
  const bool are_mla_windows = first.kind == GroupKind::kSlidingWindowMla;
  const bool are_full = std::ranges::all_of(
      layers, [](const Layer& layer) { return layer.kind == GroupKind::kFull; });
  if (!are_full)
    return std::ranges::all_of(layers, [&](const Layer& one) {
      if (!are_mla_windows) return same(one, first);
      return one.kind == first.kind && one.window == first.window;
    });
  const std::size_t windows = values_of(layers, &Layer::window).size();
  const std::size_t chunks = values_of(layers, &Layer::chunk).size();
  if (windows > 1 || chunks > 1) return misuse("window, chunk: several in full attention");
  if (windows + chunks > 1) return false;
  const auto without = [](Layer layer) {
    layer.window = layer.chunk = std::nullopt;
    return layer;
  };
  return std::ranges::all_of(
      layers, [&](const Layer& one) { return same(without(one), without(layers[0])); });
}

// Whether they are one group of several pages (GR-51).
bool are_uniform(const std::vector<Layer>& layers) {
  const Layer& first = layers[0];
  return std::ranges::all_of(layers, [&](const Layer& one) {
    if (one.block_size != first.block_size) return false;
    if (is_full_layer(first)) return is_full_layer(one);
    if (first.kind == GroupKind::kSlidingWindow)
      return is_window_layer(one) && one.window == first.window;
    if (first.kind == GroupKind::kMamba && page_of(one) != page_of(first)) return false;
    return one.kind == first.kind && one.window == first.window &&
           (!is_chunk_layer(first) || one.chunk == first.chunk);
  });
}

std::vector<std::string> names_of(const std::vector<Layer>& layers) {
  std::vector<std::string> names;
  for (const Layer& layer : layers) names.push_back(layer.name);
  return names;
}

PlannedGroup uniform_group(const std::vector<Layer>& layers) {
  PlannedGroup group{
      .kind = "uniform", .block_size = layers[0].block_size, .page = 0, .layers = names_of(layers)};
  for (const Layer& layer : layers) group.page += page_of(layer);
  return group;
}

PlannedGroup group_of(const std::vector<Layer>& layers) {
  return {.kind = word_of(layers[0].kind),
          .block_size = layers[0].block_size,
          .page = page_of(layers[0]),
          .layers = names_of(layers)};
}

// Windows and chunks become full attention, in the block size of the full layers (GR-51).
std::vector<Layer> as_full(std::vector<Layer> layers) {
  const auto full = std::ranges::find_if(layers, is_full_layer);
  if (full == layers.end()) return layers;
  std::set<std::int64_t> blocks;
  for (const Layer& layer : layers)
    if (is_full_layer(layer)) blocks.insert(layer.block_size);
  for (Layer& layer : layers) {
    if (!is_window_layer(layer) && !is_chunk_layer(layer)) continue;
    layer.kind = is_mla_layer(layer) ? GroupKind::kMla : GroupKind::kFull;
    if (blocks.size() == 1) layer.block_size = *blocks.begin();
  }
  return layers;
}

// GR-52: all pages are as large as the largest. Errors  kNotSupported.
Status unify_pages(std::vector<Layer>& layers) {
  const std::int64_t most = page_of(*std::ranges::max_element(layers, {}, page_of));
  for (Layer& layer : layers) {
    const std::int64_t page = page_of(layer);
    if (page == most) continue;
    if (layer.kind != GroupKind::kMamba && most % page == 0) {
      layer.block_size *= most / page;
      if (layer.padded) layer.padded = most;
    } else if (layer.kind == GroupKind::kMla) {
      return fail(Code::kNotSupported, "layers: a page of mla does not divide the largest");
    } else {
      layer.padded = most;
    }
  }
  return {};
}

// GR-53
std::vector<PlannedGroup> grouped(const std::vector<Layer>& layers) {
  std::vector<std::vector<Layer>> buckets;
  for (const Layer& layer : layers) {
    const auto found =
        std::ranges::find_if(buckets, [&](const auto& bucket) { return same(bucket[0], layer); });
    (found == buckets.end() ? buckets.emplace_back() : *found).push_back(layer);
  }
  std::vector<std::vector<Layer>> joined;
  for (const std::vector<Layer>& bucket : buckets) {
    bool joins = false;
    for (std::vector<Layer>& earlier : joined) {
      std::vector<Layer> both = earlier;
      both.insert(both.end(), bucket.begin(), bucket.end());
      const auto equal = are_equal(both);
      joins = equal && *equal;
      if (!joins) continue;
      earlier = both;
      break;
    }
    if (!joins) joined.push_back(bucket);
  }
  const auto [least, most] = std::ranges::minmax(joined, {}, &std::vector<Layer>::size);
  const std::size_t size = 2 * most.size() < 3 * least.size() ? most.size() : least.size();
  std::vector<PlannedGroup> groups;
  for (const std::vector<Layer>& bucket : joined) {
    const std::size_t count = (bucket.size() + size - 1) / size;
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<Layer> part;
      for (std::size_t k = i; k < bucket.size(); k += count) part.push_back(bucket[k]);
      groups.push_back(group_of(part));
    }
  }
  return groups;
}

}  // namespace

Result<std::vector<PlannedGroup>> PlanReference::group(const std::vector<Layer>& all,
                                                       bool hybrid) const {
  if (all.empty()) return std::vector<PlannedGroup>();
  std::vector<Layer> layers = all;
  auto equal = are_equal(layers);
  if (!equal) return equal.error();
  if (!hybrid && !*equal && !are_uniform(layers)) {
    const bool has_mla_window = std::ranges::any_of(
        layers, [](const Layer& one) { return one.kind == GroupKind::kSlidingWindowMla; });
    if (quirks_.has(PlanQuirk::kMlaWindowsAbort) && has_mla_window &&
        std::ranges::any_of(layers, is_full_layer))
      return misuse("layers: windows of mla cannot become full");
    layers = as_full(layers);
    equal = are_equal(layers);
    if (!equal) return equal.error();
    if (!*equal && !are_uniform(layers)) return misuse("layers: not of one kind");
  }
  if (*equal) return std::vector{group_of(layers)};
  if (are_uniform(layers)) return std::vector{uniform_group(layers)};
  const std::vector<Layer> before = layers;
  if (const Status done = unify_pages(layers); !done) {
    const bool plain = std::ranges::all_of(before, [](const Layer& layer) {
      return is_full_layer(layer) || layer.kind == GroupKind::kSlidingWindow;
    });
    const std::vector<Layer> full = as_full(before);
    if (plain && are_uniform(full)) return std::vector{uniform_group(full)};
    return done.error();
  }
  return grouped(layers);
}

// GR-54
Result<SizesReturns> PlanReference::sizes(const std::vector<Group>& groups, bool caching,
                                          std::optional<std::int64_t> unit) const {
  const std::optional<std::int64_t> block = scheduler_block_of(groups);
  if (groups.empty() || !block) return misuse("groups: none, or no common multiple");
  SizesReturns sizes{.scheduler_block = *block, .hash_block = *block, .alignment = *block};
  if (groups.size() == 1) {
    if (caching && unit && *unit != *block) return misuse("unit: not the block");
    return sizes;
  }
  const auto without_states = [](const Group& group) {
    return is_state(group) && !is_aligned_state(group);
  };
  if (!caching || std::ranges::any_of(groups, without_states)) return sizes;
  const bool are_keyed = std::ranges::any_of(groups, is_cacheable);
  std::int64_t common = 0;
  for (const Group& group : groups)
    if (is_cacheable(group) || !are_keyed) common = std::gcd(common, group.block_size);
  sizes.hash_block = unit.value_or(common);
  if (common % sizes.hash_block != 0) return misuse("unit: does not divide the block sizes");
  if (has_partial_hits(groups, sizes.hash_block)) sizes.alignment = sizes.hash_block;
  return sizes;
}

std::int64_t PlanReference::position(std::int64_t tokens, std::int64_t block, bool drop,
                                     std::int64_t lookahead) const {
  return position_of(tokens, block, drop, lookahead);
}

Ids PlanReference::boundaries(std::int64_t prompt, std::int64_t block, bool drop) const {
  return boundaries_of(prompt, block, drop);
}

}  // namespace kvo::groups
