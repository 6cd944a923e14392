// properties/cells/recurrent_script.hpp: the random script of a case of cells.recurrent.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "reference/cells/recurrent_operations.hpp"

namespace kvo::cells {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(RecurrentLabel, std::uint8_t, kPlaced, kSeveralSteps, kBatchRefused,
                              kSharedBatchRefused, kUbatchTooSmall, kStateShared, kTailLeft,
                              kRowCleared, kRowsExchanged, kWentBack, kWentBackTooFar,
                              kWentBackTwice, kOlderRefused, kStateRemoved, kOneStateKept,
                              kStateMoved, kStateDivided, kRefusedSequence, kForgotten,
                              kAllCellsUsed,
                              // In one profile.
                              kStepTooLarge, kOlderKept, kBelowZero, kSharedStateStays, kAnyRemoved,
                              // Sizes.
                              kNineStatesInAStep, kMoreThan64States, kAllStates, kTailsOf16Tokens,
                              kCountedBeyondTwoBytes,
                              // Planned orders.
                              kSharedThenParted, kTailsSwapped, kWentBackThenCopied,
                              kCopiedThenWentBack, kTailKeptTogether, kKeptOfAShared)

class RecurrentScript final
    : public ScriptGenerator<RecurrentScript, RecurrentOps, RecurrentLabel> {
  using S = RecurrentScript;
  using Label = RecurrentLabel;

 public:
  RecurrentScript(const CaseTerms& terms, const RecurrentConfig& config);

  std::optional<Op> next() override {
    if (!begun_ && !has_plan()) return Op::of(NewRecurrent{});
    return ScriptGenerator::next();
  }

  // Steps.
  Op one_token() { return tokens(sequence(), 1, least_ubatch()); }
  Op decode();
  Op seq_rm();
  Op go_back();
  Op seq_cp();
  Op seq_keep() { return Op::of(SeqKeep{draw().percent(97) ? sequence() : stray()}); }
  Op seq_add();
  Op seq_div();
  Op seq_pos();
  Op clear() { return Op::of(Clear{draw().percent(50)}); }
  Op state() { return Op::of(ShowMemory{}); }
  Op make() { return Op::of(NewRecurrent{}); }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {30, "a token", &S::one_token, true},
      {40, "decode", &S::decode, true},
      {10, "seq_rm", &S::seq_rm},
      {12, "go back", &S::go_back},
      {16, "seq_cp", &S::seq_cp},
      {4, "seq_keep", &S::seq_keep},
      {5, "seq_add", &S::seq_add},
      {4, "seq_div", &S::seq_div},
      {4, "seq_pos", &S::seq_pos},
      {1, "clear", &S::clear},
      {14, "state", &S::state, true},
      {1, "new", &S::make},
  });

  // Planned orders.
  std::optional<Op> shared_then_parted(std::size_t number);
  std::optional<Op> tails_swapped(std::size_t number);
  std::optional<Op> went_back_then_copied(std::size_t number);
  std::optional<Op> copied_then_went_back(std::size_t number);
  std::optional<Op> tail_kept_together(std::size_t number);
  std::optional<Op> kept_of_a_shared(std::size_t number);

  using Plan = ScriptPlan<S, Label>;
  static constexpr std::array kPlans{
      Plan{2, Label::kSharedThenParted, 5, &S::shared_then_parted},
      Plan{2, Label::kTailsSwapped, 6, &S::tails_swapped},
      Plan{2, Label::kWentBackThenCopied, 6, &S::went_back_then_copied},
      Plan{2, Label::kCopiedThenWentBack, 6, &S::copied_then_went_back},
      Plan{2, Label::kTailKeptTogether, 3, &S::tail_kept_together},
      Plan{1, Label::kKeptOfAShared, 6, &S::kept_of_a_shared}};

  // What became of an operation.
  void saw(const NewRecurrent& op, const Observation& seen);
  void saw(const DecodeStates& op, const Observation& seen);
  void saw(const SeqRm& op, const Observation& seen);
  void saw(const SeqCp& op, const Observation& seen);
  void saw(const SeqKeep& op, const Observation& seen);
  void saw(const SeqAdd& op, const Observation& seen);
  void saw(const SeqDiv& op, const Observation& seen);
  void saw(const SeqPos& op, const Observation& seen);
  void saw(const Clear& op, const Observation& seen);
  void saw(const ShowMemory& op, const Observation& seen);

 private:
  // Something may have changed; mostly a look at it follows.
  void changed();
  void pay(std::int64_t cells) {
    constexpr std::int64_t kAnyCost = 2'000;
    if (is_large()) spend(static_cast<std::uint64_t>(kAnyCost + cells));
  }

  std::int64_t sequence() { return sequences_[draw().below(sequences_.size())]; }
  std::int64_t stray() { return draw().percent(40) ? -1 : states_; }
  [[nodiscard]] std::int64_t max(std::int64_t seq) const {
    const auto found = max_.find(seq);
    return found == max_.end() ? -1 : found->second;
  }
  /// An ubatch that LC-97 allows.
  [[nodiscard]] std::int64_t least_ubatch() const { return snapshots_ > 0 ? snapshots_ + 2 : 1; }
  bool choose_two();
  Op tokens(std::int64_t seq, std::int64_t count, std::int64_t n_ubatch);
  void perturb(DecodeStates& batch);

  std::int64_t states_;
  std::int64_t snapshots_;
  std::uint64_t explicit_percent_;
  std::uint64_t perturb_percent_;
  std::vector<std::int64_t> sequences_;  // those that most operations name
  bool begun_ = false;
  std::map<std::int64_t, std::int64_t> max_;  // position of each state, from the last `state`
  std::vector<std::int64_t> tails_;
  std::vector<std::size_t> owners_;  // of each cell
  bool exact_ = false;               // nothing has changed since
  std::int64_t a_ = 0;               // sequences of the plan that is followed
  std::int64_t b_ = 0;
};

}  // namespace kvo::cells
