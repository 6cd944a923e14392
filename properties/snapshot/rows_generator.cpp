// Random scripts for snapshot.kv and snapshot.rotating.
#include <algorithm>
#include <memory>
#include <set>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/snapshot/contract.hpp"
#include "properties/snapshot/handles.hpp"
#include "reference/contract/values/tags.hpp"

namespace kvo::snapshot {
namespace {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(RowsLabel, std::uint8_t, kRewound, kRestored, kRestoredForward,
                              kRestoreRefused, kMerged, kMergedWithNothing, kMergeRefused,
                              kSplitInside, kSplitAtAnEdge, kClosedTwice, kUsedAfterClose,
                              kUpdatedWithNothing, kMisfit, kAnotherType, kGrownBeyondAStep,
                              kFreedWithSnapshots, kRestoredIntoAnotherCache, kReturnedPairReread,
                              kRingWrapped, kChunkOnAWrappedRing, kFirstChunkBeyondTheWindow,
                              kForeignWindow, kLongRingWrapped, kSplitAgain, kMergedAgain,
                              kTakenOfARestoredCache, kForkedAndWritten)

constexpr std::int64_t kMostWindow = 65;
constexpr std::int64_t kLongestWindow = 4096;

class RowsScript final : public ScriptGenerator<RowsScript, RowsOps, RowsLabel> {
  using S = RowsScript;
  using Label = RowsLabel;

 public:
  /// A window of 0: all tokens are kept.
  RowsScript(std::uint64_t seed, std::int64_t window)
      : ScriptGenerator(seed),
        window_(window),
        numbers_pairs_(draw().percent(12)),
        batch_(is_long() ? 1 : draw().between(1, 2)),
        heads_(is_long() ? 1 : draw().between(1, 3)),
        k_dim_(is_long() ? 1 : draw().size(1, 9)),
        v_dim_(is_long() || draw().percent(70) ? k_dim_ : draw().size(1, 9)),
        type_(draw().percent(75) ? DType::kF32 : DType::kF16) {}

  std::optional<Op> next() override { return begun_ ? ScriptGenerator::next() : Op::of(New{}); }

