// Single rules of prefix.radix in both profiles: slots, pages, requests, events and figures.
#include "properties/prefix/radix_rules_case.hpp"

namespace kvo::prefix {
namespace {

RadixConfig paged_radix(std::int64_t page_size, std::int64_t slots) {
  RadixConfig config = radix_of(slots);
  config.page_size = page_size;
  return config;
}

// The slots of an operation that takes some, or the code of the error.
template <class Taking>
std::string taken(RulesCase& cache, Taking op) {
  const Observation seen = cache.run(std::move(op));
  return seen.error ? code_of(seen) : list_text(seen.as<SlotsOnly>().slots);
}

std::string allocated(RulesCase& cache, std::int64_t count) {
  return taken(cache, AllocSlots{count});
}

void request_made(RulesCase& cache, std::int64_t request, std::string_view text) {
  EXPECT_EQ(cache.code(FileRequest{.request = request, .tokens = tokens_of(text)}), "ok");
}

// "2 node 1 [5, 6]": makes a request and admits it.
std::string admitted(RulesCase& cache, std::int64_t request, std::string_view text) {
  request_made(cache, request, text);
  const auto hit = cache.values(Admit{request});
  return fmt::format("{} node {} {}", hit.length, hit.node, hit.slots);
}

// "[5, 6]", "[5, 6] evicts [1]" or "exhausted evicts [1]".
std::string extended(RulesCase& cache, std::int64_t request, std::int64_t tokens,
                     std::string_view output = {}) {
  Extend op{.request = request, .tokens = tokens};
  if (!output.empty()) op.append = tokens_of(output);
  const Observation seen = cache.run(std::move(op));
  const auto& done = seen.as<Extend::Returns>();
  return (seen.error ? code_of(seen) : list_text(done.slots.value_or(Numbers()))) +
         (done.nodes.empty() ? "" : " evicts " + list_text(done.nodes));
}

// "[1, 2] 1 0 node 3": slots, those that are the tree's, units that were filed, the locked node.
std::string row_of(RulesCase& cache, std::int64_t request) {
  const auto row = cache.values(ShowRow{request});
  return fmt::format("{} {} {} node {}", row.slots, row.protected_, row.inserted, row.node);
}

// "node 1 protected 4"
std::string checked(RulesCase& cache, std::int64_t request) {
  const auto done = cache.values(Checkpoint{request});
  return fmt::format("node {} protected {}", done.node, done.protected_);
}

// ---- Slots ----

TEST(PrefixRadixSlots, WhatIsFreedComesLastPX80) {
  in_each_tree(radix_of(6), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(allocated(cache, 3), "[1, 2, 3]");
    EXPECT_EQ(cache.code(FreeSlots{{3, 1}}), "ok");
    EXPECT_EQ(cache.code(FreeSegment{.slots = {2}, .start = 7}), "ok") << "the same";
    EXPECT_EQ(free_list(cache), Numbers({4, 5, 6, 3, 1, 2}));
    EXPECT_EQ(allocated(cache, 4), "[4, 5, 6, 3]");
    EXPECT_EQ(allocated(cache, 3), "exhausted");
    EXPECT_EQ(allocated(cache, 0), "[]");
    EXPECT_EQ(cache.values(ShowTree{}).available, 2);
    EXPECT_EQ(cache.code(ClearSlots{}), "ok");
    EXPECT_EQ(free_list(cache), Numbers({1, 2, 3, 4, 5, 6})) << "as at the start";
    EXPECT_EQ(taken(cache, AllocExtend{.prefix_lens = {0}, .seq_lens = {1}, .last_slots = {-1}}),
              "not_supported");
    EXPECT_EQ(taken(cache, AllocDecode{.seq_lens = {1}, .last_slots = {-1}}), "not_supported");
  });
}

TEST(PrefixRadixSlots, WhatIsFreedMayWaitToBeSortedInPX80PX81) {
  RadixConfig config = radix_of(6);
  config.need_sort = true;
  in_each_tree(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(allocated(cache, 4), "[1, 2, 3, 4]");
    EXPECT_EQ(cache.code(FreeSlots{{3, 1}}), "ok");
    const auto shown = cache.values(ShowTree{});
    EXPECT_EQ(shown.free, Numbers({5, 6}));
    EXPECT_EQ(shown.staged, Numbers({3, 1}));
    EXPECT_EQ(shown.available, 4);
    EXPECT_EQ(allocated(cache, 1), "[5]") << "the list has enough";
    EXPECT_EQ(allocated(cache, 2), "[1, 3]");
    EXPECT_EQ(free_list(cache), Numbers({6}));
    EXPECT_EQ(cache.values(ShowTree{}).staged, Numbers());
  });
  config = paged_radix(2, 9);
  config.need_sort = true;
  in_each_tree(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(allocated(cache, 6), "[2, 3, 4, 5, 6, 7]");
    EXPECT_EQ(cache.code(FreeSlots{{6, 7}}), "ok");
    EXPECT_EQ(cache.code(FreeSegment{.slots = {2, 3}, .start = 0}), "ok");
    EXPECT_EQ(cache.values(ShowTree{}).staged, Numbers({3, 1})) << "to its end";
    EXPECT_EQ(allocated(cache, 4), "[2, 3, 6, 7]");
    EXPECT_EQ(free_list(cache), Numbers({4}));
  });
}

