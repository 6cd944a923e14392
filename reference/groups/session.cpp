// What a session of contract `groups` does beside calling its cache: it checks configs and numbers
// of blocks and groups, and numbers keys.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reference/contract/describe/handles.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/subject/named_quirks.hpp"
#include "reference/groups/operations.hpp"
#include "reference/prefix/keys_session.hpp"

namespace kvo::groups {
namespace {

using prefix::check_numbers;

Error refused(const std::string& what) {
  return fail(Code::kNotSupported, what);
}

std::string attention_of(const Group& group) {
  switch (group.kind) {
    case GroupKind::kMla:
      return "mla_attention";
    case GroupKind::kSlidingWindow:
      return "sliding_window";
    case GroupKind::kSlidingWindowMla:
      return "sliding_window_mla";
    case GroupKind::kChunkedLocal:
      return "chunked_local_attention";
    case GroupKind::kMamba:
      return "mamba";
    case GroupKind::kFull:
    case GroupKind::kRswa:
    case GroupKind::kRing:
      break;
  }
  return "full_attention";
}

class BlocksSession final : public DispatchSession<BlocksSession, BlocksOps>,
                            public prefix::ShowsCache<BlockCache> {
 public:
  // Without a cache: what setup answers, and so everything (GR-8, GR-9).
  BlocksSession(Options options, Result<std::unique_ptr<BlockCache>> cache)
      : options_(std::move(options)), cache_(std::move(cache)) {}

  template <class T>
  [[nodiscard]] Result<BlockCache*> cache_of(const T& op) const {
    if (!cache_) return cache_.error();
    Status checked;
    if constexpr (std::same_as<T, Allocate>) checked = check_allotment(op);
    if constexpr (OneOf<T, prefix::TouchBlocks, prefix::Release>) checked = check_blocks(op.blocks);
    if (!checked) return checked.error();
    return cache_->get();
  }
  template <OneOf<MakeRequest, prefix::Append> T>
  Result<prefix::KeysOnly> operator()(const T& op) {
    const auto cache = cache_of(op);
    if (!cache) return cache.error();
    const auto keys = probe()([&] { return op.call(**cache); });
    if (!keys) return keys.error();
    return prefix::KeysOnly{keys_.numbers(*keys)};
  }
  template <OneOf<Match, MatchConnector> T>
  Result<typename T::Returns> operator()(const T& op) {
    T clamped = op;
    if (op.max_length)
      clamped.max_length = std::clamp<std::int64_t>(*op.max_length, -1, kMostTokens);
    return this->call_method(clamped);
  }
  Result<LookUpReturns> operator()(const LookUp& op) {
    const auto cache = cache_of(op);
    if (!cache) return cache.error();
    if (auto checked = check_groups(op.groups); !checked) return checked.error();
    const auto key = keys_.key(op.key);
    Ids blocks;
    for (const std::int64_t group : op.groups) {
      const auto found =
          key ? probe()([&] { return (*cache)->lookup(*key, group); }) : std::nullopt;
      if (!found) return LookUpReturns{};
      blocks.push_back(*found);
    }
    return LookUpReturns{.blocks = std::move(blocks)};
  }
  Result<prefix::ShowUsage::Returns> operator()(const prefix::ShowUsage& op) {
    const auto cache = cache_of(op);
    if (!cache) return cache.error();
    const auto free = static_cast<double>(probe()([&] { return (*cache)->free_blocks(); }));
    if (options_.num_blocks == 1) return prefix::ShowUsage::Returns{0};
    return prefix::ShowUsage::Returns{1 - free / static_cast<double>(options_.num_blocks - 1)};
  }
  Result<TakeEvents::Returns> operator()(const TakeEvents& op) {
    const auto cache = cache_of(op);
    if (!cache) return cache.error();
    const auto events = probe()([&] { return (*cache)->events(); });
    TakeEvents::Returns returns;
    for (const Event& event : events) returns.events.push_back(shown_event(event));
    return returns;
  }
  Result<ShowBlocks::Returns> operator()(const ShowBlocks& op) {
    const auto cache = cache_of(op);
    if (!cache) return cache.error();
    BlocksState state = probe()([&] { return (*cache)->state(); });
    ShowBlocks::Returns returns{.free = probe()([&] { return (*cache)->free_blocks(); }),
                                .queue = std::move(state.queue),
                                .refs = std::move(state.refs)};
    for (const std::vector<GroupKey>& keys : state.keys) {
      std::vector<Ids> pairs;
      for (const GroupKey& one : keys) pairs.push_back({keys_.number(one.key), one.group});
      if (!pairs.empty()) std::sort(pairs.begin() + 1, pairs.end());
      returns.keys.emplace_back(pairs.empty() ? std::nullopt : std::optional(std::move(pairs)));
    }
    for (const auto& end : state.ends) returns.ends.emplace_back(end);
    for (Holders& one : state.cached)
      returns.cached.push_back({keys_.number(one.key.key), one.key.group, std::move(one.blocks)});
    std::ranges::sort(returns.cached, {},
                      [](const ShownHolders& one) { return std::pair(one.key, one.group); });
    return returns;
  }

  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return cache_ ? (*cache_)->broken_invariant() : std::nullopt;
  }
  // Requires  there is a cache.
  [[nodiscard]] const BlockCache& shown() const override { return **cache_; }

