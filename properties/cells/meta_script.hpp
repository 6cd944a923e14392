// properties/cells/meta_script.hpp: the random script of a case of cells.meta.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "reference/cells/meta_operations.hpp"

namespace kvo::cells {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(MetaLabel, std::uint8_t, kOwnerless, kOwnerlessKept,
                              kOwnerlessKeepRefused, kThreeOwners, kEmptiedByItsLastOwner,
                              kEmptiedForTheOneKept, kMovedBelowZero, kDivided, kShiftedTwice,
                              kShiftedCopied, kShiftedCopyRefused, kPastedOverUsed,
                              kEmptyPastedOverUsed, kCopyReread, kEqualPositions, kTokenFound,
                              kResized, kMisused, kOwnerAddedTwice, kNoCellsCopied,
                              kLastUsedEmptied,
                              // Sizes.
                              kSequence255, kMoreThan64Cells, kMoreThan1024Cells,
                              k65CellsOfASequence, k1025CellsUsed, k65OwnersOfACell,
                              kCountedBeyondTwoBytes,
                              // Planned orders.
                              kExtraSeenAgain, kAddedThenDivided, kOwnersOfAReusedCell,
                              kFilledByCopies, kOneOfEqualExtremesRemoved, kManyOwners)

class MetaScript final : public ScriptGenerator<MetaScript, MetaOps, MetaLabel> {
  using S = MetaScript;
  using Label = MetaLabel;

 public:
  MetaScript(const CaseTerms& terms, std::int64_t size);

  std::optional<Op> next() override;

  // Steps.
  Op pos_set();
  Op owner_add();
  Op owner_rm();
  Op owner_keep();
  Op cell_rm();
  Op pos_add();
  Op pos_div();
  Op ext_set();
  Op copy();
  Op paste();
  Op reread();
  Op reset() { return Op::of(ResetTable{}); }
  Op reset_shift() { return Op::of(ResetShift{}); }
  Op resize();
  Op ask_cell();
  Op ask_sequence();
  Op state() { return Op::of(ShowTable{}); }
  Op size() { return Op::of(Size{}); }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {30, "pos_set", &S::pos_set, true},
      {40, "seq_add", &S::owner_add, true},
      {18, "seq_rm", &S::owner_rm},
      {6, "seq_keep", &S::owner_keep},
      {10, "rm", &S::cell_rm},
      {12, "pos_add", &S::pos_add},
      {8, "pos_div", &S::pos_div},
      {12, "ext_set", &S::ext_set},
      {8, "copy", &S::copy},
      {10, "paste", &S::paste},
      {3, "reread", &S::reread},
      {1, "reset", &S::reset},
      {4, "reset_shift", &S::reset_shift},
      {1, "resize", &S::resize},
      {1, "size", &S::size},
      {25, "a question about a cell", &S::ask_cell},
      {25, "a question about a sequence", &S::ask_sequence},
      {12, "state", &S::state, true},
  });

  // Planned orders.
  std::optional<Op> extra_seen_again(std::size_t number);
  std::optional<Op> added_then_divided(std::size_t number);
  std::optional<Op> owners_of_a_reused_cell(std::size_t number);
  std::optional<Op> filled_by_copies(std::size_t number);
  std::optional<Op> one_of_equal_extremes(std::size_t number);
  std::optional<Op> many_owners(std::size_t number);

  static constexpr std::size_t kDoublings = 12;
  static constexpr std::size_t kManyOwners = 70;
  using Plan = ScriptPlan<S, Label>;
  static constexpr std::array kPlans{
      Plan{3, Label::kExtraSeenAgain, 5, &S::extra_seen_again},
      Plan{3, Label::kAddedThenDivided, 5, &S::added_then_divided},
      Plan{3, Label::kOwnersOfAReusedCell, 7, &S::owners_of_a_reused_cell},
      Plan{2, Label::kFilledByCopies, 2 * kDoublings + 4, &S::filled_by_copies},
      Plan{3, Label::kOneOfEqualExtremesRemoved, 8, &S::one_of_equal_extremes},
      Plan{1, Label::kManyOwners, kManyOwners + 3, &S::many_owners}};

  // What became of an operation.
  void saw(const NewTable& op, const Observation& seen);
  void saw(const PosSet& op, const Observation& seen);
  void saw(const OwnerAdd& op, const Observation& seen);
  void saw(const OwnerRm& op, const Observation& seen);
  void saw(const OwnerKeep& op, const Observation& seen);
  void saw(const CellRm& op, const Observation& seen);
  void saw(const PosAdd& op, const Observation& seen);
  void saw(const PosDiv& op, const Observation& seen);
  void saw(const CopyCells& op, const Observation& seen);
  void saw(const PasteCells& op, const Observation& seen);
  void saw(const ResetTable& op, const Observation& seen);
  void saw(const ResetShift& op, const Observation& seen);
  void saw(const Resize& op, const Observation& seen);
  void saw(const RereadCopy& /*op*/, const Observation& seen) {
    if (!seen.error) reach(Label::kCopyReread);
  }
  void saw(const TokenAtOrBefore& /*op*/, const Observation& seen) {
    pay(size_);
    if (!seen.error && seen.as<Value>().value >= 0) reach(Label::kTokenFound);
  }
  void saw(const SeqPosGet& /*op*/, const Observation& seen);
  void saw(const ShowTable& /*op*/, const Observation& seen);
  template <OneOf<ExtSet, Size, IsEmpty, SeqCount, SeqHas, SeqGet, PosGet, GetShift, PosIn,
                  SeqPosMin, SeqPosMax, ExtGet>
                T>
  void saw(const T& /*nothing to follow*/, const Observation& seen) {
    saw_refusal(seen);
    pay(size_);
  }

 private:
  // What is known of a cell.
  struct Known {
    std::int32_t pos = -1;  // -1: empty
    bool shifted = false;
    std::set<std::int64_t> owners = {};
  };

  void saw_refusal(const Observation& seen) {
    if (seen.failed_with(Code::kPrecondition)) reach(Label::kMisused);
  }
  void empty(std::int64_t cell);
  void pay(std::int64_t cells) {
    constexpr std::int64_t kAnyCost = 2'000;
    if (is_large()) spend(static_cast<std::uint64_t>(kAnyCost + cells));
  }

  [[nodiscard]] Known& at(std::int64_t cell) { return cells_[static_cast<std::size_t>(cell)]; }
  /// A cell: now and then one that does not exist.
  std::int64_t any_cell();
  /// Mostly a cell that is used, or one that is empty.
  std::int64_t cell_that_is(bool used);
  std::int64_t used_cell() { return cell_that_is(true); }
  std::int64_t sequence();
  std::int64_t owner_of(std::int64_t cell);
  std::int32_t position();
  [[nodiscard]] bool used(std::int64_t cell) { return at(cell).pos >= 0; }
  /// Cells of a copy or a paste: a list, most of them different.
  std::vector<std::int64_t> cell_list(std::size_t length);

  std::int64_t size_ = 0;
  std::int64_t first_size_ = 0;
  bool begun_ = false;
  std::vector<std::int64_t> sequences_;  // those that most operations name
  std::vector<Known> cells_;
  std::vector<std::vector<Known>> copies_;
  std::int64_t chosen_ = 0;  // cell of the plan that is followed
};

}  // namespace kvo::cells