TEST(PrefixRadixSlots, PagesThatAreFreedComeFirstPX81) {
  in_each_tree(paged_radix(2, 9), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(free_list(cache), Numbers({1, 2, 3, 4}));
    EXPECT_EQ(allocated(cache, 5), "[2, 3, 4, 5]") << "what is no page is dropped";
    EXPECT_EQ(allocated(cache, 1), "[]");
    EXPECT_EQ(allocated(cache, 6), "exhausted");
    EXPECT_EQ(allocated(cache, 4), "[6, 7, 8, 9]");
    EXPECT_EQ(cache.code(FreeSlots{{8, 9, 4}}), "ok");
    EXPECT_EQ(free_list(cache), Numbers({2, 4})) << "ascending, each once";
    EXPECT_EQ(cache.code(FreeSlots{{2}}), "ok");
    EXPECT_EQ(free_list(cache), Numbers({1, 2, 4}));
    EXPECT_EQ(cache.values(ShowTree{}).available, 6);
    EXPECT_EQ(allocated(cache, 6), "[2, 3, 4, 5, 8, 9]");
    EXPECT_EQ(cache.code(FreeSegment{.slots = {8, 9, 2, 3, 6}, .start = 4}), "ok");
    EXPECT_EQ(free_list(cache), Numbers({4, 1, 3})) << "in order of the row";
    EXPECT_EQ(cache.code(FreeSegment{.slots = {4, 5}, .start = 1}), "precondition");
    EXPECT_EQ(cache.code(FreeSegment{.slots = {}, .start = 1}), "ok") << "nothing at all";
    EXPECT_EQ(free_list(cache), Numbers({4, 1, 3}));
  });
}

TEST(PrefixRadixSlots, RowsGrowIntoTheirOpenPagesPX81) {
  in_each_tree(paged_radix(4, 32), [](RulesCase& cache, bool /*original*/) {
    const auto extend = [&](Numbers prefixes, Numbers lengths, Numbers last) {
      return taken(cache, AllocExtend{.prefix_lens = std::move(prefixes),
                                      .seq_lens = std::move(lengths),
                                      .last_slots = std::move(last)});
    };
    EXPECT_EQ(extend({0, 0}, {6, 3}, {-1, -1}), "[4, 5, 6, 7, 8, 9, 12, 13, 14]");
    EXPECT_EQ(extend({6}, {9}, {9}), "[10, 11, 16]");
    EXPECT_EQ(extend({3, 9}, {4, 9}, {14, 16}), "[15]") << "no new page";
    EXPECT_EQ(extend({0}, {17}, {-1}), "exhausted");
    EXPECT_EQ(free_list(cache), Numbers({5, 6, 7, 8}));
    const auto decode = [&](Numbers lengths, Numbers last) {
      return taken(cache,
                   AllocDecode{.seq_lens = std::move(lengths), .last_slots = std::move(last)});
    };
    EXPECT_EQ(decode({10, 5, 1}, {16, 15, -1}), "[17, 20, 24]");
    EXPECT_EQ(decode({5, 9, 13}, {1, 2, 3}), "exhausted");
    EXPECT_EQ(free_list(cache), Numbers({7, 8}));
  });
}

