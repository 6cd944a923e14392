// Single rules of prefix.radix in both profiles: the tree, its locks and what is evicted.
#include "properties/prefix/radix_rules_case.hpp"

namespace kvo::prefix {
namespace {

RadixConfig evicting_by(Policy policy, std::int64_t slots = 16) {
  RadixConfig config = radix_of(slots);
  config.policy = policy;
  return config;
}

// ---- Lookup, splits and inserts ----

TEST(PrefixRadixRules, AHitIsTheLongestPrefixPX1PX60PX64PX66) {
  in_each_tree(radix_of(16), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(looked(cache, "ab"), "0 node 0 []");
    EXPECT_EQ(inserted(cache, {.tokens = tokens_of("abcd"), .slots = Numbers({5, 6, 7, 8})}),
              "0 node 1");
    EXPECT_EQ(looked(cache, "abcd"), "4 node 1 [5, 6, 7, 8]") << "the last token, too";
    EXPECT_EQ(looked(cache, "abcdef"), "4 node 1 [5, 6, 7, 8]");
    EXPECT_EQ(looked(cache, "bcd"), "0 node 0 []");
    EXPECT_EQ(looked(cache, ""), "0 node 0 []");
    EXPECT_EQ(looked(cache, "abcd", 0), "0 node 0 []");
    EXPECT_EQ(inserted(cache, {.tokens = tokens_of("")}), "0 node 0");
    EXPECT_EQ(inserted(cache, {.tokens = tokens_of("AB")}), "0 node 2");
    EXPECT_EQ(looked(cache, "AB"), "2 node 2 [65, 66]") << "without slots the tokens are taken";
    EXPECT_EQ(tree(cache), "1<0:abcd 2<0:AB");
  });
}

TEST(PrefixRadixRules, AHitWithinANodeSplitsItPX64PX65) {
  in_each_tree(radix_of(16), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(inserted(cache, {.tokens = tokens_of("abcd"), .slots = Numbers({5, 6, 7, 8})}),
              "0 node 1");
    EXPECT_EQ(looked(cache, "abx"), "2 node 2 [5, 6]");
    EXPECT_EQ(tree(cache), "1<2:cd 2<0:ab") << "the node keeps its number, and the rest";
    EXPECT_EQ(looked(cache, "abcd", 1), "1 node 3 [5]");
    EXPECT_EQ(tree(cache), "1<2:cd 2<3:b 3<0:a");
    EXPECT_EQ(looked(cache, "abcd"), "4 node 1 [5, 6, 7, 8]");
    EXPECT_EQ(each_node(cache, &ShownNode::hits), "1:1 2:1 3:1") << "of one insert";
  });
}

TEST(PrefixRadixRules, AnInsertKeepsTheSlotsThatAreTherePX66PX74) {
  in_each_tree(radix_of(16), [](RulesCase& cache, bool /*original*/) {
    const auto insert = [&](std::string_view text, Numbers slots) {
      return inserted(cache, {.tokens = tokens_of(text), .slots = std::move(slots)});
    };
    EXPECT_EQ(insert("abcd", {1, 2, 3, 4}), "0 node 1");
    EXPECT_EQ(insert("abcd", {9, 9, 9, 9}), "4 node 1");
    EXPECT_EQ(insert("abcdef", {9, 9, 9, 9, 5, 6}), "4 node 2") << "below";
    EXPECT_EQ(insert("ab", {9, 9}), "2 node 3") << "a split ends it";
    EXPECT_EQ(insert("abxy", {9, 9, 7, 8}), "2 node 4");
    EXPECT_EQ(tree(cache), "1<3:cd 2<1:ef 3<0:ab 4<3:xy");
    EXPECT_EQ(looked(cache, "abcdef"), "6 node 2 [1, 2, 3, 4, 5, 6]");
    EXPECT_EQ(looked(cache, "abxy"), "4 node 4 [1, 2, 7, 8]");
    EXPECT_EQ(cache.values(AllSlots{}).slots, Numbers({1, 2, 3, 4, 5, 6, 7, 8}));
  });
}

