// Random cases for cells.meta.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "reference/cells/meta_operations.hpp"
#include "reference/cells/session.hpp"

namespace kvo::cells {

// States worth reaching besides those that are marked in the reference.
BOOST_DEFINE_FIXED_ENUM_CLASS(MetaLabel, std::uint8_t, kThreeOwners, kEmptiedByItsLastOwner,
                              kEmptiedForTheOneKept, kMovedBelowZero, kShiftedCopied,
                              kShiftedCopyRefused, kCopyReread, kEqualPositions, kTokenFound,
                              kResized, kMisused, kNoCellsCopied, kLastUsedEmptied,
                              // Sizes.
                              kSequence255, kMoreThan64Cells, kMoreThan1024Cells,
                              k65CellsOfASequence, k1025CellsUsed, k65OwnersOfACell,
                              kCountedBeyondTwoBytes)

namespace {

class MetaScript final : public ScriptGenerator<MetaScript, MetaOps, MetaLabel> {
  using S = MetaScript;
  using Label = MetaLabel;

 public:
  MetaScript(const CaseTerms& terms, std::int64_t size)
      : ScriptGenerator(terms), first_size_(size) {
    const std::int64_t many = draw().percent(20) ? draw().between(4, 8) : draw().between(1, 4);
    for (std::int64_t i = 0; i < many; ++i) sequences_.push_back(i);
    if (draw().percent(25)) sequences_ = {0, 63, 64, 127, 128, 255};
    if (is_long()) sequences_ = {0, 1};
  }

  std::optional<Op> choose() override {
    if (table_ == nullptr && !has_plan()) return Op::of(NewTable{});
    return ScriptGenerator::choose();
  }

  // Steps.
  Op pos_set() {
    const std::int64_t cell = cell_that_is(false);
    // In a long life, which is mostly this step, positions grow.
    if (is_long() && used(cell)) return Op::of(PosAdd{cell, 1});
    if (draw().percent(70)) plan(OwnerAdd{cell, sequence()});
    return Op::of(PosSet{cell, position()});
  }
  Op owner_add() {
    const std::int64_t cell = used_cell();
    return Op::of(OwnerAdd{
        cell, draw().percent(1) ? draw().one_of<std::int64_t>({-1, kSequences}) : sequence()});
  }
  Op owner_rm() {
    const std::int64_t cell = used_cell();
    return Op::of(OwnerRm{cell, owner_of(cell)});
  }
  Op owner_keep() {
    const std::int64_t cell = draw().percent(85) ? used_cell() : any_cell();
    return Op::of(OwnerKeep{cell, draw().percent(60) ? owner_of(cell) : sequence()});
  }
  Op cell_rm() {
    // Mostly the last one that is used, whose end must be found anew.
    if (draw().percent(30))
      for (std::int64_t cell = cells(); cell-- > 0;)
        if (used(cell)) return Op::of(CellRm{cell});
    return Op::of(CellRm{used_cell()});
  }
  Op pos_add() {
    return Op::of(PosAdd{used_cell(), static_cast<std::int32_t>(draw().between(-4, 6))});
  }
  Op pos_div() {
    const std::int64_t d = draw().percent(2) ? 0 : draw().between(1, 4);
    return Op::of(PosDiv{used_cell(), static_cast<std::int32_t>(d)});
  }
  Op ext_set() {
    const auto number = [this] { return static_cast<std::int32_t>(draw().between(0, 9)); };
    return Op::of(ExtSet{draw().percent(80) ? used_cell() : any_cell(), number(), number(),
                         draw().percent(80) ? number() : -1});
  }
  Op copy() {
    if (draw().percent(50)) {
      const std::int64_t begin = draw().between(0, cells() - 1);
      const std::int64_t most = std::min<std::int64_t>(cells() - begin, is_large() ? cells() : 4);
      const std::int64_t n = draw().percent(2) ? cells() - begin + 1 : draw().between(0, most);
      return Op::of(CopyCells{begin, n, std::nullopt});
    }
    const auto length =
        static_cast<std::size_t>(draw().between(1, std::min<std::int64_t>(cells(), 4)));
    return Op::of(CopyCells{std::nullopt, std::nullopt, cell_list(length)});
  }
  Op paste() {
    if (copies_.empty()) return copy();
    const std::size_t handle = draw().below(copies_.size());
    const auto number = static_cast<std::int64_t>(handle);
    const std::size_t length = copies_[handle];
    if (draw().percent(50)) {
      const std::int64_t last = cells() - static_cast<std::int64_t>(length);
      return Op::of(PasteCells{number, draw().between(0, last), std::nullopt});
    }
    return Op::of(PasteCells{number, std::nullopt, cell_list(draw().percent(97) ? length : 1)});
  }
  Op reread() {
    if (copies_.empty()) return copy();
    return Op::of(RereadCopy{static_cast<std::int64_t>(draw().below(copies_.size()))});
  }
  Op reset() { return Op::of(ResetTable{}); }
  Op reset_shift() { return Op::of(ResetShift{}); }
  Op resize() {
    return Op::of(Resize{draw().percent(5)
                             ? draw().between(-1, 0)
                             : draw().size(1, std::max<std::int64_t>(first_size_, 2))});
  }
  Op ask_cell() {
    const std::int64_t cell = draw().percent(75) ? used_cell() : any_cell();
    switch (draw().below(8)) {
      case 0:
        return Op::of(IsEmpty{cell});
      case 1:
        return Op::of(SeqCount{cell});
      case 2:
        return Op::of(SeqHas{cell, draw().percent(50) ? owner_of(cell) : sequence()});
      case 3:
        return Op::of(SeqGet{cell});
      case 4:
        return Op::of(PosGet{cell});
      case 5:
        return Op::of(GetShift{cell});
      case 6:
        return Op::of(PosIn{cell, static_cast<std::int32_t>(draw().between(-2, 4)),
                            static_cast<std::int32_t>(draw().between(-1, 8))});
      default:
        return Op::of(ExtGet{cell});
    }
  }
  Op ask_sequence() {
    const std::int64_t of =
        draw().percent(1) ? draw().one_of<std::int64_t>({-1, kSequences}) : sequence();
    switch (draw().below(4)) {
      case 0:
        return Op::of(SeqPosMin{of});
      case 1:
        return Op::of(SeqPosMax{of});
      case 2:
        return Op::of(SeqPosGet{of});
      default:
        return Op::of(TokenAtOrBefore{of, static_cast<std::int32_t>(draw().between(-1, 12))});
    }
  }
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

