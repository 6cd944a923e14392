// Random scripts for the caches of contract positional.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/positional/case.hpp"
#include "properties/positional/contract.hpp"
#include "properties/positional/followed_cache.hpp"
#include "reference/contract/values/tags.hpp"

namespace kvo::positional {
namespace {

// States worth reaching.
enum class Label : std::uint8_t {
  kWindowExceeded,
  kRingOfCellsReused,
  kSharedCells,
  kMiddleRemovalWithShift,
  kKeptCellsBetweenMovedOnes,
  kFull,
  kFullAndRecovered,
  kEncoderReput,
  kEncoderResultGivenUp,
  kWrapperUnwound,
  kRemovalRefusedForASharedCell,
  kNoShiftFunction,
  kReservePass,
  kRowsSeeingAhead,
  kChunkBoundaryCrossed,
  kResumeRefused,
  kPaddingRoundedTheRange,
  kShiftFunctionFailed,
  kMemberSelected,
  kRemovalRefusedForTheWindow
};
BOOST_DESCRIBE_ENUM(Label, kWindowExceeded, kRingOfCellsReused, kSharedCells,
                    kMiddleRemovalWithShift, kKeptCellsBetweenMovedOnes, kFull, kFullAndRecovered,
                    kEncoderReput, kEncoderResultGivenUp, kWrapperUnwound,
                    kRemovalRefusedForASharedCell, kNoShiftFunction, kReservePass, kRowsSeeingAhead,
                    kChunkBoundaryCrossed, kResumeRefused, kPaddingRoundedTheRange,
                    kShiftFunctionFailed, kMemberSelected, kRemovalRefusedForTheWindow)

class PositionalScript final : public ScriptGenerator<PositionalScript, Ops, Label> {
 public:
  PositionalScript(std::uint64_t seed, const CacheKind& kind, DrawnCase drawn, const Setup& setup)
      : ScriptGenerator(seed),
        kind_(kind),
        case_(std::move(drawn)),
        documented_(setup.profile == Profile::kDocumented),
        cells_(kind, setup),
        perturb_percent_(draw().one_of<std::uint64_t>({0, 5, 25})),
        sloppy_percent_(draw().one_of<std::uint64_t>({0, 0, 1, 12})) {}

  std::optional<Op> next() override {
    // Now and then a script forgets init.
    if (!initialized_ && !has_plan() && !draw().percent(1)) plan_init();
    while (true) {
      std::optional<Op> op = ScriptGenerator::next();
      // What a kind does not offer is drawn again.
      if (kind_.operation(op->kind().name) != nullptr) return op;
    }
  }

  // ---- Following: one overload an operation ----

  using ScriptGenerator::saw;

  void saw(const Init& init, const Observation& seen) {
    cells_.follow(init);
    if (seen.error)
      ++refused_inits_;
    else
      initialized_ = true;
  }

  void saw(const StartForward& pass, const Observation& seen) {
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
    for (std::size_t i = 0; i < pass.positions.size() && !pass.reserve; ++i)
      next_[pass.seqs[i]] = pass.positions[i] + 1;
    if (draw().percent(8)) plan(set_causal());
    // Engines plan passes with the rows of some layers only.
    plan_layers(pass.reserve ? 60 : 100 - sloppy_percent_);
  }

  void saw(const Remove& remove, const Observation& seen) {
    const bool mixed = cells_.keeps_between(remove);
    cells_.follow(remove);
    if (seen.error) return saw_refused(remove, *seen.error);
    const auto& calls = seen.as<Remove::Returns>().shift_calls;
    if (mixed && calls) reach(Label::kKeptCellsBetweenMovedOnes);
    if (calls && !calls->empty() && remove.begin < remove.end)
      reach(Label::kMiddleRemovalWithShift);
    if (next_.contains(remove.seq))
      next_[remove.seq] = std::min(next_[remove.seq], std::max(remove.begin, 0));
    if (draw().percent(35)) plan(Get{});
  }

  void saw(const CopyPrefix& copy, const Observation& seen) {
    cells_.follow(copy);
    if (seen.error) return;
    if (cells_.share(copy.src, copy.dst)) reach(Label::kSharedCells);
    if (draw().percent(40)) plan(CanResume{copy.dst, next_position(copy.dst)});
  }

