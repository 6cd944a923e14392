// Bad input: what it is answered with, and that nothing has changed then.
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "reference/cells/meta_operations.hpp"
#include "reference/cells/recurrent_operations.hpp"
#include "reference/subjects.hpp"

namespace kvo::cells {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 31;
constexpr std::int32_t kMinPosition = std::numeric_limits<std::int32_t>::min();

/// A case of a kind's reference.
class Case {
 public:
  template <class Config>
  Case(const CacheKind& kind, const Config& config, Profile profile) {
    for (const Subject& subject : references())
      if (subject.kind == &kind)
        session_ =
            std::move(*subject.open(kvo::Setup{.profile = profile, .config = Record::of(config)}));
  }

  template <class T>
  Observation apply(T op) {
    return session_->apply(Op::of(std::move(op)), probe_);
  }
  /// "ok", or the code of the error.
  template <class T>
  std::string code(T op) {
    const Observation seen = apply(std::move(op));
    return seen.error ? seen.error->code_text() : "ok";
  }
  /// The operation has that outcome, and what `show` shows is as before.
  template <class Show, class T>
  void refuses(T op, const std::string& code_text) {
    const Observation before = apply(Show());
    const std::string text = op_text(Op::of(op));
    EXPECT_EQ(code(std::move(op)), code_text) << text;
    const auto difference = observation_difference(before, apply(Show()));
    EXPECT_FALSE(difference.has_value()) << text << " changed something";
  }

