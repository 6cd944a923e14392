// Random cases for cells.recurrent.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "reference/cells/recurrent_operations.hpp"
#include "reference/cells/session.hpp"

namespace kvo::cells {

// States worth reaching besides those that are marked in the reference.
BOOST_DEFINE_FIXED_ENUM_CLASS(RecurrentLabel, std::uint8_t, kPlaced, kSeveralSteps, kBatchRefused,
                              kSharedBatchRefused, kUbatchTooSmall, kStateShared, kRowCleared,
                              kWentBackTwice, kOlderRefused, kRefusedSequence, kAllCellsUsed,
                              // In one profile.
                              kStepTooLarge, kOlderKept,
                              // Sizes.
                              kNineStatesInAStep, kMoreThan64States, kAllStates, kTailsOf16Tokens,
                              kCountedBeyondTwoBytes)

namespace {

std::int32_t position_of(std::int64_t number) {
  return static_cast<std::int32_t>(number);
}

class RecurrentScript final
    : public ScriptGenerator<RecurrentScript, RecurrentOps, RecurrentLabel> {
  using S = RecurrentScript;
  using Label = RecurrentLabel;

 public:
  RecurrentScript(const CaseTerms& terms, const RecurrentConfig& config)
      : ScriptGenerator(terms),
        states_(config.n_seq_max),
        snapshots_(config.n_rs_seq.value_or(0)),
        explicit_percent_(draw().one_of<std::uint64_t>({0, 40, 90})),
        perturb_percent_(draw().one_of<std::uint64_t>({0, 0, 4, 15})) {
    for (std::int64_t seq = 0; seq < states_ && seq < 5; ++seq) sequences_.push_back(seq);
    if (states_ > 5) sequences_.back() = states_ - 1;
  }

  std::optional<Op> choose() override {
    if (memory_ == nullptr && !has_plan()) return Op::of(NewRecurrent{});
    return ScriptGenerator::choose();
  }

  // Steps.
  Op one_token() { return tokens(sequence(), 1, least_ubatch()); }
  Op decode() {
    if (is_long()) return one_token();
    DecodeStates batch;
    batch.pos = std::vector<std::int32_t>();
    const std::int64_t most = is_large() && draw().percent(40) ? states_ : 4;
    const std::int64_t count = draw().between(1, std::min(most, states_));
    const std::int64_t first = draw().between(0, states_ - count);
    const bool neighbours = draw().percent(60) || count > 4;
    const std::int64_t share = draw().size(1, is_large() ? 40 : 6);
    std::set<std::int64_t> done;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t seq = neighbours ? first + i : sequence();
      if (!done.insert(seq).second) continue;
      const std::int64_t from = max(seq) >= 0 ? max(seq) + 1 : draw().between(0, 2);
      const std::int64_t tokens = draw().percent(60) ? share : draw().between(1, 4);
      for (std::int64_t t = 0; t < tokens; ++t) {
        batch.pos.value->push_back(position_of(from + t));
        batch.seqs.push_back({seq});
      }
    }
    const auto all = std::ssize(batch.seqs);
    batch.n_ubatch = draw().percent(50) ? all + draw().between(0, 2) : draw().between(1, 6);
    if (!draw().percent(4)) batch.n_ubatch = std::max(batch.n_ubatch, least_ubatch());
    if (!draw().percent(explicit_percent_)) batch.pos = std::nullopt;
    if (draw().percent(perturb_percent_)) perturb(batch);
    return Op::of(std::move(batch));
  }
  Op seq_rm() {
    const std::int64_t seq = draw().percent(90) ? sequence() : stray();
    const std::int32_t end = position_of(std::max<std::int64_t>(max(seq), 0) + 1);
    const std::int32_t p0 = draw().percent(50) ? -1 : position_of(draw().between(0, end));
    const std::int32_t p1 = draw().percent(60) ? -1 : position_of(draw().between(0, end + 1));
    return Op::of(SeqRm{seq, p0, p1});
  }
  // Mostly as far as snapshots reach, or one more.
  Op go_back() {
    const std::int64_t seq = sequence();
    if (max(seq) < 1) return seq_rm();
    const std::int64_t least = std::max<std::int64_t>(1, max(seq) - snapshots_);
    return Op::of(SeqRm{seq, position_of(draw().between(least, max(seq))), -1});
  }
  Op seq_cp() {
    std::int64_t src = sequence();
    std::int64_t dst = sequence();
    if (src == dst && draw().percent(80)) dst = (src + 1) % states_;
    if (draw().percent(2)) (draw().percent(50) ? src : dst) = stray();
    return Op::of(SeqCp{src, dst, -1, -1});
  }
  Op seq_keep() { return Op::of(SeqKeep{draw().percent(97) ? sequence() : stray()}); }
  Op seq_add() {
    const std::int64_t seq = draw().percent(98) ? sequence() : stray();
    const std::int32_t p0 = draw().percent(60) ? -1 : position_of(draw().between(0, 5));
    return Op::of(
        SeqAdd{seq, p0, draw().percent(70) ? -1 : p0 + 2, position_of(draw().between(-3, 4))});
  }
  Op seq_div() {
    const std::int64_t seq = draw().percent(98) ? sequence() : stray();
    const std::int32_t p0 = draw().percent(60) ? -1 : position_of(draw().between(0, 5));
    return Op::of(SeqDiv{seq, p0, -1, draw().percent(2) ? 0 : position_of(draw().between(1, 3))});
  }
  Op seq_pos() {
    return Op::of(SeqPos{draw().percent(85) ? sequence() : draw().between(-2, kSequences + 1)});
  }
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