  void saw(const CanResume& resume, const Observation& seen) {
    if (seen.error) return;
    if (!seen.as<CanResume::Returns>().value)
      reach(Label::kResumeRefused);
    else if (draw().percent(35) && resume.pos < next_position(resume.seq))
      plan(Remove{resume.seq, resume.pos, kMaxPosition});  // as an engine goes on from there
  }

  void saw(const Put& put, const Observation& seen) {
    cells_.follow(put);  // a removal moves the keys of layers that have some
    if (seen.error || !is_member(member_)) return;
    if (member_ > 0) reach(Label::kMemberSelected);
    if (pass_.reserve) return;
    const bool is_new = put_.insert({member_, layer_}).second;
    if (!is_new && case_.is_encoder(static_cast<std::size_t>(member_))) reach(Label::kEncoderReput);
  }

  void saw(const SetCausal& call, const Observation& seen) {
    cells_.follow(call);
    if (seen.error) return;
    except_ = call.except;
    const bool valid = std::ranges::any_of(call.except, [&](std::int64_t row) {
      return row >= 0 && row < std::ssize(pass_.positions);
    });
    if (valid && call.ctx.value_or(true)) reach(Label::kRowsSeeingAhead);
    if (draw().percent(60)) plan_next(Op::of(Get{}));
  }

  void saw(const EncoderCached& /*asked*/, const Observation& seen) {
    if (seen.error) return;
    const bool cached = seen.as<EncoderCached::Returns>().value;
    if (std::exchange(cached_, cached) && !cached) reach(Label::kEncoderResultGivenUp);
  }

  void saw(const SetLayer& chosen, const Observation& seen) {
    cells_.follow(chosen);
    if (!seen.error) layer_ = chosen.layer;
  }

  void saw(const SetLayerType& chosen, const Observation& seen) {
    cells_.follow(chosen);
    if (!seen.error) member_ = chosen.type;
  }

  void saw(const OneOf<SetConfig, Close> auto& call, const Observation& /*seen*/) {
    cells_.follow(call);
  }
  void saw(const OneOf<Get, UnderlyingCache> auto& /*asked*/, const Observation& /*seen*/) {}

 private:
  using Step = ScriptStep<PositionalScript>;

