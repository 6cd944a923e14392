// Random cases for cells.kv and cells.iswa, and the generators of the contract.
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
#include "reference/cells/operations.hpp"
#include "reference/cells/session.hpp"

namespace kvo::cells {
namespace {

/// Config and habits of one case.
struct KvCase {
  Record config;
  KvOptions options;                         ///< what the config asks for
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

// Sizes before they are put into a config.
struct Sizes {
  std::int64_t cells = 8;
  std::int64_t window_cells = 8;
  std::int64_t n_seq_max = 1;
  std::int32_t window = 1;
};

Sizes draw_sizes(Draw& draw, bool unified, Scale scale) {
  Sizes sizes{.cells = draw.between(3, 10), .n_seq_max = draw.between(1, 4)};
  if (draw.percent(2)) sizes.n_seq_max = draw.edge(62, 129);
  sizes.window = static_cast<std::int32_t>(draw.between(1, 5));
  if (draw.percent(8)) sizes.cells = draw.size(1, 33);
  if (scale == Scale::kLong) {
    sizes = {.cells = draw.between(8, 16), .n_seq_max = draw.between(1, 2), .window = 2};
  } else if (scale == Scale::kLarge) {
    constexpr std::int64_t kMostOfAll = 8'192;
    sizes.n_seq_max = draw.percent(50) ? draw.between(1, 4) : draw.edge(4, 129);
    sizes.cells = draw.edge(16, unified ? 4'097 : kMostOfAll / sizes.n_seq_max);
    sizes.window = static_cast<std::int32_t>(draw.edge(2, 257));
  }
  sizes.window_cells = std::max<std::int64_t>(1, sizes.cells - draw.between(0, 5));
  if (draw.percent(30)) sizes.window_cells = sizes.cells;
  if (scale == Scale::kLarge) sizes.window_cells = draw.edge(16, sizes.cells);
  return sizes;
}

WindowType window_type(Draw& draw) {
  return draw.one_of(
      {WindowType::kStandard, WindowType::kStandard, WindowType::kChunked, WindowType::kSymmetric});
}

template <class Config>
void draw_rest(Draw& draw, Config& config) {
  if (draw.percent(20)) config.build = draw.percent(70) ? Build::kDebug : Build::kRelease;
  if (draw.percent(10)) config.v_trans = draw.percent(50);
  if (draw.percent(12)) config.alibi = true;
  if (draw.percent(25)) config.non_causal = draw.one_of({NonCausal::kSwaOnly, NonCausal::kSwaFull});
}

KvConfig draw_kv_config(Draw& draw, Sizes sizes, bool unified) {
  KvConfig config{.size = sizes.cells, .n_seq_max = sizes.n_seq_max, .unified = unified};
  if (draw.percent(15)) {
    config.n_pad = draw.one_of<std::int64_t>({2, 32, 256});
    while (sizes.cells % *config.n_pad != 0) config.n_pad = *config.n_pad / 2;
  }
  if (draw.percent(45)) {
    config.swa_type = window_type(draw);
    config.n_swa = sizes.window;
  }
  draw_rest(draw, config);
  if (draw.percent(8)) config.real = true;
  return config;
}

IswaConfig draw_iswa_config(Draw& draw, const Sizes& sizes, bool unified, Scale scale) {
  IswaConfig config{.size = sizes.cells,
                    .size_swa = sizes.window_cells,
                    .n_seq_max = sizes.n_seq_max,
                    .unified = unified,
                    .n_swa = sizes.window,
                    .swa_type = window_type(draw)};
  if (scale == Scale::kLarge && draw.percent(20) && sizes.cells <= 1'024) {
    config.size_swa.reset();  // as LC-67 says
    config.n_ubatch = draw.between(1, 64);
    if (draw.percent(30)) config.swa_full = true;
  }
  draw_rest(draw, config);
  return config;
}

KvCase draw_case(Draw& draw, bool pair, Scale scale) {
  KvCase drawn;
  const bool unified = draw.percent(60);
  const Sizes sizes = draw_sizes(draw, unified, scale);
  drawn.config = pair ? Record::of(draw_iswa_config(draw, sizes, unified, scale))
                      : Record::of(draw_kv_config(draw, sizes, unified));
  drawn.options = kv_options(pair ? iswa_kind() : kv_kind(), {.config = drawn.config}, {});
  for (std::int64_t seq = 0; seq < sizes.n_seq_max; ++seq)
    if (drawn.sequences.size() < 4) drawn.sequences.push_back(seq);
  if (sizes.n_seq_max > 4) drawn.sequences.back() = sizes.n_seq_max - 1;
  if (draw.percent(20)) drawn.first_position = static_cast<std::int32_t>(draw.between(1, 6));
  if (draw.percent(5)) drawn.first_position = 1'000'000'000;
  return drawn;
}

// Sequences whose order in a set of the followed system is that of the caller (LC-38).
bool may_be_together(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kBuckets = 13;
  return a % kBuckets != b % kBuckets;
}

std::int32_t int32_of(std::int64_t number) {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(number, -std::int64_t{kMaxPosition} - 1, kMaxPosition));
}

}  // namespace

// States worth reaching besides those that are marked in the reference.
BOOST_DEFINE_FIXED_ENUM_CLASS(KvLabel, std::uint8_t, kFull, kFullAndRecovered, kInvalidBatch,
                              kSeveralUbatches, kSearchWrapped, kTokenOfSeveral, kStandardWindow,
                              kChunkedWindow, kSymmetricWindow, kNotCausal, kNotCausalInPart,
                              kDistanceBias, kRestored, kRestoredElsewhere, kRestoreFailed,
                              kWholeRestored, kAlteredStateLoaded, kFound, kFoundAdjacent,
                              kNotFoundAdjacent, kMisused,
                              // In one profile.
                              kUbatchTooLarge, kOverlappingSets,
                              // Sizes.
                              kMoreThan64Cells, kMoreThan1024Cells, kMaskBeyond256Cells,
                              kMaskOfAPart, k65Tokens, kNineSequencesInABatch, k65Sequences,
                              kPositionsBeyondABillion, kCountedBeyondTwoBytes)

namespace {

class KvScript final : public ScriptGenerator<KvScript, Ops, KvLabel> {
  using S = KvScript;
  using Label = KvLabel;

