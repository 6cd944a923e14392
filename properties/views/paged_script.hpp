// properties/views/paged_script.hpp: random operations on block-paged caches of one pool.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "reference/contract/values/tags.hpp"
#include "reference/views/operations.hpp"

namespace kvo::views {

/// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(
    Label, std::uint8_t, kFull, kPoolRanDry, kWrittenAfterAPoolThatRanDry, kAppendOfNothing,
    kAppendAcrossABorder, kAppendUpToABorder, kMisfit, kLayerOutOfRange, kPendingReplaced,
    kPendingReplacedByFewer, kCommittedAll, kCommittedInPart, kCommittedNothing, kCommitOfTooMuch,
    kTruncatedInsideABlock, kTruncatedAtABlockBoundary, kTruncatedPendingTokens,
    kTruncateBeyondTheLength, kNegativeTruncate, kWrittenBehindATruncate, kUsedAfterFree,
    kFreedTwice, kManyBlocks, kPackedManyBlocks, kNothingPackedOnAGpu, kContiguousInOneBlock,
    kContiguousInManyBlocks, kContiguousRefused, kEarlierViewsLive, kEarlierViewsShowNewRows,
    kEarlierViewsStale, kForkedBetweenBlocks, kForkedInsideABlock, kForkRefused,
    kForkFoundThePoolDry, kWrittenIntoASharedBlock, kTwoCachesOnOnePool, kHalves, kMixedDevices,
    kAppendsStacked, kRestKept, kViewsCommittedOnly, kViewsOfWholeBlocks, kPackedByLength,
    kCountedBeyondTwoBytes, kCutToABoundaryAndAppendedAcross, kPackedCutByOneAndPackedAgain,
    kForkedAndTheFirstFreed, kViewsHeldWhileRowsAreReplaced, kCopiedIntoTheLastBlock,
    kPackedMoreThanTwoMebibytes)

/// Sizes and counts beyond which something may break.
BOOST_DEFINE_FIXED_ENUM_CLASS(SizeLabel, std::uint8_t, kFiveLayers, kSixteenBlocksInOneAppend,
                              kBeyondAHundredBlocks, kBeyondAThousandTokens, kRowsOfAThousandCells,
                              kHeadsOfACommonSize, kBeyondAHundredCaches, kViewsBeyondOneByte,
                              kTruncatedBeyondOneByte)

/// Head dimensions that kernels have copies of their own for.
constexpr std::initializer_list<std::int64_t> kHeadSizes{32, 64, 80, 96, 128};

/// What a script knows of a cache: committed tokens, and pending ones by layer.
struct Known {
  std::int64_t seq_len = 0;
  std::vector<std::int64_t> pending = {};
  bool closed = false;
  bool cut = false;         ///< truncated, and not written since
  std::int64_t shared = 0;  ///< tokens in blocks that others may hold, too

  [[nodiscard]] std::int64_t least_pending() const { return std::ranges::min(pending); }
  [[nodiscard]] std::int64_t held(std::int64_t layer) const {
    return seq_len + pending[static_cast<std::size_t>(layer)];
  }
};

/// Views that got a number: of positions `begin` to `end` of a layer.
struct Numbered {
  std::int64_t cache = 0;
  std::int64_t layer = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool rewritten = false;
};

/// Random operations on up to a few hundred caches of one pool.
class PagedScript final : public ScriptGenerator<PagedScript, Ops, Label> {
  using S = PagedScript;

 public:
  PagedScript(const CaseTerms& terms, const Config& config, bool odd_rows)
      : ScriptGenerator(terms),
        config_(config),
        options_(options_of(config)),
        odd_values_(terms.seed),
        odd_rows_(odd_rows),
        most_caches_(draw().percent(50) ? 1 : draw().between(2, 4)) {
    if (is_long() && draw().percent(80)) most_caches_ = 1;
    if (is_large() && draw().percent(20)) forks_ = draw().edge(32, 300);
  }

  std::optional<Op> next() override {
    if (!has_plan() && !follows_plan() &&
        (known_.empty() || (std::ssize(known_) < most_caches_ && draw().percent(8))))
      return Op::of(New{std::ssize(known_)});
    return ScriptGenerator::next();
  }