  // Steps.
  Op one() { return update(1); }
  Op chunk() {
    // About one time round, so that few operations wrap it.
    if (is_long() && draw().percent(40)) return update(window_ + draw().between(-2, 2));
    const std::int64_t most = window_ > 0 ? 2 * window_ + 3 : 48;
    return update(draw().size(2, std::max<std::int64_t>(most, 3)));
  }
  // Past the growth step of 256 tokens.
  Op long_chunk() { return update(draw().between(200, 300)); }
  Op nothing() { return update(0); }
  Op misfit() {
    auto [k, v] = rows(draw().between(1, 3), k_dim_ + 1, v_dim_, type_);
    return Op::of(Update{std::move(k), std::move(v)});
  }
  Op other_type() {
    const DType other = type_ == DType::kF32 ? DType::kF16 : DType::kF32;
    auto [k, v] = rows(draw().between(1, 3), k_dim_, v_dim_, other);
    return Op::of(Update{std::move(k), std::move(v)});
  }
  Op state() { return Op::of(ShowState{}); }
  Op offset() { return Op::of(Offset{}); }
  Op free() { return Op::of(Free{}); }
  Op take() {
    if (numbers_pairs_) return reread();
    const std::int64_t from = draw().percent(30) ? 0 : draw().between(-1, offset_ + 1);
    return Op::of(Take{from});
  }
  Op rewind() { return Op::of(Restore{std::nullopt, draw().between(-1, offset_ + 1)}); }
  Op restore() {
    const Nullable<std::int64_t> handle = handles_.any(draw());
    const Handles::Known* known = handles_.find(handle);
    const std::int64_t end = known != nullptr ? known->to : offset_;
    const std::int64_t begin = known != nullptr && draw().percent(70) ? known->from : 0;
    return Op::of(Restore{handle, draw().percent(50) ? end : draw().between(begin - 1, end + 1)});
  }
  Op merge() { return Op::of(Merge{handles_.any(draw()), handles_.any(draw())}); }
  Op split() {
    const Nullable<std::int64_t> handle = handles_.any(draw());
    const Handles::Known* known = handles_.find(handle);
    if (known == nullptr) return Op::of(Split{handle, draw().between(-1, 5)});
    return Op::of(Split{handle, draw().between(known->from - 1, known->to + 1)});
  }
  // Two that adjoin: one is split, and its halves are merged.
  Op split_and_merge() {
    const Nullable<std::int64_t> handle = handles_.any(draw());
    const Handles::Known* known = handles_.find(handle);
    if (known == nullptr || known->to - known->from < 2) return take();
    merges_halves_ = true;
    return Op::of(Split{handle, draw().between(known->from + 1, known->to - 1)});
  }
  // Leaves, comes back, and goes on.
  Op away_and_back() {
    if (numbers_pairs_) return reread();
    away_ = true;
    return Op::of(Take{0});
  }
  // Two caches come of one snapshot, each goes on, and both are seen again.
  Op fork_and_write_both() {
    if (numbers_pairs_) return reread();
    forks_ = true;
    return Op::of(Take{0});
  }
  Op close() { return Op::of(Close{handles_.some(draw())}); }
  Op reread() {
    if (numbers_pairs_) return Op::of(Reread{draw().between(1, std::max<std::int64_t>(pairs_, 1))});
    return Op::of(Reread{handles_.some(draw())});
  }
  Op make() {
    if (window_ == 0 || draw().percent(50)) return Op::of(New{});
    return Op::of(New{draw().percent(5) ? draw().between(1, 3) : draw().size(1, kMostWindow)});
  }

  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {30, "single token", &S::one, true},
      {8, "chunk", &S::chunk},
      {1, "long chunk", &S::long_chunk},
      {1, "no tokens", &S::nothing},
      {1, "misfit", &S::misfit},
      {1, "other type", &S::other_type},
      {6, "state", &S::state, true},
      {3, "offset", &S::offset},
      {1, "free", &S::free},
      {10, "snapshot", &S::take, true},
      {4, "rewind", &S::rewind},
      {10, "restore", &S::restore},
      {3, "merge", &S::merge},
      {5, "split", &S::split},
      {4, "split and merge", &S::split_and_merge},
      {4, "away and back", &S::away_and_back},
      {2, "fork and write both", &S::fork_and_write_both},
      {3, "close", &S::close},
      {6, "reread", &S::reread, true},
      {1, "new", &S::make},
  });

