// Random scripts for views.paged.
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "properties/campaign/metamorphic.hpp"
#include "properties/campaign/script_generator.hpp"
#include "properties/contract_parts.hpp"
#include "reference/contract/values/tags.hpp"
#include "reference/views/operations.hpp"

namespace kvo::views {
namespace {

/// States worth reaching, and sizes and counts beyond which something may break.
BOOST_DEFINE_FIXED_ENUM_CLASS(
    Label, std::uint8_t, kFull, kPoolRanDry, kWrittenAfterAPoolThatRanDry, kAppendOfNothing,
    kAppendAcrossABorder, kAppendUpToABorder, kMisfit, kLayerOutOfRange, kPendingReplaced,
    kPendingReplacedByFewer, kCommittedAll, kCommittedInPart, kCommittedNothing, kCommitOfTooMuch,
    kTruncatedInsideABlock, kTruncatedAtABlockBoundary, kTruncatedPendingTokens,
    kTruncateBeyondTheLength, kNegativeTruncate, kWrittenBehindATruncate, kUsedAfterFree,
    kManyBlocks, kPackedManyBlocks, kNothingPackedOnAGpu, kContiguousInOneBlock,
    kContiguousInManyBlocks, kContiguousRefused, kEarlierViewsLive, kEarlierViewsShowNewRows,
    kEarlierViewsStale, kForkedBetweenBlocks, kForkedInsideABlock, kForkRefused,
    kForkFoundThePoolDry, kTwoCachesOnOnePool, kHalves, kMixedDevices, kAppendsStacked, kRestKept,
    kViewsCommittedOnly, kViewsOfWholeBlocks, kPackedByLength, kCountedBeyondTwoBytes, kFiveLayers,
    kSixteenBlocksInOneAppend, kBeyondAHundredBlocks, kBeyondAThousandTokens, kRowsOfAThousandCells,
    kHeadsOfACommonSize, kBeyondAHundredCaches, kViewsBeyondOneByte, kTruncatedBeyondOneByte)

/// Head dimensions that kernels have copies of their own for.
constexpr std::initializer_list<std::int64_t> kHeadSizes{32, 64, 80, 96, 128};

/// What a cache held before the newest operation of the script.
struct Before {
  std::int64_t seq_len = 0;
  std::vector<std::int64_t> pending = {};  ///< [layer]
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
  }

  std::optional<Op> choose() override {
    const bool adds = !has_plan() && !follows_plan() &&
                      (caches() == 0 || (caches() < most_caches_ && draw().percent(8)));
    std::optional<Op> op = adds ? Op::of(New{caches()}) : ScriptGenerator::choose();
    if (const Followed* held = op ? known(integer_of(*op, "cache")) : nullptr)
      before_ = {held->seq_len, held->pending};
    return op;
  }

