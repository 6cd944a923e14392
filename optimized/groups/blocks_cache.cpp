#include "optimized/groups/blocks_cache.hpp"

#include <iterator>

#include "optimized/groups/hashed_requests.hpp"
#include "optimized/groups/linked_pool.hpp"
#include "reference/groups/parts.hpp"

namespace kvo::optimized {

Result<std::unique_ptr<groups::BlockCache>> make_groups_cache(const groups::Options& options,
                                                              QuirkSet<groups::Quirk> quirks) {
  return groups::make_blocks_over(
      options, quirks, [](const groups::Options& of, QuirkSet<prefix::Quirk> quirks_of_pool) {
        return groups::Parts{
            .requests = std::make_unique<HashedRequests>(of.hash_block, of.hash_lookahead,
                                                         of.enable_caching),
            .pool = std::make_unique<LinkedPool>(of.num_blocks, of.enable_caching, of.events,
                                                 quirks_of_pool, std::ssize(of.groups)),
            .skips_idle = true};
      });
}

}  // namespace kvo::optimized