  // What became of an operation.
  void saw(const New& made, const Observation& seen) {
    if (seen.error) return;
    begun_ = true;
    if (window_ > 0) live_window_ = made.max_size.value_or(window_);
    ++caches_;
    restored_ = false;
    offset_ = 0;
  }
  void saw(const Update& update, const Observation& seen) {
    const std::int64_t tokens = update.k.shape.size() > 2 ? update.k.shape[2] : 0;
    const bool misfit = update.k.shape.size() > 3 && update.k.shape[3] != k_dim_;
    if (misfit) reach(Label::kMisfit);
    if (update.k.dtype != type_) reach(Label::kAnotherType);
    if (seen.error) return;
    if (update.keep.value_or(false)) ++pairs_;
    if (tokens == 0) reach(Label::kUpdatedWithNothing);
    if (live_window_ > 0 && offset_ > live_window_ && tokens > 1)
      reach(Label::kChunkOnAWrappedRing);
    if (live_window_ > 0 && offset_ == 0 && tokens > live_window_)
      reach(Label::kFirstChunkBeyondTheWindow);
    constexpr std::int64_t kGrowth = 256;
    if (offset_ / kGrowth != (offset_ + tokens) / kGrowth && offset_ > 0)
      reach(Label::kGrownBeyondAStep);
    offset_ += tokens;
    if (live_window_ > 0 && offset_ > live_window_) reach(Label::kRingWrapped);
    if (live_window_ > kMostWindow && offset_ > live_window_) reach(Label::kLongRingWrapped);
  }
  void saw(const Take& /*op*/, const Observation& seen) {
    if (seen.error) return;
    const auto& taken = seen.as<Numbered>();
    handles_.remember(taken, live_window_);
    taken_in_[taken.handle.value.value_or(0)] = caches_;
    if (restored_ && taken.handle.has_value()) reach(Label::kTakenOfARestoredCache);
    if (std::exchange(forks_, false) && taken.handle.has_value()) plan_fork(*taken.handle);
    if (std::exchange(away_, false) && taken.handle.has_value()) {
      plan(Restore{std::nullopt, draw().between(0, offset_)});
      if (draw().percent(50)) plan(update(draw().between(1, 2)));
      plan(Restore{taken.handle, offset_});
      plan(update(1));
      plan(ShowState{});
    }
  }
  void saw(const Restore& restore, const Observation& seen) {
    const bool closed = restore.handle.has_value() && handles_.is_closed(*restore.handle);
    if (seen.error) {
      if (closed) reach(Label::kUsedAfterClose);
      return;
    }
    const auto& done = seen.as<Restore::Returns>();
    const Handles::Known* known = handles_.find(restore.handle);
    if (known != nullptr && known->window != live_window_) reach(Label::kForeignWindow);
    if (!done.ok) return reach(Label::kRestoreRefused);
    if (known == nullptr && done.offset < offset_) reach(Label::kRewound);
    if (known != nullptr) reach(Label::kRestored);
    restored_ = restored_ || known != nullptr;
    if (known != nullptr && done.offset > offset_) reach(Label::kRestoredForward);
    if (known != nullptr && taken_in_[*restore.handle] != caches_)
      reach(Label::kRestoredIntoAnotherCache);
    offset_ = done.offset;
  }
  void saw(const Merge& merge, const Observation& seen) {
    if (seen.error) return reach(Label::kMergeRefused);
    const auto& merged = seen.as<Numbered>();
    const bool both = merge.parent.has_value() && merge.child.has_value();
    if (!both) reach(Label::kMergedWithNothing);
    if (both && merged.handle.has_value()) reach(Label::kMerged);
    if (both && (made_of_others_.contains(*merge.parent) || made_of_others_.contains(*merge.child)))
      reach(Label::kMergedAgain);
    if (both && merged.handle.has_value()) made_of_others_.insert(*merged.handle);
    for (const auto& side : {merge.parent, merge.child})
      if (side.has_value() && side != merged.handle) handles_.close(side);
    handles_.remember(merged, live_window_);
  }
  void saw(const Split& split, const Observation& seen) {
    const bool merges = std::exchange(merges_halves_, false);
    if (seen.error) return;
    const auto& halves = seen.as<Split::Returns>();
    const bool inside = halves.parent.has_value() && halves.child.has_value();
    if (inside) reach(Label::kSplitInside);
    if (!inside && split.handle.has_value()) reach(Label::kSplitAtAnEdge);
    if (inside && made_of_others_.contains(*split.handle)) reach(Label::kSplitAgain);
    for (const auto& half : {halves.parent, halves.child})
      if (inside) made_of_others_.insert(*half->handle);
    if (inside) handles_.close(split.handle);
    for (const auto& half : {halves.parent, halves.child})
      if (half.has_value()) handles_.remember(*half, live_window_);
    if (inside && merges) plan(Merge{halves.parent->handle, halves.child->handle});
  }
  void saw(const Close& close, const Observation& seen) {
    if (handles_.is_closed(close.handle) && seen.error) reach(Label::kClosedTwice);
    handles_.close(close.handle);
  }
  void saw(const Free& /*op*/, const Observation& seen) {
    if (seen.error) return;
    if (!handles_.empty()) reach(Label::kFreedWithSnapshots);
    offset_ = 0;
  }
  void saw(const Reread& /*op*/, const Observation& seen) {
    if (std::exchange(forked_, false) && !seen.error) reach(Label::kForkedAndWritten);
    if (!seen.error && !seen.as<Contents>().size) reach(Label::kReturnedPairReread);
  }
  template <OneOf<ShowState, Offset> T>
  void saw(const T& /*nothing to follow*/, const Observation& /*seen*/) {}

