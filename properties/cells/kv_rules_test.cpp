// Single rules of cells.kv and cells.iswa, in both profiles.
#include "properties/cells/rules_case.hpp"

namespace kvo::cells {
namespace {

template <class Check>
void in_each_cache(const KvConfig& config, Check&& check) {
  in_each<New>(kv_kind(), Record::of(config), std::forward<Check>(check));
}

KvConfig unified(std::int64_t size, std::int64_t n_seq_max = 2) {
  return {.size = size, .n_seq_max = n_seq_max};
}

KvConfig streams(std::int64_t size, std::int64_t n_seq_max = 3) {
  return {.size = size, .n_seq_max = n_seq_max, .unified = false};
}

KvConfig windowed(std::int64_t size, WindowType type, std::int32_t window) {
  return {.size = size, .n_seq_max = 2, .n_swa = window, .swa_type = type};
}

std::vector<Numbers> rows_of_all(RulesCase& cache, std::size_t stream) {
  const auto rows = cache.values(ShowRows{}).streams[stream];
  return {rows.k, rows.rot, rows.v};
}

// ---- Batches ----

TEST(CellsKvRules, PositionsGoOnLC31LC32) {
  in_each_cache(unified(8), [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.code(tokens_at({7, 8}, {{0}, {0}})), "ok") << "a new one begins anywhere";
    EXPECT_EQ(cache.code(tokens_at({10}, {{0}})), "other:invalid_batch") << "a gap";
    EXPECT_EQ(cache.code(tokens_at({8}, {{0}})), "other:invalid_batch") << "again";
    EXPECT_EQ(cache.code(tokens_at({10, 9}, {{0}, {0}})), "other:invalid_batch") << "backwards";
    EXPECT_EQ(cache.code(tokens_at({}, {})), "other:invalid_batch") << "nothing";
    EXPECT_EQ(cache.code(tokens_at({9}, {{2}})), "other:invalid_batch") << "no such sequence";
    EXPECT_EQ(cache.code(tokens_at({9}, {{-1}})), "other:invalid_batch");
    EXPECT_EQ(table(cache), "0:7{0} 1:8{0}");
    EXPECT_EQ(cache.code(tokens_at({9, 9}, {{0}, {0}})), original ? "ok" : "other:invalid_batch")
        << "twice";
    EXPECT_EQ(slots(cache, tokens(0, 1)), Numbers({original ? 4 : 2}));
    EXPECT_EQ(cache.values(SeqPos{0}).max, original ? 10 : 9);
  });
}

TEST(CellsKvRules, OverlappingSetsOfSequencesLC31) {
  in_each_cache(unified(8, 3), [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.code(tokens_at({0, 1}, {{0, 1}, {1, 2}})),
              original ? "ok" : "other:invalid_batch");
    EXPECT_EQ(cache.code(tokens_at({0, 0}, {{0, 1}, {1, 2}})), "other:invalid_batch")
        << "1 does not go on, and has a position twice";
  });
}

TEST(CellsKvRules, BatchesThatNoRuleIsAboutAreRefused) {
  in_each_cache(unified(8), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(cache.code(tokens(0, 1, 0)), "precondition");
    EXPECT_EQ(cache.code(tokens(0, 1, -5)), "precondition");
    EXPECT_EQ(cache.code(tokens_at({0}, {{}})), "precondition") << "of nobody";
    EXPECT_EQ(cache.code(tokens_at({0, 1}, {{0}})), "precondition") << "too many positions";
    EXPECT_EQ(cache.code(tokens(0, static_cast<std::size_t>(kMostTokens) + 1)), "precondition");
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(cache.code(tokens_at({0}, {{most}})), "other:invalid_batch");
    EXPECT_EQ(cache.code(tokens_at({kMaxPosition}, {{0}}, most)), "ok");
    EXPECT_EQ(cache.code(tokens(0, 1)), "precondition") << "no position is left";
    EXPECT_EQ(cache.code(SeqAdd{0, -1, -1, 1}), "ok") << "MAX is in no range";
    EXPECT_EQ(table(cache), "0:2147483647{0}");
  });
}

