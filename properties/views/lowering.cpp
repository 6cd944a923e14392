// Requests as operations of views.paged: a slot is a cache, and all slots share one pool, which is
// too small for all of them at their longest. A layer gets its rows in one append, and a commit
// counts them; of a draft it counts what was not rejected, so that nothing is truncated. A sequence
// ends by giving its blocks back.
#include "properties/replay/lowering.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/views/operations.hpp"

namespace kvo::views {
namespace {

using replay::LoweringInput;

// Blocks for the longest sequences of as many requests as there are slots, times the policy's
// percentage; at least those of the longest one.
std::int64_t blocks_wanted(const LoweringInput& input) {
  std::vector<std::int64_t> blocks;
  for (const replay::Request& request : input.requests) {
    const std::int64_t tokens = replay::scaled(request.input_tokens, input.schedule.scale) +
                                replay::scaled(request.output_tokens, input.schedule.scale) +
                                input.schedule.draft_tokens;
    blocks.push_back(replay::scaled(tokens, input.policy.block_size) * input.policy.num_layers);
  }
  std::ranges::sort(blocks, std::greater());
  const auto slots = std::min(blocks.size(), static_cast<std::size_t>(input.schedule.max_running));
  std::int64_t most = 0;
  for (std::size_t i = 0; i < slots; ++i) most += blocks[i];
  const std::int64_t longest = blocks.empty() ? 1 : blocks.front();
  return std::max(longest, most * input.policy.pool_percent / 100);
}

Config config_of(const LoweringInput& input) {
  return {.num_layers = input.policy.num_layers,
          .block_size = input.policy.block_size,
          .num_kv_heads = input.policy.num_heads,
          .head_dim = input.policy.head_dim,
          .max_seq_len = input.longest_sequence(),
          .blocks = blocks_wanted(input),
          .rows = {.storage = static_cast<StorageType>(input.policy.storage)}};
}

class PagedStream final : public replay::SequenceOps {
 public:
  explicit PagedStream(const LoweringInput& input)
      : SequenceOps(input),
        options_(options_of(config_of(input))),
        slots_(static_cast<std::size_t>(input.schedule.max_running)) {}

  void saw(const Op& op, const Observation& seen, Labels& labels) override {
    const auto* append = op.as<Append>();
    if (append != nullptr && seen.error) preempt(append->cache.value_or(0), labels);
  }

 protected:
  void begin(std::int64_t slot) override {
    at(slot).layers.assign(static_cast<std::size_t>(options_.num_layers), {});
    at(slot).uncounted = 0;
    emit(New{slot});
    emit(SeqLen{slot}, {0});
  }
  void append(std::int64_t slot, std::int64_t tokens) override {
    commit(slot);
    for (std::int64_t layer = 0; layer < options_.num_layers; ++layer) {
      std::vector<std::uint64_t>& tags = at(slot).layers[static_cast<std::size_t>(layer)];
      for (std::int64_t i = 0; i < tokens; ++i)
        tags.push_back(tagger().last() + 1 + static_cast<std::uint64_t>(i * options_.kv_dim()));
      auto [k, v] = tagger().pair({tokens, options_.kv_dim()});
      for (Tensor* side : {&k, &v}) replay::make_storable(side->floats(), policy().storage);
      emit(Append{slot, layer, std::move(k), std::move(v)});
    }
    at(slot).uncounted = tokens;
    if (!std::exchange(at(slot).draft, false)) commit(slot);
  }
  void save(std::int64_t slot) override { at(slot).draft = true; }
  void reject(std::int64_t slot, std::int64_t tokens) override {
    for (auto& tags : at(slot).layers) tags.resize(tags.size() - static_cast<std::size_t>(tokens));
    at(slot).uncounted -= tokens;
    emit(Commit{slot, at(slot).uncounted}, {});
    at(slot).uncounted = 0;
  }
  void read(std::int64_t slot) override {
    commit(slot);
    for (std::int64_t layer = 0; layer < options_.num_layers; ++layer) {
      const auto& tags = at(slot).layers[static_cast<std::size_t>(layer)];
      emit(ShowViews{slot, layer}, {.views = shown(tags)});
      emit(ShowPacked{slot, layer});
    }
    emit(SeqLen{slot}, {std::ssize(at(slot).layers.front())});
    emit(MaxSeqLen{slot}, {options_.max_seq_len});
    emit(FreeBlocks{});
  }
  void end(std::int64_t slot) override {
    emit(Free{slot}, {});
    at(slot).uncounted = 0;
  }

 private:
  struct Slot {
    std::vector<std::vector<std::uint64_t>> layers = {};  ///< of each token, its first tag
    std::int64_t uncounted = 0;                           ///< tokens that no commit has counted
    bool draft = false;                                   ///< the next append is one
  };

  Slot& at(std::int64_t slot) { return slots_[static_cast<std::size_t>(slot)]; }

  void commit(std::int64_t slot) {
    const std::int64_t tokens = std::exchange(at(slot).uncounted, 0);
    if (tokens > 0) emit(Commit{slot, tokens}, {});
  }
  // The tokens of a layer, cut where blocks end.
  [[nodiscard]] std::vector<ShownView> shown(const std::vector<std::uint64_t>& tags) const {
    const std::int64_t width = options_.kv_dim();
    std::vector<ShownView> views;
    for (std::int64_t position = 0; position < std::ssize(tags);) {
      const std::int64_t border = (position / options_.block_size + 1) * options_.block_size;
      const std::int64_t next = std::min<std::int64_t>(std::ssize(tags), border);
      const std::span firsts(tags.data() + position, static_cast<std::size_t>(next - position));
      auto [k, v] = replay::tagged_rows(firsts, width);
      k.shape = v.shape = {next - position, width};
      views.push_back({.start = position,
                       .length = next - position,
                       .k = replay::as_stored(std::move(k), policy().storage),
                       .v = replay::as_stored(std::move(v), policy().storage)});
      position = next;
    }
    return views;
  }

  Options options_;
  std::vector<Slot> slots_;
};

}  // namespace

std::vector<replay::Lowering> lowerings() {
  return {
      {.kind = &paged_kind(),
       .setup =
           [](const LoweringInput& input) { return Setup{.config = Record::of(config_of(input))}; },
       .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
         return std::make_unique<PagedStream>(input);
       }}};
}

}  // namespace kvo::views