 private:
  [[nodiscard]] bool is_long() const { return window_ > kMostWindow; }
  void plan_fork(std::int64_t number) {
    const std::int64_t end = offset_;
    const std::optional<std::int64_t> window =
        window_ > 0 ? std::optional(live_window_) : std::nullopt;
    for (int branch = 0; branch < 2; ++branch) {
      plan(New{window});
      plan(Restore{number, end});
      plan(update(draw().between(1, 3)));
      plan(Take{0});
    }
    plan(Reread{number});
    plan(Restore{number, end});
    forked_ = true;
  }
  Op update(std::int64_t tokens) {
    auto [k, v] = rows(tokens, k_dim_, v_dim_, type_);
    std::optional<bool> keep;
    if (numbers_pairs_) keep = draw().percent(60);
    return Op::of(Update{std::move(k), std::move(v), keep});
  }
  std::pair<Tensor, Tensor> rows(std::int64_t tokens, std::int64_t k_dim, std::int64_t v_dim,
                                 DType type) {
    auto [k, unused] = tagger_.pair({batch_, heads_, tokens, k_dim});
    auto [spare, v] = tagger_.pair({batch_, heads_, tokens, v_dim});
    return {of_type(k, type), of_type(v, type)};
  }
  static Tensor of_type(const Tensor& tensor, DType type) {
    if (type == DType::kF32) return tensor;
    Tensor cast = make_tensor(tensor.shape, type);
    for (std::int64_t i = 0; i < tensor.elements(); ++i)
      store_element(type, tensor.floats()[static_cast<std::size_t>(i)],
                    cast.bytes.data() + static_cast<std::size_t>(i) * dtype_bytes(type));
    return cast;
  }

  std::int64_t window_;
  bool numbers_pairs_;
  std::int64_t batch_;
  std::int64_t heads_;
  std::int64_t k_dim_;
  std::int64_t v_dim_;
  DType type_;
  Tagger tagger_;
  Handles handles_;
  std::set<std::int64_t> made_of_others_;  // snapshots that a split or a merge made
  std::map<std::int64_t, int> taken_in_;   // the cache, by its number, that a snapshot is of
  bool begun_ = false;
  bool merges_halves_ = false;
  bool away_ = false;
  bool forks_ = false;
  bool forked_ = false;    // behind the next reread
  bool restored_ = false;  // the cache, from a snapshot
  int caches_ = 0;
  std::int64_t live_window_ = 0;
  std::int64_t offset_ = 0;
  std::int64_t pairs_ = 0;
};

GeneratedCase make_kv(const CaseTerms& terms) {
  return {.setup = {.profile = terms.profile}, .ops = std::make_unique<RowsScript>(terms.seed, 0)};
}

GeneratedCase make_rotating(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  std::int64_t window = draw.percent(20) ? draw.between(1, 2) : draw.size(1, kMostWindow);
  if (draw.percent(1)) window = draw.size(kMostWindow + 1, kLongestWindow);
  if (draw.percent(1)) window = kLongestWindow - draw.between(0, 1);
  return {.setup = {.profile = terms.profile, .config = Record::of(RowsConfig{.max_size = window})},
          .ops = std::make_unique<RowsScript>(terms.seed, window)};
}

using L = RowsLabel;

}  // namespace

std::vector<Generator> rows_generators() {
  const auto kv =
      label_texts_but({L::kRingWrapped, L::kChunkOnAWrappedRing, L::kFirstChunkBeyondTheWindow,
                       L::kForeignWindow, L::kLongRingWrapped});
  const auto rotating = label_texts_but(
      {L::kSplitInside, L::kMergeRefused, L::kGrownBeyondAStep, L::kSplitAgain, L::kMergedAgain});
  return {{.kind = &kv_kind(), .make = make_kv, .original_labels = kv, .documented_labels = kv},
          {.kind = &rotating_kind(),
           .make = make_rotating,
           .original_labels = rotating,
           .documented_labels = rotating}};
}

std::vector<Generator> generators() {
  std::vector<Generator> all = rows_generators();
  all.push_back(recurrent_generator());
  all.push_back(trie_generator());
  return all;
}

}  // namespace kvo::snapshot
