// What a session of kind `prefix.blocks` does beside calling its cache: it numbers keys and checks
// block numbers.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reference/contract/describe/handles.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/prefix/blocks.hpp"
#include "reference/prefix/keys_session.hpp"

namespace kvo::prefix {
namespace {

class BlocksSession final : public DispatchSession<BlocksSession, BlocksOps>,
                            public ShowsCache<BlockCache> {
 public:
  BlocksSession(const BlocksOptions& options, std::unique_ptr<BlockCache> cache)
      : options_(options), cache_(std::move(cache)) {}

  template <class T>
  [[nodiscard]] Result<BlockCache*> cache_of(const T& op) const {
    Status checked;
    if constexpr (std::same_as<T, Allocate>) checked = check_blocks(hits_of(op));
    if constexpr (OneOf<T, TouchBlocks, Release>) checked = check_blocks(op.blocks);
    if (!checked) return checked.error();
    return cache_.get();
  }
  template <OneOf<MakeRequest, Append> T>
  Result<KeysOnly> operator()(const T& op) {
    return shown_keys(probe()([&] { return op.call(*cache_); }));
  }
  Result<MatchBlocks::Returns> operator()(const MatchBlocks& op) {
    MatchBlocks clamped = op;
    if (op.max_length) clamped.max_length = std::max<std::int64_t>(*op.max_length, -1);
    return call_method(clamped);
  }
  Result<LookUp::Returns> operator()(const LookUp& op) {
    const auto key = keys_.key(op.key);
    if (!key) return LookUp::Returns{};
    return LookUp::Returns{probe()([&] { return cache_->lookup(*key); })};
  }
  Result<ShowUsage::Returns> operator()(const ShowUsage& /*op*/) {
    const auto free = static_cast<double>(probe()([&] { return cache_->free_blocks(); }));
    if (options_.num_blocks == 1) return ShowUsage::Returns{0};
    return ShowUsage::Returns{1 - free / static_cast<double>(options_.num_blocks - 1)};
  }
  Result<TakeEvents::Returns> operator()(const TakeEvents& /*op*/) {
    const auto events = probe()([&] { return cache_->events(); });
    return TakeEvents::Returns{keys_.shown(events, options_.block_size)};
  }
  Result<ShowBlocks::Returns> operator()(const ShowBlocks& /*op*/) {
    BlocksState state = probe()([&] { return cache_->state(); });
    ShowBlocks::Returns returns{.free = probe()([&] { return cache_->free_blocks(); }),
                                .queue = std::move(state.queue),
                                .refs = std::move(state.refs)};
    for (const auto& key : state.keys)
      returns.keys.emplace_back(key ? std::optional(keys_.number(*key)) : std::nullopt);
    for (Holders& one : state.cached)
      returns.cached.push_back({keys_.number(one.key), std::move(one.blocks)});
    std::ranges::sort(returns.cached, {}, &ShownHolders::key);
    return returns;
  }

  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return cache_->broken_invariant();
  }
  [[nodiscard]] const BlockCache& shown() const override { return *cache_; }
  // Blocks for loaded tokens are not returned (PX-27), but are in the table.
  void follow(const Op& op, const Observation& answer, Session& chooser) override {
    Ids blocks;
    const auto add = [&](const Observation& seen) {
      for (const Handle& handle : handles_of(seen.returns)) blocks.push_back(handle.value);
    };
    const auto* allotted = op.as<Allocate>();
    if (allotted != nullptr && allotted->external && !answer.error) {
      Probe unused;
      add(chooser.apply(Op::of(ShowTable{allotted->request}), unused));
    }
    if (!answer.error) add(answer);
    cache_->prefer(std::move(blocks));
  }

 private:
  [[nodiscard]] Status check_blocks(IdsView blocks) const {
    return check_numbers("blocks", blocks, 0, options_.num_blocks);
  }
  [[nodiscard]] Result<KeysOnly> shown_keys(const Result<std::span<const Key>>& keys) {
    if (!keys) return keys.error();
    return KeysOnly{keys_.numbers(*keys)};
  }