TEST(PrefixRadixSlots, SortsBeforeItCountsPagesPX81) {
  RadixConfig config = paged_radix(2, 12);
  config.need_sort = true;
  in_each_tree(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(allocated(cache, 6), "[2, 3, 4, 5, 6, 7]");
    EXPECT_EQ(cache.code(FreeSlots{{2, 4}}), "ok");
    const AllocExtend one{.prefix_lens = {0}, .seq_lens = {2}, .last_slots = {-1}};
    EXPECT_EQ(taken(cache, AllocExtend(one)), "[8, 9]") << "three pages are asked for, and there";
    EXPECT_EQ(free_list(cache), Numbers({5, 6}));
    EXPECT_EQ(taken(cache, AllocExtend(one)), "[2, 3]") << "two are left, so all are sorted";
    EXPECT_EQ(free_list(cache), Numbers({2, 5, 6}));
  });
}

TEST(PrefixRadixSlots, AGroupIsFreedAtItsEndPX82) {
  in_each_tree(radix_of(4), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(allocated(cache, 3), "[1, 2, 3]");
    EXPECT_EQ(cache.code(GroupBegin{}), "ok");
    EXPECT_EQ(cache.code(FreeSlots{{2}}), "ok");
    EXPECT_EQ(cache.code(FreeSegment{.slots = {1}, .start = 0}), "ok");
    EXPECT_EQ(cache.values(ShowTree{}).available, 1);
    EXPECT_EQ(cache.code(GroupBegin{}), "precondition");
    EXPECT_EQ(cache.code(GroupEnd{}), "ok");
    EXPECT_EQ(free_list(cache), Numbers({4, 2, 1}));
  });
  in_each_tree(paged_radix(2, 9), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(allocated(cache, 8), "[2, 3, 4, 5, 6, 7, 8, 9]");
    EXPECT_EQ(cache.code(GroupBegin{}), "ok");
    EXPECT_EQ(cache.code(FreeSegment{.slots = {8, 9}, .start = 0}), "ok");
    EXPECT_EQ(cache.code(FreeSlots{{4, 5}}), "ok");
    EXPECT_EQ(cache.code(FreeSlots{{2, 3}}), "ok");
    EXPECT_EQ(cache.code(FreeSegment{.slots = {6, 7}, .start = 2}), "ok");
    EXPECT_EQ(free_list(cache), Numbers());
    EXPECT_EQ(cache.code(GroupEnd{}), "ok");
    EXPECT_EQ(free_list(cache), Numbers({4, 3, 1, 2})) << "segments before the others";
  });
}

TEST(PrefixRadixSlots, SlotsThatAreFreePX85) {
  in_each_tree(radix_of(4), [](RulesCase& cache, bool original) {
    EXPECT_EQ(allocated(cache, 2), "[1, 2]");
    EXPECT_EQ(cache.code(FreeSlots{{1}}), "ok");
    EXPECT_EQ(cache.code(FreeSlots{{1}}), original ? "ok" : "precondition");
    EXPECT_EQ(free_list(cache), original ? Numbers({3, 4, 1, 1}) : Numbers({3, 4, 1}));
    EXPECT_EQ(allocated(cache, 4), original ? "[3, 4, 1, 1]" : "exhausted") << "two owners";
  });
  in_each_tree(radix_of(4), [](RulesCase& cache, bool original) {
    EXPECT_EQ(allocated(cache, 2), "[1, 2]");
    EXPECT_EQ(cache.code(FreeSlots{{2, 2}}), original ? "ok" : "precondition") << "twice in a list";
    EXPECT_EQ(cache.values(ShowTree{}).available, original ? 4 : 2);
  });
}

TEST(PrefixRadixSlots, RoomIsMadeByEvictingWhatIsMissingPX83) {
  in_each_tree(radix_of(6), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(filed(cache, "ab"), "0 node 1");
    EXPECT_EQ(filed(cache, "xy"), "0 node 2");
    EXPECT_EQ(cache.values(MakeRoom{2}).nodes, Numbers()) << "there is room";
    EXPECT_EQ(cache.values(MakeRoom{3}).nodes, Numbers({1}));
    EXPECT_EQ(free_list(cache), Numbers({5, 6, 1, 2}));
    EXPECT_EQ(delta_of(cache, Lock{2}), "-2");
    EXPECT_EQ(cache.values(MakeRoom{6}).nodes, Numbers()) << "less than asked for";
  });
}