  static const CacheKind& order_kind() { return recurrent_kind(); }
  static std::span<const OrderWord> order_words() {
    static constexpr auto kWords = std::to_array<OrderWord>({
        order_word<&S::choose_one>("choose_one"),
        order_word<&S::choose_two>("choose_two"),
        order_word<&S::tokens>("tokens"),
        order_word<&S::a_>("a"),
        order_word<&S::b_>("b"),
        order_word<&S::states_>("states"),
        order_word<&S::snapshots_>("snapshots"),
        order_word<&S::least_ubatch>("least_ubatch"),
    });
    return kWords;
  }

  // What became of an operation.
  void observe(const NewRecurrent& /*op*/, const Observation& /*seen*/) {
    memory_ = reference<ShowsCache<RecurrentMemory>>().shown_cache();
    if (states_ > 64) reach(Label::kMoreThan64States);
    if (states_ == kSequences) reach(Label::kAllStates);
  }
  void observe(const DecodeStates& op, const Observation& seen) {
    if (seen.failed_with(Code::kPrecondition)) return reach(Label::kUbatchTooSmall);
    changed();
    if (seen.failed_with(Code::kFull)) return reach(Label::kSharedBatchRefused);
    if (seen.error) return reach(Label::kBatchRefused);
    const auto& steps = seen.as<DecodeStates::Returns>().ubatches;
    reach(Label::kPlaced);
    if (steps.size() > 1) reach(Label::kSeveralSteps);
    if (snapshots_ >= 15 && op.seqs.size() > 16) reach(Label::kTailsOf16Tokens);
    for (const ShownStep& step : steps) {
      pay(static_cast<std::int64_t>(op.seqs.size()) + states_);
      if (step.zero >= 0) reach(Label::kRowCleared);
      if (step.n > 8) reach(Label::kNineStatesInAStep);
      if (std::ssize(step.rows) > op.n_ubatch) reach(Label::kStepTooLarge);
    }
  }
  void observe(const SeqRm& op, const Observation& seen) {
    if (seen.error) return reach(Label::kRefusedSequence);
    const bool removed = seen.as<YesNo>().value;
    if (op.seq >= 0 && op.p0 < op.p1 && op.p1 >= 0 && op.p1 <= max(op.seq))
      reach(removed ? Label::kOlderKept : Label::kOlderRefused);
    // Once more without a token in between.
    if (removed && op.p0 > 1 && op.seq >= 0 && draw().percent(15)) {
      reach(Label::kWentBackTwice);
      plan(SeqRm{op.seq, op.p0 - 1, -1});
    }
    changed();
  }
  void observe(const SeqCp& op, const Observation& /*seen*/) {
    if (op.src != op.dst && max(op.src) >= 0) reach(Label::kStateShared);
    changed();
  }
  template <OneOf<SeqKeep, SeqAdd, SeqDiv, Clear> T>
  void observe(const T& /*op*/, const Observation& seen) {
    if (seen.failed_with(Code::kPrecondition)) reach(Label::kRefusedSequence);
    if (!seen.error) changed();
  }
  void observe(const SeqPos& /*op*/, const Observation& /*seen*/) { pay(states_); }
  void observe(const ShowMemory& /*op*/, const Observation& seen) {
    pay(kSequences * states_ / 4);
    if (seen.as<ShowMemory::Returns>().used == states_ && states_ > 1) reach(Label::kAllCellsUsed);
  }

