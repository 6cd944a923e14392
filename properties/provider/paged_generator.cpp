// Random scripts for provider.paged.
#include <span>

#include "properties/provider/provider_script.hpp"
#include "reference/provider/paged.hpp"

namespace kvo::provider {
namespace {

using block_pool::Alloc;
using block_pool::Available;
using block_pool::FreeBlock;
using block_pool::ReadBlock;

// States worth reaching.
BOOST_DEFINE_FIXED_ENUM_CLASS(
    PagedLabel, std::uint8_t, kPoolExhaustedHalfWayThroughAnAppend,
    kAppendRefusedWholeByAPoolWithTooFewBlocks, kAppendContinuedAfterExhaustion,
    kTruncatedAtABlockBoundary, kTruncatedInsideABlock, kTruncateBeyondTheLength, kNegativeTruncate,
    kFreedBlockResurrectedByAnUpwardTruncate, kNullEntryInTheTable, kLayoutPinnedByAFailedAppend,
    kLayoutNotPinnedByAFailedAppend, kOtherLayoutAfterEverythingWasFreed, kSeveralChannels,
    kTwoCachesInterleavedOnOnePool, kTableOutOfOrder, kLayersAtDifferentLengths,
    kPoisonedRowTruncatedAndOverwritten, kVRefused, kNullTensor, kUpdateWithoutPositions, kDrained,
    kBlockOfACacheFreedByOthers, kBlockFreedTwice, kBlockHandedOutTwice, kLayerBeyondThePool,
    kLayerOutOfRange, kCacheWithoutAPool, kSixteenBlocksInOneAppend, kBeyondAHundredBlocks,
    kBlocksOfSixteen, kBeyondAThousandPositions, kPositionsOfAThousandCells, kBatchBeyondSixtyFour,
    kRowsOfACommonHeadSize, kFiveLayers, kBeyondSixteenCaches, kResultsBeyondOneByte,
    kEmptiedBeyondOneByte, kCountedBeyondTwoBytes, kWriteIntoCodesRefused,
    kCellRoundedThroughAResult, kGroupsOverChannelsRefused)

struct PagedKnown {
  std::vector<KnownLayer> layers = {};
  std::int64_t channels = 0;                // 0: no successful update yet
  std::optional<std::int64_t> failed = {};  // channels of a failed update, nothing being pinned
  std::vector<std::int64_t> blocks = {};    // as seen last; may be out of date
  bool emptied = false;
  bool dry = false;
  bool stretched = false;  // an upward truncate may have taken old entries back

  [[nodiscard]] std::int64_t longest() const {
    return layers.empty() ? 0 : std::ranges::max(layers, {}, &KnownLayer::length).length;
  }
  void cut(std::int64_t n) {
    for (KnownLayer& layer : layers) layer.cut(n);
  }
};

class PagedScript final : public ProviderScript<PagedScript, PagedOps, PagedLabel, PagedKnown> {
  using S = PagedScript;

 public:
  PagedScript(const CaseTerms& terms, const CaseStorage& storage) : ProviderScript(terms, storage) {
    // Many pool layers make few blocks; a cache need not use them all.
    pool_.num_layers = draw().one_of<std::int64_t>({1, 2, 32, 64, 128});
    pool_.block_size = draw().percent(60) ? draw().between(1, 4) : draw().size(1, 17);
    pool_.head_dim = draw().one_of<std::int64_t>({1, 2, 4, 4, 6, 15, 16, 17});
    if (pool_.num_layers <= 2) pool_.head_dim = draw().one_of<std::int64_t>({12, 16, 24});
    if (is_large()) draw_large_pool();
    if (is_long()) pool_ = {.num_layers = 64, .block_size = draw().between(1, 4), .head_dim = 2};
    if (storage.wide) draw_wide_positions();
    channels_ = some_channels();
  }

  std::optional<Op> choose() override {
    const bool too_early = cap_ == 0 && !has_plan();
    if (too_early && draw().percent(all_known().empty() ? 99 : 50)) return make_pool();
    return ProviderScript::choose();
  }