  // Steps.
  // Rows for all layers, what attention reads of them, and a commit.
  Op step();
  Op append() {
    if (is_long() && draw().percent(90)) return step();
    const std::int64_t cache = number();
    return append_to(cache, layer(), some_tokens(cache));
  }
  Op misfit();
  Op commit() {
    const std::int64_t cache = number();
    const Known* there = known(cache);
    const std::int64_t most = there == nullptr ? 0 : there->least_pending();
    if (config_.robustness.value_or(false) && draw().percent(30))
      return Op::of(Commit{cache, draw().one_of({std::int64_t{-1}, most + 1, most + 3})});
    return Op::of(Commit{cache, draw().percent(50) ? most : draw().between(0, most)});
  }
  Op views() {
    const std::int64_t cache = number();
    return Op::of(ShowViews{cache, layer(), keep()});
  }
  Op packed() {
    const std::int64_t cache = number();
    return Op::of(ShowPacked{cache, layer()});
  }
  Op contiguous() { return contiguous_of(number()); }
  Op reread() {
    const auto last = std::ssize(numbered_);
    return Op::of(Reread{draw().percent(2) ? last + 1 : draw().between(1, last)});
  }
  Op truncate();
  Op free() { return rarely() ? step() : Op::of(Free{number()}); }
  Op fork();
  Op again() { return rarely() ? step() : Op::of(New{number()}); }
  Op layer_device() { return Op::of(LayerDevice{number(), layer()}); }
  Op is_on_gpu() { return Op::of(IsOnGpu{number()}); }
  Op max_seq_len() { return Op::of(MaxSeqLen{number()}); }
  Op seq_len() { return Op::of(SeqLen{number()}); }
  Op free_blocks() { return Op::of(FreeBlocks{}); }

  // Cut where a block ends, and appended over the end of the next one.
  std::optional<Op> cut_to_boundary(std::size_t number);
  // What was packed is cut by one token, another comes in its place, and it is packed again.
  std::optional<Op> pack_again(std::size_t number);
  // The cache that a fork was made of gives its blocks back, and others write into them.
  std::optional<Op> free_the_first(std::size_t number);
  // Views that are held while their rows are cut off and others come in their place.
  std::optional<Op> hold_while_cut(std::size_t number);

  // A block that two caches hold is written by one of them, when one block is left.
  std::optional<Op> copy_into_the_last(std::size_t number);
  // More is packed at once than stays in the processor's caches.
  std::optional<Op> pack_much(std::size_t number);