  static const CacheKind& order_kind() { return meta_kind(); }
  static std::span<const OrderWord> order_words() {
    static constexpr auto kWords = std::to_array<OrderWord>({
        order_word<&S::choose_used>("choose_used"),
        order_word<&S::choose_empty>("choose_empty"),
        order_word<&S::empty_by_owners>("empty_by_owners"),
        order_word<&S::chosen_>("chosen"),
        order_word<&S::used>("used"),
        order_word<&S::pos_of>("pos_of"),
        order_word<&S::is_owned>("owned"),
        order_word<&S::position>("position"),
        order_word<&S::sequence>("any_sequence"),
        order_word<&S::first_sequence>("first_sequence"),
        order_word<&S::last_sequence>("last_sequence"),
        order_word<&S::cells>("cells"),
        order_word<&S::copies>("copies"),
    });
    return kWords;
  }

  // What became of an operation.
  void observe(const NewTable& /*op*/, const Observation& /*seen*/) {
    table_ = reference<ShowsCache<CellTable>>().shown_cache();
    copies_.clear();
    if (cells() > 64) reach(Label::kMoreThan64Cells);
    if (cells() > 1024) reach(Label::kMoreThan1024Cells);
  }
  void observe(const OwnerAdd& op, const Observation& seen) {
    if (failed(seen)) return;
    const std::int64_t owners = *table_->seq_count(op.cell);
    if (owners >= 3) reach(Label::kThreeOwners);
    if (owners > 64) reach(Label::k65OwnersOfACell);
    if (op.seq == kSequences - 1) reach(Label::kSequence255);
  }
  void observe(const OwnerRm& op, const Observation& seen) {
    emptied(op.cell, seen, Label::kEmptiedByItsLastOwner);
  }
  void observe(const OwnerKeep& op, const Observation& seen) {
    emptied(op.cell, seen, Label::kEmptiedForTheOneKept);
  }
  void observe(const PosAdd& op, const Observation& seen) {
    emptied(op.cell, seen, Label::kMovedBelowZero);
  }
  void observe(const CellRm& op, const Observation& seen) {
    if (!failed(seen)) reach_end(op.cell);
  }
  void observe(const CopyCells& op, const Observation& seen) {
    std::vector<std::int64_t> copied = op.cells.value_or(std::vector<std::int64_t>());
    for (std::int64_t i = 0; i < op.n.value_or(0); ++i) copied.push_back(*op.begin + i);
    pay(8 * std::ssize(copied));
    const auto is_shifted = [this](std::int64_t cell) {
      const auto shift = table_->get_shift(cell);
      return shift && *shift != 0;
    };
    if (std::ranges::any_of(copied, is_shifted))
      reach(seen.error ? Label::kShiftedCopyRefused : Label::kShiftedCopied);
    if (failed(seen)) return;
    if (copied.empty()) reach(Label::kNoCellsCopied);
    copies_.push_back(copied.size());
  }
  void observe(const Resize& /*op*/, const Observation& seen) {
    if (!failed(seen)) reach(Label::kResized);
  }
  void observe(const RereadCopy& /*op*/, const Observation& seen) {
    if (!seen.error) reach(Label::kCopyReread);
  }
  void observe(const TokenAtOrBefore& /*op*/, const Observation& seen) {
    if (!failed(seen) && seen.as<Value>().value >= 0) reach(Label::kTokenFound);
  }
  void observe(const SeqPosGet& /*op*/, const Observation& seen) {
    pay(3 * cells());
    if (failed(seen)) return;
    const auto& entries = seen.as<SeqPosGet::Returns>().entries;
    const auto same = [](const auto& a, const auto& b) { return a.pos == b.pos; };
    if (std::ranges::adjacent_find(entries, same) != entries.end()) reach(Label::kEqualPositions);
    if (entries.size() > 64) reach(Label::k65CellsOfASequence);
  }
  void observe(const ShowTable& /*op*/, const Observation& seen) {
    constexpr std::int64_t kSequencesLookedAt = 64;  // 256, at a glance
    pay(kSequencesLookedAt * cells());
    if (seen.as<ShowTable::Returns>().table.used > 1024) reach(Label::k1025CellsUsed);
  }
  template <OneOf<PosSet, PosDiv, PasteCells, ResetTable, ResetShift, ExtSet, Size, IsEmpty,
                  SeqCount, SeqHas, SeqGet, PosGet, GetShift, PosIn, SeqPosMin, SeqPosMax, ExtGet>
                T>
  void observe(const T& /*op*/, const Observation& seen) {
    (void)failed(seen);
  }

