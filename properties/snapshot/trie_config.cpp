#include "properties/snapshot/trie_config.hpp"

#include <string>

#include "properties/campaign/storage.hpp"

namespace kvo::snapshot {

TrieConfig some_trie(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  TrieConfig config;
  for (std::int64_t layers = draw.between(1, 3); layers > 0; --layers) {
    const std::uint64_t kind = draw.below(10);
    if (kind < 5)
      config.layers.emplace_back("kv");
    else if (kind < 7)
      config.layers.push_back("rotating:" + std::to_string(draw.size(1, 9)));
    else if (kind < 9)
      config.layers.emplace_back("recurrent");
    else
      config.layers.emplace_back("none");
  }
  if (draw.percent(60))
    config.limit_bytes =
        draw.percent(10) ? draw.one_of<std::int64_t>({0, 1, 7}) : draw.between(20, 800);
  if (terms.scale == Scale::kLong) config.layers.resize(1);
  Draw apart = storage_draw(terms.seed);
  if (apart.percent(25)) set_storage(apart, config.rows, draw_narrow_storage(apart));
  return config;
}

}  // namespace kvo::snapshot
