// The bookkeeping of prefixes: what vllm/blocks.py and sglang/tree.py do, step by step.
#include <memory>
#include <span>

#include "optimized/prefix/block_cache.hpp"
#include "optimized/prefix/radix_cache.hpp"
#include "reference/contract/values/check.hpp"
#include "tools/distinct_tokens.hpp"
#include "tools/peers/ours.hpp"

namespace kvo::peers {
namespace {

using prefix::Token;
using prefix::Tokens;
using prefix::tokens_of;

constexpr std::int64_t kSize = 16;  ///< tokens of a block, and of a page
constexpr std::int64_t kLong = 10'000;
constexpr std::int64_t kTurns = 64;
constexpr std::int64_t kPrompt = 2'048;
constexpr std::int64_t kMost = 4'096;
constexpr std::int64_t kLeaf = 10 * kSize;

void add(Sum& sum, prefix::NumbersView numbers) {
  for (const std::int64_t number : numbers) sum.add(static_cast<std::uint64_t>(number));
}

// ---- blocks ----

std::unique_ptr<prefix::BlockCache> with_blocks(std::int64_t blocks) {
  return optimized::PrefixBlockCache::make({.num_blocks = blocks + 1,
                                            .block_size = kSize,
                                            .max_model_len = std::int64_t{1} << 20U,
                                            .max_in_flight = std::int64_t{1} << 20U},
                                           {})
      .value();
}

// Looks a request up and allots it so many tokens; `sum` gets what it hit, then what is new.
void allot(prefix::BlockCache& cache, std::int64_t request, std::int64_t length, Sum* sum) {
  const auto hit = cache.match(request, std::nullopt).value();
  if (sum != nullptr) add(*sum, hit.blocks);
  const auto got = cache
                       .allocate(request, {.tokens = length - hit.length,
                                           .hit_blocks = hit.blocks,
                                           .hit_tokens = hit.length})
                       .value();
  if (sum != nullptr) add(*sum, got.blocks);
}

// Requests that are held but for their end take turns; `whole_life`: each is made anew.
Measured requests(std::int64_t blocks, bool whole_life) {
  const auto cache = with_blocks(blocks);
  const std::int64_t count = blocks / (kLong / kSize);
  const std::int64_t apart = std::max<std::int64_t>(count / kTurns, 1);
  const std::int64_t turns = std::min(count, kTurns);
  std::vector<Tokens> known;
  for (std::int64_t i = 0; i < count; ++i) {
    const Tokens tokens = tokens_of(i, kLong);
    const bool turn = i % apart == 0 && std::ssize(known) < turns;
    const std::int64_t number = turn ? std::ssize(known) : turns;
    KVO_CHECK(cache->request(number, {.tokens = tokens}).has_value());
    allot(*cache, number, kLong, nullptr);
    KVO_CHECK(cache->free(number).has_value());
    if (turn) known.push_back(tokens);
  }
  Times times;
  Sum sum;
  for (int round = 0; round < 4; ++round)
    for (std::int64_t i = 0; i < turns; ++i) {
      const auto life = [&](Sum* read) {
        if (whole_life)
          KVO_CHECK(cache->request(i, {.tokens = known[static_cast<std::size_t>(i)]}).has_value());
        allot(*cache, i, kLong, read);
        KVO_CHECK(cache->free(i).has_value());
      };
      if (round == 0) {
        life(&sum);
      } else {
        times.time([&] { life(nullptr); });
      }
    }
  return {times.median(), sum.value()};
}

Measured steps() {
  const auto cache = with_blocks(kTurns * kMost / kSize);
  const Token token = 7;
  Times times;
  Sum sum;
  for (int round = 0; round < 3; ++round) {
    for (std::int64_t i = 0; i < kTurns; ++i) {
      KVO_CHECK(cache->request(i, {.tokens = tokens_of(i, kPrompt)}).has_value());
      allot(*cache, i, kPrompt, nullptr);
      const prefix::RequestChange running{.computed = kPrompt,
                                          .status = prefix::RequestStatus::kRunning};
      KVO_CHECK(cache->set(i, running).has_value());
    }
    for (std::int64_t length = kPrompt + 1; length <= kMost; ++length) {
      const auto step = [&](Sum* read) {
        for (std::int64_t i = 0; i < kTurns; ++i) {
          KVO_CHECK(cache->append(i, {&token, 1}).has_value());
          const auto got = cache->allocate(i, {.tokens = 1}).value();
          if (read != nullptr) add(*read, got.blocks);
          KVO_CHECK(cache->set(i, {.computed = length}).has_value());
        }
      };
      if (round == 0) {
        step(&sum);
      } else {
        times.time([&] { step(nullptr); });
      }
    }
    for (std::int64_t i = 0; i < kTurns; ++i) KVO_CHECK(cache->free(i).has_value());
  }
  return {times.median(), sum.value()};
}

// ---- radix ----

// Files tokens under slots that are taken for them.
void insert(prefix::RadixCache& cache, const Tokens& tokens, Sum* sum) {
  const auto slots = cache.alloc(std::ssize(tokens)).value();
  if (sum != nullptr) add(*sum, slots);
  KVO_CHECK(cache.insert({.tokens = tokens, .slots = slots}).has_value());
}

std::unique_ptr<prefix::RadixCache> with_leaves(std::int64_t leaves) {
  auto cache =
      optimized::PrefixRadixCache::make({.page_size = kSize, .slots = leaves * kLeaf + kLong}, {})
          .value();
  for (std::int64_t i = 0; i < leaves; ++i) insert(*cache, tokens_of(i, kLeaf), nullptr);
  return cache;
}

// A lookup of a long request, which is locked and let go again.
Measured lookup(std::int64_t leaves) {
  const auto cache = with_leaves(leaves);
  const Tokens tokens = tokens_of(leaves, kLong);
  insert(*cache, tokens, nullptr);
  Times times;
  Sum sum;
  const auto turn = [&](Sum* read) {
    const auto hit = cache->match({.tokens = tokens}).value();
    if (read != nullptr) add(*read, hit.slots);
    const std::int64_t node = hit.node;
    KVO_CHECK(cache->lock(node).has_value());
    KVO_CHECK(cache->unlock(node).has_value());
  };
  turn(&sum);
  for (int i = 0; i < 200; ++i) times.time([&] { turn(nullptr); });
  return {times.median(), sum.value()};
}

// The first of the leaves makes room for another one, often enough that all have gone once.
Measured evict(std::int64_t leaves) {
  const auto cache = with_leaves(leaves);
  while (cache->alloc(kSize).has_value()) {
  }
  Times times;
  Sum sum;
  for (std::int64_t i = 0; i < 2 * leaves; ++i) {
    const Tokens tokens = tokens_of(leaves + i, kLeaf);
    const auto turn = [&](Sum* read) {
      KVO_CHECK(cache->evict(1).has_value());
      insert(*cache, tokens, read);
    };
    if (i < leaves) {
      turn(&sum);
    } else {
      times.time([&] { turn(nullptr); });
    }
  }
  return {times.median(), sum.value()};
}

}  // namespace

Measured measure_prefix(const std::string& work, std::int64_t size) {
  if (work == "steps") return steps();
  if (work == "lookup") return lookup(size);
  if (work == "evict") return evict(size);
  return requests(size, work == "life");
}

}  // namespace kvo::peers