 public:
  KvScript(const CaseTerms& terms, KvCase drawn)
      : ScriptGenerator(terms),
        drawn_(std::move(drawn)),
        explicit_percent_(draw().one_of<std::uint64_t>({0, 40, 90})),
        perturb_percent_(draw().one_of<std::uint64_t>({0, 0, 4, 20})),
        several_percent_(draw().one_of<std::uint64_t>({0, 0, 25})),
        not_causal_percent_(draw().one_of<std::uint64_t>({0, 0, 20})) {}

  std::optional<Op> choose() override {
    if (cache_ == nullptr && !has_plan()) return Op::of(New{});
    return ScriptGenerator::choose();
  }

  // Steps.
  Op one_token() {
    if (is_long() && was_full_) {
      was_full_ = false;
      return Op::of(SeqRm{-1, -1, -1});
    }
    return tokens(sequence(), 1, 1);
  }
  Op decode() {
    Decode batch;
    const bool several = draw().percent(several_percent_);
    batch.pos = std::vector<std::int32_t>();
    if (several) add_tokens_of_several(batch);
    if (!several || draw().percent(30)) add_tokens(batch);
    if (draw().percent(60)) mix(batch);
    if (!draw().percent(explicit_percent_)) batch.pos = std::nullopt;
    batch.n_ubatch = ubatch_of(batch);
    if (draw().percent(not_causal_percent_) && std::ssize(batch.seqs) <= batch.n_ubatch)
      batch.causal = false;
    if (draw().percent(5)) batch.causal = batch.causal.value_or(true);
    if (options().real && draw().percent(20)) batch.abort_at = draw().between(0, 2);
    if (draw().percent(perturb_percent_) && batch.causal.value_or(true)) perturb(batch);
    return Op::of(std::move(batch));
  }
  Op find_slot() {
    FindSlot search;
    const bool swa = drawn_.options.size_window.has_value() && draw().percent(50);
    const std::int64_t cells = swa ? drawn_.narrow() : options().size;
    const std::int64_t count = draw().percent(10) ? cells + 1 : draw().size(1, cells);
    const std::int64_t seq = sequence();
    for (std::int64_t i = 0; i < count; ++i) {
      search.pos.push_back(static_cast<std::int32_t>(i));
      search.seqs.push_back({seq});
    }
    if (draw().percent(40)) search.cont = draw().percent(85);
    if (swa) search.swa = true;
    return Op::of(std::move(search));
  }
  Op seq_rm() {
    std::int64_t seq = sequence();
    if (draw().percent(8)) seq = -1;
    if (stray()) seq = beyond();
    const auto [p0, p1] = range(seq);
    return Op::of(SeqRm{seq, p0, p1});
  }
  Op seq_cp() {
    std::int64_t src = sequence();
    std::int64_t dst = sequence();
    if (dst == src && draw().percent(80)) dst = (src + 1) % options().n_seq_max;
    if (stray()) (draw().percent(50) ? src : dst) = beyond();
    if (options().unified) {
      if (draw().percent(3)) dst = draw().between(options().n_seq_max, kSequences - 1);
      const auto [p0, p1] = range(src);
      return Op::of(SeqCp{src, dst, p0, p1});
    }
    SeqCp copy{src, dst, -1, -1};
    if (draw().percent(30)) {
      const std::int32_t last = int32_of(options().size - 1);
      const std::int32_t end = int32_of(extremes(src).max + 1);
      copy.p0 = draw().one_of<std::int32_t>({-1, 0, 0, last, 1});
      copy.p1 = draw().one_of<std::int32_t>({-1, 0, last, last + 1, end, 1});
    }
    return Op::of(copy);
  }
  Op seq_keep() { return Op::of(SeqKeep{stray() ? beyond() : sequence()}); }
  Op seq_add() {
    const std::int64_t seq = stray() ? beyond() : sequence();
    const auto [p0, p1] = range(seq);
    std::int64_t delta = draw().between(-4, 4);
    // As engines close a gap.
    if (draw().percent(40) && p0 > 0) delta = -draw().between(1, std::min<std::int64_t>(p0, 9));
    if (draw().percent(3)) delta = draw().percent(60) ? draw().border() : -draw().border();
    return Op::of(SeqAdd{seq, p0, p1, int32_of(delta)});
  }
  Op seq_div() {
    const std::int64_t seq = stray() ? beyond() : sequence();
    const auto [p0, p1] = range(seq);
    return Op::of(SeqDiv{seq, p0, p1, stray() ? 0 : int32_of(draw().between(1, 4))});
  }
  Op seq_pos() { return Op::of(SeqPos{stray() ? beyond() : sequence()}); }
  Op can_shift() { return Op::of(CanShift{}); }
  Op clear() { return Op::of(Clear{draw().percent(50)}); }
  Op update() { return Op::of(UpdatePending{}); }
  Op save() {
    StateSave save{.seq = draw().percent(25) ? -1 : sequence()};
    if (stray()) save.seq = kSequences;
    const bool partial = options().size_window && draw().percent(30);
    if (partial || draw().percent(5)) save.partial = partial;
    return Op::of(save);
  }
  Op load() {
    if (saved_.empty()) return save();
    const std::size_t handle = draw().below(saved_.size());
    const Saved& saved = saved_[handle];
    StateLoad load{.handle = static_cast<std::int64_t>(handle), .seq = saved.seq};
    if (saved.seq >= 0 && draw().percent(40)) load.seq = sequence();
    if (draw().percent(8)) load.seq = draw().percent(50) ? -1 : sequence();
    if (saved.partial) load.partial = true;
    return Op::of(load);
  }
  // One thing of a saved state is made a lie.
  Op edit() {
    if (saved_.empty()) return save();
    StateEdit edit{.handle = static_cast<std::int64_t>(draw().below(saved_.size()))};
    if (options().size_window && draw().percent(50)) edit.swa = true;
    edit.stream = draw().between(0, options().streams() - 1);
    const std::uint64_t what = draw().below(4);
    if (what == 0)
      edit.cells = draw().between(0, 4);
    else
      edit.cell = draw().between(0, 2);
    if (what == 1) edit.pos = int32_of(draw().between(-1, 9));
    if (what == 2) edit.seqs = std::vector<std::int64_t>();
    if (what == 3) edit.seqs = std::vector<std::int64_t>{sequence()};
    if (what == 3 && options().n_seq_max > 1 && draw().percent(50)) edit.seqs = {{0, 1}};
    return Op::of(std::move(edit));
  }
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