 private:
  // Something may have changed; mostly a look at it follows.
  void changed() {
    pay(8 * states_);
    if (!is_long() && draw().percent(is_large() ? 25 : 55)) plan(ShowMemory{});
  }
  void pay(std::int64_t cells) {
    constexpr std::int64_t kAnyCost = 2'000;
    if (is_large()) spend(static_cast<std::uint64_t>(kAnyCost + cells));
  }

  std::int64_t sequence() { return sequences_[draw().below(sequences_.size())]; }
  std::int64_t stray() { return draw().percent(40) ? -1 : states_; }
  [[nodiscard]] std::int64_t max(std::int64_t seq) const { return memory_->seq_pos(seq).max; }
  /// An ubatch that LC-97 allows.
  [[nodiscard]] std::int64_t least_ubatch() const { return snapshots_ > 0 ? snapshots_ + 2 : 1; }
  void choose_one() { a_ = sequence(); }
  bool choose_two() {
    a_ = sequence();
    b_ = sequence();
    if (a_ == b_) b_ = (a_ + 1) % states_;
    return a_ != b_;
  }
  Op tokens(std::int64_t seq, std::int64_t count, std::int64_t n_ubatch) {
    DecodeStates batch;
    batch.seqs.assign(static_cast<std::size_t>(count), {seq});
    batch.n_ubatch = n_ubatch;
    return Op::of(std::move(batch));
  }
  void perturb(DecodeStates& batch) {
    const std::size_t i = draw().below(batch.seqs.size());
    const std::uint64_t what = draw().below(4);
    if (what == 0) {
      batch.pos = std::nullopt;
      batch.seqs.clear();
    } else if (what == 1) {
      batch.seqs[i] = {stray()};
    } else if (what == 2 && states_ > 1) {
      batch.pos = std::nullopt;
      batch.seqs = {{0, 1}};
    } else if (batch.pos.has_value()) {
      (*batch.pos.value)[i] += 1;
    }
  }

  std::int64_t states_;
  std::int64_t snapshots_;
  std::uint64_t explicit_percent_;
  std::uint64_t perturb_percent_;
  std::vector<std::int64_t> sequences_;  // those that most operations name
  RecurrentMemory* memory_ = nullptr;    // of the reference
  std::int64_t a_ = 0;                   // sequences of the order that is followed
  std::int64_t b_ = 0;
};

GeneratedCase make_recurrent(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  RecurrentConfig config{.n_seq_max = draw.between(1, 5)};
  if (draw.percent(50)) config.n_rs_seq = draw.between(0, 3);
  if (terms.scale == Scale::kLarge) {
    config.n_seq_max = draw.percent(20) ? kSequences : draw.edge(4, kSequences);
    if (draw.percent(50)) config.n_rs_seq = draw.edge(2, 17);
  }
  if (terms.scale == Scale::kLong) config = {.n_seq_max = draw.between(1, 2)};
  if (draw.percent(10)) config.build = draw.percent(50) ? Build::kDebug : Build::kRelease;
  return {.setup = {.profile = terms.profile, .config = Record::of(config)},
          .ops = std::make_unique<RecurrentScript>(terms, config)};
}

}  // namespace

Generator recurrent_generator() {
  using enum RecurrentLabel;
  return with_orders<RecurrentScript>(script_generator<RecurrentLabel>(
      recurrent_kind(), make_recurrent, {kStepTooLarge, kOlderKept}, {kOlderRefused}));
}

}  // namespace kvo::cells
