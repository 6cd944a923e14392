// What lock-step with the reference cannot see: borders of blocks, storage, depth, and ties.
#include "optimized/snapshot/prefix_trie.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "optimized/snapshot/prefix_counted_layer.hpp"
#include "optimized/snapshot/token_match.hpp"

namespace kvo::optimized {
namespace {

using snapshot::Quirk;
using snapshot::Tokens;
using testing::ElementsAre;

constexpr std::int64_t kNoLimit = std::int64_t{1} << 60U;

Tokens counted(std::int64_t count, std::int32_t first = 0) {
  Tokens tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

RadixPrefixTrie empty_trie() {
  snapshot::Layers layers;
  layers.push_back(std::make_unique<CountedLayer>());
  return RadixPrefixTrie(std::move(layers), kNoLimit, QuirkSet<Quirk>());
}

/// Evaluates what begin() leaves of `inputs`, and stands behind it.
void open_session(RadixPrefixTrie& trie, const Tokens& inputs) {
  const auto begun = trie.begin(inputs);
  ASSERT_TRUE(begun.has_value());
  CountedLayer::feed(trie, std::ssize(begun->remaining));
}
void keep(RadixPrefixTrie& trie, bool user) {
  ASSERT_TRUE(trie.snapshot(user).has_value());
}

// ---- Tokens ----

TEST(TokenMatch, FindsTheFirstDifferenceWhereverBlocksEnd) {
  std::vector<std::int64_t> lengths(41);
  std::iota(lengths.begin(), lengths.end(), 0);
  for (const std::int64_t length : {63, 64, 65, 80, 255, 256, 257, 343, 1023, 1024, 1025, 1365})
    lengths.push_back(length);
  for (const std::int64_t length : lengths)
    for (std::size_t offset = 0; offset<17; offset += length> 40 ? 16 : 1) {
      const Tokens ours = counted(length);
      Tokens memory = counted(length + std::ssize(ours) + 40, -static_cast<std::int32_t>(offset));
      const auto theirs = std::span(memory).subspan(offset, static_cast<std::size_t>(length));
      ASSERT_EQ(matched_tokens(ours, theirs), length);
      ASSERT_EQ(matched_tokens(theirs, std::span(memory).subspan(offset)), length);
      for (std::int64_t differs = length; differs-- > 0;) {
        theirs[static_cast<std::size_t>(differs)] ^= 1 << 31;  // and all behind it differ, too
        ASSERT_EQ(matched_tokens(ours, theirs), differs) << length << " from " << offset;
      }
    }
}

TEST(TokenSlice, CutsAndJoinsWithoutCopying) {
  TokenSlice behind(counted(100));
  const std::int32_t* const storage = behind.tokens().data();
  TokenSlice front = behind.cut_front(30);
  EXPECT_EQ(front.tokens().data(), storage);
  EXPECT_EQ(behind.tokens().data(), storage + 30);
  EXPECT_EQ(front.size(), 30);
  EXPECT_EQ(behind.size(), 70);
  front.append(behind);
  EXPECT_EQ(front.tokens().data(), storage);
  EXPECT_EQ(Tokens(front.tokens().begin(), front.tokens().end()), counted(100));
}

TEST(TokenSlice, GrowsBehindItsTokensWhoeverHoldsThoseBefore) {
  TokenSlice behind(counted(100));
  TokenSlice front = behind.cut_front(30);
  behind.append(counted(5, 100));
  EXPECT_EQ(Tokens(behind.tokens().begin(), behind.tokens().end()), counted(75, 30));
  front.append(counted(1, 7));  // others' tokens lie behind: it moves
  EXPECT_EQ(front.tokens().back(), 7);
  EXPECT_EQ(Tokens(behind.tokens().begin(), behind.tokens().end()), counted(75, 30));
}

TEST(TokenSlice, HasLittleSlackAndGivesTheEndBack) {
  TokenSlice grown(counted(1000));
  const std::size_t header = grown.share_of_storage() - 4000;
  for (std::int32_t token = 1000; token < 100'000; ++token) {
    grown.append(counted(1, token));
    ASSERT_LE((grown.share_of_storage() - header) * 8,
              static_cast<std::size_t>(grown.size()) * 4 * 9);
  }
  TokenSlice front = grown.cut_front(10);
  grown.give_up();
  EXPECT_EQ(grown.size(), 0);
  EXPECT_EQ(front.share_of_storage(), header + 40);
  front.forget();
  EXPECT_EQ(front.size(), 10);
  EXPECT_EQ(front.share_of_storage(), 0U);
}

// ---- The tree ----

Tokens first_tokens(const PrefixNode& node) {
  Tokens found;
  for (const PrefixNode* one = node.first_child(); one != nullptr; one = one->next)
    found.push_back(one->tokens.tokens().front());
  return found;
}

TEST(PrefixTree, FindsChildrenByTokenAndKeepsTheirOrder) {
  PrefixTree tree;
  tree.plant(1);
  Tokens wanted;
  for (std::int32_t i = 0; i < 40; ++i) {
    const std::int32_t token = i * 37 % 101;
    wanted.push_back(token);
    tree.append_child(*tree.root(), Tokens{token, 1, 2});
    if (i % 3 == 0) {  // an upper half takes the place
      PrefixNode& upper = tree.split(*tree.root()->children->find(token), 1);
      EXPECT_EQ(tree.root()->children->find(token), &upper);
      EXPECT_EQ(first_tokens(upper), Tokens{1});
    }
    EXPECT_EQ(first_tokens(*tree.root()), wanted);
    for (const std::int32_t known : wanted) {
      ASSERT_NE(tree.root()->children->find(known), nullptr);
      EXPECT_EQ(tree.root()->children->find(known)->tokens.tokens().front(), known);
    }
    EXPECT_EQ(tree.root()->children->find(102), nullptr);
    if (i % 4 == 3) {
      const std::int32_t gone = wanted[wanted.size() / 2];
      std::erase(wanted, gone);
      PrefixNode* node = tree.root()->children->find(gone);
      if (node->children) tree.merge(*node);
      tree.remove(*node);
      EXPECT_EQ(tree.root()->children->find(gone), nullptr);
    }
  }
}

TEST(PrefixTree, ASplitNodeKeepsItsTokensWhereTheyAre) {
  PrefixTree tree;
  tree.plant(1);
  PrefixNode& node = tree.append_child(*tree.root(), counted(1000));
  const std::int32_t* const storage = node.tokens.tokens().data();
  PrefixNode& upper = tree.split(node, 600);
  EXPECT_EQ(upper.tokens.tokens().data(), storage);
  EXPECT_EQ(node.tokens.tokens().data(), storage + 600);
  tree.merge(upper);
  EXPECT_EQ(upper.tokens.tokens().data(), storage);
  EXPECT_EQ(upper.tokens.size(), 1000);
  EXPECT_EQ(upper.end, 1000);
}

// Many nodes share a time and an end, so that pre-order decides.
TEST(PrefixTree, EvictionOrderIsThatOfTheKeysAndThenOfPreOrder) {
  std::mt19937 engine(11);  // NOLINT(cert-msc51-cpp): the same trees each time
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int32_t>(engine() % static_cast<std::uint32_t>(bound));
  };
  for (int round = 0; round < 60; ++round) {
    PrefixTree tree;
    tree.plant(1);
    for (int step = 0; step < 60; ++step) {
      Tokens tokens(static_cast<std::size_t>(1 + below(6)));
      for (std::int32_t& token : tokens) token = below(3);
      const PrefixWalk found = PrefixTree::walk(*tree.root(), tokens);
      PrefixNode* last = found.path.back();
      if (found.into_last < last->tokens.size()) last = &tree.split(*last, found.into_last);
      const auto rest = std::span(tokens).subspan(static_cast<std::size_t>(found.matched));
      if (!rest.empty()) tree.append_child(*last, rest);
      if (last != tree.root() && last->children && last->children->is_one() && below(4) == 0)
        tree.merge(*last);
    }
    const auto nodes = tree.numbered();
    for (const PrefixNode* a : nodes)
      for (const PrefixNode* b : nodes) {
        ASSERT_EQ(stands_before(*a, *b), a->number < b->number);
        ASSERT_EQ(EvictedBefore()(*a, *b), std::tuple(a->last_used, -a->end, a->number) <
                                               std::tuple(b->last_used, -b->end, b->number));
      }
  }
}

TEST(PrefixTree, ComparesTheEndsOfTwoDeepChains) {
  constexpr std::int32_t kDepth = 100'000;
  PrefixTree tree;
  tree.plant(1);
  PrefixNode* const fork = &tree.append_child(*tree.root(), Tokens{1});
  PrefixNode* left = fork;
  PrefixNode* right = &tree.append_child(*fork, Tokens{0, 0});
  for (std::int32_t i = 0; i < kDepth; ++i) left = &tree.append_child(*left, Tokens{1});
  for (std::int32_t i = 0; i < kDepth; ++i) right = &tree.append_child(*right, Tokens{1});
  EXPECT_TRUE(stands_before(*right, *left));  // the fork's first child is on the right
  EXPECT_FALSE(stands_before(*left, *right));
  EXPECT_TRUE(stands_before(*fork, *left));
  EXPECT_FALSE(stands_before(*left, *fork));
}

// ---- The trie ----

TEST(RadixPrefixTrie, AChainOfAHundredThousandNodesIsWalkedInLoops) {
  constexpr std::int64_t kDepth = 100'000;
  RadixPrefixTrie trie = empty_trie();
  open_session(trie, Tokens{});
  for (std::int32_t token = 0; token < kDepth; ++token) {
    trie.output(Tokens{token});
    CountedLayer::feed(trie, 1);
    keep(trie, true);
  }
  const Tokens all = counted(kDepth);
  EXPECT_EQ(trie.matched(all), kDepth);
  const snapshot::Find::Returns found = trie.find(all);
  EXPECT_EQ(std::ssize(found.path), kDepth + 1);
  EXPECT_EQ(found.path.back(), kDepth);
  EXPECT_EQ(std::ssize(trie.tree().shown.active), kDepth + 1);
  open_session(trie, Tokens{-1});  // all of them leave the path, and enter the index
  EXPECT_EQ(trie.tree().shown.paged_out_bytes, kDepth * 4);
  const auto again = trie.begin(all);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->remaining, Tokens{kDepth - 1});
  open_session(trie, Tokens{-1});
  trie.set_limit(0);
  EXPECT_TRUE(trie.enforce().has_value());
  EXPECT_EQ(trie.tree().shown.paged_out_bytes, 0);
}

TEST(RadixPrefixTrie, OfEqualsTheFirstInPreOrderIsEvicted) {
  RadixPrefixTrie trie = empty_trie();
  for (const Tokens& inputs : {Tokens{1, 2, 3}, Tokens{1, 2, 4}, Tokens{1, 2, 5}, Tokens{9}}) {
    open_session(trie, inputs);
    keep(trie, false);
  }
  const auto left = [&] {
    Tokens tokens;
    for (const snapshot::TreeNode& node : trie.tree().shown.nodes)
      if (node.end == 3) tokens.push_back(node.tokens.back());
    return tokens;
  };
  ASSERT_THAT(left(), ElementsAre(3, 4, 5));
  trie.set_limit(trie.tree().shown.paged_out_bytes - 1);
  EXPECT_TRUE(trie.enforce().has_value());
  EXPECT_THAT(left(), ElementsAre(4, 5));
  trie.set_limit(trie.tree().shown.paged_out_bytes - 1);
  EXPECT_TRUE(trie.enforce().has_value());
  EXPECT_THAT(left(), ElementsAre(5));
}

// Every tenth prefix is alone; the others of a thousand share half of their tokens. A restore point
// in the middle makes each leaf grow.
TEST(RadixPrefixTrie, AHundredThousandPrefixesTakeLittleMoreThanTheirTokens) {
  constexpr std::int32_t kPrefixes = 100'000;
  constexpr std::int32_t kTokens = 512;
  RadixPrefixTrie trie = empty_trie();
  Tokens inputs(kTokens);
  std::int64_t distinct = 0;
  for (std::int32_t i = 0; i < kPrefixes; ++i) {
    const bool shares = i % 10 != 0;
    const std::int32_t half = shares ? kTokens / 2 : 0;
    std::fill(inputs.begin(), inputs.begin() + half, -1 - i / 1000);
    std::iota(inputs.begin() + half, inputs.end(), i * 7);
    distinct += kTokens - trie.matched(inputs);
    const auto begun = trie.begin(inputs);
    ASSERT_TRUE(begun.has_value());
    const std::int64_t left = std::ssize(begun->remaining);
    CountedLayer::feed(trie, left / 2);
    keep(trie, false);
    CountedLayer::feed(trie, left - left / 2);
    ASSERT_TRUE(trie.close().has_value());
  }
  EXPECT_GE(distinct, std::int64_t{kPrefixes} * kTokens / 2);
  EXPECT_LT(static_cast<double>(trie.storage()), 1.5 * 4 * static_cast<double>(distinct));
}

}  // namespace
}  // namespace kvo::optimized