TEST(PrefixRadixRules, NamespacesPartAtTheRootPX5PX63) {
  in_each_tree(radix_of(16), [](RulesCase& cache, bool /*original*/) {
    const auto found_in = [&](std::optional<std::string> extra, std::optional<std::string> salt) {
      return cache.values(MatchTokens{.tokens = tokens_of("ab"), .extra = extra, .salt = salt})
          .node;
    };
    Insert insert{.tokens = tokens_of("ab")};
    EXPECT_EQ(inserted(cache, insert), "0 node 1");
    insert.extra = "x";
    EXPECT_EQ(found_in("x", {}), 0);
    EXPECT_EQ(inserted(cache, insert), "0 node 2");
    insert.salt = "x";
    EXPECT_EQ(inserted(cache, insert), "0 node 3");
    insert.extra = "";
    insert.salt = "";
    EXPECT_EQ(inserted(cache, insert), "0 node 4") << "the empty extra key is one of its own";
    EXPECT_EQ(found_in({}, ""), 1) << "the empty salt is none";
    EXPECT_EQ(found_in("x", ""), 2);
    EXPECT_EQ(found_in("x", "x"), 3);
    EXPECT_EQ(found_in("", {}), 4);
    EXPECT_EQ(found_in({}, "x"), 0);
    EXPECT_EQ(tree(cache), "1<0:ab 2<0:ab 3<0:ab 4<0:ab");
  });
}

TEST(PrefixRadixRules, KeysAreWholePagesPX2PX62PX64) {
  RadixConfig config = radix_of(16);
  config.page_size = 2;
  in_each_tree(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(inserted(cache, {.tokens = tokens_of("a")}), "0 node 0");
    EXPECT_EQ(inserted(cache, {.tokens = tokens_of("abcde"), .slots = Numbers({2, 3, 4, 5, 6})}),
              "0 node 1");
    EXPECT_EQ(looked(cache, "abcde"), "4 node 1 [2, 3, 4, 5]") << "no open page";
    EXPECT_EQ(looked(cache, "axcd"), "0 node 0 []") << "a page is hit as a whole";
    EXPECT_EQ(looked(cache, "abcx"), "2 node 2 [2, 3]");
    EXPECT_EQ(looked(cache, "abcd", 3), "2 node 2 [2, 3]");
    EXPECT_EQ(inserted(cache, {.tokens = tokens_of("axcd")}), "0 node 3");
    EXPECT_EQ(tree(cache), "1<2:cd 2<0:ab 3<0:axcd") << "children may share a token";
  });
}

TEST(PrefixRadixRules, DraftHeadsShareWhatPairsSharePX78) {
  RadixConfig config = radix_of(16);
  config.eagle = true;
  in_each_tree(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(inserted(cache, {.tokens = tokens_of("a")}), "0 node 0") << "no pair";
    EXPECT_EQ(inserted(cache, {.tokens = tokens_of("abcd"), .slots = Numbers({1, 2, 3})}),
              "0 node 1");
    EXPECT_EQ(looked(cache, "abcd"), "3 node 1 [1, 2, 3]");
    EXPECT_EQ(looked(cache, "a"), "0 node 0 []");
    EXPECT_EQ(looked(cache, "abx"), "1 node 2 [1]") << "ab, but not bx";
    EXPECT_EQ(tree(cache), "1<2:bcd 2<0:ab") << "a child begins with its parent's last token";
    EXPECT_EQ(looked(cache, "abcd", 3), "2 node 3 [1, 2]") << "a limit of tokens";
    EXPECT_EQ(sizes(cache), Numbers({3, 0}));
  });
}

// ---- Locks ----

