// properties/cells/kv_script.hpp: the random script of a case of cells.kv or cells.iswa.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/script_generator.hpp"
#include "reference/cells/operations.hpp"

namespace kvo::cells {

/// Config and habits of one case.
struct KvCase {
  Record config;
  KvOptions options;  ///< what the config asks for
  bool real = false;
  std::vector<std::int64_t> sequences = {};  ///< those that most operations name
  std::int32_t first_position = 0;           ///< where new sequences begin, if not at 0

  [[nodiscard]] bool has_window() const { return options.window.type != WindowType::kNone; }
  /// Cells of a stream of the half with the window, or of the only one.
  [[nodiscard]] std::int64_t narrow() const { return options.size_window.value_or(options.size); }
  /// Cells of all streams and halves.
  [[nodiscard]] std::int64_t all_cells() const {
    return options.streams() * (options.size + options.size_window.value_or(0));
  }
};

/// Draws a case of `cells.kv`, or with `pair` of `cells.iswa`.
[[nodiscard]] KvCase draw_case(Draw& draw, bool pair, Scale scale);

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(
    KvState, std::uint8_t, kFull, kFullAndRecovered, kInvalidBatch, kSeveralUbatches,
    kSearchWrapped, kUsedCellTaken, kTokenOfSeveral, kCellsShared, kStreamCopied, kStandardWindow,
    kChunkedWindow, kSymmetricWindow, kNotCausal, kNotCausalInPart, kDistanceBias, kMovedBelowZero,
    kMovedBeforeADecode, kRemovedFromAny, kOneKept, kRestored, kRestoredElsewhere, kRestoreFailed,
    kWholeRestored, kAlteredStateLoaded, kRowsKeptByClear, kFound, kFoundAdjacent,
    kNotFoundAdjacent, kMisused,
    // In one profile or kind.
    kAssertion, kCopiedBeyondMost, kUbatchTooLarge, kRepeatedPosition, kOverlappingSets,
    kPurgedByARefusedBatch, kPartCopyRefused, kSharedMoveRefused, kInterrupted, kSearchedTheWindow,
    kWindowHalfRestored, kHalvesOfDifferentSizesMove, kHalvesOfDifferentSizesStay)

// Sizes, and planned orders.
BOOST_DEFINE_FIXED_ENUM_CLASS(KvLabel, std::uint8_t, kMoreThan64Cells, kMoreThan1024Cells,
                              kMaskBeyond256Cells, kMaskOfAPart, k65Tokens, kNineSequencesInABatch,
                              k65Sequences, kPositionsBeyondABillion, kCountedBeyondTwoBytes,
                              kLoadedUnderAPendingCopy, kRefusedHalfWay, kPurgedThenRefused,
                              kHeadAfterFull, kShiftedThenSaved, kDividedThenTurned,
                              kContextShifted, kContextOfSharedCellsShifted, kSavedClearedLoaded,
                              kLoadWithoutRoom, kTokensOfSeveralParted, kEqualExtremes,
                              kCopyOfACopy, kClearedUnderAPendingCopy)

class KvScript final : public ScriptGenerator<KvScript, Ops, KvLabel> {
  using S = KvScript;
  using Label = KvLabel;

 public:
  KvScript(const CaseTerms& terms, KvCase drawn);

  std::optional<Op> next() override {
    if (!begun_ && !has_plan()) return Op::of(New{});
    return ScriptGenerator::next();
  }