  static const CacheKind& order_kind() { return kv_kind(); }
  static std::span<const OrderWord> order_words() {
    static constexpr auto kWords = std::to_array<OrderWord>({
        order_word<&S::choose_one>("choose"),
        order_word<&S::choose_two>("choose_two"),
        order_word<&S::tokens>("tokens"),
        order_word<&S::tokens_that_do_not_fit>("tokens_that_do_not_fit"),
        order_word<&S::load_last>("load_last"),
        order_word<&S::is_unified>("unified"),
        order_word<&S::a_>("a"),
        order_word<&S::b_>("b"),
        order_word<&S::third>("third"),
        order_word<&S::numbered>("sequence"),
        order_word<&S::sequence_count>("sequences"),
        order_word<&S::narrow>("cells"),
        order_word<&S::window>("window"),
        order_word<&S::was_full_>("full"),
        order_word<&S::load_failed_>("load_failed"),
    });
    return kWords;
  }

  // What became of an operation.
  void observe(const New& /*op*/, const Observation& /*seen*/) {
    cache_ = reference<ShowsCache<KvCache>>().shown_cache();
    saved_.clear();
    recovers_ = was_full_ = false;
    if (options().size > 64) reach(Label::kMoreThan64Cells);
    if (options().size > 1024) reach(Label::kMoreThan1024Cells);
  }
  void observe(const Decode& op, const Observation& seen) {
    const std::int64_t tokens = std::ssize(op.seqs);
    was_full_ = false;
    if (seen.failed_with(Code::kPrecondition)) return saw_refusal(seen);
    constexpr std::int64_t kPasses = 12;
    changed(kPasses * drawn_.all_cells() + tokens * (drawn_.narrow() + options().size));
    if (seen.error && seen.error->code_text() == "other:invalid_batch")
      return reach(Label::kInvalidBatch);
    if (seen.failed_with(Code::kFull)) {
      saw_full();
      return plan_next(Op::of(ShowState{}));
    }
    if (seen.error) return;
    if (std::exchange(recovers_, false)) reach(Label::kFullAndRecovered);
    saw_batch(op);
    const auto& ubatches = seen.as<Decode::Returns>().ubatches;
    if (!ubatches) return;
    if (ubatches->size() > 1) reach(Label::kSeveralUbatches);
    for (const ShownUbatch& ubatch : *ubatches) saw_ubatch(ubatch, op);
  }
  void observe(const FindSlot& op, const Observation& seen) {
    pay(4 * drawn_.all_cells());
    const bool adjacent = op.cont.value_or(false);
    if (seen.failed_with(Code::kFull) && adjacent) reach(Label::kNotFoundAdjacent);
    if (!seen.error) reach(adjacent ? Label::kFoundAdjacent : Label::kFound);
  }
  template <OneOf<SeqRm, SeqCp, SeqKeep, SeqAdd, SeqDiv, Clear, UpdatePending> T>
  void observe(const T& /*op*/, const Observation& seen) {
    if (seen.error) return saw_refusal(seen);
    changed(2 * drawn_.all_cells());
  }
  void observe(const SeqPos& /*op*/, const Observation& seen) {
    pay(drawn_.all_cells());
    saw_refusal(seen);
  }
  void observe(const StateSave& op, const Observation& seen) {
    pay(3 * drawn_.all_cells());
    if (seen.error) return saw_refusal(seen);
    saved_.push_back({op.seq, op.partial.value_or(false)});
  }
  void observe(const StateLoad& op, const Observation& seen) {
    load_failed_ = seen.error && seen.error->code == Code::kOther;
    if (load_failed_) reach(Label::kRestoreFailed);
    if (!load_failed_ && seen.error) return saw_refusal(seen);
    changed(4 * drawn_.all_cells());
    if (seen.error) return;
    const Saved& saved = saved_[static_cast<std::size_t>(op.handle)];
    reach(op.seq < 0 ? Label::kWholeRestored : Label::kRestored);
    if (op.seq >= 0 && op.seq != saved.seq) reach(Label::kRestoredElsewhere);
    if (saved.altered) reach(Label::kAlteredStateLoaded);
  }
  void observe(const StateEdit& op, const Observation& seen) {
    if (seen.error) return saw_refusal(seen);
    Saved& saved = saved_[static_cast<std::size_t>(op.handle)];
    saved.altered = true;
    const bool partial = saved.partial;
    StateLoad load{.handle = op.handle, .seq = saved.seq};
    if (partial) load.partial = true;
    if (draw().percent(70)) plan(load);
  }
  void observe(const ShowRows& /*op*/, const Observation& /*seen*/) { pay(6 * drawn_.all_cells()); }
  void observe(const ShowState& /*op*/, const Observation& /*seen*/) {
    constexpr std::int64_t kSequencesLookedAt = 32;  // 256, at a glance
    pay(kSequencesLookedAt * drawn_.all_cells());
  }