// ---- Requests ----

TEST(PrefixRadixRequests, ALifePX3PX68PX86PX87PX88) {
  in_each_tree(radix_of(16), [](RulesCase& cache, bool original) {
    EXPECT_EQ(admitted(cache, 0, "abcd"), "0 node 0 []");
    EXPECT_EQ(cache.code(ShowRow{0}), "precondition") << "before the first extend";
    EXPECT_EQ(extended(cache, 0, 4), "[1, 2, 3, 4]");
    EXPECT_EQ(row_of(cache, 0), "[1, 2, 3, 4] 0 0 node 0");
    EXPECT_EQ(tree(cache), "");
    EXPECT_EQ(checked(cache, 0), "node 1 protected 4");
    EXPECT_EQ(row_of(cache, 0), "[1, 2, 3, 4] 4 4 node 1");
    EXPECT_EQ(sizes(cache), Numbers({0, 4})) << "held, and locked";
    EXPECT_EQ(extended(cache, 0, 2, "ef"), "[5, 6]");
    EXPECT_EQ(cache.code(Finish{.request = 0}), "ok");
    EXPECT_EQ(tree(cache), "1<0:abcd 2<1:ef");
    EXPECT_EQ(each_node(cache, &ShownNode::hits), "1:1 2:1") << "the prompt is counted once";
    EXPECT_EQ(each_node(cache, &ShownNode::priority), original ? "1:1 2:0" : "1:0 2:0");
    EXPECT_EQ(sizes(cache), Numbers({6, 0}));
    EXPECT_EQ(cache.code(ShowRow{0}), "precondition") << "the row is gone";
  });
}

TEST(PrefixRadixRequests, AllButTheLastTokenIsHitPX6PX74PX86PX87) {
  in_each_tree(radix_of(16), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(filed(cache, "abcd"), "0 node 1");
    EXPECT_EQ(admitted(cache, 0, "abcd"), "3 node 2 [1, 2, 3]");
    EXPECT_EQ(sizes(cache), Numbers({1, 3}));
    EXPECT_EQ(extended(cache, 0, 1), "[5]");
    EXPECT_EQ(row_of(cache, 0), "[1, 2, 3, 5] 3 0 node 2");
    EXPECT_EQ(checked(cache, 0), "node 1 protected 4");
    EXPECT_EQ(row_of(cache, 0), "[1, 2, 3, 4] 4 4 node 1") << "the tree's slot takes its place";
    EXPECT_EQ(free_list(cache).back(), 5);
    EXPECT_EQ(sizes(cache), Numbers({0, 4})) << "the old lock is released";
    EXPECT_EQ(each_node(cache, &ShownNode::lock), "1:1 2:1");
  });
}

TEST(PrefixRadixRequests, ThePromptIsPartedFromItsOutputPX69PX71PX87) {
  for (const Policy policy : {Policy::kPriority, Policy::kLru}) {
    RadixConfig config = radix_of(16);
    config.policy = policy;
    in_each_tree(config, [&](RulesCase& cache, bool original) {
      EXPECT_EQ(admitted(cache, 0, "ab"), "0 node 0 []");
      EXPECT_EQ(extended(cache, 0, 2), "[1, 2]");
      EXPECT_EQ(extended(cache, 0, 2, "cd"), "[3, 4]");
      EXPECT_EQ(cache.code(Finish{.request = 0}), "ok");
      EXPECT_EQ(tree(cache), "1<2:cd 2<0:ab");
      EXPECT_EQ(each_node(cache, &ShownNode::hits), "1:1 2:1");
      EXPECT_EQ(each_node(cache, &ShownNode::priority), original ? "1:0 2:1" : "1:0 2:0");
      EXPECT_EQ(filed(cache, "xy"), "0 node 3");
      EXPECT_EQ(gone(cache, 1), "2 [1]") << "output first";
      const bool lifted = original && policy == Policy::kPriority;
      EXPECT_EQ(leaves(cache), lifted ? Numbers({3, 2}) : Numbers({2, 3}));
    });
  }
}