  // Steps.
  Op one_token();
  Op decode();
  Op find_slot();
  Op seq_rm();
  Op seq_cp();
  Op seq_keep() { return Op::of(SeqKeep{stray() ? beyond() : sequence()}); }
  Op seq_add();
  Op seq_div();
  Op seq_pos() { return Op::of(SeqPos{stray() ? beyond() : sequence()}); }
  Op can_shift() { return Op::of(CanShift{}); }
  Op clear() { return Op::of(Clear{draw().percent(50)}); }
  Op update() { return Op::of(UpdatePending{}); }
  Op save();
  Op load();
  Op edit();
  Op rows() { return Op::of(ShowRows{}); }
  Op state() { return Op::of(ShowState{}); }
  Op make() { return Op::of(New{}); }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {30, "a token", &S::one_token, true},
      {45, "decode", &S::decode, true},
      {5, "find_slot", &S::find_slot},
      {14, "seq_rm", &S::seq_rm, true},
      {12, "seq_cp", &S::seq_cp},
      {4, "seq_keep", &S::seq_keep},
      {9, "seq_add", &S::seq_add},
      {5, "seq_div", &S::seq_div},
      {3, "seq_pos", &S::seq_pos},
      {1, "can_shift", &S::can_shift},
      {2, "clear", &S::clear},
      {5, "update", &S::update},
      {9, "state_save", &S::save},
      {10, "state_load", &S::load},
      {1, "state_edit", &S::edit},
      {8, "rows", &S::rows, true},
      {8, "state", &S::state, true},
      {1, "new", &S::make},
  });

  // Planned orders.
  std::optional<Op> loaded_under_a_pending_copy(std::size_t number);
  std::optional<Op> refused_half_way(std::size_t number);
  std::optional<Op> purged_then_refused(std::size_t number);
  std::optional<Op> head_after_full(std::size_t number);
  std::optional<Op> shifted_then_saved(std::size_t number);
  std::optional<Op> divided_then_turned(std::size_t number);
  std::optional<Op> context_shifted(std::size_t number);
  std::optional<Op> shared_context_shifted(std::size_t number);
  std::optional<Op> saved_cleared_loaded(std::size_t number);
  std::optional<Op> load_without_room(std::size_t number);
  std::optional<Op> tokens_of_several_parted(std::size_t number);
  std::optional<Op> equal_extremes(std::size_t number);
  std::optional<Op> copy_of_a_copy(std::size_t number);
  std::optional<Op> cleared_under_a_pending_copy(std::size_t number);

  using Plan = ScriptPlan<S, Label>;
  static constexpr std::array kPlans{
      Plan{3, Label::kLoadedUnderAPendingCopy, 8, &S::loaded_under_a_pending_copy},
      Plan{3, Label::kRefusedHalfWay, 6, &S::refused_half_way},
      Plan{3, Label::kPurgedThenRefused, 8, &S::purged_then_refused},
      Plan{2, Label::kHeadAfterFull, 5, &S::head_after_full},
      Plan{2, Label::kShiftedThenSaved, 7, &S::shifted_then_saved},
      Plan{2, Label::kDividedThenTurned, 7, &S::divided_then_turned},
      Plan{2, Label::kContextShifted, 7, &S::context_shifted},
      Plan{2, Label::kContextOfSharedCellsShifted, 8, &S::shared_context_shifted},
      Plan{2, Label::kSavedClearedLoaded, 6, &S::saved_cleared_loaded},
      Plan{3, Label::kLoadWithoutRoom, 9, &S::load_without_room},
      Plan{2, Label::kTokensOfSeveralParted, 7, &S::tokens_of_several_parted},
      Plan{2, Label::kEqualExtremes, 8, &S::equal_extremes},
      Plan{2, Label::kCopyOfACopy, 7, &S::copy_of_a_copy},
      Plan{2, Label::kClearedUnderAPendingCopy, 6, &S::cleared_under_a_pending_copy}};

  // What became of an operation.
  void saw(const New& op, const Observation& seen);
  void saw(const Decode& op, const Observation& seen);
  void saw(const FindSlot& op, const Observation& seen);
  void saw(const SeqRm& op, const Observation& seen);
  void saw(const SeqCp& op, const Observation& seen);
  void saw(const SeqKeep& op, const Observation& seen);
  void saw(const SeqAdd& op, const Observation& seen);
  void saw(const SeqDiv& op, const Observation& seen);
  void saw(const SeqPos& op, const Observation& seen);
  void saw(const Clear& op, const Observation& seen);
  void saw(const UpdatePending& op, const Observation& seen);
  void saw(const StateSave& op, const Observation& seen);
  void saw(const StateLoad& op, const Observation& seen);
  void saw(const StateEdit& op, const Observation& seen);
  void saw(const ShowRows& op, const Observation& seen);
  void saw(const ShowState& op, const Observation& seen);
  void saw(const CanShift& /*op*/, const Observation& /*seen*/) {}

 private:
  struct Saved {
    std::int64_t seq = 0;
    bool partial = false;
    bool altered = false;
  };
  // What the last `state` showed.
  struct Seen {
    bool exact = false;  ///< nothing has changed since
    std::map<std::int64_t, Extremes> extremes = {};
    std::vector<bool> used = {};  ///< [cell] of any stream, in the narrow half
    std::size_t in_all = 0;       ///< cells of all tables
    bool shared = false;          ///< a cell has several owners
  };

  // Something may have changed; mostly a look at it follows.
  void changed(std::int64_t cost);
  void pay(std::int64_t cells) {
    constexpr std::int64_t kAnyCost = 2'000;
    if (is_large()) spend(static_cast<std::uint64_t>(kAnyCost + cells));
  }
  void saw_refusal(const Observation& seen) {
    if (seen.failed_with(Code::kPrecondition)) reach(KvState::kMisused);
  }
  void saw_full();
  void saw_batch(const Decode& op);
  void saw_ubatch(const ShownUbatch& ubatch, const Decode& op);
  void saw_window();
  void saw_move_refused(const Observation& seen);
  [[nodiscard]] bool moves_at_all() const {
    return !drawn_.options.size_window || *drawn_.options.size_window == drawn_.options.size;
  }

  // ---- Drawing ----
  [[nodiscard]] const KvOptions& options() const { return drawn_.options; }
  /// A sequence of the case.
  std::int64_t sequence();
  /// A sequence that calls may not name.
  std::int64_t beyond() {
    return draw().percent(50) ? -2 : (options().unified ? kSequences : options().n_seq_max);
  }
  /// Whether an argument is to be one that is refused.
  [[nodiscard]] bool stray() { return draw().percent(1); }
  [[nodiscard]] Extremes extremes(std::int64_t seq) const;
  /// Where the next token of a sequence goes, as far as is known.
  std::int32_t next_position(std::int64_t seq);
  std::pair<std::int32_t, std::int32_t> range(std::int64_t seq);
  std::int64_t token_count();
  void add_tokens(Decode& batch);
  void add_tokens_of_several(Decode& batch);
  void mix(Decode& batch);
  void perturb(Decode& batch);
  std::int64_t ubatch_of(const Decode& batch);

  // ---- For plans ----
  bool choose_two();
  /// So many tokens behind the last one of a sequence.
  Op tokens(std::int64_t seq, std::int64_t count, std::int64_t n_ubatch);
  Op remove_all(std::int64_t seq) { return Op::of(SeqRm{seq, -1, -1}); }
  Op load_last(std::int64_t seq) {
    return Op::of(StateLoad{std::ssize(saved_) - 1, seq, std::nullopt});
  }
  Op tokens_that_do_not_fit(std::int64_t seq);
  /// Positions that a window keeps, at most.
  [[nodiscard]] std::int64_t window() const {
    return drawn_.has_window() ? options().window.size : 0;
  }

  KvCase drawn_;
  std::uint64_t explicit_percent_;  // batches with positions
  std::uint64_t perturb_percent_;   // batches out of the ordinary
  std::uint64_t several_percent_;   // batches with tokens of several sequences
  std::uint64_t not_causal_percent_;
  bool begun_ = false;
  Seen seen_;
  std::vector<Saved> saved_;
  bool was_full_ = false;        // the last decode had no room
  bool load_failed_ = false;     // the last load
  bool moved_ = false;           // positions, since the last update
  bool recovers_ = false;        // a decode had no room, and none succeeded since
  std::size_t before_full_ = 0;  // cells before the batch that had no room
  bool compares_full_ = false;
  std::int64_t a_ = 0;  // sequences of the plan that is followed
  std::int64_t b_ = 0;
};

}  // namespace kvo::cells