  void saw_full(bool unwound) {
    reach(Label::kFull);
    if (unwound) reach(Label::kWrapperUnwound);
    was_full_ = true;
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

  // Puts and gets of the layers that a model has, each in the member it belongs to.
  void plan_layers(std::uint64_t put_percent) {
    const bool wrapper = !member_kind_of(kind_);
    for (std::int64_t layer = 0; layer < case_.layers; ++layer) {
      if (draw().percent(sloppy_percent_)) continue;
      plan(SetLayer{layer});
      const std::int64_t member = layer % std::ssize(case_.members);
      if (wrapper && layer > 0) plan(SetLayerType{member});
      if (draw().percent(put_percent)) plan(put(member, draw().percent(2)));
      if (draw().percent(65)) plan(Get{});
    }
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

  void plan_init() {
    Init init = case_.init;
    if (refused_inits_ > 0) {
      // A small capacity makes memory unbounded, and an encoder wants one sequence (OK-12, OK-70).
      init.max_sequences = 1;
      init.capacity = draw().between(1, 2);
      if (case_.has_encoder()) plan(SetConfig{1, false, MaskType::kF32});
    } else if (draw().percent(8)) {
      plan(set_config());
    }
    plan(init);
  }

  std::int64_t sequence() { return draw_sequence(draw(), case_); }

  // A sequence that holds something, if draws find one.
  std::int64_t held_sequence() {
    std::int64_t drawn = sequence();
    for (int tries = 0; tries < 4 && next_position(drawn) == 0; ++tries) drawn = sequence();
    return drawn;
  }

  std::int32_t some_position(std::int64_t sequence) {
    return static_cast<std::int32_t>(draw().between(0, next_position(sequence)));
  }

  StartForward batch() {
    StartForward pass =
        draw_batch(draw(), case_, [&](std::int64_t of) { return next_position(of); });
    if (draw().percent(perturb_percent_)) perturb(draw(), pass);
    return pass;
  }

  void add_multimodal(StartForward& pass) {
    // Without one an encoder remembers nothing (OK-71); other caches ignore it.
    if (!draw().percent(case_.has_encoder() ? 55 : 3)) return;
    const std::int64_t tokens = std::ssize(pass.positions);
    std::vector<std::int64_t> indices;
    while (tokens > 0 && std::ssize(indices) < 2 && !(draw().percent(40) && !indices.empty()))
      indices.push_back(draw().percent(99) ? draw().between(0, tokens - 1) : tokens);
    pass.multimodal = std::move(indices);
  }

  Op forward() {
    StartForward pass;
    if (!draw().percent(1)) pass = batch();  // an empty batch is refused (OK-29)
    add_multimodal(pass);
    return Op::of(std::move(pass));
  }

  Op reserve() {
    StartForward pass = batch();
    pass.reserve = true;
    add_multimodal(pass);
    return Op::of(std::move(pass));
  }

  // Distinct and exact in the storage type, but for bf16.
  Tensor rows(std::int64_t tokens, std::int64_t dim, float sign) {
    constexpr std::uint64_t kExactInF16 = 2'048;
    Tensor tensor = make_tensor({tokens, case_.heads, dim});
    for (float& element : tensor.floats()) {
      const std::uint64_t n = tags_++;
      element = sign * tag(1 + (case_.init.dtype == StorageType::kF32 ? n : n % kExactInF16));
    }
    return tensor;
  }

  // Rows for the batch in a member; now and then of another shape, if they may be spoilt.
  Op put(std::int64_t member, bool spoilt) {
    std::int64_t tokens = std::ssize(pass_.positions);
    if (is_member(member) && case_.is_encoder(static_cast<std::size_t>(member)))
      tokens = case_.encoder_tokens;
    if (spoilt && draw().percent(12)) tokens = draw().between(0, 4);
    Put put{rows(tokens, case_.k_dim, 1), rows(tokens, case_.v_dim, -1)};
    if (spoilt && draw().percent(6)) put.v = rows(tokens + 1, case_.v_dim, -1);
    if (spoilt && draw().percent(6)) put.k = rows(tokens, case_.k_dim + 1, 1);
    return Op::of(std::move(put));
  }

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

  Op set_causal() {
    SetCausal call;
    const std::int64_t tokens = std::ssize(pass_.positions);
    const std::int64_t count = draw().between(0, std::min<std::int64_t>(tokens, 3));
    for (std::int64_t i = 0; i < count; ++i)
      call.except.push_back(draw().percent(92) ? draw().between(0, tokens - 1)
                                               : draw().one_of<std::int64_t>({-1, tokens, 100}));
    // A list given again builds no mask (OK-40).
    if (draw().percent(40) && !except_.empty()) call.except = except_;
    if (draw().percent(18)) call.ctx = draw().percent(20);
    return Op::of(std::move(call));
  }

  Op copy_prefix() {
    const std::int64_t source = draw().percent(90) ? held_sequence() : sequence();
    std::int64_t target = sequence();
    for (int tries = 0; tries < 3 && target == source; ++tries)
      target = draw().percent(30) ? draw().between(0, 3) : sequence();
    std::int32_t length = some_position(source);
    if (draw().percent(25)) length = next_position(source);
    if (draw().percent(4)) length = draw().one_of<std::int32_t>({-1, 0, 100, kMaxPosition});
    return Op::of(CopyPrefix{source, target, length});
  }

  Op can_resume() {
    const std::int64_t of = draw().percent(90) ? held_sequence() : sequence();
    std::int32_t position = next_position(of);
    if (draw().percent(60)) position = some_position(of);
    if (draw().percent(10)) position += static_cast<std::int32_t>(draw().between(-3, 3));
    if (draw().percent(2)) position = -2;
    return Op::of(CanResume{of, position});
  }

  Op remove_tail() {
    const std::int64_t of = held_sequence();
    return Op::of(Remove{of, some_position(of), kMaxPosition});
  }

  // What an engine does whose context is full: the first tokens stay, those after them go.
  Op remove_middle() {
    const std::int64_t of = held_sequence();
    const std::vector<std::int32_t> all = cells_.positions(of);
    if (all.size() < 2) return remove_tail();
    const std::int32_t own = cells_.unshared_from(of);
    Remove remove{of, 0, 0};
    // Best a range that leaves cells between those it moves, in a sequence whose cells are mixed.
    for (int tries = 0; tries < 4 && !cells_.keeps_between(remove); ++tries) {
      std::size_t from = draw().below(all.size() - 1);
      // Shared cells behind the range refuse the removal (OK-67): half the time they lie before.
      if (own != kMaxPosition && draw().percent(50))
        while (from + 1 < all.size() - 1 && all[from + 1] < own) ++from;
      const std::size_t to = from + 1 + draw().below(all.size() - 1 - from);
      remove = {of, all[from], all[to]};
    }
    return Op::of(remove);
  }

  Op remove_all() { return Op::of(Remove{sequence(), 0, kMaxPosition}); }

  // Inverted, empty, too long, from below 0, anywhere, behind everything.
  Op remove_nonsense() {
    const std::int64_t of = sequence();
    const std::int32_t at = some_position(of);
    const std::int32_t end = next_position(of);
    const auto more = static_cast<std::int32_t>(draw().between(1, 4));
    return Op::of(draw().one_of<Remove>({{of, at + more, at},
                                         {of, at, at},
                                         {of, at, end + more},
                                         {of, -more, at},
                                         {of, at, at + more},
                                         {of, end + more, kMaxPosition}}));
  }

  Op set_config() { return Op::of(draw_set_config(draw(), case_)); }
  Op underlying_cache() { return Op::of(UnderlyingCache{}); }
  Op encoder_cached() { return Op::of(EncoderCached{}); }
  Op init_again() { return Op::of(case_.init); }
  Op close() { return Op::of(Close{}); }

  const CacheKind& kind_;
  DrawnCase case_;
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
};

// ---- Generators ----

Generator generator(const CacheKind& kind, const std::vector<Label>& both,
                    const std::vector<Label>& documented_only) {
  Generator made{.kind = &kind,
                 .make =
                     [&kind](const CaseTerms& terms) {
                       Draw draw(terms.seed);
                       DrawnCase drawn = draw_case(draw, kind);
                       Setup setup{.profile = terms.profile, .config = config_of(drawn, kind)};
                       auto script = std::make_unique<PositionalScript>(
                           draw.below(~std::uint64_t{0}), kind, std::move(drawn), setup);
                       return GeneratedCase{std::move(setup), std::move(script)};
                     },
                 .original_labels = {},
                 .documented_labels = {}};
  for (const Label label : both) made.original_labels.push_back(label_text(label));
  made.documented_labels = made.original_labels;
  for (const Label label : documented_only) made.documented_labels.push_back(label_text(label));
  return made;
}

std::vector<Label> causal_and(std::initializer_list<Label> more) {
  using enum Label;
  std::vector<Label> labels{
      kSharedCells,      kKeptCellsBetweenMovedOnes,    kMiddleRemovalWithShift, kFull,
      kFullAndRecovered, kRemovalRefusedForASharedCell, kNoShiftFunction,        kReservePass,
      kRowsSeeingAhead,  kPaddingRoundedTheRange,       kShiftFunctionFailed};
  labels.insert(labels.end(), more);
  return labels;
}

}  // namespace

std::vector<Generator> generators() {
  using enum Label;
  const auto windowed = causal_and({kWindowExceeded, kRingOfCellsReused, kResumeRefused});
  return {generator(kind_of(MemberKind::kCausal), causal_and({}), {kResumeRefused}),
          generator(kind_of(MemberKind::kSwa), windowed, {kRemovalRefusedForTheWindow}),
          generator(kind_of(MemberKind::kSwaMem), windowed, {kRemovalRefusedForTheWindow}),
          generator(kind_of(MemberKind::kChunked), causal_and({kChunkBoundaryCrossed}),
                    {kResumeRefused}),
          generator(kind_of(MemberKind::kEncoder),
                    {kEncoderReput, kReservePass, kEncoderResultGivenUp}, {}),
          generator(
              wrapper_kind(),
              causal_and({kWindowExceeded, kRingOfCellsReused, kResumeRefused,
                          kChunkBoundaryCrossed, kEncoderReput, kWrapperUnwound, kMemberSelected}),
              {kRemovalRefusedForTheWindow})};
}

}  // namespace kvo::positional
