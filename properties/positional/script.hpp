// properties/positional/script.hpp: the random script of a case of contract positional.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/script_generator.hpp"
#include "properties/positional/followed_cache.hpp"
#include "reference/contract/values/tags.hpp"
#include "reference/positional/operations.hpp"

namespace kvo::positional {

/// Caches, backend and sizes of one case.
struct DrawnCase {
  std::vector<CacheConfig> members;  ///< a wrapper's, each with its kind; else one
  BackendConfig backend;
  Init init;
  bool odd_rows = false;  ///< rows that are hard on narrow types, not tags
  std::int64_t heads = 1;
  std::int64_t k_dim = 1;
  std::int64_t v_dim = 1;
  std::int64_t layers = 1;
  std::int64_t encoder_tokens = 1;      ///< rows of an encoder's put
  bool in_order = false;                ///< batches are never made strange
  std::vector<std::int64_t> sequences;  ///< those that most operations name

  [[nodiscard]] bool is_encoder(std::size_t member) const {
    return members[member].cache == MemberKind::kEncoder;
  }
  [[nodiscard]] bool has_encoder() const;
};

/// Draws a case of a kind. Nearly all can be initialised.
[[nodiscard]] DrawnCase draw_case(Draw& draw, const CacheKind& kind, Scale scale);

[[nodiscard]] SetConfig draw_set_config(Draw& draw, const DrawnCase& drawn);

/// A sequence that no operation of a long life names but those that come to it after long: it grows
/// old meanwhile.
inline constexpr std::int64_t kOldSequence = 1'000'000;

/// Mostly one of the case's sequences.
[[nodiscard]] std::int64_t draw_sequence(Draw& draw, const DrawnCase& drawn);

/// A batch as engines give it: each sequence goes on where it stands.
[[nodiscard]] StartForward draw_batch(
    Draw& draw, const DrawnCase& drawn,
    const std::function<std::int32_t(std::int64_t sequence)>& next_position);

/// Makes a sensible batch strange: out of order, with gaps or repeats, too large, out of contract.
/// Requires  the batch is not empty.
void perturb(Draw& draw, StartForward& pass);

/// The config of a case.
[[nodiscard]] Record config_of(const DrawnCase& drawn, const CacheKind& kind);

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(Label, std::uint8_t, kWindowExceeded, kRingOfCellsReused,
                              kSharedCells, kMiddleRemovalWithShift, kKeptCellsBetweenMovedOnes,
                              kFull, kFullAndRecovered, kEncoderReput, kEncoderResultGivenUp,
                              kWrapperUnwound, kRemovalRefusedForASharedCell, kNoShiftFunction,
                              kReservePass, kRowsSeeingAhead, kChunkBoundaryCrossed, kResumeRefused,
                              kPaddingRoundedTheRange, kShiftFunctionFailed, kMemberSelected,
                              kRemovalRefusedForTheWindow, kMoreThan64Cells, kMoreThan1024Cells,
                              kMoreThan16Tokens, kMoreThan64Tokens, k65SequencesInABatch,
                              k65SequencesInACase, k64EvictionsOfASequence, kFiveLayers,
                              kFiveLayersMoved, kFourHeads, kHeadsOf64Elements,
                              kHalfWordsInRunsOf64, kIdleFor256Passes, kIdleFor65536Passes,
                              kEightBitFloats, kRowsOfCodes, kGroupsCutShort, kOddRows)

class PositionalScript final : public ScriptGenerator<PositionalScript, Ops, Label> {
 public:
  PositionalScript(std::uint64_t seed, const CacheKind& kind, DrawnCase drawn, const Setup& setup,
                   Scale scale)
      : ScriptGenerator(seed),
        kind_(kind),
        case_(std::move(drawn)),
        scale_(scale),
        documented_(setup.profile == Profile::kDocumented),
        cells_(kind, setup, scale != Scale::kLong),
        perturb_percent_(case_.in_order ? 0 : draw().one_of<std::uint64_t>({0, 5, 25})),
        sloppy_percent_(draw().one_of<std::uint64_t>({0, 0, 1, 12})) {
    if (scale_ == Scale::kLong) plan_often(1);
  }

  std::optional<Op> choose() override {
    // Now and then a script forgets init.
    if (!initialized_ && !has_plan() && !draw().percent(1)) plan_init();
    while (true) {
      std::optional<Op> op = lives_on() ? age() : ScriptGenerator::choose();
      // What a kind does not offer is drawn again.
      if (!op || kind_.operation(op->kind().name) != nullptr) return op;
    }
  }

