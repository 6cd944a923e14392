// Single rules of cells.recurrent, in both profiles.
#include "properties/cells/rules_case.hpp"

namespace kvo::cells {
namespace {

template <class Check>
void in_each_memory(std::int64_t n_seq_max, std::int64_t n_rs_seq, Check&& check) {
  in_each<NewRecurrent>(recurrent_kind(),
                        Record::of(RecurrentConfig{.n_seq_max = n_seq_max, .n_rs_seq = n_rs_seq}),
                        std::forward<Check>(check));
}

DecodeStates states(const Numbers& seqs, std::int64_t n_ubatch = 64) {
  DecodeStates batch;
  for (const std::int64_t seq : seqs) batch.seqs.push_back({seq});
  batch.n_ubatch = n_ubatch;
  return batch;
}

// "0:2{1}<0": each cell with its position, owners and source row.
std::string memory(RulesCase& cache) {
  std::string text;
  for (const ShownState& cell : cache.values(ShowMemory{}).cells)
    text += fmt::format("{}{}:{}{{{}}}<{}", text.empty() ? "" : " ", cell.cell, cell.pos,
                        fmt::join(cell.seqs, ","), cell.src);
  return text;
}

Numbers tails(RulesCase& cache) {
  Numbers all;
  for (const ShownState& cell : cache.values(ShowMemory{}).cells) all.push_back(cell.tail);
  return all;
}

Numbers rollback(RulesCase& cache) {
  return cache.values(ShowMemory{}).rollback;
}

TEST(CellsRecurrentRules, ASharedStateIsLeftByWhoGoesOnLC92LC93) {
  in_each_memory(3, 0, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(cache.code(states({0, 0})), "ok");
    EXPECT_EQ(cache.code(SeqCp{0, 1, 5, 5}), "ok") << "ranges do not count";
    EXPECT_EQ(memory(cache), "0:1{0,1}<0 1:-1{}<-1 2:-1{}<-1");
    const auto step = cache.values(states({1})).ubatches.at(0);
    EXPECT_EQ(memory(cache), "0:1{0}<0 1:2{1}<1 2:-1{}<-1");
    EXPECT_EQ(step.copy, Numbers({0})) << "from the row of the shared state";
    EXPECT_EQ(cache.code(SeqCp{0, 7, -1, -1}), "ok") << "nobody: nothing";
    EXPECT_EQ(cache.code(SeqCp{-1, 0, -1, -1}), "ok");
    EXPECT_EQ(tails(cache), Numbers({0, 1, -1}));
  });
}

TEST(CellsRecurrentRules, TailsChangePlacesToLieInOrderLC94) {
  in_each_memory(3, 0, [](RulesCase& cache, bool /*original*/) {
    for (const std::int64_t seq : {2, 1, 0}) EXPECT_EQ(cache.code(states({seq})), "ok");
    EXPECT_EQ(tails(cache), Numbers({2, 1, 0}));
    const auto step = cache.values(states({0, 1, 2})).ubatches.at(0);
    EXPECT_EQ(tails(cache), Numbers({0, 1, 2}));
    EXPECT_EQ(step.copy, Numbers({2, 1, 0}));
    EXPECT_EQ(step.zero, -1);
    EXPECT_EQ(memory(cache), "0:1{0}<0 1:1{1}<1 2:1{2}<2");
  });
}

TEST(CellsRecurrentRules, OnlyTheWholeOrTheEndIsRemovedLC95LC96) {
  in_each_memory(2, 2, [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.code(states({0, 0, 0, 0})), "ok");
    EXPECT_EQ(cache.values(SeqRm{0, 0, 2}).value, original) << "older ones only";
    EXPECT_FALSE(cache.values(SeqRm{0, 1, -1}).value) << "further than snapshots reach";
    EXPECT_TRUE(cache.values(SeqRm{0, 2, -1}).value);
    EXPECT_EQ(rollback(cache), Numbers({2, 0}));
    EXPECT_FALSE(cache.values(SeqRm{0, 1, -1}).value) << "once";
    EXPECT_EQ(cache.values(SeqPos{0}).max, 1);
    const auto step = cache.values(states({0})).ubatches.at(0);
    EXPECT_EQ(step.copy, Numbers({2 * 2})) << "the snapshot of two tokens before";
    EXPECT_EQ(rollback(cache), Numbers({0, 0}));
    EXPECT_EQ(cache.code(SeqRm{2, -1, -1}), original ? "ok" : "precondition");
    EXPECT_EQ(cache.values(SeqRm{-1, -1, -1}).value, !original);
    EXPECT_EQ(cache.values(SeqPos{0}).max, original ? 2 : -1);
    EXPECT_TRUE(cache.values(SeqRm{0, -1, -1}).value);
    EXPECT_TRUE(cache.values(SeqRm{0, -1, -1}).value) << "nothing is left";
    EXPECT_EQ(tails(cache), Numbers({-1, -1}));
  });
}