 private:
  std::unique_ptr<Session> session_;
  Probe probe_;
};

const std::vector<Profile> kProfiles{Profile::kOriginal, Profile::kDocumented};

Decode tokens(std::vector<std::int32_t> pos, std::int64_t seq) {
  const std::size_t n = pos.size();
  return {.pos = std::move(pos),
          .seqs = std::vector<std::vector<std::int64_t>>(n, {seq}),
          .n_ubatch = 64};
}

TEST(CellsBadInput, SizesOutOfRangeMakeNoCache) {
  for (const Profile profile : kProfiles) {
    for (const std::int64_t size : {std::int64_t{-1}, std::int64_t{0}, kHuge, kMostCells + 1}) {
      EXPECT_EQ(Case(meta_kind(), MetaConfig{.size = size}, profile).code(NewTable()),
                "out_of_range");
      EXPECT_EQ(Case(kv_kind(), KvConfig{.size = size}, profile).code(New()), "out_of_range");
      Case pair(iswa_kind(), IswaConfig{.size = 8, .size_swa = size}, profile);
      EXPECT_EQ(pair.code(New()), "out_of_range");
      EXPECT_EQ(pair.code(ShowState()), "precondition") << "there is no cache";
      Case memory(recurrent_kind(), RecurrentConfig{.n_seq_max = size}, profile);
      EXPECT_EQ(memory.code(NewRecurrent()), "out_of_range");
      EXPECT_EQ(memory.code(ShowMemory()), "precondition");
    }
    const auto made = [&](const KvConfig& config) {
      return Case(kv_kind(), config, profile).code(New());
    };
    EXPECT_EQ(made({.size = 8, .n_seq_max = 257}), "out_of_range");
    EXPECT_EQ(made({.size = kMostCells, .n_seq_max = 2, .unified = false}), "out_of_range");
    EXPECT_EQ(made({.size = 8, .n_pad = 3}), "out_of_range");
    EXPECT_EQ(made({.size = 8, .n_pad = kHuge}), "out_of_range");
    EXPECT_EQ(made({.size = 8, .n_swa = 0, .swa_type = WindowType::kChunked}), "out_of_range");
    EXPECT_EQ(made({.size = 8, .n_swa = kMaxPosition, .swa_type = WindowType::kChunked}), "ok");
    Case memory(recurrent_kind(), RecurrentConfig{.n_seq_max = 1, .n_rs_seq = kHuge}, profile);
    EXPECT_EQ(memory.code(NewRecurrent()), "out_of_range");
  }
}

TEST(CellsBadInput, WindowHalvesOfAnyConfigHaveCellsInRange) {
  for (const std::int64_t size : {std::int64_t{1}, kMostCells})
    for (const std::int64_t n_ubatch : {-kHuge, std::int64_t{0}, kHuge})
      for (const std::int32_t n_swa : {1, kMaxPosition}) {
        const KvOptions options = kv_options(IswaConfig{.size = size,
                                                        .n_seq_max = 256,
                                                        .n_swa = n_swa,
                                                        .swa_type = WindowType::kStandard,
                                                        .n_ubatch = n_ubatch});
        EXPECT_TRUE(check_options(options).has_value()) << *options.size_window;
      }
}

TEST(CellsBadInput, NothingIsDoneBeforeNew) {
  Case kv(kv_kind(), KvConfig{.size = 8}, Profile::kOriginal);
  EXPECT_EQ(kv.code(tokens({0}, 0)), "precondition");
  EXPECT_EQ(kv.code(StateSave()), "precondition");
  EXPECT_EQ(kv.code(SeqPos()), "precondition");
  Case meta(meta_kind(), MetaConfig{.size = 8}, Profile::kOriginal);
  EXPECT_EQ(meta.code(Size()), "precondition");
  EXPECT_EQ(meta.code(CopyCells{.begin = 0, .n = 1}), "precondition");
  Case memory(recurrent_kind(), RecurrentConfig{.n_seq_max = 2}, Profile::kOriginal);
  EXPECT_EQ(memory.code(SeqCp{.src = 0, .dst = 1}), "precondition");
}

TEST(CellsBadInput, CellsAndSequencesOutOfRangeChangeNoTable) {
  for (const Profile profile : kProfiles) {
    Case meta(meta_kind(), MetaConfig{.size = 4}, profile);
    ASSERT_EQ(meta.code(NewTable()), "ok");
    ASSERT_EQ(meta.code(PosSet{.cell = 0, .pos = 5}), "ok");
    ASSERT_EQ(meta.code(OwnerAdd{.cell = 0, .seq = 3}), "ok");
    for (const std::int64_t cell : {std::int64_t{-1}, std::int64_t{4}, kHuge}) {
      meta.refuses<ShowTable>(PosSet{.cell = cell, .pos = 1}, "precondition");
      meta.refuses<ShowTable>(OwnerAdd{.cell = cell, .seq = 1}, "precondition");
      meta.refuses<ShowTable>(CellRm{.cell = cell}, "precondition");
      meta.refuses<ShowTable>(ExtSet{.cell = cell}, "precondition");
      meta.refuses<ShowTable>(PosIn{.cell = cell}, "precondition");
      meta.refuses<ShowTable>(CopyCells{.cells = {{0, cell}}}, "precondition");
      meta.refuses<ShowTable>(CopyCells{.begin = cell, .n = 1}, "precondition");
    }
    for (const std::int64_t seq : {std::int64_t{-1}, std::int64_t{256}, kHuge}) {
      meta.refuses<ShowTable>(OwnerAdd{.cell = 0, .seq = seq}, "precondition");
      meta.refuses<ShowTable>(OwnerKeep{.cell = 0, .seq = seq}, "precondition");
      meta.refuses<ShowTable>(SeqPosGet{.seq = seq}, "precondition");
      meta.refuses<ShowTable>(TokenAtOrBefore{.seq = seq}, "precondition");
    }
    meta.refuses<ShowTable>(PosSet{.cell = 1, .pos = -1}, "precondition");
    meta.refuses<ShowTable>(PosAdd{.cell = 0, .delta = kMaxPosition}, "precondition");
    meta.refuses<ShowTable>(PosDiv{.cell = 0, .d = 0}, "precondition");
    meta.refuses<ShowTable>(PosDiv{.cell = 0, .d = -2}, "precondition");
    meta.refuses<ShowTable>(CopyCells{.begin = 2, .n = kHuge}, "precondition");
    meta.refuses<ShowTable>(CopyCells{.begin = 2, .n = -1}, "precondition");
    meta.refuses<ShowTable>(CopyCells{.begin = 0, .n = 1, .cells = {{0}}}, "precondition");
    meta.refuses<ShowTable>(PasteCells{.handle = 0, .begin = 0}, "precondition");
    meta.refuses<ShowTable>(Resize{.n = 0}, "out_of_range");
    meta.refuses<ShowTable>(Resize{.n = kHuge}, "out_of_range");
    ASSERT_EQ(meta.code(CopyCells{.cells = {{0, 0}}}), "ok");
    meta.refuses<ShowTable>(PasteCells{.handle = 0, .begin = 3}, "precondition");
    meta.refuses<ShowTable>(PasteCells{.handle = 0, .cells = {{1}}}, "precondition");
    meta.refuses<ShowTable>(RereadCopy{.handle = 1}, "precondition");
  }
}

TEST(CellsBadInput, BatchesThatAreNoneChangeNothing) {
  for (const Profile profile : kProfiles) {
    Case kv(kv_kind(), KvConfig{.size = 8, .n_seq_max = 2}, profile);
    ASSERT_EQ(kv.code(New()), "ok");
    ASSERT_EQ(kv.code(tokens({0, 1, 2}, 0)), "ok");
    kv.refuses<ShowState>(Decode{}, "other:invalid_batch");
    kv.refuses<ShowState>(tokens({0}, 2), "other:invalid_batch");
    kv.refuses<ShowState>(tokens({0}, kHuge), "other:invalid_batch");
    kv.refuses<ShowState>(tokens({3}, -1), "other:invalid_batch");
    kv.refuses<ShowState>(tokens({kMinPosition, kMaxPosition}, 1), "other:invalid_batch");
    kv.refuses<ShowState>(tokens({kMinPosition}, 1),
                          profile == Profile::kOriginal ? "precondition" : "other:invalid_batch");
    kv.refuses<ShowState>(Decode{.pos = {{3}}, .seqs = {{}}}, "precondition");
    kv.refuses<ShowState>(Decode{.pos = {{3}}, .seqs = {{0}, {0}}}, "precondition");
    for (const std::int64_t n_ubatch : {std::int64_t{0}, -kHuge})
      kv.refuses<ShowState>(Decode{.pos = {{3}}, .seqs = {{0}}, .n_ubatch = n_ubatch},
                            "precondition");
    kv.refuses<ShowState>(Decode{.pos = {{3}}, .seqs = {{0}}, .abort_at = 0}, "precondition");
    Decode many = tokens(std::vector<std::int32_t>(kMostTokens + 1, 3), 0);
    kv.refuses<ShowState>(std::move(many), "precondition");
    kv.refuses<ShowState>(FindSlot{.pos = {0}, .seqs = {{0}}, .swa = true}, "precondition");
    ASSERT_EQ(kv.code(tokens({kMaxPosition}, 1)), "ok");
    kv.refuses<ShowState>(Decode{.seqs = {{1}}}, "precondition");
  }
}

TEST(CellsBadInput, MasksAreBounded) {
  Case kv(kv_kind(), KvConfig{.size = kMostCells}, Profile::kDocumented);
  ASSERT_EQ(kv.code(New()), "ok");
  std::vector<std::int32_t> most(static_cast<std::size_t>(kMostMaskEntries / kMostCells) + 1);
  std::iota(most.begin(), most.end(), 0);
  kv.refuses<ShowState>(tokens(most, 0), "precondition");
  most.pop_back();
  EXPECT_EQ(kv.code(tokens(most, 0)), "ok");
}

TEST(CellsBadInput, RangesAndSequencesAtTheEndsOfTheirTypes) {
  for (const Profile profile : kProfiles) {
    Case kv(kv_kind(), KvConfig{.size = 8, .n_seq_max = 2}, profile);
    ASSERT_EQ(kv.code(New()), "ok");
    ASSERT_EQ(kv.code(tokens({0, 1, 2}, 0)), "ok");
    for (const std::int64_t seq : {std::int64_t{256}, kHuge}) {
      kv.refuses<ShowState>(SeqRm{.seq = seq}, "precondition");
      kv.refuses<ShowState>(SeqCp{.src = 0, .dst = seq}, "precondition");
      kv.refuses<ShowState>(SeqKeep{.seq = -seq}, "precondition");
      kv.refuses<ShowState>(SeqAdd{.seq = seq, .delta = 1}, "precondition");
      kv.refuses<ShowState>(SeqDiv{.seq = -1, .d = 2}, "precondition");
      kv.refuses<ShowState>(SeqPos{.seq = seq}, "precondition");
      kv.refuses<ShowState>(StateSave{.seq = seq}, "precondition");
    }
    kv.refuses<ShowState>(SeqAdd{.seq = 0, .delta = kMaxPosition}, "precondition");
    kv.refuses<ShowState>(SeqDiv{.seq = 0, .d = 0}, "precondition");
    kv.refuses<ShowState>(SeqDiv{.seq = 0, .d = -1}, "precondition");
    kv.refuses<ShowState>(SeqRm{.seq = 0, .p0 = kMaxPosition, .p1 = kMaxPosition}, "ok");
    kv.refuses<ShowState>(SeqCp{.src = 0, .dst = 1, .p0 = 2, .p1 = 1}, "ok");
    kv.refuses<ShowState>(StateLoad{.handle = 0, .seq = 0}, "precondition");
    kv.refuses<ShowState>(StateSave{.seq = 0, .partial = true}, "precondition");
    ASSERT_EQ(kv.code(SeqAdd{.seq = 0, .delta = kMinPosition}), "ok");
    EXPECT_EQ(kv.apply(SeqPos{.seq = 0}).as<SeqPos::Returns>().max, -1) << "all fell below 0";
  }
}

TEST(CellsBadInput, AStateThatLiesIsRefused) {
  for (const Profile profile : kProfiles) {
    Case pair(iswa_kind(),
              IswaConfig{.size = 8,
                         .size_swa = 4,
                         .n_seq_max = 2,
                         .n_swa = 3,
                         .swa_type = WindowType::kStandard},
              profile);
    ASSERT_EQ(pair.code(New()), "ok");
    ASSERT_EQ(pair.code(tokens({0, 1}, 0)), "ok");
    for (int i = 0; i < 5; ++i) ASSERT_EQ(pair.code(StateSave{.seq = 0}), "ok");
    const auto edited = [&](StateEdit edit, std::int64_t seq, const std::string& code) {
      ASSERT_EQ(pair.code(edit), "ok");
      pair.refuses<ShowState>(StateLoad{.handle = edit.handle, .seq = seq}, code);
    };
    edited({.handle = 0, .cell = 0, .pos = -1}, 0, "precondition");
    edited({.handle = 1, .cell = 1, .seqs = {{2}}}, -1, "precondition");
    edited({.handle = 2, .swa = true, .cell = 0, .seqs = {{1, 0}}}, 1, "precondition");
    pair.refuses<ShowState>(StateEdit{.handle = 5}, "precondition");
    pair.refuses<ShowState>(StateEdit{.handle = 3, .stream = 1}, "precondition");
    pair.refuses<ShowState>(StateEdit{.handle = 3, .cells = kHuge}, "precondition");
    pair.refuses<ShowState>(StateEdit{.handle = 3, .cells = -1}, "precondition");
    pair.refuses<ShowState>(StateEdit{.handle = 3, .cell = 2}, "precondition");
    pair.refuses<ShowState>(StateLoad{.handle = 3, .seq = 0, .partial = true}, "precondition");
    ASSERT_EQ(pair.code(StateEdit{.handle = 3, .cells = 9}), "ok");
    ASSERT_EQ(pair.code(StateEdit{.handle = 4, .swa = true, .cell = 0, .seqs = {{}}}), "ok");
    for (const std::int64_t handle : {3, 4}) {
      if (profile == Profile::kDocumented)
        pair.refuses<ShowState>(StateLoad{.handle = handle, .seq = 0}, "other:restore_failed");
      EXPECT_EQ(pair.code(StateLoad{.handle = handle, .seq = 0}), "other:restore_failed");
    }
  }
}

TEST(CellsBadInput, RecurrentMemoryKeepsItsState) {
  for (const Profile profile : kProfiles) {
    Case memory(recurrent_kind(), RecurrentConfig{.n_seq_max = 2, .n_rs_seq = 1}, profile);
    ASSERT_EQ(memory.code(NewRecurrent()), "ok");
    ASSERT_EQ(memory.code(DecodeStates{.pos = {{0, 1}}, .seqs = {{0}, {0}}, .n_ubatch = 8}), "ok");
    for (const std::int64_t seq : {std::int64_t{-1}, std::int64_t{2}, kHuge}) {
      memory.refuses<ShowMemory>(DecodeStates{.pos = {{0}}, .seqs = {{seq}}, .n_ubatch = 8},
                                 "other:invalid_batch");
      memory.refuses<ShowMemory>(SeqCp{.src = 0, .dst = seq}, "ok");
      memory.refuses<ShowMemory>(SeqKeep{.seq = seq}, "precondition");
      memory.refuses<ShowMemory>(SeqAdd{.seq = seq, .delta = 1}, "precondition");
      memory.refuses<ShowMemory>(SeqPos{.seq = seq}, "ok");
    }
    memory.refuses<ShowMemory>(SeqAdd{.seq = 0, .delta = kMaxPosition}, "precondition");
    memory.refuses<ShowMemory>(SeqDiv{.seq = 0, .d = 0}, "precondition");
    memory.refuses<ShowMemory>(DecodeStates{.pos = {{0}}, .seqs = {{1}}, .n_ubatch = 2},
                               "precondition");
    memory.refuses<ShowMemory>(
        DecodeStates{.pos = {{-1}}, .seqs = {{1}}, .n_ubatch = 8},
        profile == Profile::kOriginal ? "precondition" : "other:invalid_batch");
  }
}

}  // namespace
}  // namespace kvo::cells