  // Steps.
  Op make_pool() {
    if (is_long()) {
      if (cap_ > 0 && draw().percent(97)) return update();
      plan(DrainPool{draw().between(4, 16)});  // blocks that come again and again
    }
    const std::int64_t megabytes = draw().percent(2) ? draw().between(-1, 0) : 1;
    return Op::of(NewPool{pool_.num_layers, pool_.block_size, pool_.head_dim, megabytes});
  }
  Op make(std::int64_t cache) {
    std::int64_t layers = std::min<std::int64_t>(pool_.num_layers, some_layers());
    if (draw().percent(6)) layers = pool_.num_layers < 4 ? pool_.num_layers + 1 : 0;
    if (draw().percent(1)) layers = -1;
    return Op::of(NewPaged{cache, layers});
  }
  Op update() {
    const std::int64_t cache = number();
    const PagedKnown* there = known(cache);
    std::int64_t channels = draw().percent(90) ? channels_ : some_channels();
    if (there != nullptr && there->channels > 0 && draw().percent(93)) channels = there->channels;
    const std::int64_t size = pool_.block_size;
    const std::int64_t to = layer(cache);
    std::int64_t seq = draw().between(draw().percent(8) ? 0 : 1, 2 * size + 1);
    if (draw().percent(50)) seq = draw().between(1, std::min<std::int64_t>(size, 2));
    if (is_large() && draw().percent(30)) seq = many_positions();
    if (is_long()) {
      if (draw().percent(95)) seq = 1;
      if (there != nullptr && there->longest() >= kLongLength && draw().percent(95))
        return draw().percent(70) ? Op::of(Reset{cache}) : cut();
    }
    RowPair pair = rows().rows({channels, seq, pool_.head_dim / channels});
    return Op::of(Update{cache, to, std::move(pair.k), std::move(pair.v)});
  }
  // At the edges of blocks and of the length, or anything between.
  Op cut() {
    const std::int64_t cache = number();
    const PagedKnown* there = known(cache);
    const std::int64_t longest = there == nullptr ? 0 : there->longest();
    const std::int64_t size = pool_.block_size;
    std::int64_t n = draw().between(0, longest);
    if (draw().percent(35)) n = size * draw().between(0, longest / size);
    if (draw().percent(10)) n = longest;
    if (draw().percent(10)) n = longest + draw().between(0, 3 * size);
    if (draw().percent(10)) n = draw().between(-2, 0);
    return Op::of(Truncate{cache, n});
  }
  Op drain() {
    if (is_long() && draw().percent(97)) return update();
    return Op::of(DrainPool{draw().between(-1, 4)});
  }
  Op free_block() {
    return Op::of(FreeBlock{draw().percent(2) ? Nullable<std::int64_t>() : block()});
  }
  Op alloc() { return is_long() && draw().percent(50) ? free_block() : Op::of(Alloc{}); }
  Op available() { return Op::of(Available{}); }
  Op read_block() { return Op::of(ReadBlock{block()}); }

  // Rows of the layout that a cache is pinned to, without a fault.
  Op rows_for(std::int64_t cache, std::int64_t to, std::int64_t positions) {
    const std::int64_t held = known(cache)->channels;
    return rows_in(held > 0 ? held : channels_, cache, to, positions);
  }
  Op rows_in(std::int64_t channels, std::int64_t cache, std::int64_t to, std::int64_t positions) {
    RowPair pair = rows().sound_rows({channels, positions, pool_.head_dim / channels});
    return Op::of(Update{cache, to, std::move(pair.k), std::move(pair.v)});
  }

  static const CacheKind& order_kind() { return paged_kind(); }
  static std::span<const OrderWord> order_words() {
    static constexpr auto kWords = std::to_array<OrderWord>({
        order_word<&S::choose_sequence>("choose_sequence"),
        order_word<&S::rows_of_sequence>("rows"),
        order_word<&S::rows_of_layout>("rows_of_layout"),
        order_word<&S::chosen_cache>("chosen"),
        order_word<&S::chosen_layer>("chosen_layer"),
        order_word<&S::longest>("longest"),
        order_word<&S::has_first_layer>("has_first_layer"),
        order_word<&S::caches>("caches"),
        order_word<&S::block_size>("block_size"),
        order_word<&S::head_dim>("head_dim"),
    });
    return kWords;
  }
  static constexpr auto kSteps = std::to_array<ScriptStep<S>>({
      {100, "update", &S::update, true},
      {40, "get", &S::get, true},
      {28, "truncate", &S::cut},
      {12, "table", &S::of_cache<Table>},
      {6, "reset", &S::of_cache<Reset>},
      {10, "free", &S::of_cache<Free>},
      {6, "drain", &S::drain},
      {6, "free_block", &S::free_block},
      {4, "alloc", &S::alloc},
      {6, "available", &S::available},
      {8, "read_block", &S::read_block},
      {6, "reread", &S::reread},
      {4, "seq_len", &S::of_cache<SeqLen>},
      {4, "poke", &S::poke},
      {2, "num_layers", &S::of_cache<NumLayers>},
      {2, "new", &S::again},
      {1, "new_pool", &S::make_pool},
  });