 private:
  struct Saved {
    std::int64_t seq = 0;
    bool partial = false;
    bool altered = false;
  };
  // Something may have changed; mostly a look at it follows.
  void changed(std::int64_t cost) {
    pay(cost);
    if (is_long() || !draw().percent(is_large() ? 15 : 55)) return;
    plan(ShowState{});
    if (draw().percent(25)) plan(ShowRows{});
  }
  void pay(std::int64_t cells) {
    constexpr std::int64_t kAnyCost = 2'000;
    if (is_large()) spend(static_cast<std::uint64_t>(kAnyCost + cells));
  }
  void saw_refusal(const Observation& seen) {
    if (seen.failed_with(Code::kPrecondition)) reach(Label::kMisused);
  }
  void saw_full() {
    reach(Label::kFull);
    was_full_ = recovers_ = true;
    if (follows_plan() || is_long() || !draw().percent(60)) return;
    // An engine makes room.
    const std::int64_t seq = sequence();
    const auto [p0, p1] = range(seq);
    plan(SeqRm{seq, draw().percent(50) ? -1 : p0, p1});
  }
  void saw_batch(const Decode& op) {
    if (op.seqs.size() > 64) reach(Label::k65Tokens);
    std::set<std::int64_t> named;
    for (const auto& seqs : op.seqs) {
      named.insert(seqs.begin(), seqs.end());
      if (seqs.size() > 1) reach(Label::kTokenOfSeveral);
    }
    if (named.size() > 8) reach(Label::kNineSequencesInABatch);
    if (*named.rbegin() > 64) reach(Label::k65Sequences);
    if (!op.causal.value_or(true))
      reach(options().non_causal == NonCausal::kAll ? Label::kNotCausal : Label::kNotCausalInPart);
    if (options().alibi) reach(Label::kDistanceBias);
    // As perturb() makes them.
    if (op.seqs.front() == std::vector<std::int64_t>{0, 1} &&
        op.seqs.back() == std::vector<std::int64_t>{1, 2})
      reach(Label::kOverlappingSets);
    constexpr std::int32_t kBillion = 1'000'000'000;
    if (op.pos.has_value() && (*op.pos)[0] >= kBillion) reach(Label::kPositionsBeyondABillion);
    if (drawn_.has_window() && extremes(op.seqs[0][0]).max >= window()) saw_window();
  }
  void saw_ubatch(const ShownUbatch& ubatch, const Decode& op) {
    if (std::ssize(ubatch.rows) > op.n_ubatch) reach(Label::kUbatchTooLarge);
    if (options().unified && !std::ranges::is_sorted(ubatch.slots_swa.value_or(ubatch.slots)))
      reach(Label::kSearchWrapped);
    constexpr std::int64_t kLeastMask = 256;
    if (ubatch.n_kv > kLeastMask) reach(Label::kMaskBeyond256Cells);
    if (ubatch.n_kv < options().size) reach(Label::kMaskOfAPart);
  }
  void saw_window() {
    if (options().window.type == WindowType::kStandard) reach(Label::kStandardWindow);
    if (options().window.type == WindowType::kChunked) reach(Label::kChunkedWindow);
    if (options().window.type == WindowType::kSymmetric) reach(Label::kSymmetricWindow);
  }
  // ---- Drawing ----
  [[nodiscard]] const KvOptions& options() const { return drawn_.options; }
  /// A sequence of the case.
  std::int64_t sequence() { return drawn_.sequences[draw().below(drawn_.sequences.size())]; }
  /// A sequence that calls may not name.
  std::int64_t beyond() {
    return draw().percent(50) ? -2 : (options().unified ? kSequences : options().n_seq_max);
  }
  /// Whether an argument is to be one that is refused.
  [[nodiscard]] bool stray() { return draw().percent(1); }
  [[nodiscard]] Extremes extremes(std::int64_t seq) const {
    const auto found = cache_->seq_pos(seq);
    return found ? *found : Extremes();
  }
  /// Where the next token of a sequence goes.
  std::int32_t next_position(std::int64_t seq) {
    const std::int64_t max = extremes(seq).max;
    if (max >= 0) return int32_of(max + 1);
    return draw().percent(70) ? drawn_.first_position : 0;
  }
  std::pair<std::int32_t, std::int32_t> range(std::int64_t seq) {
    const Extremes of = extremes(seq);
    const auto at = [&] {
      return int32_of(draw().between(std::max<std::int64_t>(of.min, 0), of.max));
    };
    std::int32_t p0 = at();
    std::int32_t p1 = at();
    if (p1 < p0) std::swap(p0, p1);
    switch (draw().below(8)) {
      case 0:
      case 1:
        return {-1, -1};
      case 2:
      case 3:
        return {p0, -1};
      case 4:
        return {draw().percent(50) ? -1 : 0, p1};
      case 5:
        return draw().one_of<std::pair<std::int32_t, std::int32_t>>(
            {{p0, p0}, {p1, p0}, {p1 + 1, p1 + 3}, {0, p1 + 2}});
      default:
        return {p0, p1 + 1};
    }
  }
  std::int64_t token_count() {
    const std::int64_t cells = drawn_.narrow();
    if (is_long()) return 1;
    if (is_large() && draw().percent(40))
      return draw().edge(4, std::min<std::int64_t>(cells, 1'025));
    if (draw().percent(4)) return draw().between(cells - 1, cells + 2);
    return draw().percent(40) ? 1 : draw().between(1, 4);
  }
  // Tokens of some sequences, one sequence after another.
  void add_tokens(Decode& batch) {
    const std::int64_t most = is_large() && draw().percent(25) ? options().n_seq_max : 3;
    const std::int64_t count = draw().between(1, std::min(most, options().n_seq_max));
    const std::int64_t first = draw().between(0, options().n_seq_max - count);
    const bool neighbours = draw().percent(50) || count > 4;
    std::set<std::int64_t> done;
    for (const auto& seqs : batch.seqs) done.insert(seqs.begin(), seqs.end());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t seq = neighbours ? first + i : sequence();
      if (!done.insert(seq).second) continue;
      const std::int32_t from = next_position(seq);
      const std::int64_t tokens = count > 4 ? draw().between(1, 3) : token_count();
      for (std::int64_t t = 0; t < tokens; ++t) {
        batch.pos.value->push_back(int32_of(from + t));
        batch.seqs.push_back({seq});
      }
    }
  }
  // Tokens that are of several sequences, and some that are of one of these.
  void add_tokens_of_several(Decode& batch) {
    const std::int64_t a = sequence();
    std::vector<std::int64_t> together{a};
    for (const std::int64_t seq : drawn_.sequences) {
      const bool fits = std::ranges::all_of(
          together, [&](std::int64_t other) { return may_be_together(seq, other); });
      if (fits && extremes(seq) == extremes(a) && draw().percent(70)) together.push_back(seq);
    }
    if (draw().percent(50)) std::ranges::reverse(together);
    const std::int32_t from = next_position(a);
    const std::int64_t count = draw().between(1, 3);
    for (std::int64_t t = 0; t < count; ++t) {
      batch.pos.value->push_back(int32_of(from + t));
      batch.seqs.push_back(together);
      if (draw().percent(4)) batch.seqs.back().push_back(together.front());
    }
    for (const std::int64_t seq : together)
      if (draw().percent(25)) {
        batch.pos.value->push_back(int32_of(from + count));
        batch.seqs.push_back({seq});
      }
  }
  // The tokens of sequences in turns: those of each stay in order.
  void mix(Decode& batch) {
    std::vector<std::size_t> order(batch.seqs.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return (*batch.pos)[i]; });
    Decode mixed;
    mixed.pos = std::vector<std::int32_t>();
    for (const std::size_t i : order) {
      mixed.pos.value->push_back((*batch.pos)[i]);
      mixed.seqs.push_back(std::move(batch.seqs[i]));
    }
    batch.pos = std::move(mixed.pos);
    batch.seqs = std::move(mixed.seqs);
  }
  // Makes a batch one that LC-31 refuses, or a surprising one that passes.
  void perturb(Decode& batch) {
    if (batch.seqs.empty()) return;
    const std::size_t i = draw().below(batch.seqs.size());
    const std::uint64_t what = draw().below(6);
    if (what == 0) {
      batch.pos = std::nullopt;
      batch.seqs.clear();
    } else if (what == 1) {
      batch.seqs[i] = {draw().percent(50) ? options().n_seq_max : -1};
    } else if (what == 2 && options().n_seq_max > 2 && drawn_.sequences.size() > 2) {
      // Overlapping sets of sequences that have nothing yet pass.
      batch.pos = std::vector<std::int32_t>{0, 1, 2};
      batch.seqs = {{0, 1}, {1}, {1, 2}};
      if (draw().percent(50)) batch.pos = std::vector<std::int32_t>{0, 0, 1};
      if (draw().percent(50)) {
        batch.pos = std::vector<std::int32_t>{0, 1};
        batch.seqs = {{0, 1}, {1, 2}};
      }
    } else if (batch.pos.has_value() && what == 3) {
      (*batch.pos.value)[i] += 1;
    } else if (batch.pos.has_value() && what == 4 && (*batch.pos)[i] > 0) {
      (*batch.pos.value)[i] -= 1;
    } else if (batch.pos.has_value()) {
      batch.pos.value->push_back((*batch.pos)[i]);
      batch.seqs.push_back(batch.seqs[i]);
    }
  }
  std::int64_t ubatch_of(const Decode& batch) {
    const auto all = std::max<std::int64_t>(std::ssize(batch.seqs), 1);
    if (draw().percent(50)) return all + draw().between(0, 3);
    if (is_large()) return draw().edge(std::max<std::int64_t>(all / 8, 2), all);
    return draw().between(1, 4);
  }

