#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "optimized/prefix/block_cache.hpp"
#include "optimized/prefix/content_index.hpp"
#include "optimized/prefix/event_log.hpp"
#include "optimized/prefix/flat_index.hpp"
#include "optimized/prefix/free_queue.hpp"
#include "optimized/prefix/leaf_heap.hpp"
#include "optimized/prefix/namespaces.hpp"
#include "optimized/prefix/ring.hpp"
#include "optimized/prefix/run_pool.hpp"
#include "reference/contract/values/random.hpp"

namespace kvo::optimized {
namespace {

using prefix::EventKind;
using prefix::Key;
using prefix::Tokens;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FlatIndex, FindsAllThatStrayedWhenOneBeforeThemGoes) {
  FlatIndex index;
  // Tags that all want the last slot: those behind it begin anew at the first.
  index.reserve(8);
  for (FlatIndex::Id id = 0; id < 8; ++id) index.add(15, id);
  for (FlatIndex::Id gone = 0; gone < 8; ++gone) {
    index.remove(15, gone);
    for (FlatIndex::Id id = 0; id < 8; ++id)
      EXPECT_EQ(index.find(15, [id = id](auto found) { return found == id; }),
                id > gone ? id : FlatIndex::kNone);
  }
  EXPECT_EQ(index.size(), 0U);
}

TEST(FlatIndex, KeepsWhatIsWhereItBelongsWhenAGapIsClosed) {
  FlatIndex index;
  index.add(3, 30);
  index.add(4, 40);  // at home: it must not move to slot 3
  index.add(3, 31);
  index.remove(3, 30);
  const auto is = [](FlatIndex::Id id) { return [=](auto found) { return found == id; }; };
  EXPECT_EQ(index.find(4, is(40)), 40U);
  EXPECT_EQ(index.find(3, is(31)), 31U);
  index.replace(4, 40, 41);
  EXPECT_EQ(index.find(4, is(40)), FlatIndex::kNone);
  EXPECT_EQ(index.find(4, is(41)), 41U);
}

TEST(FlatIndex, AgreesWithAListOverManyChanges) {
  FlatIndex index;
  std::vector<std::pair<std::uint32_t, FlatIndex::Id>> there;
  traces::Random random(5);
  for (FlatIndex::Id id = 0; id < 4'000; ++id) {
    const auto tag = static_cast<std::uint32_t>(random.below(64) * 0x10001U);
    index.reserve(1);
    index.add(tag, id);
    there.emplace_back(tag, id);
    if (random.below(3) == 0) {
      const auto at = static_cast<std::size_t>(random.below(there.size()));
      index.remove(there[at].first, there[at].second);
      there.erase(there.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  ASSERT_EQ(index.size(), there.size());
  for (const auto& [tag, id] : there)
    EXPECT_EQ(index.find(tag, [id = id](auto found) { return found == id; }), id);
}

TEST(ContentIndex, TellsCollidingContentsApart) {
  ContentIndex index(2, 1);  // two hashes for all
  const auto root = index.use_root({});
  std::vector<ContentIndex::Id> ids;
  std::vector<Key> names;
  for (prefix::Token token = 0; token < 20; ++token) {
    const Tokens tokens{token, 7};
    index.reserve(1);
    ids.push_back(index.use(root, hash_behind({}, tokens), tokens.data()));
    names.push_back(index[ids.back()].name);
    EXPECT_EQ(index.find(names.back()), ids.back());
  }
  EXPECT_EQ(index.size(), 20U);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
  const Tokens again{3, 7};
  EXPECT_EQ(index.use(root, hash_behind({}, again), again.data()), ids[3]);
}

TEST(ContentIndex, SameTokensBehindOtherContentsAreOthers) {
  ContentIndex index(1);
  const Tokens tokens{1};
  index.reserve(4);
  const auto a = index.use(index.use_root({}), hash_behind({}, tokens), tokens.data());
  const auto b = index.use(index.use_root("salt"), hash_behind({}, tokens), tokens.data());
  const auto below = index.use(a, hash_behind({}, tokens), tokens.data());
  EXPECT_NE(a, b);
  EXPECT_NE(a, below);
  EXPECT_EQ(index[below].depth, 2U);
  EXPECT_NE(index[a].name, index[b].name);  // though the hashes given are equal
}

TEST(ContentIndex, ForgetsAChainWithItsLastUser) {
  ContentIndex index(1);
  const auto root = index.use_root({});
  std::vector<ContentIndex::Id> chain{root};
  index.reserve(100'000);
  ChainHash hash = {};
  for (prefix::Token token = 0; token < 100'000; ++token) {
    hash = hash_behind(hash, {&token, 1});
    chain.push_back(index.use(chain.back(), hash, &token));
  }
  const Key first = index[chain[1]].name;
  for (std::size_t i = 1; i + 1 < chain.size(); ++i) index.leave(chain[i]);
  EXPECT_EQ(index.size(), 100'000U);  // the last one needs all before it
  index.leave(chain.back());
  EXPECT_EQ(index.size(), 0U);
  EXPECT_EQ(index.find(first), ContentIndex::kNone);
  const prefix::Token token = 0;
  const auto back = index.use(root, hash_behind({}, {&token, 1}), &token);
  EXPECT_EQ(index[back].name, first);
}

TEST(ContentIndex, LongBlocksCostNothingUntilThereIsOne) {
  ContentIndex index(std::size_t{1} << 62U);
  index.leave(index.use_root("namespace"));
  EXPECT_THROW(index.reserve(1), std::bad_alloc);
  EXPECT_EQ(index.size(), 0U);
}

TEST(ContentIndex, ManyNamespacesThatNobodyUsesAreSwept) {
  ContentIndex index(1);
  const auto used = index.use_root("used");
  for (int i = 0; i < 1'000; ++i) index.leave(index.use_root(std::to_string(i)));
  EXPECT_EQ(index.use_root("used"), used);
  EXPECT_LT(index.use_root("new") - used, 200U);  // numbers are given again
}

template <bool kUndoes>
std::vector<FreeQueue::Block> listed(const BasicFreeQueue<kUndoes>& queue) {
  std::vector<FreeQueue::Block> blocks;
  for (auto block = queue.front(); block != 0; block = queue.behind(block)) blocks.push_back(block);
  return blocks;
}

TEST(FreeQueue, BlocksLeaveWhereverTheyStand) {
  FreeQueue queue(6);
  EXPECT_THAT(listed(queue), ElementsAre(1, 2, 3, 4, 5));
  for (const FreeQueue::Block block : {3U, 1U, 5U, 0U}) queue.pin(block);
  EXPECT_THAT(listed(queue), ElementsAre(2, 4));
  EXPECT_TRUE(queue.unpin(5));
  queue.put_last(5);
  EXPECT_TRUE(queue.unpin(3));
  queue.put_behind(3, 0);
  EXPECT_TRUE(queue.unpin(1));
  queue.put_behind(1, 3);
  EXPECT_THAT(listed(queue), ElementsAre(3, 1, 2, 4, 5));
  EXPECT_EQ(queue.free(), 5);
}

TEST(FreeQueue, CountsBelowZeroStayInTheQueue) {
  FreeQueue queue(3);
  EXPECT_FALSE(queue.unpin(1));
  EXPECT_FALSE(queue.unpin(0));
  EXPECT_EQ(queue.wrong(), 1);
  EXPECT_FALSE(queue.count_down(1));
  EXPECT_FALSE(queue.unpin(1));
  queue.pin(1);
  EXPECT_EQ(queue.wrong(), 1);  // it is still below zero
  queue.pin(1);
  EXPECT_EQ(queue.wrong(), 0);
  EXPECT_THAT(listed(queue), ElementsAre(1, 2));
  queue.pin(1);
  EXPECT_THAT(listed(queue), ElementsAre(2));
}

// Blocks are drawn more than once, so that counts of a rolled back operation pass 0 both ways.
TEST(FreeQueue, RollsBackUsersAndOrder) {
  traces::Random random(1);
  UndoableFreeQueue queue(6);
  for (int step = 0; step < 1'000; ++step) {
    const auto order = listed(queue);
    std::vector<std::int64_t> users;
    for (FreeQueue::Block block = 0; block < 6; ++block) users.push_back(queue.users(block));
    for (int change = 0; change < 3; ++change) {
      prefix::Ids blocks(random.below(5));
      for (std::int64_t& block : blocks) block = static_cast<std::int64_t>(random.below(6));
      if (random.below(2) == 0)
        queue.pin_all(blocks);
      else
        queue.release(blocks.begin(), blocks.end(), [](auto block) { return block % 2 == 0; });
    }
    if (random.below(2) == 0) {
      queue.commit();
      continue;
    }
    queue.roll_back();
    ASSERT_EQ(listed(queue), order);
    ASSERT_EQ(queue.free(), std::ssize(order));
    for (FreeQueue::Block block = 0; block < 6; ++block)
      ASSERT_EQ(queue.users(block), users[block]);
    ASSERT_EQ(queue.wrong(), std::ranges::count_if(users, [](auto count) { return count < 0; }));
  }
}

TEST(FreeQueue, OfOneBlockIsEmpty) {
  const FreeQueue queue(1);
  EXPECT_THAT(listed(queue), IsEmpty());
  EXPECT_EQ(queue.free(), 0);
}

struct Ranked {
  std::vector<int> ranks;
  std::vector<std::uint32_t> places = {};
  [[nodiscard]] bool before(std::uint32_t a, std::uint32_t b) const { return ranks[a] < ranks[b]; }
  std::uint32_t& place(std::uint32_t id) { return places[id]; }
};

TEST(LeafHeap, KeepsTheOrderWhileLeavesAreRenewedAndTaken) {
  constexpr auto kNowhere = LeafHeap<Ranked>::kNowhere;
  traces::Random random(3);
  Ranked nodes{.ranks = std::vector<int>(200)};
  nodes.places.assign(200, kNowhere);
  LeafHeap<Ranked> heap;
  heap.reserve(200);
  int rank = 0;
  for (int step = 0; step < 5'000; ++step) {
    const auto id = static_cast<std::uint32_t>(random.below(200));
    if (nodes.places[id] == kNowhere) {
      nodes.ranks[id] = ++rank;
      heap.add(nodes, id);
    } else if (random.below(2) == 0) {
      heap.remove(nodes, id);
    } else {
      nodes.ranks[id] = random.below(2) == 0 ? ++rank : -++rank;
      heap.renew(nodes, id);
    }
    if (heap.empty()) continue;
    const auto first =
        std::ranges::min_element(heap.leaves(), {}, [&](auto leaf) { return nodes.ranks[leaf]; });
    ASSERT_EQ(heap.top(), *first);
  }
}

TEST(Ring, GrowsAndShrinksAtBothEnds) {
  Ring ring;
  ring.reserve(4);
  for (std::int64_t i = 0; i < 4; ++i) ring.push_back(i);
  EXPECT_EQ(ring.pop_front(), 0);
  ring.push_back(4);  // round the end
  ring.reserve(3);
  ring.push_front(9);
  ring.push_front(8);
  std::vector<std::int64_t> seen;
  for (std::size_t i = 0; i < ring.size(); ++i) seen.push_back(ring[i]);
  EXPECT_THAT(seen, ElementsAre(8, 9, 1, 2, 3, 4));
  EXPECT_EQ(ring.pop_front(), 8);
  ring.sort();
  seen.clear();
  for (std::size_t i = 0; i < ring.size(); ++i) seen.push_back(ring[i]);
  EXPECT_THAT(seen, ElementsAre(1, 2, 3, 4, 9));
}

TEST(RunPool, GivesAgainWhatCameBack) {
  RunPool pool;
  kvo::optimized::Run run = pool.take(100);
  EXPECT_EQ(run.room(), 128U);
  std::byte* const memory = run.memory;
  run.tokens()[100] = 1;  // pairs have one token more than units
  pool.give(run);
  kvo::optimized::Run again = pool.take(70);
  EXPECT_EQ(again.memory, memory);
  EXPECT_EQ(again.units, 70U);
  pool.give(again);
}

TEST(Namespaces, EmptyExtraIsOneOfItsOwnAndEmptySaltIsNone) {
  Namespaces spaces;
  const auto none = spaces.use({});
  const auto empty = spaces.use({.extra = ""});
  EXPECT_NE(none, empty);
  EXPECT_EQ(spaces.use({.salt = ""}), none);
  EXPECT_EQ(spaces.find({.extra = "", .salt = "s"}), Namespaces::kNone);
  for (int i = 0; i < 1'000; ++i) spaces.leave(spaces.use({.salt = std::to_string(i)}));
  EXPECT_EQ(spaces.find({.extra = ""}), empty);
  EXPECT_LT(spaces.use({.salt = "new"}), 200U);
}

TEST(EventLog, EventsHaveTheKeysAndTokensAddedToThem) {
  EventLog log;
  log.reserve(3, 3, 2);
  log.begin(EventKind::kStored, Key{1, 2});
  log.add_key({3, 4});
  log.add_tokens(std::array{5, 6});
  log.begin(EventKind::kRemoved);
  log.add_key({7, 8});
  log.add_key({9, 9});
  log.begin(EventKind::kCleared);
  const auto events = log.take();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_THAT(events[0].keys, ElementsAre(Key{3, 4}));
  EXPECT_THAT(events[0].tokens, ElementsAre(5, 6));
  EXPECT_EQ(events[0].parent, (Key{1, 2}));
  EXPECT_THAT(events[1].keys, ElementsAre(Key{7, 8}, Key{9, 9}));
  EXPECT_THAT(events[2].keys, IsEmpty());
  EXPECT_THAT(log.take(), IsEmpty());
  const Key* const there = events[0].keys.data();
  log.begin(EventKind::kStored);
  log.add_key({5, 5});
  const auto next = log.take();
  ASSERT_EQ(next.size(), 1U);
  EXPECT_THAT(next[0].keys, ElementsAre(Key{5, 5}));
  EXPECT_EQ(next[0].keys.data(), there) << "lists take the memory of those before";
}

TEST(BlockRules, WindowsKeepTheLastBlocksOfSegments) {
  const BlockRules rules({.block_size = 4,
                          .attention = prefix::Attention::kSlidingWindow,
                          .window = 5,
                          .retention = 12});
  // A run of 1 in segments of 3, and the run that ends before the prompt's last block.
  std::vector<std::int64_t> kept;
  for (std::int64_t i = 0; i < 8; ++i)
    if (rules.keeps_key(i, 18, std::nullopt)) kept.push_back(i);
  EXPECT_THAT(kept, ElementsAre(2, 3, 5));
  EXPECT_EQ(rules.skipped(5), 1);
  EXPECT_EQ(rules.skipped(3), 0);
}

}  // namespace
}  // namespace kvo::optimized