  static constexpr auto kPlans = std::to_array<ScriptPlan<S, Label>>({
      {2, Label::kCutToABoundaryAndAppendedAcross, 4, &S::cut_to_boundary},
      {1, Label::kPackedCutByOneAndPackedAgain, 4, &S::pack_again},
      {1, Label::kForkedAndTheFirstFreed, 5, &S::free_the_first},
      {1, Label::kViewsHeldWhileRowsAreReplaced, 4, &S::hold_while_cut},
      {4, Label::kCopiedIntoTheLastBlock, 7, &S::copy_into_the_last},
      {8, Label::kPackedMoreThanTwoMebibytes, 2, &S::pack_much},
  });
  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {40, "step", &S::step, true},
      {14, "append", &S::append},
      {1, "misfit", &S::misfit},
      {10, "commit", &S::commit},
      {14, "views", &S::views, true},
      {10, "packed", &S::packed},
      {7, "contiguous", &S::contiguous},
      {12, "reread", &S::reread},
      {14, "truncate", &S::truncate},
      {2, "free", &S::free},
      {6, "fork", &S::fork},
      {2, "new", &S::again},
      {1, "layer_device", &S::layer_device},
      {1, "is_on_gpu", &S::is_on_gpu},
      {1, "max_seq_len", &S::max_seq_len},
      {6, "seq_len", &S::seq_len},
      {5, "free_blocks", &S::free_blocks},
  });

  // What became of an operation.
  void saw(const New& made, const Observation& seen);
  void saw(const Fork& fork, const Observation& seen);
  void saw(const Append& append, const Observation& seen);
  void saw(const Commit& commit, const Observation& seen);
  void saw(const ContiguousKv& asked, const Observation& seen);
  void saw(const ShowViews& asked, const Observation& seen);
  void saw(const ShowPacked& asked, const Observation& seen);
  void saw(const Reread& asked, const Observation& seen);
  void saw(const Truncate& truncate, const Observation& seen);
  void saw(const Free& free, const Observation& seen);
  void saw(const FreeBlocks& /*op*/, const Observation& seen) {
    if (!seen.error) free_blocks_ = seen.as<FreeBlocks::Returns>().n;
  }
  template <OneOf<LayerDevice, IsOnGpu, MaxSeqLen, SeqLen> T>
  void saw(const T& /*nothing to follow*/, const Observation& /*seen*/) {}

 private:
  static constexpr std::uint64_t kAppendCost = 8;  // of a cell of K
  static constexpr std::uint64_t kShownCost = 4;   // of a cell of K
  static constexpr std::uint64_t kForkCost = 64;   // of a block

  // In a long life a cache is seldom made or given up, else none would grow old.
  bool rarely() { return is_long() && draw().percent(97); }
  void spend_on(const std::vector<ShownView>& views) {
    std::int64_t tokens = 0;
    for (const ShownView& view : views) tokens += view.length;
    spend(kShownCost * static_cast<std::uint64_t>(tokens * options_.kv_dim()));
  }
  // Many caches that hold what one of them holds.
  Op many_forks();
  // The cache of a plan, chosen at its first operation; null if there is none that is open.
  const Known* about(std::size_t number) {
    if (number == 0) {
      about_ = this->number();
      about_layer_ = draw().between(0, options_.num_layers - 1);
    }
    const Known* there = known(about_);
    return there != nullptr && (number > 0 || !there->closed) ? there : nullptr;
  }
  [[nodiscard]] Known fresh() const {
    return {.pending = std::vector<std::int64_t>(static_cast<std::size_t>(options_.num_layers))};
  }
  Known* known(const std::optional<std::int64_t>& cache) {
    const auto found = known_.find(cache.value_or(0));
    return found != known_.end() ? &found->second : nullptr;
  }
  [[nodiscard]] bool has(std::int64_t layer) const {
    return layer >= 0 && layer < options_.num_layers;
  }

  // ---- Draws ----

  // The number of a cache, mostly of one that there is.
  std::int64_t number() {
    const auto last = std::ssize(known_) - 1;
    if (last > 8 && draw().percent(60)) return draw().between(0, 2);  // so that some grow
    return draw().percent(98) ? draw().between(0, last) : draw().between(-1, 6);
  }
  std::int64_t layer() {
    if (draw().percent(3)) return draw().one_of({std::int64_t{-1}, options_.num_layers});
    return draw().between(0, options_.num_layers - 1);
  }
  std::optional<bool> keep() {
    constexpr std::int64_t kMany = 300;  // all are looked through at every append
    if (std::ssize(numbered_) > kMany && draw().percent(98)) return std::nullopt;
    return draw().percent(40) ? std::optional(true) : std::nullopt;
  }
  // How many tokens come: a few, what fills a block or the sequence, or more than fits.
  std::int64_t some_tokens(std::int64_t cache) {
    const Known* there = known(cache);
    const std::int64_t length = there == nullptr ? 0 : there->seq_len;
    const std::int64_t room = options_.max_seq_len - length;
    const std::int64_t size = options_.block_size;
    if (is_long() && draw().percent(95)) return 1;
    if (is_large() && draw().percent(30)) {
      constexpr std::int64_t kMostCells = std::int64_t{1} << 16U;
      const std::int64_t most = draw().percent(10) ? 9 * kMostCells : kMostCells;
      const std::int64_t many = size * draw().between(3, 40) + draw().between(-1, 1);
      return std::clamp<std::int64_t>(most / options_.kv_dim() + 1, 0,
                                      std::max<std::int64_t>(0, std::min(room, many)));
    }
    if (draw().percent(3)) return 0;
    if (draw().percent(15)) return size - length % size;
    if (draw().percent(8)) return std::min(room, 3 * size);
    if (draw().percent(3)) return std::min(room, 3 * size) + 1;
    const std::int64_t few =
        draw().percent(60) ? draw().between(1, 2) : draw().size(1, 2 * size + 1);
    return draw().percent(90) ? std::clamp<std::int64_t>(few, 0, std::max<std::int64_t>(room, 0))
                              : few;
  }
  Op append_to(std::int64_t cache, std::int64_t layer, std::int64_t tokens);
  Op contiguous_of(std::int64_t cache);
  Op drawn_query(std::int64_t cache);

  // ---- What follows from what was seen ----

  void appended(Known& there, const Append& append, const Append::Returns& returns);
  // One of two caches goes back into a block that both hold, and goes on differently.
  void part_ways(std::int64_t one, std::int64_t other, std::int64_t shared);
  void remember(const std::optional<std::int64_t>& cache, std::int64_t layer,
                const std::vector<ShownView>& views, const std::optional<std::int64_t>& handle);

  Config config_;
  Options options_;
  Tagger tagger_;
  OddValues odd_values_;
  bool odd_rows_;  // all are hard on narrow types
  std::int64_t most_caches_;
  std::map<std::int64_t, Known> known_;
  std::vector<Numbered> numbered_;
  std::int64_t last_ = 0;
  bool dry_ = false;
  std::int64_t forks_ = 0;  // that come at once, in some large cases
  std::int64_t truncated_ = 0;
  std::int64_t about_ = 0;  // cache of a plan
  std::int64_t about_layer_ = 0;
  std::int64_t forked_ = 0;       // its fork
  std::int64_t free_blocks_ = 0;  // when last asked for
};

}  // namespace kvo::views