TEST(PrefixRadixRequests, WhatIsNotKeptIsFreedPX86PX88) {
  in_each_tree(radix_of(8), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(filed(cache, "ab"), "0 node 1");
    EXPECT_EQ(admitted(cache, 0, "abcd"), "2 node 1 [1, 2]");
    EXPECT_EQ(cache.code(Admit{0}), "precondition") << "twice";
    EXPECT_EQ(extended(cache, 0, 2), "[3, 4]");
    EXPECT_EQ(cache.code(Withdraw{0}), "precondition") << "it has a row";
    EXPECT_EQ(cache.code(Finish{.request = 0, .keep = false}), "ok");
    EXPECT_EQ(tree(cache), "1<0:ab");
    EXPECT_EQ(free_list(cache), Numbers({5, 6, 7, 8, 3, 4})) << "but what is the tree's";
    EXPECT_EQ(sizes(cache), Numbers({2, 0}));
    EXPECT_EQ(admitted(cache, 1, "abx"), "2 node 1 [1, 2]");
    EXPECT_EQ(sizes(cache), Numbers({0, 2}));
    EXPECT_EQ(cache.code(Withdraw{1}), "ok");
    EXPECT_EQ(sizes(cache), Numbers({2, 0}));
    EXPECT_EQ(extended(cache, 1, 1), "precondition");
  });
}

TEST(PrefixRadixRequests, WhatWasEvictedForARefusalIsGonePX83PX86) {
  in_each_tree(radix_of(6), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(filed(cache, "abcd"), "0 node 1");
    EXPECT_EQ(admitted(cache, 0, "xyz"), "0 node 0 []");
    EXPECT_EQ(extended(cache, 0, 3), "[5, 6, 1] evicts [1]");
    EXPECT_EQ(extended(cache, 0, 4, "w"), "exhausted");
    EXPECT_EQ(row_of(cache, 0), "[5, 6, 1] 0 0 node 0");
    EXPECT_EQ(extended(cache, 0, 1), "[2]");
    EXPECT_EQ(cache.code(Finish{.request = 0}), "ok");
    EXPECT_EQ(tree(cache), "2<3:w 3<0:xyz") << "output joined it all the same";
    EXPECT_EQ(admitted(cache, 1, "abcdefg"), "0 node 0 []");
    EXPECT_EQ(extended(cache, 1, 7), "exhausted evicts [2, 3]");
    EXPECT_EQ(cache.code(ShowRow{1}), "precondition");
    EXPECT_EQ(tree(cache), "");
    EXPECT_EQ(cache.values(ShowTree{}).available, 6);
  });
}

TEST(PrefixRadixRequests, AnOpenPageIsFreedAtTheEndPX2PX81PX87PX88) {
  in_each_tree(paged_radix(2, 16), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(admitted(cache, 0, "abcde"), "0 node 0 []");
    EXPECT_EQ(extended(cache, 0, 5), "[2, 3, 4, 5, 6]");
    EXPECT_EQ(checked(cache, 0), "node 1 protected 4");
    EXPECT_EQ(extended(cache, 0, 2, "fg"), "[7, 8]") << "the open page is filled first";
    EXPECT_EQ(row_of(cache, 0), "[2, 3, 4, 5, 6, 7, 8] 4 4 node 1");
    EXPECT_EQ(cache.code(Finish{.request = 0}), "ok");
    EXPECT_EQ(tree(cache), "1<0:abcd 2<1:ef");
    EXPECT_EQ(free_list(cache), Numbers({4, 5, 6, 7, 8}));
    EXPECT_EQ(admitted(cache, 1, "abcd"), "2 node 3 [2, 3]") << "of three tokens a page";
  });
}

TEST(PrefixRadixRequests, ThePoolKeepsAPageMoreThanARequestAsksForPX86) {
  in_each_tree(paged_radix(2, 8), [](RulesCase& cache, bool /*original*/) {
    const Numbers slots = cache.values(AllocSlots{4}).slots;
    EXPECT_EQ(inserted(cache, {.tokens = tokens_of("abcd"), .slots = slots}), "0 node 1");
    EXPECT_EQ(admitted(cache, 0, "xyz"), "0 node 0 []");
    EXPECT_EQ(extended(cache, 0, 3), "[2, 3, 4] evicts [1]") << "3 and a page, with 4 free";
  });
}