 private:
  /// Whether an operation failed, after it was paid for.
  bool failed(const Observation& seen) {
    pay(cells());
    if (seen.failed_with(Code::kPrecondition)) reach(Label::kMisused);
    return seen.error.has_value();
  }
  /// Follows an operation that may have emptied its cell.
  void emptied(std::int64_t cell, const Observation& seen, Label label) {
    if (failed(seen) || !seen.as<Emptied>().emptied) return;
    reach(label);
    reach_end(cell);
  }
  void reach_end(std::int64_t cell) {
    bool later = false;
    for (std::int64_t i = cell + 1; i < cells() && !later; ++i) later = used(i);
    if (!later) reach(Label::kLastUsedEmptied);
  }
  void pay(std::int64_t cells) {
    constexpr std::int64_t kAnyCost = 2'000;
    if (is_large()) spend(static_cast<std::uint64_t>(kAnyCost + cells));
  }

  [[nodiscard]] std::int64_t cells() const { return table_->size(); }
  [[nodiscard]] bool used(std::int64_t cell) const {
    const auto empty = table_->is_empty(cell);
    return empty && !*empty;
  }
  /// Ascending.
  [[nodiscard]] std::vector<std::int64_t> owners(std::int64_t cell) const {
    std::vector<std::int64_t> owners;
    for (std::int64_t seq = 0; used(cell) && std::ssize(owners) < *table_->seq_count(cell); ++seq)
      if (*table_->seq_has(cell, seq)) owners.push_back(seq);
    return owners;
  }
  /// A cell: now and then one that does not exist.
  std::int64_t any_cell() {
    if (draw().percent(2)) return draw().one_of<std::int64_t>({-1, cells()});
    // Ends of words and tables, where there are many cells.
    if (cells() > 64 && draw().percent(50)) return std::min(cells() - 1, draw().edge(4, cells()));
    return draw().between(0, cells() - 1);
  }
  /// Mostly a cell that is used, or one that is empty.
  std::int64_t cell_that_is(bool used_one) {
    if (draw().percent(3)) return any_cell();
    const std::int64_t from = any_cell();
    for (std::int64_t i = 0; i < cells() && from >= 0; ++i)
      if (const std::int64_t cell = (from + i) % cells(); used(cell) == used_one) return cell;
    return std::clamp<std::int64_t>(from, 0, cells() - 1);
  }
  std::int64_t used_cell() { return cell_that_is(true); }
  std::int64_t sequence() { return sequences_[draw().below(sequences_.size())]; }
  std::int64_t owner_of(std::int64_t cell) {
    const std::vector<std::int64_t> its = owners(cell);
    return its.empty() || draw().percent(3) ? sequence() : its[draw().below(its.size())];
  }
  std::int32_t position() {
    if (draw().percent(4)) return 1'000'000'000;
    constexpr std::int32_t kFewPositions = 9;
    return static_cast<std::int32_t>(draw().between(0, kFewPositions));
  }
  /// Cells of a copy or a paste: a list, most of them different.
  std::vector<std::int64_t> cell_list(std::size_t length) {
    std::vector<std::int64_t> list;
    const std::int64_t from = draw().between(0, cells() - 1);
    const bool backwards = draw().percent(30);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(length); ++i)
      list.push_back((from + (backwards ? cells() - 1 - i % cells() : i)) % cells());
    return list;
  }