TEST(PrefixRadixRules, ALockProtectsAllAbovePX4PX73) {
  in_each_tree(radix_of(16), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(filed(cache, "abcd"), "0 node 1");
    EXPECT_EQ(filed(cache, "abcdef"), "4 node 2");
    EXPECT_EQ(delta_of(cache, Lock{2}), "-6");
    EXPECT_EQ(sizes(cache), Numbers({0, 6}));
    EXPECT_EQ(delta_of(cache, Lock{1}), "0") << "it is protected";
    EXPECT_EQ(each_node(cache, &ShownNode::lock), "1:2 2:1");
    EXPECT_EQ(gone(cache, 10), "0 []");
    EXPECT_EQ(delta_of(cache, Unlock{2}), "2");
    EXPECT_EQ(filed(cache, "abcdxy"), "4 node 3") << "below a lock, but without one";
    EXPECT_EQ(each_node(cache, &ShownNode::lock), "1:1 2:0 3:0");
    EXPECT_EQ(sizes(cache), Numbers({4, 4}));
    EXPECT_EQ(gone(cache, 10), "4 [2, 3]");
    EXPECT_EQ(delta_of(cache, Unlock{1}), "4");
    EXPECT_EQ(delta_of(cache, Lock{0}), "0") << "the root";
    EXPECT_EQ(gone(cache, 10), "4 [1]");
    EXPECT_EQ(delta_of(cache, Lock{9}), "precondition") << "no such node";
  });
}

TEST(PrefixRadixRules, BothPartsOfASplitAreLockedPX65PX73) {
  in_each_tree(radix_of(16), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(filed(cache, "abcd"), "0 node 1");
    EXPECT_EQ(delta_of(cache, Lock{1}), "-4");
    EXPECT_EQ(delta_of(cache, Lock{1}), "0");
    EXPECT_EQ(looked(cache, "ax"), "1 node 2 [1]");
    EXPECT_EQ(each_node(cache, &ShownNode::lock), "1:2 2:2");
    EXPECT_EQ(sizes(cache), Numbers({0, 4}));
    EXPECT_EQ(delta_of(cache, Unlock{1}), "0");
    EXPECT_EQ(delta_of(cache, Unlock{1}), "4");
  });
}

TEST(PrefixRadixRules, AnUnlockTooManyPX73PX79) {
  in_each_tree(radix_of(16), [](RulesCase& cache, bool original) {
    EXPECT_EQ(filed(cache, "ab"), "0 node 1");
    EXPECT_EQ(delta_of(cache, Unlock{1}), original ? "0" : "precondition");
    EXPECT_EQ(each_node(cache, &ShownNode::lock), original ? "1:-1" : "1:0");
    EXPECT_EQ(delta_of(cache, Lock{1}), original ? "0" : "-2");
    EXPECT_EQ(gone(cache, 1), original ? "2 [1]" : "0 []") << "a lock that does not protect";
  });
}

TEST(PrefixRadixRules, LocksOfNodesThatHaveGonePX75PX79) {
  in_each_tree(radix_of(16), [](RulesCase& cache, bool original) {
    EXPECT_EQ(filed(cache, "ab"), "0 node 1");
    EXPECT_EQ(filed(cache, "abc"), "2 node 2");
    EXPECT_EQ(gone(cache, 1), "1 [2]");
    EXPECT_EQ(delta_of(cache, Lock{2}), original ? "-3" : "precondition");
    EXPECT_EQ(sizes(cache), original ? Numbers({-1, 3}) : Numbers({2, 0}));
  });
  in_each_tree(radix_of(16), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(filed(cache, "ab"), "0 node 1");
    EXPECT_EQ(delta_of(cache, Lock{1}), "-2");
    EXPECT_EQ(cache.code(ResetTree{}), "ok");
    EXPECT_EQ(delta_of(cache, Unlock{1}), "precondition") << "from before the reset";
  });
}

// ---- Eviction ----

TEST(PrefixRadixRules, LeavesGoAsAWholeAndThenWhatTheyHungFromPX7PX70PX72) {
  in_each_tree(radix_of(16), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(filed(cache, "ab"), "0 node 1");
    EXPECT_EQ(filed(cache, "abcd"), "2 node 2");
    EXPECT_EQ(filed(cache, "xyz"), "0 node 3");
    EXPECT_EQ(leaves(cache), Numbers({2, 3}));
    EXPECT_EQ(gone(cache, 0), "0 []");
    EXPECT_EQ(gone(cache, -3), "0 []");
    EXPECT_EQ(gone(cache, 1), "2 [2]") << "more than was asked for";
    EXPECT_EQ(leaves(cache), Numbers({1, 3})) << "where its own use puts it";
    EXPECT_EQ(filed(cache, "abef"), "2 node 4");
    EXPECT_EQ(looked(cache, "xyz").substr(0, 8), "3 node 3");
    EXPECT_EQ(gone(cache, 3), "4 [4, 1]") << "within one call";
    EXPECT_EQ(looked(cache, "ab"), "0 node 0 []");
    EXPECT_EQ(gone(cache, 99), "3 [3]");
    EXPECT_EQ(gone(cache, 99), "0 []");
    EXPECT_EQ(cache.values(ShowTree{}).available, 16) << "their slots are free again";
  });
}