TEST(PrefixRadixRequests, TheSlotThatIsNoPairsIsFreedPX78PX87PX88) {
  RadixConfig config = radix_of(8);
  config.eagle = true;
  in_each_tree(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(admitted(cache, 0, "abcd"), "0 node 0 []");
    EXPECT_EQ(extended(cache, 0, 4), "[1, 2, 3, 4]");
    EXPECT_EQ(checked(cache, 0), "node 1 protected 3");
    EXPECT_EQ(row_of(cache, 0), "[1, 2, 3, 4] 3 3 node 1");
    EXPECT_EQ(cache.code(Finish{.request = 0}), "ok");
    EXPECT_EQ(free_list(cache), Numbers({5, 6, 7, 8, 4}));
    EXPECT_EQ(admitted(cache, 1, "abcx"), "2 node 2 [1, 2]") << "ab and bc";
    EXPECT_EQ(extended(cache, 1, 2), "[5, 6]");
    EXPECT_EQ(cache.code(Finish{.request = 1}), "ok");
    EXPECT_EQ(tree(cache), "1<2:cd 2<0:abc 3<2:cx");
    EXPECT_EQ(free_list(cache), Numbers({7, 8, 4, 6}));
  });
}

TEST(PrefixRadixRequests, OnePriorityAndNamespaceARequestPX63PX69PX86PX87) {
  in_each_tree(radix_of(16), [](RulesCase& cache, bool original) {
    const FileRequest made{
        .request = 0, .tokens = tokens_of("ab"), .extra = "x", .salt = "y", .priority = 4};
    EXPECT_EQ(cache.code(FileRequest(made)), "ok");
    EXPECT_EQ(cache.values(Admit{0}).length, 0);
    EXPECT_EQ(cache.code(FileRequest(made)), "precondition") << "it is admitted";
    EXPECT_EQ(extended(cache, 0, 3, "c"), "[1, 2, 3]");
    EXPECT_EQ(cache.code(Finish{.request = 0}), "ok");
    EXPECT_EQ(each_node(cache, &ShownNode::priority), original ? "1:4 2:5" : "1:4 2:4");
    const auto nodes = cache.values(ShowTree{}).nodes;
    ASSERT_EQ(nodes.size(), 2U);
    EXPECT_EQ(nodes[1].extra.value, "x");
    EXPECT_EQ(nodes[1].salt.value, "y");
    EXPECT_EQ(looked(cache, "abc"), "0 node 0 []") << "in no namespace";
  });
}

// ---- Figures and events ----

TEST(PrefixRadixFigures, AResetGivesNoSlotBackPX60PX75PX80) {
  in_each_tree(radix_of(8), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(filed(cache, "abcd"), "0 node 1");
    EXPECT_EQ(delta_of(cache, Lock{1}), "-4");
    EXPECT_EQ(cache.code(ResetTree{}), "ok");
    const auto shown = cache.values(ShowTree{});
    EXPECT_EQ(Numbers({shown.evictable, shown.protected_, shown.total}), Numbers({0, 0, 0}));
    EXPECT_EQ(shown.available, 4);
    EXPECT_EQ(looked(cache, "abcd"), "0 node 2 []") << "a new root";
    EXPECT_EQ(filed(cache, "ab"), "0 node 3");
    EXPECT_EQ(cache.code(ClearSlots{}), "ok");
    EXPECT_EQ(cache.values(ShowTree{}).available, 8);
    EXPECT_EQ(tree(cache), "3<2:ab") << "the tree knows nothing of it";
  });
}