TEST(CellsKvRules, TheLastOrTheFirstListedIsPrimaryLC38LC50) {
  in_each_cache(unified(8), [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.code(tokens_at({0, 0}, {{0}, {1}})), "ok");
    const ShownUbatch both = placed(cache, tokens_at({1}, {{0, 1}}));
    EXPECT_EQ(visible(both, 0), original ? Numbers({1, 2}) : Numbers({0, 2}));
    EXPECT_EQ(table(cache), "0:0{0} 1:0{1} 2:1{0,1}");
  });
}

TEST(CellsKvRules, StreamsTakeNeighboursInEqualSharesLC33) {
  in_each_cache(streams(8), [](RulesCase& cache, bool original) {
    const auto ubatches =
        *cache.values(tokens_at({0, 1, 0, 1, 0}, {{0}, {0}, {1}, {1}, {2}}, 2)).ubatches;
    EXPECT_EQ(ubatches[0].rows,
              original ? (std::vector<std::int32_t>{0, 2, 4}) : (std::vector<std::int32_t>{0, 2}));
    EXPECT_EQ(cache.code(tokens_at({2}, {{0, 1}})), "full") << "of several: no split";
  });
}

// ---- Slots ----

TEST(CellsKvRules, ARefusedBatchLeavesNothingLC37) {
  in_each_cache(unified(4), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(slots(cache, tokens(0, 3)), Numbers({0, 1, 2}));
    EXPECT_EQ(cache.code(tokens(0, 2, 1)), "full");
    EXPECT_EQ(cache.code(tokens(1, 5)), "full") << "more than there are cells";
    EXPECT_EQ(table(cache), "0:0{0} 1:1{0} 2:2{0}");
    EXPECT_EQ(rows_of_all(cache, 0)[0], Numbers({1, 2, 3, 0}));
    EXPECT_EQ(slots(cache, tokens(0, 1)), Numbers({3}));
    EXPECT_EQ(rows_of_all(cache, 0)[0], Numbers({1, 2, 3, 4})) << "no tag was lost";
  });
}

TEST(CellsKvRules, AfterARefusalTheSearchBeginsWhereItDidLC37) {
  in_each_cache(streams(8), [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.code(tokens(0, 6)), "ok");
    EXPECT_EQ(cache.code(tokens(1, 2)), "ok");
    EXPECT_EQ(cache.code(tokens(1, 7, 2)), "full");
    EXPECT_EQ(slots(cache, tokens(1, 2)), original ? Numbers({6, 7}) : Numbers({2, 3}));
  });
}

TEST(CellsKvRules, WhatARehearsalPurgesComesBackLC61LC63) {
  in_each_cache(windowed(6, WindowType::kStandard, 3), [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.code(tokens(1, 1)), "ok");
    EXPECT_EQ(slots(cache, tokens(0, 7, 1)), Numbers({1, 2, 3, 4, 5, 1, 2}));
    EXPECT_EQ(cache.code(SeqRm{1, -1, -1}), "ok");
    EXPECT_EQ(slots(cache, tokens(0, 1)), Numbers({0}));
    EXPECT_EQ(table(cache), "0:7{0} 1:5{0} 2:6{0} 3:2{0} 4:3{0} 5:4{0}");
    EXPECT_EQ(cache.code(tokens(1, 6, 3)), "full");
    EXPECT_EQ(table(cache), original ? "0:7{0} 1:5{0} 2:6{0} 3:2{0} 4:3{0}"
                                     : "0:7{0} 1:5{0} 2:6{0} 3:2{0} 4:3{0} 5:4{0}");
  });
}

TEST(CellsKvRules, CellsOutOfAWindowAreTakenAndWhatLiesBelowGoesLC60LC61) {
  in_each_cache(windowed(4, WindowType::kStandard, 2), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(cache.code(tokens(0, 4)), "ok");
    EXPECT_EQ(slots(cache, tokens(1, 2)), Numbers({0, 1})) << "of an idle sequence";
    EXPECT_EQ(table(cache), "0:0{1} 1:1{1} 2:2{0} 3:3{0}");
    EXPECT_EQ(cache.values(SeqPos{0}).min, 2);
    EXPECT_EQ(cache.code(tokens(1, 4)), "full") << "each keeps a position";
  });
}

