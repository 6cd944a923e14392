// Random scripts for views.paged.
#include "properties/campaign/generator.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/views/paged_script.hpp"

namespace kvo::views {
namespace {

// Wide rows, many layers or many blocks.
void draw_large_sizes(Draw& draw, Config& config) {
  if (draw.percent(20)) config.num_layers = draw.edge(5, 33);
  if (draw.percent(40)) config.num_kv_heads = draw.edge(4, 17);
  if (draw.percent(40)) config.head_dim = draw.one_of<std::int64_t>(kHeadSizes);
  if (draw.percent(10)) config.head_dim = draw.edge(5, 257);
  if (draw.percent(30)) config.block_size = draw.edge(15, 257);
  config.max_seq_len = config.block_size * draw.edge(8, 129);
  if (draw.percent(10)) {  // more than a processor's caches hold
    config.num_kv_heads = 8;
    config.head_dim = 128;
    config.block_size = draw.edge(15, 65);
    config.max_seq_len = 1'024;
  }
  config.blocks = draw.one_of<std::int64_t>({64, 1'000, 4'000});
}

Config drawn_config(std::uint64_t seed, Scale scale) {
  Draw draw(~seed);
  Config config;
  config.num_layers = draw.percent(50) ? 1 : draw.between(2, 3);
  config.block_size =
      draw.percent(70) ? draw.one_of<std::int64_t>({1, 2, 16, 64}) : draw.between(3, 9);
  config.num_kv_heads = draw.between(1, 3);
  config.head_dim = draw.between(1, 4);
  const std::int64_t size = config.block_size;
  config.max_seq_len = 8 * size;
  if (draw.percent(40))
    config.max_seq_len = draw.one_of({size, 2 * size + 1, 3 * size, std::int64_t{5}});
  if (draw.percent(1)) config.max_seq_len = 0;
  config.blocks = 64;
  if (draw.percent(40)) config.blocks = config.num_layers * draw.between(0, 5);
  if (scale == Scale::kLarge && draw.percent(80)) draw_large_sizes(draw, config);
  if (scale == Scale::kLong) {
    config.num_layers = draw.between(2, 3);
    config.block_size = draw.between(1, 4);
    config.num_kv_heads = 1;
    config.head_dim = draw.between(1, 2);
    config.max_seq_len = draw.between(8, 33);
    config.blocks = 64;
  }
  if (draw.percent(25)) config.rows.storage = StorageType::kF16;
  if (draw.percent(30)) {
    config.devices.emplace();
    for (std::int64_t i = 0; i < config.num_layers; ++i)
      config.devices->push_back(draw.percent(50) ? -1 : draw.between(0, 1));
  }
  if (draw.percent(45)) {
    if (draw.percent(30)) config.append_stacks = true;
    if (draw.percent(30)) config.append_views_blocks = true;
    if (draw.percent(30)) config.commit_keeps_rest = true;
    if (draw.percent(20)) config.views_committed_only = true;
    if (draw.percent(40)) config.packed_stride = PackedStride::kLength;
  }
  if (draw.percent(10)) config.robustness = true;
  return config;
}

// Types that hold little, in some cases, and heads that are longer than a group of codes.
// Returns  whether rows are to be hard on such types.
bool store_narrowly(std::uint64_t seed, Scale scale, Config& config) {
  Draw draw = storage_draw(seed);
  if (!draw.percent(20)) return false;
  set_storage(draw, config.rows, draw_narrow_storage(draw));
  constexpr std::int64_t kFewTokens = 64;
  if (scale == Scale::kSmall && config.max_seq_len <= kFewTokens && draw.percent(60))
    config.head_dim = draw.between(33, 140);
  return draw.percent(60);
}

GeneratedCase make_paged_case(const CaseTerms& terms) {
  Config config = drawn_config(terms.seed, terms.scale);
  const bool odd_rows = store_narrowly(terms.seed, terms.scale, config);
  return {.setup = {.profile = terms.profile, .config = Record::of(config)},
          .ops = std::make_unique<PagedScript>(terms, config, odd_rows)};
}

}  // namespace

std::vector<Generator> generators() {
  Generator made = script_generator<Label>(paged_kind(), make_paged_case, {}, {});
  for (auto* labels : {&made.original_labels, &made.documented_labels}) {
    const auto sizes = label_texts_but<SizeLabel>({});
    labels->insert(labels->end(), sizes.begin(), sizes.end());
  }
  return {with_storage_labels(std::move(made))};
}

}  // namespace kvo::views