TEST(PrefixRadixFigures, WhatIsDisabledKeepsNothingPX76) {
  RadixConfig config = radix_of(8);
  config.disable = true;
  in_each_tree(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(inserted(cache, {.tokens = tokens_of("abcd")}), "0 node null");
    EXPECT_EQ(looked(cache, "abcd"), "0 node 0 []");
    EXPECT_EQ(cache.code(TouchTokens{.tokens = tokens_of("abcd")}), "ok");
    EXPECT_EQ(delta_of(cache, Lock{0}), "0");
    EXPECT_EQ(delta_of(cache, Unlock{0}), "0");
    EXPECT_EQ(gone(cache, 4), "0 []");
    EXPECT_EQ(allocated(cache, 6), "[1, 2, 3, 4, 5, 6]");
    EXPECT_EQ(cache.values(MakeRoom{4}).nodes, Numbers());
    EXPECT_EQ(tree(cache), "");
  });
}

TEST(PrefixRadixFigures, AllSlotsDepthFirstPX65PX77) {
  in_each_tree(radix_of(16), [](RulesCase& cache, bool original) {
    EXPECT_EQ(taken(cache, AllSlots{}), original ? "precondition" : "[]");
  });
  in_each_tree(radix_of(16), [](RulesCase& cache, bool /*original*/) {
    const auto insert = [&](std::string_view text, Numbers slots) {
      return inserted(cache, {.tokens = tokens_of(text), .slots = std::move(slots)});
    };
    EXPECT_EQ(insert("abcd", {9, 8, 7, 6}), "0 node 1");
    EXPECT_EQ(insert("zz", {3, 2}), "0 node 2");
    EXPECT_EQ(insert("abxy", {9, 8, 5, 4}), "2 node 4");
    EXPECT_EQ(insert("abcde", {9, 8, 7, 6, 1}), "4 node 5");
    EXPECT_EQ(taken(cache, AllSlots{}), "[9, 8, 7, 6, 1, 5, 4, 3, 2]")
        << "the front part stands where the node stood";
    EXPECT_EQ(cache.values(ShowTree{}).total, 9);
  });
}

TEST(PrefixRadixFigures, EventsTellWhatIsHeldPX77) {
  RadixConfig config = radix_of(16);
  config.events = true;
  in_each_tree(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(events_text(cache), "cleared");
    EXPECT_EQ(filed(cache, "abcd"), "0 node 1");
    EXPECT_EQ(filed(cache, "abcdef"), "4 node 2");
    EXPECT_EQ(filed(cache, "abx"), "2 node 4");
    EXPECT_EQ(filed(cache, "abx"), "3 node 4");
    EXPECT_EQ(events_text(cache),
              "stored [0, 1, 2, 3, 4, 5] after null: abcdef; stored [6] after 1: x")
        << "what goes on is joined, a split tells nothing";
    EXPECT_EQ(gone(cache, 3), "4 [2, 1]");
    EXPECT_EQ(events_text(cache), "removed [4, 5, 2, 3]");
    EXPECT_EQ(cache.code(ResetTree{}), "ok");
    EXPECT_EQ(events_text(cache), "cleared");
    EXPECT_EQ(events_text(cache), "");
  });
  config.page_size = 2;
  in_each_tree(config, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(inserted(cache, {.tokens = tokens_of("abcde")}), "0 node 1");
    EXPECT_EQ(inserted(cache, {.tokens = tokens_of("abxy")}), "2 node 3");
    EXPECT_EQ(events_text(cache),
              "cleared; stored [0, 1] after null: abcd; stored [2] after 0: xy");
  });
}

TEST(PrefixRadixFigures, KeysOfPagesInNamespacesPX63PX77PX79) {
  RadixConfig config = radix_of(16);
  config.events = true;
  in_each_tree(config, [](RulesCase& cache, bool original) {
    Insert insert{.tokens = tokens_of("ab")};
    for (const auto* const extra : {"x", "y"}) {
      insert.extra = extra;
      EXPECT_EQ(cache.code(Insert(insert)), "ok");
    }
    insert.extra.reset();
    insert.salt = "x";
    EXPECT_EQ(cache.code(Insert(insert)), "ok");
    EXPECT_EQ(events_text(cache),
              original ? "cleared; stored [0, 1] after null: ab; stored [0, 1] after null: ab; "
                         "stored [2, 3] after null: ab"
                       : "cleared; stored [0, 1] after null: ab; stored [2, 3] after null: ab; "
                         "stored [4, 5] after null: ab");
  });
}

}  // namespace
}  // namespace kvo::prefix
