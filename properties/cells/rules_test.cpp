// Single rules of cells.meta, and what every kind refuses, in both profiles.
#include <limits>

#include "properties/cells/rules_case.hpp"

namespace kvo::cells {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 31;
constexpr std::int32_t kLeastInt32 = std::numeric_limits<std::int32_t>::min();

template <class Check>
void in_each_table(Check&& check, Build build = Build::kRelease, std::int64_t size = 4) {
  in_each<NewTable>(meta_kind(), Record::of(MetaConfig{.build = build, .size = size}),
                    std::forward<Check>(check));
}

std::string cells_of(RulesCase& cache) {
  return text_of(cache.values(ShowTable{}).cells);
}

// A used cell with owners.
void use(RulesCase& cache, std::int64_t cell, std::int32_t pos, const Numbers& seqs) {
  EXPECT_EQ(cache.code(PosSet{cell, pos}), "ok");
  for (const std::int64_t seq : seqs) EXPECT_EQ(cache.code(OwnerAdd{cell, seq}), "ok");
}

TEST(CellsMetaRules, TheLastOwnerEmptiesItsCellLC3LC12LC13) {
  in_each_table([](RulesCase& cache, bool /*original*/) {
    use(cache, 1, 5, {0, 255});
    use(cache, 3, 7, {2});
    EXPECT_FALSE(cache.values(OwnerRm{1, 0}).emptied);
    EXPECT_FALSE(cache.values(OwnerKeep{1, 255}).emptied);
    EXPECT_TRUE(cache.values(OwnerKeep{3, 255}).emptied);
    const auto shown = cache.values(ShowTable{});
    EXPECT_EQ(text_of(shown.cells), "1:5{255}");
    EXPECT_EQ(Numbers({shown.used, shown.used_min, shown.used_end}), Numbers({1, 1, 2}));
    EXPECT_TRUE(cache.values(OwnerRm{1, 255}).emptied);
    EXPECT_EQ(cache.values(ShowTable{}).used_end, 0);
    EXPECT_EQ(cache.values(SeqPosMax{255}).value, -1);
  });
}

TEST(CellsMetaRules, AUsedCellWithoutOwnersIsNotKeptForAnybodyLC13) {
  for (const Build build : {Build::kRelease, Build::kDebug})
    in_each_table(
        [&](RulesCase& cache, bool original) {
          use(cache, 0, 5, {});
          const bool kept = original && build == Build::kRelease;
          EXPECT_EQ(cache.code(OwnerKeep{0, 1}), kept ? "ok" : "precondition");
          EXPECT_EQ(cells_of(cache), "0:5{}");
          EXPECT_FALSE(cache.values(OwnerKeep{1, 1}).emptied) << "an empty one";
        },
        build);
}

TEST(CellsMetaRules, ExtraDataGoWithThePositionLC15LC18) {
  in_each_table([](RulesCase& cache, bool original) {
    use(cache, 0, 2, {0, 1});
    EXPECT_EQ(cache.code(ExtSet{0, 4, 5, 6}), "ok");
    EXPECT_TRUE(cache.values(PosAdd{0, -3}).emptied);
    EXPECT_EQ(cache.code(ExtGet{0}), "precondition");
    use(cache, 0, 9, {0});
    EXPECT_EQ(cache.values(ExtGet{0}), original ? (Extra{4, 5, 6}) : Extra());
    EXPECT_TRUE(cache.values(ShowTable{}).has_shift);
    EXPECT_EQ(cells_of(cache), "0:9{0}") << "the shift went";
    EXPECT_EQ(cache.code(CellRm{0}), "ok");
    use(cache, 0, 9, {0});
    EXPECT_EQ(cache.values(ExtGet{0}), Extra());
  });
}

TEST(CellsMetaRules, ADivisionShiftsByWhatPositionsFallLC16LC17) {
  in_each_table([](RulesCase& cache, bool original) {
    use(cache, 0, 4, {0});
    EXPECT_FALSE(cache.values(PosAdd{0, 3}).emptied);
    EXPECT_EQ(cache.code(PosDiv{0, 2}), "ok");
    EXPECT_EQ(cells_of(cache), original ? "0:3+7{0}" : "0:3-1{0}");
    EXPECT_EQ(cache.code(PosDiv{0, 0}), "precondition");
    EXPECT_EQ(cache.code(ResetShift{}), "ok");
    EXPECT_EQ(cells_of(cache), "0:3{0}");
    EXPECT_FALSE(cache.values(ShowTable{}).has_shift);
  });
}

TEST(CellsMetaRules, ExtremesCountCellsNotPositionsLC4LC6LC19) {
  in_each_table([](RulesCase& cache, bool /*original*/) {
    use(cache, 3, 6, {0});
    use(cache, 1, 6, {0});
    use(cache, 2, 2, {0});
    EXPECT_EQ(cache.code(ExtSet{1, 0, 0, 10}), "ok");
    EXPECT_EQ(cache.code(ExtSet{3, 0, 0, 30}), "ok");
    EXPECT_EQ(cache.values(SeqPosGet{0}).entries,
              (std::vector<PositionEntry>{{2, 2}, {6, 1}, {6, 3}}));
    EXPECT_EQ(cache.values(TokenAtOrBefore{0, 100}).value, 30);
    EXPECT_EQ(cache.values(TokenAtOrBefore{0, 5}).value, -1) << "its token is -1";
    EXPECT_EQ(cache.code(CellRm{3}), "ok");
    EXPECT_EQ(cache.values(SeqPosMax{0}).value, 6);
    EXPECT_EQ(cache.values(TokenAtOrBefore{0, 6}).value, 10);
    EXPECT_EQ(cache.values(TokenAtOrBefore{0, 1}).value, -1);
  });
}

TEST(CellsMetaRules, AnEmptyCellIsInNoRangeLC20) {
  in_each_table([](RulesCase& cache, bool original) {
    EXPECT_EQ(cache.values(PosIn{0, -2, 0}).value, original);
    EXPECT_EQ(cache.values(PosIn{0, 0, kMaxPosition}).value, false);
    use(cache, 0, 3, {});
    EXPECT_TRUE(cache.values(PosIn{0, 3, 4}).value);
    EXPECT_FALSE(cache.values(PosIn{0, 0, 3}).value);
    EXPECT_FALSE(cache.values(PosIn{0, kMaxPosition, kLeastInt32}).value);
  });
}

TEST(CellsMetaRules, ACopyIsATableOfItsOwnLC21LC22) {
  in_each_table([](RulesCase& cache, bool original) {
    use(cache, 0, 3, {0});
    use(cache, 2, 8, {1, 2});
    EXPECT_EQ(cache.code(ExtSet{2, 1, 1, 1}), "ok");
    EXPECT_EQ(cache.values(CopyCells{std::nullopt, std::nullopt, Numbers{2, 1}}).handle, 0);
    EXPECT_EQ(cache.code(CellRm{2}), "ok");
    const ShownTable copy = cache.values(RereadCopy{0});
    EXPECT_EQ(text_of(copy.cells), "0:8{1,2}");
    EXPECT_EQ(copy.used, original ? 0 : 1);
    EXPECT_EQ(cache.code(PasteCells{0, std::nullopt, Numbers{3, 0}}), "ok");
    EXPECT_EQ(cells_of(cache), "3:8{1,2}") << "cell 0 was emptied";
    EXPECT_EQ(cache.values(ExtGet{3}), (Extra{1, 1, 1}));
    EXPECT_EQ(cache.values(SeqPosMax{0}).value, -1);
    EXPECT_EQ(cache.code(PasteCells{0, std::nullopt, Numbers{1}}), "precondition") << "too few";
    EXPECT_EQ(cache.code(PasteCells{0, 3, std::nullopt}), "precondition") << "beyond the end";
    EXPECT_EQ(cache.code(PasteCells{1, 0, std::nullopt}), "precondition") << "no such copy";
    EXPECT_EQ(cells_of(cache), "3:8{1,2}");
  });
}

TEST(CellsMetaRules, ShiftsAreNotCopiedLC23) {
  for (const Build build : {Build::kRelease, Build::kDebug})
    in_each_table(
        [&](RulesCase& cache, bool original) {
          const bool passes = original && build == Build::kRelease;
          use(cache, 0, 3, {0});
          EXPECT_FALSE(cache.values(PosAdd{0, 2}).emptied);
          EXPECT_EQ(cache.code(CopyCells{0, 1, std::nullopt}), passes ? "ok" : "precondition");
          EXPECT_EQ(cache.code(CopyCells{1, 1, std::nullopt}), "ok");
          const std::int64_t handle = passes ? 1 : 0;
          EXPECT_EQ(cache.code(PasteCells{handle, 0, std::nullopt}),
                    passes ? "ok" : "precondition");
          EXPECT_EQ(cells_of(cache), passes ? "" : "0:5+2{0}");
          if (!passes) return;
          use(cache, 0, 7, {});
          EXPECT_EQ(cells_of(cache), "0:7+2{}") << "the target's shift stays";
        },
        build);
}

TEST(CellsMetaRules, MisuseChangesNothingLC24) {
  in_each_table([](RulesCase& cache, bool original) {
    use(cache, 1, 5, {0, 3});
    const auto refuses = [&](auto op) { EXPECT_EQ(cache.code(op), "precondition"); };
    refuses(PosSet{1, 6});
    refuses(PosSet{0, -1});
    for (const std::int64_t cell : {std::int64_t{-1}, std::int64_t{4}, kHuge, -kHuge}) {
      refuses(PosSet{cell, 1});
      refuses(OwnerAdd{cell, 1});
      refuses(CellRm{cell});
      refuses(ExtSet{cell, 1, 1, 1});
      refuses(IsEmpty{cell});
      refuses(SeqHas{cell, 0});
      refuses(CopyCells{cell, 1, std::nullopt});
    }
    for (const std::int64_t seq : {std::int64_t{-1}, std::int64_t{kSequences}, kHuge}) {
      refuses(OwnerAdd{1, seq});
      refuses(OwnerRm{1, seq});
      refuses(SeqPosMin{seq});
      refuses(SeqPosGet{seq});
    }
    refuses(OwnerAdd{0, 1});
    refuses(OwnerRm{1, 1});
    refuses(CellRm{0});
    refuses(PosGet{0});
    refuses(SeqGet{1});
    refuses(PosAdd{1, kMaxPosition});
    refuses(CopyCells{2, 3, std::nullopt});
    refuses(CopyCells{0, kHuge, std::nullopt});
    refuses(CopyCells{0, -1, std::nullopt});
    EXPECT_EQ(cache.code(OwnerAdd{1, 3}), original ? "ok" : "precondition") << "there already";
    EXPECT_EQ(cells_of(cache), "1:5{0,3}");
  });
}

TEST(CellsRules, SizesThatCannotBeAreRefused) {
  for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
    for (const std::int64_t size :
         {std::int64_t{0}, std::int64_t{-1}, kMostCells + 1, kHuge, kHuge * kHuge}) {
      SCOPED_TRACE(size);
      RulesCase meta(contracts().reference_of(meta_kind()), profile,
                     Record::of(MetaConfig{.size = size}));
      EXPECT_EQ(meta.code(NewTable{}), "out_of_range");
      EXPECT_EQ(meta.code(ShowTable{}), "precondition");
      RulesCase kv(contracts().reference_of(kv_kind()), profile,
                   Record::of(KvConfig{.size = size}));
      EXPECT_EQ(kv.code(New{}), "out_of_range");
      EXPECT_EQ(kv.code(ShowState{}), "precondition");
      EXPECT_EQ(kv.code(tokens(0, 1)), "precondition");
      RulesCase pair(
          contracts().reference_of(iswa_kind()), profile,
          Record::of(IswaConfig{.size = 8, .size_swa = size, .swa_type = WindowType::kNone}));
      EXPECT_EQ(pair.code(New{}), "out_of_range");
      RulesCase states(contracts().reference_of(recurrent_kind()), profile,
                       Record::of(RecurrentConfig{.n_seq_max = size}));
      EXPECT_EQ(states.code(NewRecurrent{}), "out_of_range");
      EXPECT_EQ(states.code(ShowMemory{}), "precondition");
    }
    const auto code = [&](const KvConfig& config) {
      return RulesCase(contracts().reference_of(kv_kind()), profile, Record::of(config))
          .code(New{});
    };
    EXPECT_EQ(code({.size = 8, .n_seq_max = 0}), "out_of_range");
    EXPECT_EQ(code({.size = 8, .n_seq_max = kSequences + 1}), "out_of_range");
    EXPECT_EQ(code({.size = kMostCells, .n_seq_max = 2, .unified = false}), "out_of_range");
    EXPECT_EQ(code({.size = 8, .n_pad = 3}), "out_of_range");
    EXPECT_EQ(code({.size = 8, .n_pad = 0}), "out_of_range");
    EXPECT_EQ(code({.size = 8, .n_swa = 0, .swa_type = WindowType::kStandard}), "out_of_range");
    EXPECT_EQ(code({.size = 1, .n_seq_max = kSequences, .unified = false}), "ok");
  }
}

TEST(CellsRules, ATableMayHaveManyCells) {
  in_each_table(
      [](RulesCase& cache, bool /*original*/) {
        use(cache, kMostCells - 1, 5, {255});
        EXPECT_EQ(cache.values(ShowTable{}).used_end, kMostCells);
        EXPECT_EQ(cache.code(Resize{kHuge}), "out_of_range");
        EXPECT_EQ(cache.code(Resize{0}), "out_of_range");
        EXPECT_EQ(cache.values(Size{}).value, kMostCells);
        EXPECT_EQ(cache.values(SeqPosMax{255}).value, 5);
        EXPECT_EQ(cache.code(Resize{1}), "ok");
        EXPECT_EQ(cells_of(cache), "");
      },
      Build::kRelease, kMostCells);
}

}  // namespace
}  // namespace kvo::cells