  // What became of an operation.
  using ProviderScript::observe;
  void observe(const NewPool& /*op*/, const Observation& seen) {
    if (seen.error) return;
    cap_ = seen.as<NewPool::Returns>().cap;
    spend(kPoolCost);
    out_.clear();
    for (auto& [number, cache] : all_known()) cache.blocks.clear();
  }
  void observe(const NewPaged& made, const Observation& seen) {
    if (cap_ == 0) reach(PagedLabel::kCacheWithoutAPool);
    if (seen.error) {
      if (made.num_layers > pool_.num_layers) reach(PagedLabel::kLayerBeyondThePool);
      return;
    }
    remember(made.cache,
             {.layers = std::vector<KnownLayer>(static_cast<std::size_t>(made.num_layers))});
  }
  void observe(const Update& update, const Observation& seen) {
    KnownLayer* layer = updated(update);
    if (layer == nullptr) return;
    PagedKnown& there = *known(update.cache);
    if (seen.error) return saw_refusal(there, update, *seen.error);
    const Shape& shape = update.k->shape;
    if (shape[1] == 0) return reach(PagedLabel::kUpdateWithoutPositions);
    if (there.failed && *there.failed != shape[0] && documented())
      reach(PagedLabel::kLayoutNotPinnedByAFailedAppend);
    if (there.emptied && there.channels != shape[0])
      reach(PagedLabel::kOtherLayoutAfterEverythingWasFreed);
    if (shape[0] > 1) reach(PagedLabel::kSeveralChannels);
    if (there.dry) reach(PagedLabel::kAppendContinuedAfterExhaustion);
    there.channels = shape[0];
    there.failed = std::nullopt;
    there.emptied = there.dry = false;
    const std::int64_t blocks = shape[1] / pool_.block_size;
    if (blocks > 16) reach(PagedLabel::kSixteenBlocksInOneAppend);
    if (layer->length + shape[1] > 100 * pool_.block_size) reach(PagedLabel::kBeyondAHundredBlocks);
    if (blocks > 0 && pool_.block_size >= 16) reach(PagedLabel::kBlocksOfSixteen);
    added(there, *layer, *update.k);
    stored(*update.k);
    const std::int64_t number = update.cache.value_or(0);
    if (number != last_updated_ && there.longest() > pool_.block_size && last_updated_ >= 0)
      reach(PagedLabel::kTwoCachesInterleavedOnOnePool);
    last_updated_ = number;
  }
  void observe(const Poke& poke, const Observation& seen) {
    saw_poke(seen);
    ProviderScript::observe(poke, seen);
  }
  void observe(const Get& get, const Observation& seen) {
    if (!seen.error) keep(get.cache, get.layer, seen.as<Found>());
  }
  void observe(const Truncate& truncate, const Observation& seen) {
    PagedKnown* there = known(truncate.cache);
    if (there == nullptr) return;
    const std::int64_t n = std::max<std::int64_t>(truncate.n, 0);
    if (truncate.n < 0) reach(PagedLabel::kNegativeTruncate);
    if (n > there->longest()) reach(PagedLabel::kTruncateBeyondTheLength);
    if (seen.error) return;
    if (n > 0 && n < there->longest())
      reach(n % pool_.block_size == 0 ? PagedLabel::kTruncatedAtABlockBoundary
                                      : PagedLabel::kTruncatedInsideABlock);
    there->cut(n);
    there->dry = false;
    if (n == 0) there->emptied = there->emptied || there->channels > 0;
    there->stretched = n > there->longest() && !documented();
    if (there->stretched) plan(Table{truncate.cache});
  }
  void observe(const Reset& reset, const Observation& seen) { saw_free(reset.cache, seen); }
  void observe(const Free& free, const Observation& seen) { saw_free(free.cache, seen); }
  void observe(const Table& table, const Observation& seen) {
    PagedKnown* there = known(table.cache);
    if (there == nullptr || seen.error) return;
    const auto& returns = seen.as<Table::Returns>();
    there->blocks.clear();
    bool null_entry = false;
    for (const Nullable<std::int64_t>& block : returns.blocks) {
      null_entry = null_entry || !block.has_value();
      if (!block.has_value()) continue;
      if (!there->blocks.empty() && *block != there->blocks.back() + 1)
        reach(PagedLabel::kTableOutOfOrder);
      there->blocks.push_back(*block);
      out_[*block] = true;
    }
    const auto held = std::ssize(returns.blocks) * pool_.block_size;
    const bool more_than_needed = held >= there->longest() + pool_.block_size;
    if (null_entry) reach(PagedLabel::kNullEntryInTheTable);
    if (there->stretched && more_than_needed && !null_entry)
      reach(PagedLabel::kFreedBlockResurrectedByAnUpwardTruncate);
    if (there->dry && more_than_needed && !documented())
      reach(PagedLabel::kPoolExhaustedHalfWayThroughAnAppend);
  }
  void observe(const Alloc& /*op*/, const Observation& seen) {
    if (seen.error) return;
    const std::int64_t block = seen.as<Alloc::Returns>().block;
    if (out_.contains(block) && out_[block] && !documented())
      reach(PagedLabel::kBlockHandedOutTwice);
    out_[block] = true;
  }
  void observe(const FreeBlock& free, const Observation& seen) {
    if (seen.error || !free.block.has_value()) return;
    for (const auto& [number, cache] : all_known())
      if (std::ranges::find(cache.blocks, *free.block) != cache.blocks.end())
        reach(PagedLabel::kBlockOfACacheFreedByOthers);
    if (out_.contains(*free.block) && !out_[*free.block]) reach(PagedLabel::kBlockFreedTwice);
    out_[*free.block] = false;
  }
  void observe(const DrainPool& /*op*/, const Observation& seen) {
    if (!seen.error) reach(PagedLabel::kDrained);
  }
  void observe(const Reread& reread, const Observation& seen) {
    if (!seen.error) spend_on(handles()[static_cast<std::size_t>(reread.handle)]);
  }
  void observe(const ReadBlock& /*op*/, const Observation& seen) {
    if (!seen.error)
      spend(static_cast<std::uint64_t>(static_cast<std::int64_t>(kQueryCost) * pool_cells()));
  }