  // Steps.
  // Rows for all layers, what attention reads of them, and a commit.
  Op step() {
    const std::int64_t cache = number();
    const std::int64_t length = length_of(cache);
    if (is_long() && known(cache) != nullptr && length >= options_.max_seq_len)
      return Op::of(Truncate{cache, draw().percent(50) ? 0 : draw().between(0, length)});
    const std::int64_t tokens = some_tokens(cache);
    std::vector<std::int64_t> layers;
    for (std::int64_t i = 0; i < options_.num_layers; ++i) layers.push_back(i);
    if (draw().percent(30)) std::ranges::reverse(layers);
    for (const std::int64_t layer : layers) plan(append_to(cache, layer, tokens));
    while (draw().percent(is_long() ? 1 : 25)) plan(drawn_query(cache));
    if (draw().percent(is_long() ? 97 : 60))
      plan(Commit{cache, tokens});
    else
      plan(Commit{cache, draw().between(0, tokens)});
    if (!draw().percent(is_long() ? 1 : 10)) return *ScriptGenerator::choose();
    return append_to(cache, layers.front(), tokens);
  }
  Op append() {
    if (is_long() && draw().percent(90)) return step();
    const std::int64_t cache = number();
    return append_to(cache, layer(), some_tokens(cache));
  }
  Op misfit() {
    const std::int64_t cache = number();
    const std::int64_t width = options_.kv_dim();
    const std::int64_t n = draw().between(0, 2);
    auto [k, v] = tagger_.pair({n, width});
    switch (draw().below(5)) {
      case 0:
        k.shape = v.shape = {n, options_.num_kv_heads, options_.head_dim};
        break;
      case 1:
        k.shape = v.shape = {n * width};
        break;
      case 2:
        k = make_tensor({n, width + 1});
        v = k;
        break;
      case 3:
        v = make_tensor({n + 1, width});
        break;
      default:
        v = make_tensor({n, width - 1});
    }
    return Op::of(Append{cache, layer(), std::move(k), std::move(v)});
  }
  Op commit() {
    const std::int64_t cache = number();
    const Followed* held = known(cache);
    const std::int64_t most = held == nullptr ? 0 : std::ranges::min(held->pending);
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
    const std::int64_t last = views_numbered();
    return Op::of(Reread{draw().percent(2) ? last + 1 : draw().between(1, last)});
  }
  Op truncate() {
    const std::int64_t cache = number();
    const std::int64_t length = length_of(cache);
    const std::int64_t size = options_.block_size;
    std::int64_t to = draw().between(0, length);
    if (draw().percent(25)) to = std::max<std::int64_t>(0, length - draw().between(1, 2));
    if (draw().percent(25)) to = size * draw().between(0, length / size);
    if (draw().percent(10)) to = length + draw().between(0, 2 * size);
    if (draw().percent(5)) to = draw().between(-3, -1);
    return Op::of(Truncate{cache, to});
  }
  Op free() { return rarely() ? step() : Op::of(Free{number()}); }
  Op fork() {
    if (rarely()) return step();
    const std::int64_t from = number();
    const std::int64_t length = length_of(from);
    const std::int64_t size = options_.block_size;
    std::int64_t tokens = draw().percent(50) ? length : draw().between(0, length);
    if (draw().percent(30)) tokens = size * draw().between(0, length / size);
    if (draw().percent(5)) tokens = draw().one_of({std::int64_t{-1}, length + 1});
    const std::int64_t made = draw().percent(80) ? caches() : number();
    return Op::of(Fork{std::min<std::int64_t>(made, 5), from, tokens});
  }
  Op again() { return rarely() ? step() : Op::of(New{number()}); }
  Op layer_device() { return Op::of(LayerDevice{number(), layer()}); }
  Op is_on_gpu() { return Op::of(IsOnGpu{number()}); }
  Op max_seq_len() { return Op::of(MaxSeqLen{number()}); }
  Op seq_len() { return Op::of(SeqLen{number()}); }
  Op free_blocks() { return Op::of(FreeBlocks{}); }

