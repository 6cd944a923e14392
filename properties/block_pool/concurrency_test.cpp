// Law: a block never has two owners at a time, and every block comes back once.
//
// Each thread notes for every block it held the ticket after alloc returned and the ticket before
// free was called. Whatever the interleaving, two notes on one block must not overlap.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "optimized/block_pool/arena_pool.hpp"
#include "reference/block_pool/stack_pool.hpp"

namespace kvo::block_pool {
namespace {

struct Held {
  std::int64_t block;
  std::uint64_t from;
  std::uint64_t until;
};

struct Maker {
  std::string name;
  MakePool make;
};

class EveryPool : public testing::TestWithParam<Maker> {};

constexpr int kThreads = 4;
constexpr int kRounds = 3'000;

// Takes one to four blocks, writes to each, notes them and gives them back.
std::vector<Held> work(BlockPool& pool, Owner owner, std::atomic<std::uint64_t>& ticket) {
  std::vector<Held> history;
  std::vector<std::int64_t> blocks;
  for (int round = 0; round < kRounds; ++round) {
    blocks.assign(1 + static_cast<std::size_t>(round) % 4, -1);
    if (!pool.alloc(owner, blocks)) {
      std::this_thread::yield();
      continue;
    }
    const std::uint64_t from = ticket.fetch_add(1);
    for (const std::int64_t block : blocks) {
      // A plain write: with two owners it is a race that the thread sanitizer reports.
      pool.set_used(block, static_cast<std::int64_t>(owner));
      pool.sides(block).k[0] = static_cast<std::byte>(owner);
    }
    const std::uint64_t until = ticket.fetch_add(1);
    for (const std::int64_t block : blocks) history.push_back({block, from, until});
    pool.free(owner, blocks);
  }
  return history;
}

TEST_P(EveryPool, GivesABlockToOneOwnerAtATime) {
  constexpr Geometry kFew{.num_layers = 1, .block_size = 128, .head_dim = 128, .max_memory_mb = 1};
  auto made = GetParam().make(kFew, QuirkSet<Quirk>(Profile::kOriginal));
  ASSERT_TRUE(made.has_value());
  BlockPool& pool = **made;
  std::atomic<std::uint64_t> ticket = 0;
  std::vector<std::vector<Held>> histories(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        histories[static_cast<std::size_t>(i)] = work(pool, static_cast<Owner>(i) + 1, ticket);
      });
  }
  std::vector<Held> all;
  for (const auto& history : histories) all.insert(all.end(), history.begin(), history.end());
  ASSERT_FALSE(all.empty());
  std::ranges::sort(all, [](const Held& a, const Held& b) {
    return std::pair(a.block, a.from) < std::pair(b.block, b.from);
  });
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].block != all[i - 1].block) continue;
    ASSERT_GT(all[i].from, all[i - 1].until) << "block " << all[i].block << " had two owners";
  }

  // Counting is not enough: a leak and a double free cancel out. Every block must be there once.
  EXPECT_EQ(pool.available(), pool.cap());
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(pool.cap()));
  ASSERT_TRUE(pool.alloc(kNoCache, blocks).has_value());
  std::ranges::sort(blocks);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    EXPECT_EQ(blocks[i], static_cast<std::int64_t>(i));
}

INSTANTIATE_TEST_SUITE_P(BlockPool, EveryPool,
                         testing::Values(Maker{"stack", StackPool::make},
                                         Maker{"arena", optimized::ArenaPool::make}),
                         [](const auto& trial) { return trial.param.name; });

}  // namespace
}  // namespace kvo::block_pool