 private:
  [[nodiscard]] Status check_blocks(IdsView blocks) const {
    return check_numbers("blocks", blocks, 0, options_.num_blocks);
  }
  [[nodiscard]] Status check_groups(IdsView groups) const {
    return check_numbers("groups", groups, 0, std::ssize(options_.groups));
  }
  [[nodiscard]] Status check_allotment(const Allocate& op) const {
    for (const Ids& blocks : op.hit_blocks.value_or(Tables()))
      if (auto checked = check_blocks(blocks); !checked) return checked;
    return op.loaded_groups ? check_groups(*op.loaded_groups) : Status();
  }
  // The parent is numbered before the keys.
  [[nodiscard]] ShownEvent shown_event(const Event& event) {
    ShownEvent one{.kind = event.kind};
    if (event.kind == EventKind::kCleared) return one;
    one.group = event.group;
    if (event.kind == EventKind::kStored) {
      one.parent.emplace();
      if (event.parent) one.parent = keys_.number(*event.parent);
      one.tokens = event.tokens;
      one.block_size = event.unit;
      const Group& group = options_.groups[static_cast<std::size_t>(event.group)];
      one.attention = attention_of(group);
      one.window.emplace();
      if (is_window(group)) one.window = group.window;
    }
    one.keys = keys_.numbers(event.keys);
    return one;
  }

  Options options_;
  Result<std::unique_ptr<BlockCache>> cache_;
  prefix::KeyNumbers keys_;
};

// ---- Checks of configs ----

bool is_size(std::int64_t size) {
  return size >= 1 && size <= kMostTokens;
}
bool is_count(std::int64_t count) {
  return count >= 0 && count <= kMostTokens;
}

Status check_group(const Group& group) {
  if (!is_size(group.block_size)) return refused("block_size");
  const bool has_window = is_window(group) || group.kind == GroupKind::kRswa;
  if (has_window ? !is_size(group.window) : !is_count(group.window)) return refused("window");
  if (group.kind == GroupKind::kChunkedLocal ? !is_size(group.chunk) : !is_count(group.chunk))
    return refused("chunk");
  constexpr std::int64_t kMostSpare = 4096;
  if (!is_count(group.retained)) return refused("retained");
  if (group.speculative < 0 || group.speculative > kMostSpare ||
      (group.speculative > 0 && !is_state(group)))
    return refused("speculative");
  if (group.checkpoints < 0 || group.checkpoints > 1) return refused("checkpoints");
  if (!is_count(group.checkpoint_alignment)) return refused("checkpoint_alignment");
  if (group.replay && group.kind != GroupKind::kSlidingWindowMla) return refused("replay");
  return {};
}

// ---- plan ----

class PlanSession final : public DispatchSession<PlanSession, PlanOps> {
 public:
  explicit PlanSession(std::unique_ptr<Plan> plan) : plan_(std::move(plan)) {}

  template <class T>
  [[nodiscard]] Result<const Plan*> cache_of(const T& op) const {
    if (auto checked = check(op); !checked) return checked.error();
    return plan_.get();
  }

 private:
  [[nodiscard]] static Status check(const GroupLayers& op) {
    constexpr std::int64_t kMost = std::int64_t{1} << 16U;  // products stay in 64 bits
    const auto fits = [](std::int64_t size) { return size >= 1 && size <= kMost; };
    const auto may_be = [&](const auto& size) { return !size || fits(*size); };
    if (op.layers.size() > kMostLayers) return fail(Code::kPrecondition, "layers: too many");
    for (const Layer& layer : op.layers) {
      if (!fits(layer.block_size) || !fits(layer.heads) || !fits(layer.head_size) ||
          !fits(layer.state) || !may_be(layer.window) || !may_be(layer.chunk) ||
          !may_be(layer.padded))
        return fail(Code::kPrecondition, "layers: a size of " + layer.name);
      const bool has_window =
          layer.kind == GroupKind::kSlidingWindow || layer.kind == GroupKind::kSlidingWindowMla;
      if (has_window != layer.window.has_value() && layer.kind != GroupKind::kFull)
        return fail(Code::kPrecondition, "layers: window of " + layer.name);
      if (layer.kind == GroupKind::kRswa || layer.kind == GroupKind::kRing)
        return fail(Code::kPrecondition, "layers: kind of " + layer.name);
    }
    return {};
  }
  [[nodiscard]] static Status check(const ShowSizes& op) {
    if (op.groups.empty() || op.groups.size() > kMostGroups)
      return fail(Code::kPrecondition, "groups: none, or too many");
    for (const Group& group : op.groups)
      if (!is_size(group.block_size)) return fail(Code::kPrecondition, "block_size");
    if (op.unit && !is_size(*op.unit)) return fail(Code::kPrecondition, "unit");
    return {};
  }
  [[nodiscard]] static Status check(const Position& op) {
    return is_size(op.block) && is_count(op.lookahead) ? Status()
                                                       : fail(Code::kPrecondition, "block");
  }
  [[nodiscard]] static Status check(const Boundaries& op) {
    return is_size(op.block) ? Status() : fail(Code::kPrecondition, "block");
  }