TEST(PrefixRadixRules, PoliciesPX68PX71) {
  struct Row {
    Policy policy;
    std::optional<std::int64_t> slru_threshold;
    Numbers order;
  };
  const std::vector<Row> rows{
      {Policy::kLru, {}, {1, 3, 2, 4}},  {Policy::kMru, {}, {4, 2, 3, 1}},
      {Policy::kFifo, {}, {1, 2, 3, 4}}, {Policy::kFilo, {}, {4, 3, 2, 1}},
      {Policy::kLfu, {}, {1, 4, 2, 3}},  {Policy::kPriority, {}, {2, 4, 3, 1}},
      {Policy::kSlru, {}, {1, 4, 3, 2}}, {Policy::kSlru, 3, {1, 2, 4, 3}},
  };
  for (const Row& row : rows) {
    RadixConfig config = evicting_by(row.policy);
    config.slru_threshold = row.slru_threshold;
    in_each_tree(config, [&](RulesCase& cache, bool /*original*/) {
      EXPECT_EQ(filed(cache, "aa", 2), "0 node 1");
      EXPECT_EQ(filed(cache, "bb"), "0 node 2");
      EXPECT_EQ(filed(cache, "cc", 1), "0 node 3");
      EXPECT_EQ(filed(cache, "dd"), "0 node 4");
      for (const std::string_view again : {"cc", "cc", "bb"})
        EXPECT_EQ(filed(cache, again)[0], '2');
      EXPECT_EQ(looked(cache, "dd").substr(0, 8), "2 node 4");
      EXPECT_EQ(each_node(cache, &ShownNode::hits), "1:1 2:2 3:3 4:1") << "a lookup is no hit";
      EXPECT_EQ(leaves(cache), row.order);
      EXPECT_EQ(gone(cache, 8), "8 " + list_text(row.order));
    });
  }
}

TEST(PrefixRadixRules, AWalkRenewsItsWholePathPX61PX64PX67) {
  in_each_tree(evicting_by(Policy::kMru), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(filed(cache, "ab"), "0 node 1");
    EXPECT_EQ(filed(cache, "abcd"), "2 node 2");
    EXPECT_EQ(filed(cache, "xy"), "0 node 3");
    EXPECT_EQ(leaves(cache), Numbers({3, 2}));
    EXPECT_EQ(cache.code(TouchTokens{.tokens = tokens_of("zz")}), "ok");
    EXPECT_EQ(leaves(cache), Numbers({3, 2})) << "where nothing is found nothing is renewed";
    EXPECT_EQ(cache.code(TouchTokens{.tokens = tokens_of("abcd")}), "ok");
    EXPECT_EQ(leaves(cache), Numbers({2, 3}));
    EXPECT_EQ(gone(cache, 2), "2 [2]");
    EXPECT_EQ(leaves(cache), Numbers({1, 3})) << "node 1 was on the way";
    EXPECT_EQ(cache.code(TouchTokens{.tokens = tokens_of("xy"), .limit = 0}), "ok");
    EXPECT_EQ(leaves(cache), Numbers({1, 3}));
  });
}