  // ---- Following: one overload an operation ----

  using ScriptGenerator::observe;

  void observe(const Init& init, const Observation& seen) {
    cells_.follow(init);
    if (seen.error)
      ++refused_inits_;
    else
      initialized_ = true;
  }

  void observe(const StartForward& pass, const Observation& seen) {
    pay_for(pass);
    if (scale_ == Scale::kLong && !seen.failed_with(Code::kPrecondition)) saw_age(pass);
    const PassEffects effects = cells_.follow(pass, seen.failed_with(Code::kFull));
    if (seen.failed_with(Code::kFull)) saw_full(effects.unwound);
    if (seen.error) return;
    pass_ = pass;
    member_ = 0;
    except_.clear();
    if (pass.reserve) reach(Label::kReservePass);
    if (!pass.reserve && std::exchange(was_full_, false)) reach(Label::kFullAndRecovered);
    if (effects.cells_reused) reach(Label::kRingOfCellsReused);
    if (effects.window_exceeded) reach(Label::kWindowExceeded);
    if (effects.chunk_crossed) reach(Label::kChunkBoundaryCrossed);
    if (effects.range_rounded) reach(Label::kPaddingRoundedTheRange);
    saw_sizes(pass, effects);
    for (std::size_t i = 0; i < pass.positions.size() && !pass.reserve; ++i)
      next_[pass.seqs[i]] = pass.positions[i] + 1;
    if (follows_plan() && std::exchange(quiet_, false)) return;
    if (scale_ == Scale::kLong && !std::exchange(visits_, false) && !draw().percent(4)) return;
    if (draw().percent(8) && !follows_plan()) plan(set_causal());
    // Engines plan passes with the rows of some layers only.
    plan_layers(pass.reserve ? 60 : 100 - sloppy_percent_);
  }

  void observe(const Remove& remove, const Observation& seen) {
    pay(cells_.pool() * 20);
    const bool mixed = cells_.keeps_between(remove);
    cells_.follow(remove);
    if (seen.error) return saw_refused(remove, *seen.error);
    const auto& calls = seen.as<Remove::Returns>().shift_calls;
    if (mixed && calls) reach(Label::kKeptCellsBetweenMovedOnes);
    if (calls && !calls->empty() && remove.begin < remove.end)
      reach(Label::kMiddleRemovalWithShift);
    if (calls && !calls->empty()) pay(cells_.pool() * case_.heads * case_.k_dim * case_.layers);
    if (calls && std::ranges::any_of(*calls, [](const auto& call) { return call.layer == 4; }))
      reach(Label::kFiveLayersMoved);
    if (next_.contains(remove.seq))
      next_[remove.seq] = std::min(next_[remove.seq], std::max(remove.begin, 0));
    if (draw().percent(35)) plan(Get{});
  }

  void observe(const CopyPrefix& copy, const Observation& seen) {
    pay(cells_.pool() * 20);
    cells_.follow(copy);
    if (seen.error) return;
    if (cells_.share(copy.src, copy.dst)) reach(Label::kSharedCells);
    if (draw().percent(40)) plan(CanResume{copy.dst, next_position(copy.dst)});
  }

  void observe(const CanResume& resume, const Observation& seen) {
    if (seen.error) return;
    if (!seen.as<CanResume::Returns>().value)
      reach(Label::kResumeRefused);
    else if (draw().percent(35) && resume.pos < next_position(resume.seq))
      plan(Remove{resume.seq, resume.pos, kMaxPosition});  // as an engine goes on from there
  }

  void observe(const Put& put, const Observation& seen) {
    cells_.follow(put);  // a removal moves the keys of layers that have some
    if (seen.error || !is_member(member_)) return;
    if (member_ > 0) reach(Label::kMemberSelected);
    if (pass_.reserve) return;
    pay(put.k.elements() + put.v.elements());
    if (layer_ >= 4) reach(Label::kFiveLayers);
    if (case_.heads >= 4) reach(Label::kFourHeads);
    if (case_.k_dim >= 64) reach(Label::kHeadsOf64Elements);
    if (case_.init.dtype != StorageType::kF32 && case_.heads * case_.k_dim >= 64)
      reach(Label::kHalfWordsInRunsOf64);
    saw_stored(put);
    const bool is_new = put_.insert({member_, layer_}).second;
    if (!is_new && case_.is_encoder(static_cast<std::size_t>(member_))) reach(Label::kEncoderReput);
  }