  static const CacheKind& order_kind() { return paged_kind(); }
  static std::span<const OrderWord> order_words() {
    static constexpr auto kWords = std::to_array<OrderWord>({
        order_word<&S::choose_cache>("choose_cache"),
        order_word<&S::put>("put"),
        order_word<&S::show_views>("show_views"),
        order_word<&S::about_>("chosen"),
        order_word<&S::about_layer_>("chosen_layer"),
        order_word<&S::length_of>("length"),
        order_word<&S::caches>("caches"),
        order_word<&S::views_numbered>("views_numbered"),
        order_word<&S::blocks_free>("blocks_free"),
        order_word<&S::block_size>("block_size"),
        order_word<&S::kv_dim>("kv_dim"),
        order_word<&S::max_tokens>("max_seq_len_of_case"),
        order_word<&S::is_large>("large"),
    });
    return kWords;
  }
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
  void observe(const New& made, const Observation& seen) {
    if (seen.error) return;
    cut_.erase(made.cache.value_or(0));
    if (options_.storage.type == StorageType::kF16) reach(Label::kHalves);
    const auto gpus = std::ranges::count(options_.devices, Device::kGpu, &Placement::device);
    if (gpus > 0 && gpus < options_.num_layers) reach(Label::kMixedDevices);
  }
  void observe(const Fork& fork, const Observation& seen) {
    const bool inside = fork.tokens % options_.block_size != 0;
    if (seen.failed_with(Code::kExhausted)) reach(Label::kForkFoundThePoolDry);
    if (seen.failed_with(Code::kBadPosition)) reach(Label::kForkRefused);
    if (seen.error) return;
    if (fork.tokens > 0) reach(inside ? Label::kForkedInsideABlock : Label::kForkedBetweenBlocks);
    const std::int64_t whole = fork.tokens - fork.tokens % options_.block_size;
    if (caches() > 100) reach(Label::kBeyondAHundredCaches);
    spend(static_cast<std::uint64_t>(options_.num_layers * fork.tokens / options_.block_size + 1) *
          kForkCost);
    const std::int64_t number = fork.cache.value_or(0);
    cut_.erase(number);
    if (whole > 0 && options_.block_size > 1 && !follows_plan() && draw().percent(50))
      part_ways(number, fork.from, whole);
  }
  void observe(const Append& append, const Observation& seen) {
    if (seen.failed_with(Code::kFull)) reach(Label::kFull);
    if (seen.failed_with(Code::kBadShape)) reach(Label::kMisfit);
    if (seen.failed_with(Code::kOutOfRange)) reach(Label::kLayerOutOfRange);
    if (seen.failed_with(Code::kClosed)) reach(Label::kUsedAfterFree);
    if (seen.failed_with(Code::kExhausted)) {
      reach(Label::kPoolRanDry);
      dry_ = true;
      if (draw().percent(50)) plan(Free{number()});
    }
    if (!seen.error && append.k.elements() > 0)
      reach_stored(options_.storage, options_.head_dim, odd_rows_,
                   [&](StorageLabel label) { reach(label); });
    if (!seen.error) appended(append, seen.as<Append::Returns>());
  }
  void observe(const Commit& commit, const Observation& seen) {
    if (seen.failed_with(Code::kBadPosition)) reach(Label::kCommitOfTooMuch);
    if (seen.error || known(commit.cache)->closed) return;
    const std::int64_t most = std::ranges::min(before_.pending);
    if (most > 0)
      reach(commit.n == 0      ? Label::kCommittedNothing
            : commit.n == most ? Label::kCommittedAll
                               : Label::kCommittedInPart);
    if (std::ranges::min(known(commit.cache)->pending) > 0) reach(Label::kRestKept);
  }
  void observe(const ContiguousKv& asked, const Observation& seen) {
    if (seen.error) return reach(Label::kContiguousRefused);
    reach(asked.kv_len > options_.block_size ? Label::kContiguousInManyBlocks
                                             : Label::kContiguousInOneBlock);
  }
  void observe(const ShowViews& asked, const Observation& seen) {
    if (seen.error) return;
    const auto& shown = seen.as<ShowViews::Returns>();
    spend_on(shown.views);
    if (shown.views.size() > 2) reach(Label::kManyBlocks);
    if (shown.views.size() > 100) reach(Label::kBeyondAHundredBlocks);
    note_handle(shown.handle);
    const std::int64_t end =
        shown.views.empty() ? 0 : shown.views.back().start + shown.views.back().length;
    if (has(asked.layer) && end < known(asked.cache)->held(asked.layer))
      reach(Label::kViewsCommittedOnly);
  }
  void observe(const ShowPacked& asked, const Observation& seen) {
    if (seen.error) return;
    const auto& shown = seen.as<ShowPacked::Returns>();
    std::uint64_t cells = 0;
    for (const auto& view : shown.views) cells += static_cast<std::uint64_t>(view.k.elements());
    spend(kShownCost * cells);
    if (shown.views.size() > 1) reach(Label::kPackedManyBlocks);
    const bool by_length = options_.packed_stride == PackedStride::kLength;
    if (by_length && !shown.views.empty() && options_.num_kv_heads > 1 &&
        shown.views.back().length < options_.block_size)
      reach(Label::kPackedByLength);
    if (has(asked.layer) && known(asked.cache)->held(asked.layer) > 0 && shown.views.empty() &&
        options_.devices[static_cast<std::size_t>(asked.layer)].device == Device::kGpu)
      reach(Label::kNothingPackedOnAGpu);
  }
  void observe(const Reread& asked, const Observation& seen) {
    if (seen.error) return;
    const auto& shown = seen.as<Reread::Returns>();
    spend_on(shown.views);
    if (shown.stale) return reach(Label::kEarlierViewsStale);
    if (shown.views.empty()) return;
    reach(rewritten_.contains(asked.handle) ? Label::kEarlierViewsShowNewRows
                                            : Label::kEarlierViewsLive);
  }
  void observe(const Truncate& truncate, const Observation& seen) {
    if (seen.error || known(truncate.cache)->closed) return;
    if (truncate.n < 0) reach(Label::kNegativeTruncate);
    if (truncate.n > before_.seq_len) reach(Label::kTruncateBeyondTheLength);
    if (std::ranges::max(before_.pending) > 0) reach(Label::kTruncatedPendingTokens);
    const std::int64_t to = std::max<std::int64_t>(truncate.n, 0);
    if (to < before_.seq_len) {
      reach(to % options_.block_size == 0 ? Label::kTruncatedAtABlockBoundary
                                          : Label::kTruncatedInsideABlock);
      cut_.insert(truncate.cache.value_or(0));
    }
    constexpr std::int64_t kOneByte = 0xFF;
    if (++truncated_ > kOneByte) reach(Label::kTruncatedBeyondOneByte);
  }

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
  bool choose_cache() {
    about_ = number();
    about_layer_ = draw().between(0, options_.num_layers - 1);
    const Followed* held = known(about_);
    return held != nullptr && !held->closed;
  }
  Op put(std::int64_t cache, std::int64_t tokens) { return append_to(cache, about_layer_, tokens); }
  Op show_views(std::int64_t cache) { return Op::of(ShowViews{cache, about_layer_, keep()}); }
  std::int64_t length_of(std::int64_t cache) {
    const Followed* held = known(cache);
    return held != nullptr ? held->seq_len : 0;
  }
  [[nodiscard]] CachesOfCase& made() const { return reference<CachesOfCase>(); }
  [[nodiscard]] std::int64_t caches() const { return made().count; }
  [[nodiscard]] std::int64_t views_numbered() const { return std::ssize(made().numbered); }
  [[nodiscard]] std::int64_t blocks_free() const { return made().pool->free_blocks(); }
  [[nodiscard]] std::int64_t block_size() const { return options_.block_size; }
  [[nodiscard]] std::int64_t kv_dim() const { return options_.kv_dim(); }
  [[nodiscard]] std::int64_t max_tokens() const { return options_.max_seq_len; }
  [[nodiscard]] const Followed* known(const std::optional<std::int64_t>& cache) const {
    return made().caches.find(cache.value_or(0));
  }
  [[nodiscard]] bool has(std::int64_t layer) const {
    return layer >= 0 && layer < options_.num_layers;
  }