TEST(CellsKvRules, ASearchMayAskForAdjacentCellsLC39) {
  in_each_cache(unified(6), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(cache.code(tokens(0, 2)), "ok");
    EXPECT_EQ(cache.code(tokens(1, 1)), "ok");
    EXPECT_EQ(cache.code(tokens(0, 1)), "ok");
    EXPECT_EQ(cache.code(SeqRm{0, -1, -1}), "ok");
    FindSlot search{.pos = {0, 1, 2}, .seqs = {{0}, {0}, {0}}};
    EXPECT_EQ(cache.values(search).slots, (std::vector<std::int32_t>{0, 1, 3}));
    search.cont = true;
    EXPECT_EQ(cache.values(search).slots, (std::vector<std::int32_t>{3, 4, 5}));
    search.pos.push_back(3);
    search.seqs.push_back({0});
    EXPECT_EQ(cache.code(search), "full");
    search.swa = true;
    EXPECT_EQ(cache.code(search), "precondition") << "no window half";
    EXPECT_EQ(table(cache), "2:0{1}");
  });
}

// ---- Sequences ----

TEST(CellsKvRules, RemovalFromAnySequenceLC40LC48) {
  in_each_cache(streams(4), [](RulesCase& cache, bool original) {
    for (const std::int64_t seq : {0, 1, 2}) EXPECT_EQ(cache.code(tokens(seq, 2)), "ok");
    EXPECT_EQ(cache.code(SeqRm{3, -1, -1}), "precondition");
    EXPECT_EQ(cache.code(SeqRm{-2, 0, 1}), original ? "precondition" : "ok");
    EXPECT_EQ(table(cache, 2), original ? "0:0{2} 1:1{2}" : "1:1{2}");
    EXPECT_EQ(cache.code(SeqRm{-1, -1, -1}), "ok");
    EXPECT_EQ(cache.values(ShowState{}).seqs.size(), 0U);
  });
}

TEST(CellsKvRules, ACopySharesCellsLC41) {
  for (const Build build : {Build::kRelease, Build::kDebug}) {
    KvConfig config = unified(4);
    config.build = build;
    in_each_cache(config, [&](RulesCase& cache, bool original) {
      EXPECT_EQ(cache.code(tokens(0, 3)), "ok");
      EXPECT_EQ(cache.code(SeqCp{0, 1, 1, 2}), "ok");
      EXPECT_EQ(table(cache), "0:0{0} 1:1{0,1} 2:2{0}");
      EXPECT_EQ(cache.code(SeqCp{0, 0, -1, -1}), "ok");
      if (build == Build::kRelease) {
        EXPECT_EQ(cache.code(SeqCp{0, 1, -1, -1}), "ok") << "of what it has already, too";
      }
      EXPECT_EQ(cache.code(SeqCp{0, 2, -1, -1}), original ? "ok" : "precondition");
      EXPECT_EQ(cache.code(SeqCp{0, 256, -1, -1}), "precondition");
      EXPECT_EQ(cache.code(SeqCp{-1, 0, -1, -1}), "precondition");
    });
  }
}

TEST(CellsKvRules, TheOthersGoFromAllStreamsLC42) {
  in_each_cache(streams(4), [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.code(tokens(0, 1)), "ok");
    EXPECT_EQ(cache.code(tokens(2, 1)), "ok");
    EXPECT_EQ(cache.code(SeqKeep{2}), "ok");
    EXPECT_EQ(table(cache, 0), original ? "0:0{0}" : "");
    EXPECT_EQ(table(cache, 2), "0:0{2}");
  });
}

