// Random cases for the caches of contract positional.
#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "properties/positional/drawn_case.hpp"
#include "reference/contract/values/tags.hpp"
#include "reference/positional/wrapper_cache.hpp"

namespace kvo::positional {
namespace {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(Label, std::uint8_t, kMiddleRemovalWithShift, kFull,
                              kFullAndRecovered, kEncoderResultGivenUp,
                              kRemovalRefusedForASharedCell, kNoShiftFunction, kReservePass,
                              kRowsSeeingAhead, kResumeRefused, kShiftFunctionFailed,
                              kMemberSelected, kRemovalRefusedForTheWindow, kMoreThan64Cells,
                              kMoreThan1024Cells, kMoreThan16Tokens, kMoreThan64Tokens,
                              k65SequencesInABatch, k65SequencesInACase, k64EvictionsOfASequence,
                              kFiveLayers, kFiveLayersMoved, kFourHeads, kHeadsOf64Elements,
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
        perturb_percent_(case_.in_order ? 0 : draw().one_of<std::uint64_t>({0, 5, 25})),
        sloppy_percent_(draw().one_of<std::uint64_t>({0, 0, 1, 12})) {
    if (scale_ == Scale::kLong) plan_often(1);
  }

  std::optional<Op> choose() override {
    // Now and then a script forgets init.
    if (!initialized_ && !has_plan() && !draw().percent(1)) plan_init();
    std::optional<Op> op;
    // What a kind does not offer is drawn again.
    do {
      op = lives_on() ? age() : ScriptGenerator::choose();
    } while (op && kind_.operation(op->kind().name) == nullptr);
    before_.clear();
    if (const auto* pass = op ? op->as<StartForward>() : nullptr; pass && scale_ != Scale::kLong)
      for (const std::int64_t sequence : pass->seqs) before_.try_emplace(sequence, held(sequence));
    return op;
  }

  // ---- Following: one overload an operation ----

  using ScriptGenerator::observe;

  void observe(const Init& /*op*/, const Observation& seen) {
    if (seen.error)
      ++refused_inits_;
    else
      initialized_ = true;
  }

  void observe(const StartForward& pass, const Observation& seen) {
    pay_for(pass);
    if (scale_ == Scale::kLong && !seen.failed_with(Code::kPrecondition)) saw_age(pass);
    if (seen.failed_with(Code::kFull)) saw_full();
    if (seen.error) return;
    pass_ = pass;
    member_ = 0;
    except_.clear();
    if (pass.reserve) reach(Label::kReservePass);
    if (!pass.reserve && std::exchange(was_full_, false)) reach(Label::kFullAndRecovered);
    saw_sizes(pass);
    for (std::size_t i = 0; i < pass.positions.size() && !pass.reserve; ++i)
      next_[pass.seqs[i]] = pass.positions[i] + 1;
    if (follows_plan() && std::exchange(quiet_, false)) return;
    if (scale_ == Scale::kLong && !std::exchange(visits_, false) && !draw().percent(4)) return;
    if (draw().percent(8) && !follows_plan()) plan(set_causal());
    // Engines plan passes with the rows of some layers only.
    plan_layers(pass.reserve ? 60 : 100 - sloppy_percent_);
  }

  void observe(const Remove& remove, const Observation& seen) {
    pay(pool() * 20);
    if (remove.begin <= 0 && remove.end == kMaxPosition) evicted_.erase(remove.seq);
    if (seen.error) return saw_refused(remove, *seen.error);
    const auto& calls = seen.as<Remove::Returns>().shift_calls;
    if (calls && !calls->empty() && remove.begin < remove.end)
      reach(Label::kMiddleRemovalWithShift);
    if (calls && !calls->empty()) pay(pool() * case_.heads * case_.k_dim * case_.layers);
    if (calls && std::ranges::any_of(*calls, [](const auto& call) { return call.layer == 4; }))
      reach(Label::kFiveLayersMoved);
    if (next_.contains(remove.seq))
      next_[remove.seq] = std::min(next_[remove.seq], std::max(remove.begin, 0));
    if (draw().percent(35)) plan(Get{});
  }

  void observe(const CopyPrefix& copy, const Observation& seen) {
    pay(pool() * 20);
    evicted_.erase(copy.dst);
    if (seen.error) return;
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
  }

  void observe(const SetCausal& call, const Observation& seen) {
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
    if (!seen.error) layer_ = chosen.layer;
  }

  void observe(const SetLayerType& chosen, const Observation& seen) {
    if (!seen.error) member_ = chosen.type;
  }

  void observe(const Get& /*asked*/, const Observation& seen) {
    if (seen.error) return;
    const auto& shown = seen.as<Get::Returns>();
    for (const auto* tensor : {&shown.k, &shown.v, &shown.mask})
      if (tensor->has_value()) pay(2 * (*tensor)->elements());
  }

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

  void saw_full() {
    reach(Label::kFull);
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

  // ---- Sizes ----

  // What an operation costs counts in large cases only.
  void pay(std::int64_t looks) {
    if (scale_ == Scale::kLarge) spend(static_cast<std::uint64_t>(kAnyCost + looks));
  }
  // The reference copies all cells, asks each for each token, and when it evicts for each sequence;
  // the script follows it with a second one.
  void pay_for(const StartForward& pass) {
    const std::int64_t evicting = memory() < kMaxPosition ? 3 * std::ssize(case_.sequences) : 0;
    pay(pool() * (20 + std::ssize(pass.positions) + evicting));
  }
  void saw_sizes(const StartForward& pass) {
    if (pass.reserve) return;
    if (const CausalCache* cache = first_causal()) {
      const std::int64_t cells = cache->visible().high + 1;
      if (cells > 64) reach(Label::kMoreThan64Cells);
      if (cells > 1'024) reach(Label::kMoreThan1024Cells);
    }
    for (const auto& [sequence, before] : before_) {
      const std::int64_t lost = before + std::ranges::count(pass.seqs, sequence) - held(sequence);
      if ((evicted_[sequence] += lost) > 64) reach(Label::k64EvictionsOfASequence);
    }
    if (pass.positions.size() > 16) reach(Label::kMoreThan16Tokens);
    if (pass.positions.size() > 64) reach(Label::kMoreThan64Tokens);
    if (scale_ == Scale::kLarge) {
      const std::set<std::int64_t> together(pass.seqs.begin(), pass.seqs.end());
      if (together.size() > 64) reach(Label::k65SequencesInABatch);
      named_.insert(together.begin(), together.end());
      if (named_.size() > 64) reach(Label::k65SequencesInACase);
    }
  }

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
  // One token more of the sequence that lives, unless an old one is due.
  Op age() {
    constexpr std::int64_t kRoom = 3;
    if (was_full_ || (free() < kRoom && memory() == kMaxPosition)) {
      was_full_ = false;
      return Op::of(Remove{draw().percent(70) ? 0 : draw().between(1, 3), 0, kMaxPosition});
    }
    for (const Old& old : old_)
      if (old.visits == 0 || passes_ + 1 - old.named >= old.idle) return visit(old);
    return Op::of(StartForward{.positions = {next_position(0)}, .seqs = {0}});
  }
  // At first by itself, then behind another, so that its number in the batch is not what it was.
  Op visit(const Old& old) {
    const std::int32_t at = next_position(old.sequence);
    constexpr std::int32_t kKept = 2;
    if (at > kKept && memory() == kMaxPosition)
      return Op::of(Remove{old.sequence, 1, kMaxPosition});
    visits_ = true;
    if (old.visits % 2 == 0) return Op::of(StartForward{.positions = {at}, .seqs = {old.sequence}});
    plan(CanResume{old.sequence, at});
    return Op::of(StartForward{.positions = {next_position(0), at}, .seqs = {0, old.sequence}});
  }
  void saw_age(const StartForward& pass) {
    ++passes_;
    for (Old& old : old_) {
      if (std::ranges::find(pass.seqs, old.sequence) == pass.seqs.end()) continue;
      if (old.visits > 0 && passes_ - old.named == 256) reach(Label::kIdleFor256Passes);
      if (old.visits > 0 && passes_ - old.named == 65'536) reach(Label::kIdleFor65536Passes);
      old.named = passes_;
      ++old.visits;
    }
  }

  // ---- Planned orders ----

  // Tokens behind the last one of a sequence; nothing where they do not fit.
  std::optional<Op> tokens_of(std::int64_t sequence, std::int64_t count, bool reserve = false) {
    if (free() < count) return std::nullopt;
    StartForward pass{.reserve = reserve};
    const std::int32_t first = next_position(sequence);
    for (std::int64_t i = 0; i < count; ++i) {
      pass.positions.push_back(first + static_cast<std::int32_t>(i));
      pass.seqs.push_back(sequence);
    }
    return Op::of(std::move(pass));
  }
  // One position of a sequence, neither its first nor its last.
  std::optional<Op> middle_of(std::int64_t sequence) {
    const std::vector<std::int32_t> all = positions(sequence);
    if (all.size() < 3) return std::nullopt;
    const auto at = static_cast<std::size_t>(draw().between(1, std::ssize(all) - 2));
    return Op::of(Remove{sequence, all[at], all[at + 1]});
  }
  void choose_two() {
    one_ = case_.sequences[draw().below(case_.sequences.size())];
    other_ = one_ + 1;
  }
  // Of the first member, as init decides it (OK-10 to OK-12).
  [[nodiscard]] std::int64_t memory() const {
    const CacheConfig& member = case_.members.front();
    const std::int64_t window = member.window.value_or(0);
    if (window == 0) return kMaxPosition;
    std::int64_t memory = member.memory.value_or(0);
    if (memory == 0) memory = window;
    if (case_.init.max_sequences > 1) memory = std::max(memory, window + 1);
    return memory >= case_.init.capacity ? kMaxPosition : memory;
  }

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
  Op overfill(std::int64_t gap) {
    const auto ahead = static_cast<std::int32_t>(memory() + gap);
    std::int32_t next = next_position(one_) + ahead;
    StartForward pass{.positions = {next++, next_position(other_) + ahead}, .seqs = {one_, other_}};
    while (std::ssize(pass.positions) <= pool()) {
      pass.positions.push_back(next++);
      pass.seqs.push_back(one_);
    }
    return Op::of(std::move(pass));
  }
  // The token whose rows an encoder gets, at_; or more tokens than there are cells, the last of
  // which is that one again, and takes them out.
  Op seen_batch(bool too_large) {
    at_ = next_position(one_);
    const std::int64_t tokens = too_large ? pool() + 1 : 1;
    StartForward pass{.seqs = std::vector(static_cast<std::size_t>(tokens), one_)};
    for (std::int32_t i = 0; i < tokens; ++i) pass.positions.push_back(at_ + i);
    pass.multimodal = {0};
    if (too_large) pass.positions.back() = std::max(at_ - 1, 0);
    return Op::of(std::move(pass));
  }
  Op batch_with_rows() { return seen_batch(false); }
  Op batch_too_large() { return seen_batch(true); }
  Op put_rows(std::int64_t member) { return put(member, false); }
  void swap_sometimes() {
    if (draw().percent(50)) std::swap(one_, other_);
  }
  void be_quiet() { quiet_ = true; }
  [[nodiscard]] bool evicts() const { return memory() < kMaxPosition; }
  [[nodiscard]] bool is_large() const { return scale_ == Scale::kLarge; }
  [[nodiscard]] bool is_small() const { return scale_ == Scale::kSmall; }
  [[nodiscard]] std::int64_t held(std::int64_t sequence) const {
    return std::ssize(positions(sequence));
  }
  [[nodiscard]] std::int64_t held_position(std::int64_t sequence, std::int64_t index) const {
    return positions(sequence)[static_cast<std::size_t>(index)];
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

  // ---- What the reference has ----

  using Cells = std::vector<CausalCache::Cell>;

  /// A member; null for an encoder.
  [[nodiscard]] const CausalCache* causal(std::int64_t member) const {
    return causal_member(*reference<CacheOfCase>().cache, static_cast<std::size_t>(member));
  }
  /// The first member that has positions.
  [[nodiscard]] const CausalCache* first_causal() const {
    for (std::int64_t member = 0; is_member(member); ++member)
      if (const CausalCache* found = causal(member)) return found;
    return nullptr;
  }
  [[nodiscard]] const Cells& first_cells() const {
    static const Cells kNone;
    const CausalCache* first = first_causal();
    return first != nullptr ? first->cells() : kNone;
  }
  /// Cells of the largest pool.
  [[nodiscard]] std::int64_t pool() const {
    std::int64_t most = 0;
    for (std::int64_t member = 0; is_member(member); ++member)
      if (const CausalCache* cache = causal(member))
        most = std::max(most, std::ssize(cache->cells()));
    return most;
  }
  [[nodiscard]] std::int64_t free() const {
    return std::ranges::count_if(first_cells(), &CausalCache::Owners::empty,
                                 &CausalCache::Cell::owners);
  }
  /// The positions of a sequence, ascending.
  [[nodiscard]] std::vector<std::int32_t> positions(std::int64_t sequence) const {
    std::vector<std::int32_t> all;
    for (const CausalCache::Cell& cell : first_cells())
      if (cell.owners.contains(sequence)) all.push_back(cell.position);
    std::ranges::sort(all);
    return all;
  }
  /// The smallest position from which on the cells of a sequence are its own; kMaxPosition if the
  /// last one is shared, 0 if none is.
  [[nodiscard]] std::int32_t unshared_from(std::int64_t sequence) const {
    std::int32_t from = 0;
    std::int32_t last = -1;
    for (const CausalCache::Cell& cell : first_cells()) {
      if (!cell.owners.contains(sequence)) continue;
      last = std::max(last, cell.position);
      if (cell.owners.size() > 1) from = std::max(from, cell.position + 1);
    }
    return last >= 0 && from > last ? kMaxPosition : from;
  }
  /// Whether a cell that stays as it is lies between cells that a removal moves (OK-65).
  [[nodiscard]] bool keeps_between(const Remove& remove) const {
    bool moved = false;
    bool stays = false;  // after a moved one
    for (const CausalCache::Cell& cell : first_cells()) {
      if (!cell.owners.contains(remove.seq)) continue;
      if (cell.position >= remove.end && stays) return true;
      moved = moved || cell.position >= remove.end;
      stays = stays || (moved && cell.position < remove.begin);
    }
    return false;
  }

  [[nodiscard]] bool is_member(std::int64_t number) const {
    return number >= 0 && number < std::ssize(case_.members);
  }

  [[nodiscard]] bool lacks_shift() const {
    return std::ranges::any_of(case_.members, [](const CacheConfig& member) {
      return member.shift && !member.shift->has_value();
    });
  }

  [[nodiscard]] std::int32_t next_position(std::int64_t sequence) const {
    if (first_causal() == nullptr) {
      const auto found = next_.find(sequence);
      return found == next_.end() ? 0 : found->second;
    }
    const std::vector<std::int32_t> all = positions(sequence);
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
    if (case_.in_order || !draw().percent(1)) pass = batch();  // an empty batch is refused (OK-29)
    add_multimodal(pass);
    return Op::of(std::move(pass));
  }

  Op reserve() {
    StartForward pass = batch();
    pass.reserve = true;
    add_multimodal(pass);
    return Op::of(std::move(pass));
  }

  // Distinct and exact in the storage type, but for bf16 and what is narrower.
  Tensor rows(std::int64_t tokens, std::int64_t dim, float sign) {
    constexpr std::uint64_t kExactInF16 = 2'048;
    Tensor tensor = make_tensor({tokens, case_.heads, dim});
    if (case_.odd_rows) {
      fill_oddly(draw(), tensor);
      return tensor;
    }
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
    const std::vector<std::int32_t> all = positions(of);
    if (all.size() < 2) return remove_tail();
    const std::int32_t own = unshared_from(of);
    Remove remove{of, 0, 0};
    // Best a range that leaves cells between those it moves, in a sequence whose cells are mixed.
    for (int tries = 0; tries < 4 && !keeps_between(remove); ++tries) {
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
  // NOLINTNEXTLINE(readability-make-member-function-const): a step of a table of such functions
  Op init_again() { return Op::of(case_.init); }
  // After it nothing is left to live.
  Op close() { return scale_ == Scale::kLong ? get() : Op::of(Close{}); }

  static constexpr std::int64_t kAnyCost = 5'000;  // what any operation costs at least

  const CacheKind& kind_;
  DrawnCase case_;
  Scale scale_;
  bool documented_;
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
  bool cached_ = false;                           // what encoder_cached said last
  std::map<std::int64_t, std::int32_t> next_;     // for encoders, which have no positions
  std::map<std::int64_t, std::int64_t> before_;   // tokens of sequences before their pass
  std::map<std::int64_t, std::int64_t> evicted_;  // tokens that passes took from a sequence
  std::set<std::int64_t> named_;                  // sequences of all passes
  std::uint64_t passes_ = 0;                      // of a long life, those that had no room included
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
  static std::span<const OrderWord> order_words() {
    using S = PositionalScript;
    static constexpr auto kWords = std::to_array<OrderWord>({
        order_word<&S::choose_two>("choose_two"),
        order_word<&S::forward_of>("tokens"),
        order_word<&S::reserve_of>("reserve"),
        order_word<&S::middle_of>("remove_middle_of"),
        order_word<&S::remove_some_tail>("remove_some_tail"),
        order_word<&S::overfill>("overfill"),
        order_word<&S::batch_with_rows>("batch_with_rows"),
        order_word<&S::batch_too_large>("batch_too_large"),
        order_word<&S::put_rows>("put_rows"),
        order_word<&S::swap_sometimes>("swap_sometimes"),
        order_word<&S::be_quiet>("be_quiet"),
        order_word<&S::one_>("one"),
        order_word<&S::other_>("other"),
        order_word<&S::at_>("seen_position"),
        order_word<&S::evicts>("evicts"),
        order_word<&S::pool>("pool"),
        order_word<&S::free>("free_cells"),
        order_word<&S::is_large>("large"),
        order_word<&S::is_small>("small"),
        order_word<&S::held>("held"),
        order_word<&S::held_position>("held_position"),
        order_word<&S::next_of>("next"),
        order_word<&S::max_batch>("max_batch"),
        order_word<&S::moves>("moves"),
        order_word<&S::encoder>("encoder"),
        order_word<&S::has_encoder_before_a_member>("has_encoder_before_a_member"),
    });
    return kWords;
  }
};

Generator generator(const CacheKind& kind, const std::vector<Label>& both,
                    const std::vector<Label>& documented_only) {
  Generator made{.kind = &kind,
                 .make =
                     [&kind](const CaseTerms& terms) {
                       Draw draw(terms.seed);
                       DrawnCase drawn = draw_case(draw, kind, terms.scale);
                       Setup setup{.profile = terms.profile, .config = config_of(drawn, kind)};
                       auto script =
                           std::make_unique<PositionalScript>(draw.below(~std::uint64_t{0}), kind,
                                                              std::move(drawn), setup, terms.scale);
                       return GeneratedCase{std::move(setup), std::move(script)};
                     },
                 .original_labels = {},
                 .documented_labels = {},
                 .lives_long = std::ranges::find(both, Label::kIdleFor256Passes) != both.end()};
  for (const Label label : both) made.original_labels.push_back(label_text(label));
  made.documented_labels = made.original_labels;
  for (const Label label : documented_only) made.documented_labels.push_back(label_text(label));
  if (&kind == &kind_of(MemberKind::kEncoder)) return made;
  // Some need a window, or an encoder beside other members.
  std::vector<std::string_view> of_others;
  if (std::ranges::find(both, Label::k64EvictionsOfASequence) == both.end())
    of_others.emplace_back("refused while two evict");
  if (&kind != &wrapper_kind()) of_others.emplace_back("put after unwinding");
  return with_orders<PositionalScript>(std::move(made), of_others);
}

// What a causal cache reaches, and more.
std::vector<Label> causal_and(std::initializer_list<Label> more) {
  using enum Label;
  static constexpr std::array kOfOthers{kEncoderResultGivenUp, kResumeRefused, kMemberSelected,
                                        kRemovalRefusedForTheWindow, k64EvictionsOfASequence};
  std::vector<Label> labels;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<Label>>([&](auto one) {
    if (std::ranges::find(kOfOthers, one.value) == kOfOthers.end()) labels.push_back(one.value);
  });
  labels.insert(labels.end(), more);
  return labels;
}

}  // namespace

std::vector<Generator> generators() {
  using enum Label;
  const auto windowed = causal_and({kResumeRefused, k64EvictionsOfASequence});
  return {
      generator(kind_of(MemberKind::kCausal), causal_and({}), {kResumeRefused}),
      generator(kind_of(MemberKind::kSwa), windowed, {kRemovalRefusedForTheWindow}),
      generator(kind_of(MemberKind::kSwaMem), windowed, {kRemovalRefusedForTheWindow}),
      generator(kind_of(MemberKind::kChunked), causal_and({}), {kResumeRefused}),
      generator(kind_of(MemberKind::kEncoder),
                {kReservePass, kEncoderResultGivenUp, kFiveLayers, kFourHeads, kHeadsOf64Elements},
                {}),
      generator(wrapper_kind(),
                causal_and({kResumeRefused, k64EvictionsOfASequence, kMemberSelected}),
                {kRemovalRefusedForTheWindow})};
}

}  // namespace kvo::positional