  BlocksOptions options_;
  std::unique_ptr<BlockCache> cache_;
  KeyNumbers keys_;
};

// Lists whose order shows how a cache chooses.
Observation without_block_order(const Op& /*op*/, const Observation& seen) {
  const auto sorted = [](auto returns) {
    if constexpr (requires { returns.queue; }) {
      std::ranges::sort(returns.queue);
      for (ShownHolders& one : returns.cached) std::ranges::sort(one.blocks);
    } else {
      std::ranges::sort(returns.evicted);
    }
    return Observation{.returns = Record::of(std::move(returns))};
  };
  const Type& type = seen.returns.type();
  if (&type == &type_of<ShowBlocks::Returns>()) return sorted(seen.as<ShowBlocks::Returns>());
  if (&type == &type_of<AllottedBlocks>()) return sorted(seen.as<AllottedBlocks>());
  return seen;
}

constexpr std::array<ConventionInfo, 1> kBlocksConventions{
    {{.name = "own_blocks",
      .rules = "PX-7, PX-14, PX-16, PX-34, PX-35",
      .sentence = "chooses which free block it hands out and evicts, and which of several equal "
                  "blocks a lookup finds",
      .relation = CanonicalRelation<without_block_order>::make,
      .chooses = true}}};

Error refused(const std::string& what) {
  return fail(Code::kNotSupported, what);
}

// A size that must be there is at least 1.
bool is_size(const std::optional<std::int64_t>& size) {
  return size && *size >= 1 && *size <= kMostTokens;
}

}  // namespace

Result<BlocksOptions> options_of(const BlocksConfig& config, QuirkSet<Quirk> quirks) {
  if (config.num_blocks < 1 || config.num_blocks > kMostUnits) return refused("num_blocks");
  if (!is_size(config.block_size)) return refused("block_size");
  const bool in_window = config.attention == Attention::kSlidingWindow;
  const bool in_chunks = config.attention == Attention::kChunkedLocal;
  if (in_window && !is_size(config.window)) return refused("window");
  if (in_chunks && !is_size(config.chunk)) return refused("chunk");
  if (in_chunks && config.eagle && !quirks.has(Quirk::kDraftsInChunks))
    return refused("eagle with chunks");
  const std::int64_t in_flight = config.max_in_flight.value_or(config.max_model_len);
  if (!check_count("", config.max_model_len)) return refused("max_model_len");
  if (!check_count("", in_flight)) return refused("max_in_flight");
  if (!check_count("", config.hash_lookahead)) return refused("hash_lookahead");
  if (!(config.watermark >= 0 && config.watermark <= 1)) return refused("watermark");
  BlocksOptions options{.num_blocks = config.num_blocks,
                        .block_size = config.block_size,
                        .attention = config.attention,
                        .window = config.window.value_or(1),
                        .chunk = config.chunk.value_or(1),
                        .enable_caching = config.enable_caching,
                        .max_model_len = config.max_model_len,
                        .max_in_flight = in_flight,
                        .eagle = config.eagle,
                        .hash_lookahead = config.hash_lookahead,
                        .watermark = config.watermark,
                        .retention = config.retention ? config.retention->value : std::nullopt,
                        .events = config.events};
  if (options.retention &&
      (!in_window || *options.retention < 0 || *options.retention > kMostTokens ||
       *options.retention % config.block_size != 0))
    return refused("retention");
  return options;
}

const CacheKind& blocks_kind() {
  static constexpr auto kRows = rows_of(kQuirkRows, kBlocksQuirks);
  static const CacheKind kKind{.contract = "prefix",
                               .cache = "blocks",
                               .doc = "a pool of blocks found by chained keys (vLLM)",
                               .operations = op_kinds(BlocksOps()),
                               .config = &type_of<BlocksConfig>(),
                               .quirks = kRows,
                               .conventions = kBlocksConventions};
  return kKind;
}

Subject make_blocks_subject(std::string variant, std::string doc, MakeBlocks make) {
  return keyed_subject<BlocksSession, BlocksConfig>(blocks_kind(), std::move(variant),
                                                    std::move(doc), std::move(make), options_of);
}

}  // namespace kvo::prefix

namespace kvo {
KVO_DEFINE_OPERATIONS(KVO_PREFIX_BLOCKS_OPERATIONS)
}  // namespace kvo