TEST(CellsKvRules, OnlyOnesOwnTokensMoveLC43LC44) {
  in_each_cache(unified(8), [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.code(tokens(0, 4)), "ok");
    EXPECT_EQ(cache.code(SeqCp{0, 1, 2, 3}), "ok");
    EXPECT_EQ(cache.code(SeqAdd{0, 2, -1, 5}), original ? "ok" : "not_supported");
    EXPECT_EQ(cache.values(SeqPos{1}).max, original ? 7 : 2);
    EXPECT_EQ(cache.code(SeqDiv{1, -1, -1, 2}), original ? "ok" : "not_supported");
    EXPECT_EQ(cache.code(SeqAdd{0, 0, 2, -1}), "ok") << "position 0 falls below 0";
    EXPECT_EQ(slots(cache, tokens(1, 1)), Numbers({0}));
    EXPECT_EQ(cache.code(SeqAdd{0, -1, -1, 0}), "ok");
    EXPECT_EQ(cache.code(SeqDiv{1, -1, -1, 1}), "ok");
    EXPECT_EQ(cache.code(SeqDiv{1, -1, -1, 0}), "precondition");
    EXPECT_EQ(cache.code(SeqDiv{1, 3, 3, 0}), "ok") << "an empty range";
    EXPECT_EQ(cache.code(SeqDiv{1, 100, -1, 0}), original ? "ok" : "precondition");
    EXPECT_EQ(cache.code(SeqAdd{0, -1, -1, kMaxPosition}),
              original ? "precondition" : "not_supported");
  });
}

TEST(CellsKvRules, KeysTurnToTheirPositionsLC45LC16) {
  in_each_cache(unified(4), [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.code(tokens(0, 4)), "ok");
    EXPECT_EQ(cache.code(SeqAdd{0, -1, -1, 2}), "ok");
    EXPECT_EQ(rows_of_all(cache, 0)[1], Numbers({0, 1, 2, 3})) << "not before the update";
    EXPECT_TRUE(cache.values(UpdatePending{}).updated);
    EXPECT_EQ(rows_of_all(cache, 0)[1], Numbers({2, 3, 4, 5}));
    EXPECT_FALSE(cache.values(UpdatePending{}).updated);
    EXPECT_EQ(cache.code(SeqDiv{0, -1, -1, 2}), "ok");
    EXPECT_TRUE(cache.values(UpdatePending{}).updated);
    EXPECT_EQ(rows_of_all(cache, 0)[1], original ? Numbers({3, 5, 6, 8}) : Numbers({1, 1, 2, 2}));
  });
}

// ---- Masks ----

TEST(CellsKvRules, WindowsByTypeLC53LC54LC55) {
  const auto sees = [](WindowType type, bool causal, std::size_t token, const Numbers& want) {
    in_each_cache(windowed(8, type, 3), [&](RulesCase& cache, bool /*original*/) {
      Decode batch = tokens(0, 6);
      batch.causal = causal;
      EXPECT_EQ(visible(placed(cache, batch), token), want) << "token " << token;
    });
  };
  sees(WindowType::kStandard, true, 5, {3, 4, 5});
  sees(WindowType::kChunked, true, 5, {3, 4, 5});
  sees(WindowType::kChunked, true, 3, {3});
  sees(WindowType::kSymmetric, true, 5, {4, 5});
  sees(WindowType::kStandard, false, 3, {1, 2, 3, 4, 5});
  sees(WindowType::kSymmetric, false, 3, {2, 3, 4});
  sees(WindowType::kChunked, false, 3, {3, 4, 5});
}

TEST(CellsKvRules, DistanceIsABiasLC52) {
  KvConfig config = unified(4);
  config.alibi = true;
  in_each_cache(config, [](RulesCase& cache, bool /*original*/) {
    const ShownUbatch ubatch = placed(cache, tokens(0, 3));
    EXPECT_EQ(ubatch.mask->floats()[2 * 4], -2.0F);
    EXPECT_EQ(ubatch.mask->floats()[2 * 4 + 2], 0.0F);
  });
}