  // ---- For orders ----
  void choose_one() { (void)choose_two(); }
  bool choose_two() {
    a_ = sequence();
    b_ = a_;
    for (const std::int64_t seq : drawn_.sequences)
      if (seq != a_ && (b_ == a_ || draw().percent(50))) b_ = seq;
    return a_ != b_;
  }
  /// So many tokens behind the last one of a sequence.
  Op tokens(std::int64_t seq, std::int64_t count, std::int64_t n_ubatch) {
    Decode batch;
    batch.seqs.assign(static_cast<std::size_t>(std::max<std::int64_t>(count, 1)), {seq});
    batch.n_ubatch = std::max<std::int64_t>(n_ubatch, 1);
    return Op::of(std::move(batch));
  }
  std::int64_t third() {
    std::int64_t other = 0;
    for (const std::int64_t seq : drawn_.sequences)
      if (seq != a_ && seq != b_) other = seq;
    return other;
  }
  std::int64_t numbered(std::int64_t index) {
    return drawn_.sequences[static_cast<std::size_t>(std::min(index, sequence_count() - 1))];
  }
  [[nodiscard]] std::int64_t sequence_count() const { return std::ssize(drawn_.sequences); }
  [[nodiscard]] std::int64_t narrow() const { return drawn_.narrow(); }
  [[nodiscard]] bool is_unified() const { return options().unified; }
  Op load_last(std::int64_t seq) {
    return Op::of(StateLoad{std::ssize(saved_) - 1, seq, std::nullopt});
  }
  // The first ubatches find room, a later one does not.
  Op tokens_that_do_not_fit(std::int64_t seq) {
    const std::int64_t cells = drawn_.narrow();
    if (window() > 1) return tokens(seq, 2 * cells, cells);
    return tokens(seq, cells + 1, draw().between(1, 3));
  }
  /// Positions that a window keeps, at most.
  [[nodiscard]] std::int64_t window() const {
    return drawn_.has_window() ? options().window.size : 0;
  }