  std::unique_ptr<Plan> plan_;
};

}  // namespace

Result<Options> options_of(const Config& config) {
  if (config.num_blocks < 1 || config.num_blocks > kMostUnits) return refused("num_blocks");
  if (config.groups.empty() || config.groups.size() > kMostGroups) return refused("groups");
  for (const Group& group : config.groups)
    if (auto checked = check_group(group); !checked) return checked.error();
  if (!is_size(config.hash_block)) return refused("hash_block");
  const std::int64_t in_flight = config.max_in_flight.value_or(config.max_model_len);
  const std::int64_t scheduled = config.max_scheduled.value_or(config.max_model_len);
  if (!is_count(config.max_model_len)) return refused("max_model_len");
  if (!is_count(in_flight)) return refused("max_in_flight");
  if (!is_count(config.hash_lookahead)) return refused("hash_lookahead");
  if (config.eagle && config.hash_lookahead > 0) return refused("hash_lookahead with eagle");
  if (!is_count(config.prefill_lookahead)) return refused("prefill_lookahead");
  if (!(config.watermark >= 0 && config.watermark <= 1)) return refused("watermark");
  if (!is_count(scheduled)) return refused("max_scheduled");
  if (config.split_block && !is_size(*config.split_block)) return refused("split_block");
  const auto retention = config.retention ? config.retention->value : std::nullopt;
  if (retention && (*retention > kMostTokens || *retention < -kMostTokens))
    return refused("retention");
  return Options{.num_blocks = config.num_blocks,
                 .groups = config.groups,
                 .hash_block = config.hash_block,
                 .enable_caching = config.enable_caching,
                 .max_model_len = config.max_model_len,
                 .max_in_flight = in_flight,
                 .eagle = config.eagle,
                 .hash_lookahead = config.hash_lookahead,
                 .prefill_lookahead = config.prefill_lookahead,
                 .watermark = config.watermark,
                 .retention = retention,
                 .junction = config.junction,
                 .events = config.events,
                 .max_scheduled = scheduled,
                 .split_block = config.split_block};
}

const CacheKind& blocks_kind() {
  static const CacheKind kKind{.contract = "groups",
                               .cache = "blocks",
                               .doc = "one pool of blocks for groups of layers (vLLM)",
                               .operations = op_kinds(BlocksOps()),
                               .config = &type_of<Config>(),
                               .quirks = kQuirkRows};
  return kKind;
}

const CacheKind& plan_kind() {
  static const CacheKind kKind{.contract = "groups",
                               .cache = "plan",
                               .doc = "from layers to groups and sizes (vLLM)",
                               .operations = op_kinds(PlanOps()),
                               .quirks = kPlanQuirkRows};
  return kKind;
}

Subject make_blocks_subject(std::string variant, std::string doc, MakeBlocks make) {
  const auto open = [make = std::move(make)](
                        const Setup& setup,
                        QuirkSet<Quirk> quirks) -> Result<std::unique_ptr<kvo::Session>> {
    auto options = options_of(setup.config_as<Config>());
    if (!options) return options.error();
    auto cache = make(*options, quirks);
    if (!cache && cache.error().code == Code::kOutOfMemory) return cache.error();
    return std::make_unique<BlocksSession>(*std::move(options), std::move(cache));
  };
  return subject_of<Quirk>(blocks_kind(), std::move(variant), std::move(doc), open, kQuirkRows);
}

Subject make_plan_subject(std::string variant, std::string doc, MakePlan make) {
  const auto open = [make = std::move(make)](
                        const Setup& /*setup*/,
                        QuirkSet<PlanQuirk> quirks) -> Result<std::unique_ptr<kvo::Session>> {
    return std::make_unique<PlanSession>(make(quirks));
  };
  return subject_of<PlanQuirk>(plan_kind(), std::move(variant), std::move(doc), open,
                               kPlanQuirkRows);
}

}  // namespace kvo::groups

namespace kvo {
KVO_DEFINE_OPERATIONS(groups::ShowSetup, groups::MakeRequest, groups::Match, groups::MatchConnector,
                      groups::Split, groups::Allocate, groups::Skip, groups::NextStep,
                      groups::TakeCopies, groups::TakeOffloads, groups::Finalize, groups::TakeFresh,
                      groups::Zero, groups::Clip, groups::LookUp, groups::ShowTables,
                      groups::ShowStatistics, groups::TakeEvents, groups::ShowBlocks)
KVO_DEFINE_OPERATIONS(KVO_GROUPS_PLAN_OPERATIONS)
}  // namespace kvo