  // ---- For orders ----
  bool choose_used() {
    chosen_ = used_cell();
    return used(chosen_);
  }
  bool choose_empty() {
    chosen_ = cell_that_is(false);
    return chosen_ >= 0 && chosen_ < cells() && !used(chosen_);
  }
  std::int64_t pos_of(std::int64_t cell) { return used(cell) ? *table_->pos_get(cell) : 0; }
  bool is_owned(std::int64_t cell, std::int64_t seq) {
    return used(cell) && *table_->seq_has(cell, seq);
  }
  Op empty_by_owners(std::int64_t cell) {
    const std::vector<std::int64_t> its = owners(cell);
    if (its.size() == 1) return Op::of(OwnerRm{cell, its.front()});
    return Op::of(OwnerKeep{cell, is_owned(cell, 200) ? 201 : 200});
  }
  std::int64_t first_sequence() { return sequences_.front(); }
  std::int64_t last_sequence() { return sequences_.back(); }
  [[nodiscard]] std::int64_t copies() const { return std::ssize(copies_); }

  std::int64_t first_size_;
  CellTable* table_ = nullptr;           // of the reference
  std::vector<std::int64_t> sequences_;  // those that most operations name
  std::vector<std::size_t> copies_;      // cells of each
  std::int64_t chosen_ = 0;              // cell of the order that is followed
};

GeneratedCase make_meta(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  std::int64_t size = draw.size(1, 12);
  if (terms.scale == Scale::kLarge) size = draw.edge(16, 4'097);
  if (terms.scale == Scale::kLong) size = draw.between(1, 3);
  MetaConfig config{.size = size};
  if (draw.percent(25)) config.build = draw.percent(70) ? Build::kDebug : Build::kRelease;
  return {.setup = {.profile = terms.profile, .config = Record::of(config)},
          .ops = std::make_unique<MetaScript>(terms, size)};
}

}  // namespace

Generator meta_generator() {
  return with_orders<MetaScript>(
      script_generator<MetaLabel>(meta_kind(), make_meta, {MetaLabel::kShiftedCopied}, {}));
}

}  // namespace kvo::cells