  KvCase drawn_;
  std::uint64_t explicit_percent_;  // batches with positions
  std::uint64_t perturb_percent_;   // batches out of the ordinary
  std::uint64_t several_percent_;   // batches with tokens of several sequences
  std::uint64_t not_causal_percent_;
  KvCache* cache_ = nullptr;  // of the reference
  std::vector<Saved> saved_;
  bool was_full_ = false;     // the last decode had no room
  bool load_failed_ = false;  // the last load
  bool recovers_ = false;     // a decode had no room, and none succeeded since
  std::int64_t a_ = 0;        // sequences of the plan that is followed
  std::int64_t b_ = 0;
};

GeneratedCase make_kv(const CaseTerms& terms, bool pair) {
  Draw draw(~terms.seed);
  KvCase drawn = draw_case(draw, pair, terms.scale);
  Setup setup{.profile = terms.profile, .config = drawn.config};
  return {std::move(setup), std::make_unique<KvScript>(terms, std::move(drawn))};
}

Generator generator(const CacheKind& kind, bool pair) {
  return with_orders<KvScript>(script_generator<KvLabel>(
      kind, [pair](const CaseTerms& terms) { return make_kv(terms, pair); },
      {KvLabel::kUbatchTooLarge, KvLabel::kOverlappingSets}, {}));
}

}  // namespace

std::vector<Generator> generators() {
  return {meta_generator(), generator(kv_kind(), false), generator(iswa_kind(), true),
          recurrent_generator()};
}

}  // namespace kvo::cells
