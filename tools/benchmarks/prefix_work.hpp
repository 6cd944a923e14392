// tools/benchmarks/prefix_work.hpp: what benchmarks of the caches of `prefix` do, step by step.
// `read` gets what a step hit, then what is new.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "reference/contract/values/check.hpp"
#include "reference/prefix/blocks.hpp"
#include "reference/prefix/radix.hpp"

namespace kvo::prefix {

constexpr std::int64_t kSize = 16;       ///< tokens of a block, and of a page
constexpr std::int64_t kLong = 10'000;   ///< tokens of a request
constexpr std::int64_t kTurns = 64;      ///< requests that take turns
constexpr std::int64_t kPrompt = 2'048;  ///< tokens before the first step
constexpr std::int64_t kMost = 4'096;    ///< tokens after the last step
constexpr std::int64_t kLeaf = 10 * kSize;

constexpr auto kReadNothing = [](IdsView /*numbers*/) {};

/// So many tokens, at least one, the first of which is `number`: no other number has them.
inline Tokens tokens_of(std::int64_t number, std::int64_t count) {
  Tokens tokens(static_cast<std::size_t>(count));
  std::uint32_t state = 0x9E3779B9U * static_cast<std::uint32_t>(number + 1);
  for (Token& token : tokens) {
    state = state * 1664525U + 1013904223U;
    token = static_cast<Token>(state >> 1U);
  }
  tokens.front() = static_cast<Token>(number);
  return tokens;
}

inline std::unique_ptr<BlockCache> with_blocks(const MakeBlocks& make, std::int64_t blocks) {
  return make({.num_blocks = blocks + 1,
               .block_size = kSize,
               .max_model_len = std::int64_t{1} << 20U,
               .max_in_flight = std::int64_t{1} << 20U},
              {})
      .value();
}

/// Looks a request up and allots it so many tokens.
template <class Read>
void allot(BlockCache& cache, std::int64_t request, std::int64_t length, const Read& read) {
  static Allocate op{.hit_blocks = Ids()};  // keeps its memory
  const auto hit = cache.match(request, std::nullopt);
  KVO_CHECK(hit.has_value());
  read(hit->blocks);
  op.request = request;
  op.tokens = length - hit->length;
  op.hit_blocks->assign(hit->blocks.begin(), hit->blocks.end());
  op.hit_tokens = hit->length;
  const auto got = cache.allocate(op);
  KVO_CHECK(got.has_value());
  read(got->blocks);
}

/// Fills the cache with long requests of contents of their own. Those that take turns, at most
/// kTurns, keep their numbers 0, 1, ..; the others share one. Returns the former.
inline std::vector<MakeRequest> fill_with_requests(BlockCache& cache, std::int64_t blocks) {
  const std::int64_t count = blocks / (kLong / kSize);
  const std::int64_t apart = std::max<std::int64_t>(count / kTurns, 1);
  const std::int64_t turns = std::min(count, kTurns);
  std::vector<MakeRequest> known;
  for (std::int64_t i = 0; i < count; ++i) {
    const bool turn = i % apart == 0 && std::ssize(known) < turns;
    const std::int64_t number = turn ? std::ssize(known) : turns;
    MakeRequest op{.request = number, .tokens = tokens_of(i, kLong)};
    KVO_CHECK(cache.request(op).has_value());
    allot(cache, number, kLong, kReadNothing);
    KVO_CHECK(cache.free(number).has_value());
    if (turn) known.push_back(std::move(op));
  }
  return known;
}

/// Begins the requests of steps, all anew.
inline void begin_steps(BlockCache& cache) {
  for (std::int64_t i = 0; i < kTurns; ++i) {
    KVO_CHECK(cache.free(i).has_value());
    KVO_CHECK(cache.request({.request = i, .tokens = tokens_of(i, kPrompt)}).has_value());
    allot(cache, i, kPrompt, kReadNothing);
    const SetRequest running{.request = i, .computed = kPrompt, .status = RequestStatus::kRunning};
    KVO_CHECK(cache.set(running).has_value());
  }
}

/// Appends a token to each request, which has `length` then, and allots its slot.
template <class Read>
void step(BlockCache& cache, std::int64_t length, const Read& read) {
  const Token token = 7;
  Allocate slot{.tokens = 1};
  SetRequest computed{.computed = length};
  for (std::int64_t i = 0; i < kTurns; ++i) {
    slot.request = computed.request = i;
    KVO_CHECK(cache.append(i, {&token, 1}).has_value());
    const auto got = cache.allocate(slot);
    KVO_CHECK(got.has_value());
    read(got->blocks);
    KVO_CHECK(cache.set(computed).has_value());
  }
}

/// Files tokens under slots that are taken for them.
template <class Read>
void insert(RadixCache& cache, Insert& op, const Read& read) {
  const auto slots = cache.alloc(std::ssize(op.tokens));
  KVO_CHECK(slots.has_value());
  read(*slots);
  if (!op.slots) op.slots.emplace();
  op.slots->assign(slots->begin(), slots->end());
  KVO_CHECK(cache.insert(op).has_value());
}

/// A tree with so many leaves of kLeaf tokens, and room for some more tokens.
inline std::unique_ptr<RadixCache> with_leaves(const MakeRadix& make, std::int64_t leaves,
                                               std::int64_t more) {
  auto cache = make({.page_size = kSize, .slots = leaves * kLeaf + more}, {}).value();
  for (std::int64_t i = 0; i < leaves; ++i) {
    Insert leaf{.tokens = tokens_of(i, kLeaf)};
    insert(*cache, leaf, kReadNothing);
  }
  return cache;
}

}  // namespace kvo::prefix