  void observe(const SetCausal& call, const Observation& seen) {
    cells_.follow(call);
    if (seen.error) return;
    except_ = call.except;
    const bool valid = std::ranges::any_of(call.except, [&](std::int64_t row) {
      return row >= 0 && row < std::ssize(pass_.positions);
    });
    if (valid && call.ctx.value_or(true)) reach(Label::kRowsSeeingAhead);
    if (draw().percent(60)) plan_next(Op::of(Get{}));
  }

  void observe(const EncoderCached& /*asked*/, const Observation& seen) {
    if (seen.error) return;
    const bool cached = seen.as<EncoderCached::Returns>().value;
    if (std::exchange(cached_, cached) && !cached) reach(Label::kEncoderResultGivenUp);
  }

  void observe(const SetLayer& chosen, const Observation& seen) {
    cells_.follow(chosen);
    if (!seen.error) layer_ = chosen.layer;
  }

  void observe(const SetLayerType& chosen, const Observation& seen) {
    cells_.follow(chosen);
    if (!seen.error) member_ = chosen.type;
  }

  void observe(const OneOf<SetConfig, Close> auto& call, const Observation& /*seen*/) {
    cells_.follow(call);
  }
  void observe(const Get& /*asked*/, const Observation& seen) {
    if (seen.error) return;
    const auto& shown = seen.as<Get::Returns>();
    for (const auto* tensor : {&shown.k, &shown.v, &shown.mask})
      if (tensor->has_value()) pay(2 * (*tensor)->elements());
  }
  void observe(const UnderlyingCache& /*asked*/, const Observation& /*seen*/) {}

 private:
  // The storage type of rows that were put.
  void saw_stored(const Put& put) {
    const StorageFormat storage = storage_of(case_.init);
    if (case_.is_encoder(static_cast<std::size_t>(member_))) return;
    if (dtype_bytes(dtype_of(storage.type)) == 1) reach(Label::kEightBitFloats);
    if (case_.odd_rows && put.k.elements() > 0) reach(Label::kOddRows);
    if (!in_groups(storage.type)) return;
    reach(Label::kRowsOfCodes);
    const std::int64_t dim = put.k.shape[2];
    if (dim > storage.group && dim % storage.group != 0) reach(Label::kGroupsCutShort);
  }
  using Step = ScriptStep<PositionalScript>;

  void saw_full(bool unwound) {
    reach(Label::kFull);
    if (unwound) reach(Label::kWrapperUnwound);
    was_full_ = true;
    if (follows_plan()) return;
    // What an error must have left as it was.
    if (documented_ && draw().percent(50)) plan(Get{});
    // An engine makes room, mostly.
    if (draw().percent(45)) return;
    for (const std::int64_t number : case_.sequences)
      if (draw().percent(60)) plan(Remove{number, 0, kMaxPosition});
  }

  void saw_refused(const Remove& remove, const Error& error) {
    if (error == shared_later_cell())
      reach(Label::kRemovalRefusedForASharedCell);
    else if (error.code == Code::kOther)
      reach(Label::kShiftFunctionFailed);
    if (error.code == Code::kNotSupported)
      reach(lacks_shift() ? Label::kNoShiftFunction : Label::kRemovalRefusedForTheWindow);
    // The original leaves the sequence half changed: callers clear it (OK-66).
    if (error.code == Code::kPrecondition || !draw().percent(documented_ ? 10 : 70)) return;
    plan(Remove{remove.seq, 0, kMaxPosition});
  }

  void plan_layers(std::uint64_t put_percent);

  // ---- Sizes ----

  // What an operation costs counts in large cases only.
  void pay(std::int64_t looks) {
    if (scale_ == Scale::kLarge) spend(static_cast<std::uint64_t>(kAnyCost + looks));
  }
  void pay_for(const StartForward& pass);
  void saw_sizes(const StartForward& pass, const PassEffects& effects);

  // ---- Long lives ----

  // Sequences that are named again when that many passes have gone by.
  struct Old {
    std::int64_t sequence;
    std::uint64_t idle;        ///< passes until it is named again
    std::uint64_t named = 0;   ///< the pass that named it last
    std::uint64_t visits = 0;  ///< passes that named it
  };