  // ---- Draws ----

  // The number of a cache, mostly of one that there is.
  std::int64_t number() {
    const std::int64_t last = caches() - 1;
    if (last > 8 && draw().percent(60)) return draw().between(0, 2);  // so that some grow
    return draw().percent(98) ? draw().between(0, last) : draw().between(-1, 6);
  }
  std::int64_t layer() {
    if (draw().percent(3)) return draw().one_of({std::int64_t{-1}, options_.num_layers});
    return draw().between(0, options_.num_layers - 1);
  }
  std::optional<bool> keep() {
    constexpr std::int64_t kMany = 300;  // all are looked through at every append
    if (views_numbered() > kMany && draw().percent(98)) return std::nullopt;
    return draw().percent(40) ? std::optional(true) : std::nullopt;
  }
  // How many tokens come: a few, what fills a block or the sequence, or more than fits.
  std::int64_t some_tokens(std::int64_t cache) {
    const std::int64_t length = length_of(cache);
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
  Op append_to(std::int64_t cache, std::int64_t layer, std::int64_t tokens) {
    auto [k, v] = tagger_.pair({tokens, options_.kv_dim()});
    for (Tensor* side : {&k, &v}) {
      odd_values_.put_into(side->floats());
      if (!odd_rows_) continue;
      side->shape = {tokens, options_.num_kv_heads, options_.head_dim};
      fill_oddly(draw(), *side);
      side->shape = {tokens, options_.kv_dim()};
    }
    return Op::of(Append{cache, layer, std::move(k), std::move(v), keep()});
  }
  Op contiguous_of(std::int64_t cache) {
    const Followed* there = known(cache);
    const std::int64_t layer = this->layer();
    const std::int64_t held = there != nullptr && has(layer) ? there->held(layer) : 0;
    std::int64_t length = std::min(held, draw().between(0, options_.block_size));
    if (draw().percent(30)) length = draw().between(0, held);
    if (draw().percent(6)) length = draw().one_of({std::int64_t{-1}, held + 1});
    const std::int64_t width = options_.kv_dim() + (draw().percent(4) ? 1 : 0);
    return Op::of(ContiguousKv{cache, layer, length, width});
  }
  Op drawn_query(std::int64_t cache) {
    switch (draw().below(4)) {
      case 0:
        return Op::of(ShowPacked{cache, layer()});
      case 1:
        return contiguous_of(cache);
      case 2:
        return Op::of(SeqLen{cache});
      default:
        return Op::of(ShowViews{cache, layer(), keep()});
    }
  }

  // ---- What follows from what was seen ----

  void appended(const Append& append, const Append::Returns& returns) {
    const std::int64_t tokens = append.k.shape[0];
    const std::int64_t size = options_.block_size;
    const std::int64_t end = returns.start + tokens;
    constexpr std::int64_t kThousand = 1'024;
    spend(kAppendCost * static_cast<std::uint64_t>(append.k.elements()));
    if (tokens > 16 * size) reach(Label::kSixteenBlocksInOneAppend);
    if (end > kThousand) reach(Label::kBeyondAThousandTokens);
    if (options_.kv_dim() > kThousand) reach(Label::kRowsOfAThousandCells);
    if (append.layer >= 4) reach(Label::kFiveLayers);
    if (std::ranges::find(kHeadSizes, options_.head_dim) != kHeadSizes.end() &&
        options_.num_kv_heads > 1)
      reach(Label::kHeadsOfACommonSize);
    const std::int64_t cache = append.cache.value_or(0);
    const std::int64_t pending = before_.pending[static_cast<std::size_t>(append.layer)];
    if (tokens == 0) reach(Label::kAppendOfNothing);
    if (returns.views.size() > 1) reach(Label::kAppendAcrossABorder);
    if (tokens > 0 && end % size == 0) reach(Label::kAppendUpToABorder);
    if (returns.start > before_.seq_len) reach(Label::kAppendsStacked);
    if (pending > 0 && returns.start == before_.seq_len)
      reach(tokens < pending ? Label::kPendingReplacedByFewer : Label::kPendingReplaced);
    if (!returns.views.empty() && returns.views.front().start < returns.start)
      reach(Label::kViewsOfWholeBlocks);
    if (tokens > 0 && cut_.erase(cache) > 0) reach(Label::kWrittenBehindATruncate);
    if (std::exchange(dry_, false)) reach(Label::kWrittenAfterAPoolThatRanDry);
    if (std::exchange(last_, cache) != cache && end > size) reach(Label::kTwoCachesOnOnePool);
    for (std::int64_t i = 0; i < views_numbered(); ++i) {
      const NumberedViews& views = made().numbered[static_cast<std::size_t>(i)];
      if (i + 1 != returns.handle && views.life == known(cache)->life &&
          views.layer == append.layer && views.reaches(returns.start) &&
          views.views.front().start < end)
        rewritten_.insert(i + 1);
    }
    note_handle(returns.handle);
  }
  // One of two caches goes back into a block that both hold, and goes on differently.
  void part_ways(std::int64_t one, std::int64_t other, std::int64_t shared) {
    if (draw().percent(50)) std::swap(one, other);
    const std::int64_t size = options_.block_size;
    const std::int64_t block = size * draw().between(0, shared / size - 1);
    const std::int64_t layer = draw().between(0, options_.num_layers - 1);
    plan(Truncate{one, block + draw().between(1, size - 1)});
    plan(append_to(one, layer, draw().between(1, 2)));
    plan(ShowViews{one, layer});
    plan(ShowViews{other, layer});
  }
  void note_handle(const std::optional<std::int64_t>& handle) {
    constexpr std::int64_t kOneByte = 0xFF;
    if (handle.value_or(0) > kOneByte) reach(Label::kViewsBeyondOneByte);
  }

  Config config_;
  Options options_;
  Tagger tagger_;
  OddValues odd_values_;
  bool odd_rows_;  // all are hard on narrow types
  std::int64_t most_caches_;
  Before before_;
  std::set<std::int64_t> cut_;        // caches that were truncated, and not written since
  std::set<std::int64_t> rewritten_;  // views by number, some of whose rows were replaced
  std::int64_t last_ = 0;
  bool dry_ = false;
  std::int64_t truncated_ = 0;
  std::int64_t about_ = 0;  // cache of a plan
  std::int64_t about_layer_ = 0;
};

// Wide rows, many layers or many blocks.
void draw_large_sizes(Draw& draw, Config& config) {
  if (draw.percent(20)) config.num_layers = draw.edge(5, 33);
  if (draw.percent(40)) config.num_kv_heads = draw.edge(4, 17);
  if (draw.percent(40)) config.head_dim = draw.one_of<std::int64_t>(kHeadSizes);
  if (draw.percent(10)) config.head_dim = draw.edge(5, 257);
  if (draw.percent(30)) config.block_size = draw.edge(15, 257);
  config.max_seq_len = config.block_size * draw.edge(8, 129);
  if (draw.percent(10)) {  // more than a processor's caches hold
    config.num_kv_heads = 8;
    config.head_dim = 128;
    config.block_size = draw.edge(15, 65);
    config.max_seq_len = 1'024;
  }
  config.blocks = draw.one_of<std::int64_t>({64, 1'000, 4'000});
}

Config drawn_config(std::uint64_t seed, Scale scale) {
  Draw draw(~seed);
  Config config;
  config.num_layers = draw.percent(50) ? 1 : draw.between(2, 3);
  config.block_size =
      draw.percent(70) ? draw.one_of<std::int64_t>({1, 2, 16, 64}) : draw.between(3, 9);
  config.num_kv_heads = draw.between(1, 3);
  config.head_dim = draw.between(1, 4);
  const std::int64_t size = config.block_size;
  config.max_seq_len = 8 * size;
  if (draw.percent(40))
    config.max_seq_len = draw.one_of({size, 2 * size + 1, 3 * size, std::int64_t{5}});
  if (draw.percent(1)) config.max_seq_len = 0;
  config.blocks = 64;
  if (draw.percent(40)) config.blocks = config.num_layers * draw.between(0, 5);
  if (scale == Scale::kLarge && draw.percent(80)) draw_large_sizes(draw, config);
  if (scale == Scale::kLong) {
    config.num_layers = draw.between(2, 3);
    config.block_size = draw.between(1, 4);
    config.num_kv_heads = 1;
    config.head_dim = draw.between(1, 2);
    config.max_seq_len = draw.between(8, 33);
    config.blocks = 64;
  }
  if (draw.percent(25)) config.rows.storage = StorageType::kF16;
  if (draw.percent(30)) {
    config.devices.emplace();
    for (std::int64_t i = 0; i < config.num_layers; ++i)
      config.devices->push_back(draw.percent(50) ? -1 : draw.between(0, 1));
  }
  if (draw.percent(45)) {
    if (draw.percent(30)) config.append_stacks = true;
    if (draw.percent(30)) config.append_views_blocks = true;
    if (draw.percent(30)) config.commit_keeps_rest = true;
    if (draw.percent(20)) config.views_committed_only = true;
    if (draw.percent(40)) config.packed_stride = PackedStride::kLength;
  }
  if (draw.percent(10)) config.robustness = true;
  return config;
}

// Types that hold little, in some cases, and heads that are longer than a group of codes.
// Returns  whether rows are to be hard on such types.
bool store_narrowly(std::uint64_t seed, Scale scale, Config& config) {
  Draw draw = storage_draw(seed);
  if (!draw.percent(20)) return false;
  set_storage(draw, config.rows, draw_narrow_storage(draw));
  constexpr std::int64_t kFewTokens = 64;
  if (scale == Scale::kSmall && config.max_seq_len <= kFewTokens && draw.percent(60))
    config.head_dim = draw.between(33, 140);
  return draw.percent(60);
}

GeneratedCase make_paged_case(const CaseTerms& terms) {
  Config config = drawn_config(terms.seed, terms.scale);
  const bool odd_rows = store_narrowly(terms.seed, terms.scale, config);
  return {.setup = {.profile = terms.profile, .config = Record::of(config)},
          .ops = std::make_unique<PagedScript>(terms, config, odd_rows)};
}

}  // namespace

std::vector<Generator> generators() {
  return {with_storage_labels(
      with_orders<PagedScript>(script_generator<Label>(paged_kind(), make_paged_case, {}, {})))};
}

}  // namespace kvo::views