TEST(CellsRecurrentRules, ASharedStateGoesBackForAllLC96LC92) {
  in_each_memory(3, 2, [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.code(states({0, 0, 0})), "ok");
    EXPECT_EQ(cache.code(SeqCp{0, 1, -1, -1}), "ok");
    EXPECT_TRUE(cache.values(SeqRm{0, 2, -1}).value);
    EXPECT_EQ(rollback(cache), original ? Numbers({1, 0, 0}) : Numbers({1, 1, 0}));
    EXPECT_EQ(cache.code(SeqCp{0, 2, -1, -1}), "ok");
    EXPECT_EQ(rollback(cache), original ? Numbers({1, 0, 0}) : Numbers({1, 1, 1}));
  });
}

TEST(CellsRecurrentRules, TheEndOfASequenceStaysTogetherLC97) {
  in_each_memory(2, 2, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(cache.code(states({0, 0}, 3)), "precondition");
    const auto steps = cache.values(states({0, 0, 0, 0, 0, 0, 0}, 5)).ubatches;
    ASSERT_EQ(steps.size(), 2U);
    EXPECT_EQ(steps[0].rows.size(), 4U) << "three are left";
    EXPECT_EQ(steps[1].rows.size(), 3U);
  });
}

TEST(CellsRecurrentRules, MovesAreOfTheStateLC98) {
  in_each_memory(2, 0, [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.code(states({0, 0, 0})), "ok");
    EXPECT_EQ(cache.code(SeqAdd{0, 0, 2, 5}), "ok") << "not in range";
    EXPECT_EQ(cache.values(SeqPos{0}).max, 2);
    EXPECT_EQ(cache.code(SeqCp{0, 1, -1, -1}), "ok");
    EXPECT_EQ(cache.code(SeqAdd{0, -1, -1, 5}), original ? "ok" : "not_supported");
    EXPECT_EQ(cache.code(SeqDiv{1, -1, -1, 2}), original ? "ok" : "not_supported");
    EXPECT_EQ(cache.code(SeqKeep{1}), "ok");
    EXPECT_EQ(tails(cache), Numbers({-1, 0}));
    EXPECT_EQ(cache.values(SeqPos{1}).max, original ? 3 : 2);
    EXPECT_EQ(cache.code(SeqAdd{1, -1, -1, -9}), "ok");
    EXPECT_EQ(cache.values(SeqPos{1}).min, original ? -6 : -1);
    EXPECT_EQ(cache.values(SeqPos{1}).max, -1);
    EXPECT_EQ(cache.code(SeqKeep{2}), "precondition");
    EXPECT_EQ(cache.code(SeqAdd{-1, -1, -1, 1}), "precondition");
    EXPECT_EQ(cache.values(SeqPos{-7}).max, -1) << "of any number";
  });
}

TEST(CellsRecurrentRules, RefusedBatchesLeaveNothingLC91) {
  in_each_memory(3, 0, [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(cache.code(states({0})), "ok");
    const std::string before = memory(cache);
    DecodeStates both;
    both.seqs = {{0}, {1, 2}};
    EXPECT_EQ(cache.code(both), "full") << "no split";
    EXPECT_EQ(cache.code(states({3})), "other:invalid_batch");
    EXPECT_EQ(cache.code(states({})), "other:invalid_batch");
    EXPECT_EQ(cache.code(states({0}, 0)), "precondition");
    EXPECT_EQ(memory(cache), before);
  });
}

}  // namespace
}  // namespace kvo::cells