TEST(CellsKvRules, WhatNotCausalMeansLC51LC58) {
  for (const NonCausal meaning : {NonCausal::kAll, NonCausal::kSwaOnly, NonCausal::kSwaFull}) {
    KvConfig config = windowed(8, WindowType::kStandard, 1);
    config.non_causal = meaning;
    const bool full = meaning == NonCausal::kSwaFull;
    in_each_cache(config, [&](RulesCase& cache, bool /*original*/) {
      EXPECT_EQ(cache.code(tokens(0, 2)), "ok");
      Decode batch = tokens(0, 3);
      batch.causal = false;
      EXPECT_EQ(visible(placed(cache, batch), 1), full ? Numbers({2, 3, 4}) : Numbers({3, 4}));
    });
    config.swa_type = WindowType::kNone;
    in_each_cache(config, [&](RulesCase& cache, bool /*original*/) {
      Decode batch = tokens(0, 2);
      batch.causal = false;
      const bool ignored = meaning == NonCausal::kSwaOnly;
      EXPECT_EQ(visible(placed(cache, batch), 0), ignored ? Numbers({0}) : Numbers({0, 1}));
      batch.n_ubatch = 1;
      EXPECT_EQ(cache.code(batch), "precondition");
    });
  }
}

TEST(CellsKvRules, MasksSpanUsedCellsBy256LC56) {
  in_each_cache(unified(600), [](RulesCase& cache, bool /*original*/) {
    EXPECT_EQ(placed(cache, tokens(0, 256, 512)).n_kv, 256);
    EXPECT_EQ(placed(cache, tokens(0, 1)).n_kv, 512);
    EXPECT_EQ(placed(cache, tokens(0, 256, 512)).n_kv, 600) << "not beyond the cache";
  });
}

TEST(CellsKvRules, WhatIsInterruptedIsTakenOutLC57) {
  KvConfig config = unified(8);
  config.real = true;
  in_each_cache(config, [](RulesCase& cache, bool original) {
    Decode batch = tokens_at({0, 1, 2}, {{0, 1}, {0, 1}, {0}}, 1);
    batch.abort_at = 1;
    EXPECT_EQ(cache.code(batch), "other:aborted");
    EXPECT_EQ(table(cache), original ? "0:0{0,1} 1:1{0}" : "0:0{0,1}");
  });
}

// ---- Streams and states ----

TEST(CellsKvRules, ACopyTakesAllOfASequenceLC66) {
  in_each_cache(streams(8), [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.code(tokens(0, 2)), "ok");
    EXPECT_EQ(cache.code(SeqCp{0, 1, 0, 1}), original ? "precondition" : "not_supported");
    EXPECT_EQ(cache.code(SeqCp{0, 1, 1, -1}), original ? "precondition" : "not_supported");
    EXPECT_EQ(cache.code(SeqCp{0, 1, 7, -1}), original ? "ok" : "not_supported");
    EXPECT_EQ(cache.code(SeqCp{0, 1, -1, 0}), original ? "ok" : "not_supported");
    EXPECT_EQ(cache.code(SeqCp{0, 1, -1, 2}), original ? "precondition" : "ok");
    EXPECT_EQ(table(cache, 1), "0:0{1} 1:1{1}");
    EXPECT_EQ(rows_of_all(cache, 1)[0][0], original ? 0 : 1);
    EXPECT_EQ(cache.values(UpdatePending{}).updated, original);
    EXPECT_EQ(rows_of_all(cache, 1)[0][0], 1);
  });
}

TEST(CellsKvRules, WhatWasLoadedStaysLC66) {
  in_each_cache(streams(4), [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.code(tokens(1, 2)), "ok");
    EXPECT_EQ(cache.values(StateSave{1}).handle, 0);
    EXPECT_EQ(cache.code(tokens(0, 2)), "ok");
    EXPECT_EQ(cache.code(SeqCp{0, 1, -1, -1}), "ok");
    EXPECT_EQ(cache.code(StateLoad{0, 1}), "ok");
    EXPECT_EQ(rows_of_all(cache, 1)[0], Numbers({1, 2, 0, 0}));
    EXPECT_EQ(cache.values(UpdatePending{}).updated, original);
    EXPECT_EQ(rows_of_all(cache, 1)[0], original ? Numbers({3, 4, 0, 0}) : Numbers({1, 2, 0, 0}));
  });
}

