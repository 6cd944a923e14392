// reference/groups/parts.hpp: the rules of `groups.blocks` over requests and a pool of one's own.
#pragma once

#include <functional>
#include <memory>

#include "reference/groups/cache.hpp"
#include "reference/prefix/parts.hpp"

namespace kvo::groups {

/// What a cache is made of. Keys of the pool are key * groups + group.
struct Parts {
  std::unique_ptr<prefix::RequestTable> requests;
  std::unique_ptr<prefix::Pool> pool;
  /// Whether an allotment that changes nothing is answered without the rules (idle.cpp).
  bool skips_idle = false;
};
/// Makes them; the options are checked, and the quirks are those of the pool.
using MakeParts = std::function<Parts(const Options& options, QuirkSet<prefix::Quirk> quirks)>;

/// A cache by the rules of lookup, slots and registering that the reference has, over these parts.
/// Errors  as of MakeBlocks.
[[nodiscard]] Result<std::unique_ptr<BlockCache>> make_blocks_over(const Options& options,
                                                                   QuirkSet<Quirk> quirks,
                                                                   const MakeParts& make);

}  // namespace kvo::groups