  /// Whether a long life goes on: else an operation is drawn as in any case.
  [[nodiscard]] bool lives_on() {
    return scale_ == Scale::kLong && initialized_ && !has_plan() && !follows_plan() &&
           !draw().percent(4);
  }
  Op age();
  Op visit(const Old& old);
  void saw_age(const StartForward& pass);

  // ---- Planned orders ----

  // Tokens behind the last one of a sequence; nothing where they do not fit.
  std::optional<Op> tokens_of(std::int64_t sequence, std::int64_t count, bool reserve = false);
  std::optional<Op> middle_of(std::int64_t sequence);
  void choose_two();
  [[nodiscard]] std::int64_t memory() const;

  std::optional<Op> reserve_of(std::int64_t sequence, std::int64_t count) {
    return tokens_of(sequence, count, true);
  }
  std::optional<Op> forward_of(std::int64_t sequence, std::int64_t count) {
    return tokens_of(sequence, count);
  }
  Op remove_some_tail(std::int64_t sequence) {
    return Op::of(Remove{sequence, some_position(sequence), kMaxPosition});
  }
  // One token of each sequence that is `gap` positions ahead, and more of the first than there are
  // cells.
  Op overfill(std::int64_t gap);
  // The token whose rows an encoder gets, at_; or more tokens than there are cells, the last of
  // which is that one again, and takes them out.
  Op seen_batch(bool too_large);
  Op batch_with_rows() { return seen_batch(false); }
  Op batch_too_large() { return seen_batch(true); }
  Op put_rows(std::int64_t member) { return put(member, false); }
  void swap_sometimes() {
    if (draw().percent(50)) std::swap(one_, other_);
  }
  void be_quiet() { quiet_ = true; }
  [[nodiscard]] bool evicts() const { return memory() < kMaxPosition; }
  [[nodiscard]] std::int64_t pool() const { return cells_.pool(); }
  [[nodiscard]] std::int64_t free() const { return cells_.free(); }
  [[nodiscard]] bool is_large() const { return scale_ == Scale::kLarge; }
  [[nodiscard]] bool is_small() const { return scale_ == Scale::kSmall; }
  [[nodiscard]] std::int64_t held(std::int64_t sequence) const {
    return std::ssize(cells_.positions(sequence));
  }
  [[nodiscard]] std::int64_t held_position(std::int64_t sequence, std::int64_t index) const {
    return cells_.positions(sequence)[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] std::int64_t next_of(std::int64_t sequence) const {
    return next_position(sequence);
  }
  [[nodiscard]] std::int64_t max_batch() const { return case_.init.max_batch; }
  [[nodiscard]] bool moves() const {
    const auto& shift = case_.members.front().shift;
    return shift && shift->has_value() && (*shift)->kind != ShiftKind::kFail;
  }
  [[nodiscard]] std::int64_t encoder() const {
    return std::ranges::find(case_.members, MemberKind::kEncoder, &CacheConfig::cache) -
           case_.members.begin();
  }
  [[nodiscard]] bool has_encoder_before_a_member() const {
    return encoder() + 1 < std::ssize(case_.members) && encoder() < case_.layers;
  }

  // ---- What is known ----

  [[nodiscard]] bool is_member(std::int64_t number) const {
    return number >= 0 && number < std::ssize(case_.members);
  }

  [[nodiscard]] bool lacks_shift() const {
    return std::ranges::any_of(case_.members, [](const CacheConfig& member) {
      return member.shift && !member.shift->has_value();
    });
  }

  [[nodiscard]] std::int32_t next_position(std::int64_t sequence) const {
    if (!cells_.has_positions()) {
      const auto found = next_.find(sequence);
      return found == next_.end() ? 0 : found->second;
    }
    const std::vector<std::int32_t> all = cells_.positions(sequence);
    return all.empty() ? 0 : all.back() + 1;
  }

  // ---- Drawing ----

  void plan_init();

  std::int64_t sequence() { return draw_sequence(draw(), case_); }

  std::int64_t held_sequence();

  std::int32_t some_position(std::int64_t sequence) {
    return static_cast<std::int32_t>(draw().between(0, next_position(sequence)));
  }

  StartForward batch();

  void add_multimodal(StartForward& pass);

  Op forward();

  Op reserve() {
    StartForward pass = batch();
    pass.reserve = true;
    add_multimodal(pass);
    return Op::of(std::move(pass));
  }

  Tensor rows(std::int64_t tokens, std::int64_t dim, float sign);

  Op put(std::int64_t member, bool spoilt);

  Op stray_put() { return put(member_, true); }
  Op get() { return Op::of(Get{}); }

  Op set_layer() {
    if (draw().percent(3))
      return Op::of(SetLayer{draw().one_of<std::int64_t>({-1, 7, case_.layers})});
    return Op::of(SetLayer{draw().between(0, case_.layers - 1)});
  }

  Op set_layer_type() {
    const std::int64_t count = std::ssize(case_.members);
    if (draw().percent(4)) return Op::of(SetLayerType{draw().one_of<std::int64_t>({-1, count})});
    return Op::of(SetLayerType{draw().between(0, count - 1)});
  }

  Op set_causal();

  Op copy_prefix();

  Op can_resume();

  Op remove_tail() {
    const std::int64_t of = held_sequence();
    return Op::of(Remove{of, some_position(of), kMaxPosition});
  }

  Op remove_middle();

  Op remove_all() { return Op::of(Remove{sequence(), 0, kMaxPosition}); }

  Op remove_nonsense();

  Op set_config() { return Op::of(draw_set_config(draw(), case_)); }
  Op underlying_cache() { return Op::of(UnderlyingCache{}); }
  Op encoder_cached() { return Op::of(EncoderCached{}); }
  Op init_again() { return Op::of(case_.init); }
  // After it nothing is left to live.
  Op close() { return scale_ == Scale::kLong ? get() : Op::of(Close{}); }

  static constexpr std::int64_t kAnyCost = 5'000;  // what any operation costs at least

  const CacheKind& kind_;
  DrawnCase case_;
  Scale scale_;
  bool documented_;
  FollowedCache cells_;
  std::uint64_t perturb_percent_;  // batches out of the ordinary
  std::uint64_t sloppy_percent_;   // layers left out of a pass
  std::uint64_t tags_ = 0;
  bool initialized_ = false;
  std::uint64_t refused_inits_ = 0;
  StartForward pass_;
  std::vector<std::int64_t> except_;
  bool was_full_ = false;
  std::int64_t member_ = 0;
  std::int64_t layer_ = 0;
  bool cached_ = false;                        // what encoder_cached said last
  std::map<std::int64_t, std::int32_t> next_;  // for encoders, which have no positions
  std::set<std::pair<std::int64_t, std::int64_t>> put_;
  std::set<std::int64_t> named_;  // sequences of all passes
  std::uint64_t passes_ = 0;      // of a long life, those that had no room included
  std::array<Old, 2> old_{Old{kOldSequence, 65'536}, Old{kOldSequence + 1, 256}};
  bool visits_ = false;  // the pass that comes next names an old sequence
  // Of the order that is followed.
  std::int64_t one_ = 0;
  std::int64_t other_ = 1;
  std::int32_t at_ = 0;
  bool quiet_ = false;  // its next pass brings no rows

 public:
  // A pass brings the rows of its layers along. Removals in the middle are the deepest operation.
  static constexpr std::array kSteps{
      Step{460, "a batch", &PositionalScript::forward, true},
      Step{70, "look at a layer", &PositionalScript::get},
      Step{50, "rows out of turn", &PositionalScript::stray_put},
      Step{30, "choose a layer", &PositionalScript::set_layer},
      Step{70, "rows that see ahead", &PositionalScript::set_causal},
      Step{70, "share a prefix", &PositionalScript::copy_prefix},
      Step{70, "ask where to resume", &PositionalScript::can_resume},
      Step{60, "remove the tail", &PositionalScript::remove_tail},
      Step{120, "remove the middle", &PositionalScript::remove_middle},
      Step{20, "clear a sequence", &PositionalScript::remove_all},
      Step{40, "remove nonsense", &PositionalScript::remove_nonsense},
      Step{30, "plan a pass", &PositionalScript::reserve},
      Step{20, "choose a member", &PositionalScript::set_layer_type},
      Step{10, "ask for the member", &PositionalScript::underlying_cache},
      Step{40, "ask for an encoder's result", &PositionalScript::encoder_cached},
      Step{4, "init again", &PositionalScript::init_again},
      Step{4, "configure late", &PositionalScript::set_config},
      Step{1, "close", &PositionalScript::close}};

  static const CacheKind& order_kind() { return wrapper_kind(); }
  static std::span<const OrderWord> order_words();
};

}  // namespace kvo::positional