TEST(CellsKvRules, StatesAreSavedAsTheyStandLC71LC72) {
  in_each_cache(unified(4), [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.code(tokens(0, 2)), "ok");
    EXPECT_EQ(cache.code(SeqAdd{0, -1, -1, 3}), "ok");
    EXPECT_EQ(cache.values(StateSave{0}).bytes, 4 + 4 + 8 + 2 * (8 + 4) + 2 * 2 * (12 + 8 * 2));
    EXPECT_EQ(cache.code(Clear{true}), "ok");
    EXPECT_EQ(cache.code(StateLoad{0, 1}), "ok");
    EXPECT_EQ(table(cache), "0:3{1} 1:4{1}");
    EXPECT_EQ(rows_of_all(cache, 0)[1], original ? Numbers({0, 1, 0, 0}) : Numbers({3, 4, 0, 0}));
    EXPECT_EQ(cache.values(StateSave{-1}).handle, 1);
    EXPECT_EQ(cache.code(StateSave{-2}), "precondition");
    EXPECT_EQ(cache.code(StateSave{0, true}), "precondition") << "no window half";
    EXPECT_EQ(cache.code(StateLoad{2, 0}), "precondition") << "no such state";
    EXPECT_EQ(cache.code(StateLoad{0, 2}), "precondition") << "no such sequence";
  });
}

TEST(CellsKvRules, AStateWithoutCellsEmptiesTheSequenceLC73) {
  in_each_cache(unified(4), [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.code(tokens(0, 2)), "ok");
    EXPECT_EQ(cache.values(StateSave{1}).handle, 0);
    EXPECT_EQ(cache.code(StateLoad{0, 0}), "ok");
    EXPECT_EQ(table(cache), original ? "0:0{0} 1:1{0}" : "");
    EXPECT_EQ(cache.code(StateLoad{0, -1}), "ok");
    EXPECT_EQ(table(cache), "");
  });
}

TEST(CellsKvRules, ALoadWithoutRoomChangesNothingLC74) {
  in_each_cache(unified(4), [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.code(tokens(0, 3)), "ok");
    EXPECT_EQ(cache.values(StateSave{0}).handle, 0);
    EXPECT_EQ(cache.code(tokens(1, 1)), "ok");
    EXPECT_EQ(cache.code(StateLoad{0, 1}), "other:restore_failed");
    EXPECT_EQ(cache.values(SeqPos{1}).max, original ? -1 : 0);
    EXPECT_EQ(rows_of_all(cache, 0)[0], Numbers({1, 2, 3, 4}));
  });
}

// Blobs that lie: lengths, positions and owners (LC-74, LC-75).
TEST(CellsKvRules, StatesThatLie) {
  in_each_cache(unified(4), [](RulesCase& cache, bool original) {
    const auto edited = [&](StateEdit edit) {
      EXPECT_EQ(cache.code(std::move(edit)), "ok");
      return cache.code(StateLoad{0, 0});
    };
    EXPECT_EQ(cache.code(tokens(0, 2)), "ok");
    EXPECT_EQ(cache.values(StateSave{0}).handle, 0);
    EXPECT_EQ(edited({.handle = 0, .cell = 1, .pos = 7}), "ok") << "positions are not checked";
    EXPECT_EQ(table(cache), "0:0{0} 1:7{0}");
    EXPECT_EQ(edited({.handle = 0, .cell = 0, .pos = -1}), "precondition");
    EXPECT_EQ(edited({.handle = 0, .cell = 0, .pos = 0, .seqs = Numbers{2}}), "precondition");
    EXPECT_EQ(edited({.handle = 0, .cell = 0, .seqs = Numbers{1, 0}}), "precondition");
    EXPECT_EQ(table(cache), "0:0{0} 1:7{0}");
    EXPECT_EQ(edited({.handle = 0, .cell = 0, .seqs = Numbers{}}), "other:restore_failed");
    EXPECT_EQ(table(cache), original ? "" : "0:0{0} 1:7{0}");
    EXPECT_EQ(cache.code(StateLoad{0, -1}), "ok") << "a cell of nobody";
    EXPECT_EQ(table(cache), "0:0{} 1:7{0}");
    EXPECT_EQ(cache.code(SeqRm{0, -1, -1}), "ok");
    EXPECT_EQ(table(cache), "0:0{}");
    EXPECT_EQ(cache.code(SeqRm{-1, -1, -1}), "ok");
    EXPECT_EQ(table(cache), "");
    EXPECT_EQ(edited({.handle = 0, .cells = 5}), "other:restore_failed") << "more than fit";
    EXPECT_EQ(cache.code(StateLoad{0, -1}), "other:restore_failed");
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(cache.code(StateEdit{.handle = 0, .cells = most}), "precondition");
    EXPECT_EQ(cache.code(StateEdit{.handle = 0, .cells = -1}), "precondition");
    EXPECT_EQ(cache.code(StateEdit{.handle = 0, .stream = 1}), "precondition");
    EXPECT_EQ(cache.code(StateEdit{.handle = 0, .cell = 5}), "precondition");
  });
}

