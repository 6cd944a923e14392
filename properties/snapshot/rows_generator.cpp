// Random cases for snapshot.kv and snapshot.rotating.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "properties/snapshot/cache_script.hpp"
#include "reference/contract/values/tags.hpp"
#include "reference/snapshot/arrays.hpp"

namespace kvo::snapshot {

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(RowsLabel, std::uint8_t, kRewound, kRestored, kRestoredForward,
                              kRestoreRefused, kMerged, kMergedWithNothing, kMergeRefused,
                              kSplitInside, kSplitAtAnEdge, kClosedTwice, kUsedAfterClose,
                              kUpdatedWithNothing, kMisfit, kAnotherType, kGrownBeyondAStep,
                              kFreedWithSnapshots, kRestoredIntoAnotherCache, kReturnedPairReread,
                              kRingWrapped, kChunkOnAWrappedRing, kFirstChunkBeyondTheWindow,
                              kLongRingWrapped, kSplitAgain, kMergedAgain, kTakenOfARestoredCache,
                              kForkedAndWritten, kSpreadRows,
                              // Sizes.
                              kMoreThan1024Tokens, kFiveHeads, kHeadsOf64Elements,
                              kHalfWordsInRunsOf64, k65Snapshots,
                              // Long lives.
                              kWritesBeyond65536)

// How a case stores rows, and of what sort they are.
struct DrawnStorage {
  StorageFormat format = {};
  bool odd_rows = false;
};

constexpr std::int64_t kMostWindow = 65;
constexpr std::int64_t kLongestWindow = 4096;

class RowsScript final : public CacheScript<RowsScript, RowsOps, RowsLabel> {
  using S = RowsScript;
  using Label = RowsLabel;

 public:
  /// A window of 0: all tokens are kept.
  RowsScript(std::uint64_t seed, std::int64_t window, const DrawnStorage& storage, Scale scale)
      : CacheScript(seed, scale),
        storage_(storage),
        odd_draw_(storage_draw(~seed)),
        window_(window),
        numbers_pairs_(draw().percent(12) && scale_ != Scale::kLong),
        batch_(has_long_ring() ? 1 : draw().between(1, 2)),
        heads_(has_long_ring() ? 1 : draw().between(1, 3)),
        k_dim_(has_long_ring() ? 1 : draw().size(1, 9)),
        v_dim_(has_long_ring() || draw().percent(70) ? k_dim_ : draw().size(1, 9)),
        type_(draw().percent(75) ? DType::kF32 : DType::kF16) {
    if (draw().percent(6)) type_ = draw().one_of({DType::kF8E4M3, DType::kF8E5M2});
    if (scale_ == Scale::kLarge && !has_long_ring()) grow();
    if (is_narrow()) narrow();
    if (scale_ != Scale::kLong) return;
    batch_ = heads_ = k_dim_ = v_dim_ = 1;
    plan_often(1);
  }

  // A long life: a ring goes round, or a cache is rewound and written anew; now and then there is a
  // snapshot for a while.
  Op age() {
    constexpr std::int64_t kTokens = 4;
    if (window_ == 0 && offset_ > 2 * kTokens) return Op::of(Restore{std::nullopt, kTokens});
    if (draw().percent(98)) return update(1);
    if (last_) return Op::of(Close{*std::exchange(last_, std::nullopt)});
    return Op::of(Take{0});
  }