 private:
  static constexpr std::uint64_t kPoolCost = 100'000;  // a mebibyte is cleared
  static constexpr std::int64_t kLongLength = 12;      // of a sequence in a long life

  // ---- For orders ----
  // As choose_layer, but no layer of a paged cache is pinned alone.
  bool choose_sequence() {
    (void)this->choose_layer();
    return sequence() != nullptr;
  }
  KnownLayer* sequence() { return known(this->chosen_cache(), this->chosen_layer()); }
  std::optional<Op> rows_of_sequence(std::int64_t positions) {
    if (sequence() == nullptr) return std::nullopt;
    return rows_for(this->chosen_cache(), this->chosen_layer(), positions);
  }
  Op rows_of_layout(std::int64_t channels, std::int64_t cache) {
    return rows_in(channels, cache, 0, draw().between(1, 2));
  }
  std::int64_t longest() { return known(this->chosen_cache())->longest(); }
  bool has_first_layer(std::int64_t cache) { return known(cache, 0) != nullptr; }
  std::int64_t caches() { return std::ssize(all_known()); }
  [[nodiscard]] std::int64_t block_size() const { return pool_.block_size; }
  [[nodiscard]] std::int64_t head_dim() const { return pool_.head_dim; }

  // Few layers, so that there are many blocks; or wide positions, as models have them.
  void draw_large_pool() {
    pool_.num_layers = draw().one_of<std::int64_t>({1, 1, 2, 5, 9});
    pool_.block_size = draw().percent(50) ? draw().one_of<std::int64_t>({16, 16, 32, 64, 128, 256})
                                          : draw().size(1, 65);
    pool_.head_dim = draw().one_of<std::int64_t>({12, 16, 24});
    if (draw().percent(50))
      pool_.head_dim = draw().template one_of<std::int64_t>(kHeadSizes) * draw().between(1, 4);
    if (draw().percent(15)) pool_.head_dim = draw().edge(64, 2'048);
  }
  // Positions whose groups are cut short, or of several channels in whole groups.
  void draw_wide_positions() {
    const std::int64_t group = storage().format.group;
    pool_.head_dim =
        draw().percent(50) ? draw().between(33, group + 36) : group * draw().between(1, 4);
    pool_.num_layers = std::min<std::int64_t>(pool_.num_layers, 32);
    pool_.block_size = std::min<std::int64_t>(pool_.block_size, 16);
  }
  // Of a side of a block.
  [[nodiscard]] std::int64_t pool_cells() const {
    return pool_.num_layers * pool_.block_size * pool_.head_dim;
  }
  // As many as fill many blocks, or a few more or less.
  std::int64_t many_positions() {
    constexpr std::int64_t kMostCells = std::int64_t{1} << 17U;
    const std::int64_t blocks = draw().percent(50) ? draw().between(3, 40) : draw().edge(15, 129);
    const std::int64_t most = std::max<std::int64_t>(1, kMostCells / pool_.head_dim);
    return std::min(most, pool_.block_size * blocks + draw().between(-1, 1));
  }
  std::int64_t some_channels() {
    const StorageFormat& format = storage().format;
    const bool whole = in_groups(format.type) && draw().percent(90);
    std::vector<std::int64_t> divisors;
    for (std::int64_t c = 1; c <= pool_.head_dim; ++c)
      if (pool_.head_dim % c == 0 && (c == 1 || !whole || pool_.head_dim / c % format.group == 0))
        divisors.push_back(c);
    for (const std::int64_t dim : kHeadSizes)  // mostly heads of a common size
      if (is_large() && !whole && pool_.head_dim % dim == 0 && draw().percent(40))
        return pool_.head_dim / dim;
    return divisors[draw().below(divisors.size())];
  }
  // Mostly a block that some cache holds or that was handed out.
  std::int64_t block() {
    if (!out_.empty() && draw().percent(85)) {
      auto at = out_.begin();
      std::advance(at, draw().below(out_.size()));
      return at->first;
    }
    return draw().percent(20) ? draw().one_of<std::int64_t>({-1, cap_}) : draw().between(0, 5);
  }
  void saw_refusal(PagedKnown& there, const Update& update, const Error& error) {
    const Shape& shape = update.k->shape;
    if (error.detail.starts_with("dim: ")) return reach(PagedLabel::kGroupsOverChannelsRefused);
    if (error.detail == "layer beyond the pool") reach(PagedLabel::kLayerBeyondThePool);
    if (error.code == Code::kExhausted) {
      there.dry = true;
      if (documented()) reach(PagedLabel::kAppendRefusedWholeByAPoolWithTooFewBlocks);
      plan(Table{update.cache});
      const bool in_last = there.longest() % pool_.block_size != 0;
      if (!documented() && in_last) reach(PagedLabel::kPoolExhaustedHalfWayThroughAnAppend);
    } else if (update.v.has_value() && update.v->shape != shape && error.detail != "size") {
      reach(PagedLabel::kVRefused);
    }
    if (there.channels > 0) return;
    if (error.detail == "layout" && there.failed) reach(PagedLabel::kLayoutPinnedByAFailedAppend);
    if (error.detail != "size" && !there.failed) there.failed = shape[0];
  }
  void saw_free(const std::optional<std::int64_t>& cache, const Observation& seen) {
    PagedKnown* there = known(cache);
    if (there == nullptr) return;
    if (seen.error) return reach(PagedLabel::kNullEntryInTheTable);
    emptied();
    for (const std::int64_t block : there->blocks) out_[block] = false;
    there->blocks.clear();
    there->cut(0);
    there->emptied = there->channels > 0;
    there->dry = there->stretched = false;
  }

  block_pool::Geometry pool_;
  std::int64_t channels_ = 1;         // of most updates
  std::int64_t cap_ = 0;              // 0: no pool yet
  std::map<std::int64_t, bool> out_;  // blocks seen, and whether they were out when last seen
  std::int64_t last_updated_ = -1;
};

}  // namespace

Generator paged_generator() {
  return with_storage_labels(with_orders<PagedScript>(script_generator<PagedLabel>(
      paged_kind(), stored_case<PagedConfig, PagedScript>,
      {PagedLabel::kPoolExhaustedHalfWayThroughAnAppend,
       PagedLabel::kFreedBlockResurrectedByAnUpwardTruncate, PagedLabel::kNullEntryInTheTable,
       PagedLabel::kLayoutPinnedByAFailedAppend, PagedLabel::kBlockHandedOutTwice},
      {PagedLabel::kAppendRefusedWholeByAPoolWithTooFewBlocks,
       PagedLabel::kLayoutNotPinnedByAFailedAppend})));
}

}  // namespace kvo::provider
