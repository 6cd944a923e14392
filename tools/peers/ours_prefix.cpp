// The bookkeeping of prefixes: what vllm/blocks.py and sglang/tree.py do, step by step.
#include "optimized/prefix/block_cache.hpp"
#include "optimized/prefix/radix_cache.hpp"
#include "tools/benchmarks/prefix_work.hpp"
#include "tools/peers/ours.hpp"

namespace kvo::peers {
namespace {

// Adds numbers to the sum, if there is one.
auto adder(Sum* sum) {
  return [sum](prefix::IdsView numbers) {
    if (sum == nullptr) return;
    for (const std::int64_t number : numbers) sum->add(static_cast<std::uint64_t>(number));
  };
}

// Requests that are held but for their end take turns; `whole_life`: each is made anew.
Measured requests(std::int64_t blocks, bool whole_life) {
  const auto cache = prefix::with_blocks(optimized::PrefixBlockCache::make, blocks);
  const std::vector<prefix::MakeRequest> known = prefix::fill_with_requests(*cache, blocks);
  Work work;
  for (int round = 0; round < 4; ++round)
    for (std::int64_t i = 0; i < std::ssize(known); ++i)
      work.call(round > 0, [&](Sum* sum) {
        if (whole_life) KVO_CHECK(cache->request(known[static_cast<std::size_t>(i)]).has_value());
        prefix::allot(*cache, i, prefix::kLong, adder(sum));
        KVO_CHECK(cache->free(i).has_value());
      });
  return work.measured();
}

Measured steps() {
  const auto cache = prefix::with_blocks(optimized::PrefixBlockCache::make,
                                         prefix::kTurns * prefix::kMost / prefix::kSize);
  Work work;
  for (int round = 0; round < 3; ++round) {
    prefix::begin_steps(*cache);
    for (std::int64_t length = prefix::kPrompt + 1; length <= prefix::kMost; ++length)
      work.call(round > 0, [&](Sum* sum) { prefix::step(*cache, length, adder(sum)); });
  }
  return work.measured();
}

// A lookup of a long request, which is locked and let go again.
Measured lookup(std::int64_t leaves) {
  const auto cache = prefix::with_leaves(optimized::PrefixRadixCache::make, leaves, prefix::kLong);
  prefix::Insert filed{.tokens = prefix::tokens_of(leaves, prefix::kLong)};
  prefix::insert(*cache, filed, prefix::kReadNothing);
  const prefix::MatchTokens op{.tokens = filed.tokens};
  Work work;
  for (int i = 0; i <= 200; ++i)
    work.call(i > 0, [&](Sum* sum) {
      const auto hit = cache->match(op).value();
      adder(sum)(hit.slots);
      const std::int64_t node = hit.node;
      KVO_CHECK(cache->lock(node).has_value());
      KVO_CHECK(cache->unlock(node).has_value());
    });
  return work.measured();
}

// The first of the leaves makes room for another one, often enough that all have gone once.
Measured evict(std::int64_t leaves) {
  const auto cache = prefix::with_leaves(optimized::PrefixRadixCache::make, leaves, prefix::kLong);
  while (cache->alloc(prefix::kSize).has_value()) {
  }
  Work work;
  for (std::int64_t i = 0; i < 2 * leaves; ++i) {
    prefix::Insert leaf{.tokens = prefix::tokens_of(leaves + i, prefix::kLeaf),
                        .slots = prefix::Ids(prefix::kLeaf)};
    work.call(i >= leaves, [&](Sum* sum) {
      KVO_CHECK(cache->evict(1).has_value());
      prefix::insert(*cache, leaf, adder(sum));
    });
  }
  return work.measured();
}

}  // namespace

Measured measure_prefix(const std::string& work, std::int64_t size) {
  if (work == "steps") return steps();
  if (work == "lookup") return lookup(size);
  if (work == "evict") return evict(size);
  return requests(size, work == "life");
}

}  // namespace kvo::peers