  // Steps.
  Op one() { return update(1); }
  Op chunk() {
    // About one time round, so that few operations wrap it.
    if (has_long_ring() && draw().percent(40)) return update(window_ + draw().between(-2, 2));
    if (scale_ == Scale::kLong) return update(draw().between(2, 4));
    if (scale_ == Scale::kLarge && draw().percent(30))
      return update(draw().edge(8, kMostTokens / width()));
    const std::int64_t most = window_ > 0 ? 2 * window_ + 3 : 48;
    return update(draw().size(2, std::max<std::int64_t>(most, 3)));
  }
  // Past the growth step of 256 tokens.
  Op long_chunk() { return scale_ == Scale::kLong ? one() : update(draw().between(200, 300)); }
  Op nothing() { return update(0); }
  Op misfit() {
    if (window_ == 0 && draw().percent(30)) {  // one row for many tokens
      Tensor k = rows(draw().between(2, 3), k_dim_, v_dim_, type_).first;
      return Op::of(Update{std::move(k), rows(1, k_dim_, v_dim_, type_).second});
    }
    return update_of_another_shape(draw().between(1, 3));
  }
  Op other_type() {
    const DType other = type_ == DType::kF32 ? DType::kF16 : DType::kF32;  // a narrow one refuses
    auto [k, v] = rows(draw().between(1, 3), k_dim_, v_dim_, other);
    return Op::of(Update{std::move(k), std::move(v)});
  }
  Op take() {
    if (numbers_pairs_) return reread();
    const std::int64_t from = draw().percent(30) ? 0 : draw().between(-1, offset_ + 1);
    return Op::of(Take{from});
  }
  Op rewind() { return Op::of(Restore{std::nullopt, draw().between(-1, offset_ + 1)}); }
  Op restore() {
    const Nullable<std::int64_t> handle = any();
    const auto range = range_of(handle);
    const std::int64_t end = range ? range->to : offset_;
    const std::int64_t begin = range && draw().percent(70) ? range->from : 0;
    return Op::of(Restore{handle, draw().percent(50) ? end : draw().between(begin - 1, end + 1)});
  }
  Op split() {
    const Nullable<std::int64_t> handle = any();
    const auto range = range_of(handle).value_or(Range{0, 4});
    return Op::of(Split{handle, draw().between(range.from - 1, range.to + 1)});
  }
  // Two that adjoin: one is split, and its halves are merged.
  Op split_and_merge() {
    const Nullable<std::int64_t> handle = any();
    const auto range = range_of(handle);
    if (!range || range->to - range->from < 2) return take();
    merges_halves_ = true;
    return Op::of(Split{handle, draw().between(range->from + 1, range->to - 1)});
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
  Op reread() {
    if (numbers_pairs_) return Op::of(Reread{draw().between(1, std::max<std::int64_t>(pairs_, 1))});
    return Op::of(Reread{some()});
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

  static const CacheKind& order_kind() { return kv_kind(); }
  static std::span<const OrderWord> order_words() {
    static constexpr auto kWords = std::to_array<OrderWord>({
        order_word<&S::update>("append"),
        order_word<&S::whole>("whole"),
        order_word<&S::restored>("restored"),
        order_word<&S::merge_next_halves>("merge_next_halves"),
        order_word<&S::remember_last>("remember_last"),
        order_word<&S::forget_last>("forget_last"),
        order_word<&S::update_of_another_shape>("append_of_another_shape"),
        order_word<&S::has_last>("has_last"),
        order_word<&S::last>("last"),
        order_word<&S::first>("first"),
        order_word<&S::first_end_>("first_end"),
        order_word<&S::is_ring>("ring"),
        order_word<&S::live_window_>("window"),
        order_word<&S::offset_>("offset_of_cache"),
    });
    return kWords;
  }

  // What became of an operation.
  void observe(const New& made, const Observation& seen) {
    if (seen.error) return;
    begun_ = true;
    if (window_ > 0) live_window_ = made.max_size.value_or(window_);
    taken_before_ = snapshots();
    restored_ = false;
  }
  void observe(const Update& update, const Observation& seen) {
    const std::int64_t tokens = update.k.shape.size() > 2 ? update.k.shape[2] : 0;
    const bool misfit = update.k.shape.size() > 3 && update.k.shape[3] != k_dim_;
    if (misfit) reach(Label::kMisfit);
    if (update.k.dtype != type_) reach(Label::kAnotherType);
    if (seen.error) return;
    if (update.spread.value_or(false) && update.k.elements() > 1) reach(Label::kSpreadRows);
    if (update.keep.value_or(false)) ++pairs_;
    if (tokens == 0) reach(Label::kUpdatedWithNothing);
    if (tokens > 0) saw_sizes(tokens);
    if (live_window_ > 0 && offset_ > live_window_ && tokens > 1)
      reach(Label::kChunkOnAWrappedRing);
    if (live_window_ > 0 && offset_ == 0 && tokens > live_window_)
      reach(Label::kFirstChunkBeyondTheWindow);
    if (offset_ / kGrowth != (offset_ + tokens) / kGrowth && offset_ > 0)
      reach(Label::kGrownBeyondAStep);
    const bool wrapped = live_window_ > 0 && offset_ + tokens > live_window_;
    if (wrapped) reach(Label::kRingWrapped);
    if (wrapped && live_window_ > kMostWindow) reach(Label::kLongRingWrapped);
  }
  void observe(const Take& /*op*/, const Observation& seen) {
    if (seen.error) return;
    const auto& taken = seen.as<Numbered>();
    pay();
    if ((follows_plan() || scale_ == Scale::kLong) && taken.handle.has_value())
      last_ = *taken.handle;
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
  void observe(const Restore& restore, const Observation& seen) {
    if (seen.error) {
      if (is_closed(restore.handle)) reach(Label::kUsedAfterClose);
      return;
    }
    pay();
    const auto& done = seen.as<Restore::Returns>();
    if (!done.ok) return reach(Label::kRestoreRefused);
    if (!restore.handle.has_value()) {
      if (done.offset < offset_) reach(Label::kRewound);
      return;
    }
    reach(Label::kRestored);
    restored_ = true;
    if (done.offset > offset_) reach(Label::kRestoredForward);
    if (*restore.handle <= taken_before_) reach(Label::kRestoredIntoAnotherCache);
  }
  void observe(const Merge& merge, const Observation& seen) {
    if (seen.error) return reach(Label::kMergeRefused);
    pay();
    const auto& merged = seen.as<Numbered>();
    if (follows_plan() && merged.handle.has_value()) last_ = *merged.handle;
    const bool both = merge.parent.has_value() && merge.child.has_value();
    if (!both) reach(Label::kMergedWithNothing);
    if (both && merged.handle.has_value()) reach(Label::kMerged);
    if (both && (made_of_others_.contains(*merge.parent) || made_of_others_.contains(*merge.child)))
      reach(Label::kMergedAgain);
    if (both && merged.handle.has_value()) made_of_others_.insert(*merged.handle);
  }
  void observe(const Split& split, const Observation& seen) {
    const bool merges = std::exchange(merges_halves_, false);
    if (seen.error) return;
    const auto& halves = seen.as<Split::Returns>();
    const bool inside = halves.parent.has_value() && halves.child.has_value();
    if (inside) reach(Label::kSplitInside);
    if (!inside && split.handle.has_value()) reach(Label::kSplitAtAnEdge);
    if (inside && made_of_others_.contains(*split.handle)) reach(Label::kSplitAgain);
    for (const auto& half : {halves.parent, halves.child})
      if (inside) made_of_others_.insert(*half->handle);
    if (inside && merges) plan(Merge{halves.parent->handle, halves.child->handle});
  }
  void observe(const Close& close, const Observation& seen) {
    if (seen.error && is_closed(close.handle)) reach(Label::kClosedTwice);
  }
  void observe(const Free& /*op*/, const Observation& seen) {
    if (!seen.error && snapshots() > 0) reach(Label::kFreedWithSnapshots);
  }
  void observe(const Reread& /*op*/, const Observation& seen) {
    if (std::exchange(forked_, false) && !seen.error) reach(Label::kForkedAndWritten);
    if (!seen.error && !seen.as<Contents>().size) reach(Label::kReturnedPairReread);
  }
  void observe(const ShowState& /*op*/, const Observation& /*seen*/) { pay(); }

 private:
  static constexpr std::int64_t kMostTokens = 2'049;  // of one element

  [[nodiscard]] bool has_long_ring() const { return window_ > kMostWindow; }
  [[nodiscard]] std::int64_t width() const { return batch_ * heads_ * std::max(k_dim_, v_dim_); }
  [[nodiscard]] bool is_narrow() const { return storage_.format.type != StorageType::kF32; }

  // Wide rows, or many.
  void grow() {
    if (draw().percent(50)) {
      batch_ = heads_ = k_dim_ = v_dim_ = 1;
    } else {
      batch_ = draw().percent(80) ? draw().between(1, 2) : draw().edge(4, 17);
      heads_ = draw().edge(1, batch_ > 2 ? 3 : 17);
      k_dim_ = draw().edge(8, 129);
      v_dim_ = draw().percent(70) ? k_dim_ : draw().edge(1, 129);
      while (width() > 512) {
        if (heads_ > 1 && k_dim_ <= 64 && v_dim_ <= 64) {
          heads_ /= 2;
        } else {
          k_dim_ = (k_dim_ + 1) / 2;
          v_dim_ = (v_dim_ + 1) / 2;
        }
      }
    }
    type_ = draw().one_of({DType::kF32, DType::kF32, DType::kF16, DType::kF16, DType::kBF16,
                           DType::kBF16, DType::kF8E4M3});
  }
  // Rows are f32, and of codes longer than a group where there are few.
  void narrow() {
    type_ = DType::kF32;
    if (!in_groups(storage_.format.type) || has_long_ring() || scale_ == Scale::kLong ||
        odd_draw_.percent(40))
      return;
    batch_ = 1;
    heads_ = odd_draw_.between(1, 2);
    k_dim_ = odd_draw_.between(33, 100);
    v_dim_ = odd_draw_.percent(60) ? k_dim_ : odd_draw_.between(33, 100);
  }
  // All rows are shown, copied or looked at.
  void pay() {
    constexpr std::int64_t kAnyCost = 5'000;
    const std::int64_t held = live_window_ > 0 ? std::min(live_window_, offset_) : offset_;
    if (scale_ == Scale::kLarge) spend(static_cast<std::uint64_t>(kAnyCost + 8 * held * width()));
    if (snapshots() > 64) reach(Label::k65Snapshots);
  }
  void saw_sizes(std::int64_t tokens) {
    pay();
    const DType kept = is_narrow() ? dtype_of(storage_.format.type) : type_;
    if (tokens > 64 && dtype_bytes(kept) == 2 && k_dim_ >= 1) reach(Label::kHalfWordsInRunsOf64);
    if (dtype_bytes(kept) == 1) reach(StorageLabel::kEightBitFloats);
    reach_stored(storage_.format, k_dim_, storage_.odd_rows,
                 [&](StorageLabel label) { reach(label); });
    if (offset_ + tokens > 1'024) reach(Label::kMoreThan1024Tokens);
    if (++writes_ > 65'536) reach(Label::kWritesBeyond65536);
    if (heads_ > 4) reach(Label::kFiveHeads);
    if (k_dim_ >= 64) reach(Label::kHeadsOf64Elements);
  }

  // A snapshot of all, for an order.
  std::optional<Op> whole() {
    if (numbers_pairs_) return std::nullopt;
    last_.reset();
    return Op::of(Take{0});
  }
  std::optional<Op> restored() { return last_restored(); }
  void merge_next_halves() { merges_halves_ = true; }
  void remember_last() {
    first_ = last_;
    first_end_ = offset_;
  }
  void forget_last() { last_.reset(); }
  Op update_of_another_shape(std::int64_t tokens) {
    auto [k, v] = rows(tokens, k_dim_ + 1, v_dim_, type_);
    return Op::of(Update{std::move(k), std::move(v)});
  }
  [[nodiscard]] bool has_last() const { return last_.has_value(); }
  [[nodiscard]] std::int64_t last() const { return last_.value_or(0); }
  [[nodiscard]] std::int64_t first() const { return first_.value_or(0); }
  [[nodiscard]] bool is_ring() const { return window_ > 0; }
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
    std::optional<bool> spread;
    if (tokens > 1 && draw().percent(10)) spread = true;
    return Op::of(Update{std::move(k), std::move(v), keep, spread});
  }
  std::pair<Tensor, Tensor> rows(std::int64_t tokens, std::int64_t k_dim, std::int64_t v_dim,
                                 DType type) {
    auto [k, unused] = tagger_.pair({batch_, heads_, tokens, k_dim});
    auto [spare, v] = tagger_.pair({batch_, heads_, tokens, v_dim});
    if (storage_.odd_rows) {
      fill_oddly(odd_draw_, k);
      fill_oddly(odd_draw_, v);
    }
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

  DrawnStorage storage_;
  Draw odd_draw_;  // of odd rows
  std::int64_t window_;
  bool numbers_pairs_;
  std::int64_t batch_;
  std::int64_t heads_;
  std::int64_t k_dim_;
  std::int64_t v_dim_;
  DType type_;
  Tagger tagger_;
  std::set<std::int64_t> made_of_others_;  // snapshots that a split or a merge made
  std::int64_t taken_before_ = 0;          // snapshots, before the cache was made
  bool merges_halves_ = false;
  bool away_ = false;
  bool forks_ = false;
  bool forked_ = false;    // after the next reread
  bool restored_ = false;  // the cache, from a snapshot
  std::int64_t live_window_ = 0;
  std::int64_t pairs_ = 0;
  std::int64_t writes_ = 0;
  // Of the order that is followed.
  std::optional<std::int64_t> first_;  // snapshot before the last one
  std::int64_t first_end_ = 0;
};

namespace {

DrawnStorage some_storage(std::uint64_t seed, RowsConfig& config) {
  Draw draw = storage_draw(seed);
  if (!draw.percent(25)) return {};
  const DrawnStorage drawn{draw_narrow_storage(draw), draw.percent(60)};
  set_storage(draw, config.rows, drawn.format);
  if (draw.percent(3)) config.rows.group = draw.one_of({0, 1, 48, 256});  // mostly no format
  return drawn;
}

GeneratedCase make_kv(const CaseTerms& terms) {
  RowsConfig config;
  const DrawnStorage storage = some_storage(terms.seed, config);
  const bool plain = storage.format.type == StorageType::kF32;
  return {.setup = {.profile = terms.profile, .config = plain ? Record() : Record::of(config)},
          .ops = std::make_unique<RowsScript>(terms.seed, 0, storage, terms.scale)};
}

GeneratedCase make_rotating(const CaseTerms& terms) {
  Draw draw(~terms.seed);
  std::int64_t window = draw.percent(20) ? draw.between(1, 2) : draw.size(1, kMostWindow);
  if (draw.percent(1)) window = draw.size(kMostWindow + 1, kLongestWindow);
  if (draw.percent(1)) window = kLongestWindow - draw.between(0, 1);
  if (terms.scale == Scale::kLarge) window = draw.edge(8, 513);
  if (terms.scale == Scale::kLong) window = draw.between(1, 5);
  RowsConfig config{.max_size = window};
  const DrawnStorage storage = some_storage(terms.seed, config);
  return {.setup = {.profile = terms.profile, .config = Record::of(config)},
          .ops = std::make_unique<RowsScript>(terms.seed, window, storage, terms.scale)};
}

using L = RowsLabel;

}  // namespace

std::vector<Generator> rows_generators() {
  const auto kv = label_texts_but({L::kRingWrapped, L::kChunkOnAWrappedRing,
                                   L::kFirstChunkBeyondTheWindow, L::kLongRingWrapped});
  const auto rotating = label_texts_but(
      {L::kSplitInside, L::kMergeRefused, L::kGrownBeyondAStep, L::kSplitAgain, L::kMergedAgain});
  return {with_storage_labels(with_orders<RowsScript>({.kind = &kv_kind(),
                                                       .make = make_kv,
                                                       .original_labels = kv,
                                                       .documented_labels = kv,
                                                       .lives_long = true})),
          with_storage_labels(
              with_orders<RowsScript>({.kind = &rotating_kind(),
                                       .make = make_rotating,
                                       .original_labels = rotating,
                                       .documented_labels = rotating,
                                       .lives_long = true},
                                      {"merged halves restored", "merged of two shapes"}))};
}

std::vector<Generator> generators() {
  std::vector<Generator> all = rows_generators();
  all.push_back(recurrent_generator());
  all.push_back(trie_generator());
  return all;
}

}  // namespace kvo::snapshot
