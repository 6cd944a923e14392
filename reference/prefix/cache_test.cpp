// What no recorded case shows of the references: profile documented, and what the rules leave open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/prefix/blocks_cache.hpp"
#include "reference/prefix/journal.hpp"
#include "reference/prefix/radix_cache.hpp"

namespace kvo::prefix {
namespace {

using testing::ElementsAre;

constexpr QuirkSet<Quirk> kDocumented(Profile::kDocumented);

Tokens tokens_from(std::int32_t first, std::size_t count) {
  Tokens tokens;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(first + static_cast<std::int32_t>(i));
  return tokens;
}

TEST(Journaled, IsAsBeforeUnlessCommitted) {
  Journaled<Ids> rows;
  rows.add({1});
  rows.commit();
  rows.change(0).push_back(2);
  rows.change(0).push_back(3);
  rows.add({4});
  rows.roll_back();
  EXPECT_EQ(rows.size(), 1);
  EXPECT_THAT(rows[0], ElementsAre(1));
  rows.change(0).push_back(2);
  rows.commit();
  rows.roll_back();
  EXPECT_THAT(rows[0], ElementsAre(1, 2));
}

BlocksOptions windowed() {
  BlocksOptions options;
  options.num_blocks = 16;
  options.block_size = 2;
  options.attention = Attention::kSlidingWindow;
  options.window = 3;
  options.max_model_len = 64;
  options.max_in_flight = 64;
  options.retention = 4;
  options.events = true;
  return options;
}

TEST(BlockManager, TellsEachRunOfBlocksThatGotKeys) {
  BlockManager blocks(windowed(), kDocumented);  // of two blocks the second one gets a key
  const Tokens tokens = tokens_from(10, 9);
  const auto keys = blocks.request({.request = 0, .tokens = tokens});
  ASSERT_TRUE(keys);
  const std::vector<Key> all(keys->begin(), keys->end());
  ASSERT_EQ(all.size(), 4U);
  ASSERT_TRUE(blocks.allocate({.request = 0, .tokens = 9}));
  const auto events = blocks.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_THAT(events[0].keys, ElementsAre(all[1]));
  EXPECT_EQ(events[0].parent, all[0]);
  EXPECT_THAT(events[0].tokens, ElementsAre(12, 13));
  EXPECT_THAT(events[1].keys, ElementsAre(all[3]));
  EXPECT_EQ(events[1].parent, all[2]);
  EXPECT_THAT(events[1].tokens, ElementsAre(16, 17));
}

TEST(BlockManager, TellsThatAKeyIsRemovedWhenNobodyCarriesIt) {
  BlocksOptions options = windowed();
  options.attention = Attention::kFull;
  options.retention = std::nullopt;
  BlockManager blocks(options, kDocumented);
  const Tokens tokens = tokens_from(10, 2);
  for (const std::int64_t request : {0, 1}) {
    ASSERT_TRUE(blocks.request({.request = request, .tokens = tokens}));
    ASSERT_TRUE(blocks.allocate({.request = request, .tokens = 2}));
  }
  (void)blocks.events();
  ASSERT_TRUE(blocks.evict(Ids{1}));
  EXPECT_TRUE(blocks.events().empty());
  ASSERT_TRUE(blocks.evict(Ids{2}));
  EXPECT_EQ(blocks.events().size(), 1U);
}

TEST(BlockManager, RefusesToReleaseATableThatWasReleasedByHand) {
  BlocksOptions options = windowed();
  options.attention = Attention::kFull;
  options.retention = std::nullopt;
  BlockManager blocks(options, kDocumented);
  const Tokens tokens = tokens_from(10, 4);
  ASSERT_TRUE(blocks.request({.request = 0, .tokens = tokens}));
  ASSERT_TRUE(blocks.allocate({.request = 0, .tokens = 4}));
  ASSERT_TRUE(blocks.release(Ids{1}));
  EXPECT_TRUE(failed_with(blocks.free(0), Code::kPrecondition));
  EXPECT_THAT(blocks.table(0), ElementsAre(1, 2));
  EXPECT_EQ(blocks.state().refs[2], 1);
}

TEST(RadixManager, UnlocksOnlyWhatIsLockedItself) {
  RadixConfig options;
  options.slots = 16;
  RadixManager radix(options, kDocumented);
  const Tokens tokens = tokens_from(10, 4);
  ASSERT_TRUE(radix.alloc(4));
  ASSERT_TRUE(radix.insert({.tokens = tokens, .slots = Ids{1, 2, 3, 4}}));
  const auto front = radix.match({.tokens = tokens, .limit = 2});
  ASSERT_TRUE(front);
  ASSERT_EQ(front->node, 2);
  ASSERT_TRUE(radix.lock(1));
  EXPECT_FALSE(radix.unlock(2)) << "its lock is that of node 1";
  EXPECT_EQ(radix.state().nodes[1].lock, 1);
  EXPECT_EQ(radix.unlock(1).value(), 4);
}

TEST(RadixManager, KeepsNothingWhereItIsDisabled) {
  RadixConfig options;
  options.slots = 8;
  options.disable = true;
  RadixManager radix(options, kDocumented);
  const Tokens tokens = tokens_from(10, 4);
  ASSERT_TRUE(radix.request({.request = 0, .tokens = tokens}));
  ASSERT_TRUE(radix.admit(0));
  ASSERT_TRUE(radix.extend(0, 4, {}));
  const auto kept = radix.checkpoint(0);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->protected_, 0);
  ASSERT_TRUE(radix.finish(0, true));
  EXPECT_EQ(radix.state().available, 8);
  EXPECT_TRUE(radix.state().nodes.empty());
}

TEST(RadixManager, EvictsNothingWhoseSlotsAreFree) {
  RadixConfig options;
  options.slots = 8;
  RadixManager radix(options, kDocumented);
  const Tokens tokens = tokens_from(1, 2);
  ASSERT_TRUE(radix.insert({.tokens = tokens}));
  EXPECT_FALSE(radix.evict(1));
  EXPECT_EQ(radix.state().total, 2);
}

}  // namespace
}  // namespace kvo::prefix