TEST(PrefixRadixRules, HitsCountInsertsBeyondWhatWasInsertedPX68) {
  in_each_tree(radix_of(16), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(inserted(cache, {.tokens = tokens_of("abcd")}), "0 node 1");
    EXPECT_EQ(inserted(cache, {.tokens = tokens_of("abcdef"), .inserted = 4}), "4 node 2");
    EXPECT_EQ(each_node(cache, &ShownNode::hits), "1:1 2:1") << "node 1 ends at 4";
    EXPECT_EQ(inserted(cache, {.tokens = tokens_of("abcdefgh"), .inserted = 8}), "6 node 3");
    EXPECT_EQ(each_node(cache, &ShownNode::hits), "1:1 2:1 3:0");
    EXPECT_EQ(inserted(cache, {.tokens = tokens_of("abx"), .inserted = 1}), "2 node 5");
    EXPECT_EQ(each_node(cache, &ShownNode::hits), "1:1 2:1 3:0 4:2 5:1")
        << "the front part's, and 1";
  });
}

TEST(PrefixRadixRules, APriorityIsTheHighestOfThoseThatPassPX65PX69) {
  in_each_tree(radix_of(16), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(filed(cache, "ab", 1), "0 node 1");
    EXPECT_EQ(filed(cache, "abcd", 5), "2 node 2");
    EXPECT_EQ(each_node(cache, &ShownNode::priority), "1:5 2:5");
    EXPECT_EQ(filed(cache, "abce", 3), "3 node 4");
    EXPECT_EQ(tree(cache), "1<0:ab 2<3:d 3<1:c 4<3:e");
    EXPECT_EQ(each_node(cache, &ShownNode::priority), "1:5 2:5 3:5 4:3");
    EXPECT_EQ(filed(cache, "a", 7), "1 node 5");
    EXPECT_EQ(each_node(cache, &ShownNode::priority), "1:5 2:5 3:5 4:3 5:7") << "the front part";
  });
}

TEST(PrefixRadixRules, WhetherTheRestOfASplitIsRenewedPX67PX79) {
  in_each_tree(radix_of(16), [](RulesCase& cache, bool original) {
    EXPECT_EQ(filed(cache, "abcd"), "0 node 1");
    EXPECT_EQ(filed(cache, "xy"), "0 node 2");
    EXPECT_EQ(looked(cache, "abx").substr(0, 8), "2 node 3");
    EXPECT_EQ(leaves(cache), original ? Numbers({2, 1}) : Numbers({1, 2}));
    EXPECT_EQ(gone(cache, 3), original ? "4 [2, 1]" : "4 [1, 2]") << "the front part stays";
  });
}

TEST(PrefixRadixRules, WhenTheFrontPartOfASplitWasMadePX65PX71PX79) {
  for (const Policy policy : {Policy::kFifo, Policy::kFilo})
    in_each_tree(evicting_by(policy), [&](RulesCase& cache, bool original) {
      EXPECT_EQ(filed(cache, "abcd"), "0 node 1");
      EXPECT_EQ(filed(cache, "xy"), "0 node 2");
      EXPECT_EQ(filed(cache, "zz"), "0 node 3");
      EXPECT_EQ(looked(cache, "ab").substr(0, 8), "2 node 4");
      for (const std::int64_t node : {2, 3}) EXPECT_EQ(delta_of(cache, Lock{node}), "-2");
      EXPECT_EQ(gone(cache, 1), "2 [1]");
      for (const std::int64_t node : {2, 3}) EXPECT_EQ(delta_of(cache, Unlock{node}), "2");
      if (policy == Policy::kFifo) {
        EXPECT_EQ(leaves(cache), original ? Numbers({2, 3, 4}) : Numbers({4, 2, 3}));
      } else {
        EXPECT_EQ(leaves(cache), original ? Numbers({4, 3, 2}) : Numbers({3, 2, 4}));
      }
    });
}

TEST(PrefixRadixRules, APolicyThatCannotTellPX71PX79) {
  const RadixConfig config = evicting_by(Policy::kTlru);
  expect_refused_where_documented(radix_kind(), Record::of(config));
  for (const Subject* subject : contracts().subjects_of(radix_kind())) {
    SCOPED_TRACE(subject->name());
    RulesCase cache(*subject, Profile::kOriginal, Record::of(config));
    EXPECT_EQ(gone(cache, 1), "0 []") << "no candidate";
    EXPECT_EQ(filed(cache, "ab"), "0 node 1");
    EXPECT_EQ(gone(cache, 1), "precondition");
  }
}

}  // namespace
}  // namespace kvo::prefix