// ---- Pairs ----

TEST(CellsKvRules, BothHalvesOfAPairLoadOrNoneLC76) {
  const IswaConfig config{
      .size = 16, .size_swa = 4, .n_seq_max = 2, .n_swa = 3, .swa_type = WindowType::kStandard};
  in_each<New>(iswa_kind(), Record::of(config), [](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.code(tokens(0, 3)), "ok");
    EXPECT_EQ(cache.values(StateSave{0}).handle, 0);
    EXPECT_EQ(cache.code(SeqRm{0, -1, -1}), "ok");
    EXPECT_EQ(cache.code(tokens(1, 3)), "ok");
    EXPECT_EQ(cache.code(StateLoad{0, 0}), "other:restore_failed");
    EXPECT_EQ(cache.values(SeqPos{0}).max, -1);
    EXPECT_EQ(table(cache),
              original ? "0:0{1} 1:1{1} 2:2{1} 3:0{0} 4:1{0} 5:2{0}" : "0:0{1} 1:1{1} 2:2{1}");
    EXPECT_EQ(window_table(cache), "0:0{1} 1:1{1} 2:2{1}");
  });
}

TEST(CellsKvRules, APairOfDifferentSizesDoesNotShiftLC68) {
  const IswaConfig config{
      .size = 16, .size_swa = 8, .n_seq_max = 2, .n_swa = 3, .swa_type = WindowType::kStandard};
  in_each<New>(iswa_kind(), Record::of(config), [](RulesCase& cache, bool original) {
    EXPECT_FALSE(cache.values(CanShift{}).value);
    EXPECT_EQ(cache.code(tokens(0, 3)), "ok");
    EXPECT_EQ(cache.code(SeqAdd{0, -1, -1, 1}), original ? "ok" : "not_supported");
    EXPECT_EQ(table(cache), original ? "0:1+1{0} 1:2+1{0} 2:3+1{0}" : "0:0{0} 1:1{0} 2:2{0}");
    EXPECT_EQ(window_table(cache), table(cache));
    EXPECT_EQ(cache.code(SeqAdd{0, -1, -1, 0}), "ok");
  });
}

TEST(CellsKvRules, SizesOfAPairLC67) {
  const auto size = [](const IswaConfig& config) {
    RulesCase made(contracts().reference_of(iswa_kind()), Profile::kOriginal, Record::of(config));
    return made.values(New{}).size_swa;
  };
  const IswaConfig config{.size = 1024,
                          .n_seq_max = 2,
                          .n_swa = 200,
                          .swa_type = WindowType::kStandard,
                          .n_ubatch = 113};
  EXPECT_EQ(size(config), 768) << "200 for each sequence and 113";
  IswaConfig apart = config;
  apart.unified = false;
  EXPECT_EQ(size(apart), 512);
  IswaConfig full = config;
  full.swa_full = true;
  EXPECT_EQ(size(full), 1024);
  IswaConfig small = config;
  small.size = 100;
  EXPECT_EQ(size(small), 256) << "not less than the multiple";
}

}  // namespace
}  // namespace kvo::cells
