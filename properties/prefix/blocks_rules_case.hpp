// properties/prefix/blocks_rules_case.hpp: what tests of single rules of prefix.blocks are written
// with. A block is two tokens; a key is numbered when a request first shows it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "properties/prefix/rules_case.hpp"

namespace kvo::prefix {

/// A pool of so many blocks, the null block included, under full attention.
inline BlocksConfig blocks_of(std::int64_t num_blocks) {
  return {.num_blocks = num_blocks, .block_size = 2, .max_model_len = 64};
}

/// A fresh cache of each subject in each profile: check(case, is_original).
template <class Check>
void in_each_pool(const BlocksConfig& config, Check&& check) {
  in_each(blocks_kind(), Record::of(config), std::forward<Check>(check));
}

/// Makes a request; its keys.
inline Numbers keys_made(RulesCase& cache, std::int64_t request, std::string_view text) {
  return cache.values(MakeRequest{.request = request, .tokens = tokens_of(text)}).keys;
}

/// "[3, 4]", "[3, 4] evicts [3]", or the code of the error.
inline std::string allotted(RulesCase& cache, Allocate op) {
  const Observation seen = cache.run(std::move(op));
  if (seen.error) return code_of(seen);
  const auto& given = seen.as<AllottedBlocks>();
  return list_text(given.blocks) +
         (given.evicted.empty() ? "" : " evicts " + list_text(given.evicted));
}

/// The same of a number of new tokens, and nothing else.
inline std::string grown(RulesCase& cache, std::int64_t request, std::int64_t count) {
  return allotted(cache, {.request = request, .tokens = count});
}

/// Makes a request and hands out the slots of all its tokens, without a lookup.
inline std::string begun(RulesCase& cache, std::int64_t request, std::string_view text) {
  (void)keys_made(cache, request, text);
  return grown(cache, request, std::ssize(text));
}

/// "4 [1, 2]": length and blocks of a hit, or the code of the error.
inline std::string found(RulesCase& cache, std::int64_t request,
                         std::optional<std::int64_t> max_length = std::nullopt) {
  const Observation seen = cache.run(MatchBlocks{.request = request, .max_length = max_length});
  if (seen.error) return code_of(seen);
  const auto& hit = seen.as<MatchBlocks::Returns>();
  return fmt::format("{} {}", hit.length, hit.blocks);
}

/// What a fresh request of that text would hit.
inline std::string found_of(RulesCase& cache, std::string_view text) {
  (void)keys_made(cache, 99, text);
  return found(cache, 99);
}

/// The free blocks, the next to be handed out first.
inline Numbers queue(RulesCase& cache) {
  return cache.values(ShowBlocks{}).queue;
}

/// Users, by block.
inline Numbers refs(RulesCase& cache) {
  return cache.values(ShowBlocks{}).refs;
}

/// The blocks of a request.
inline Numbers block_table(RulesCase& cache, std::int64_t request) {
  return cache.values(ShowTable{.request = request}).blocks;
}

/// "1:0 2:1": the blocks that carry a key.
inline std::string carried(RulesCase& cache) {
  std::string text;
  const auto keys = cache.values(ShowBlocks{}).keys;
  for (std::size_t block = 0; block < keys.size(); ++block)
    if (keys[block].value)
      text += fmt::format("{}{}:{}", text.empty() ? "" : " ", block, *keys[block].value);
  return text;
}

}  // namespace kvo::prefix
