// Requests as operations of views.paged: a slot is a cache, and all slots share one pool, which is
// too small for all of them at their longest. A layer gets its rows in one append, and a commit
// counts them. Of a draft it counts what was not rejected, so that nothing is truncated. A sequence
// that ends frees its blocks.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/replay/engine.hpp"
#include "reference/views/operations.hpp"

namespace kvo::views {
namespace {

using replay::LoweringInput;

// The pool holds pool_percent of what all slots need, but at least the longest sequence.
Config config_of(const LoweringInput& input) {
  replay::Demand demand = replay::demand_of(input, input.policy.block_size);
  for (std::int64_t* blocks : {&demand.longest, &demand.most}) *blocks *= input.policy.num_layers;
  return {.num_layers = input.policy.num_layers,
          .block_size = input.policy.block_size,
          .num_kv_heads = input.policy.num_heads,
          .head_dim = input.policy.head_dim,
          .max_seq_len = input.longest_sequence(),
          .blocks = std::max(demand.longest, demand.most * input.policy.pool_percent / 100),
          .rows = {.storage = static_cast<StorageType>(input.policy.storage)}};
}

class PagedStream final : public replay::SequenceOps {
 public:
  explicit PagedStream(const LoweringInput& input)
      : SequenceOps(input),
        options_(options_of(config_of(input))),
        uncounted_(static_cast<std::size_t>(slots())) {}

 protected:
  [[nodiscard]] replay::ElementType stored() const override { return policy().storage; }

  void begin(std::int64_t slot) override {
    uncounted(slot) = 0;
    emit(New{slot});
    emit(SeqLen{slot}, {0});
  }
  void append(std::int64_t slot, std::int64_t tokens) override {
    commit(slot);
    for (std::int64_t layer = 0; layer < options_.num_layers; ++layer) {
      auto [k, v] = grow(slot, layer, tokens);
      emit_append(slot, Append{slot, layer, std::move(k), std::move(v)});
    }
    uncounted(slot) = tokens;
    if (!std::exchange(draft_, false)) commit(slot);
  }
  void save(std::int64_t /*slot*/) override { draft_ = true; }
  void reject(std::int64_t slot, std::int64_t tokens) override {
    cut(slot, length(slot) - tokens);
    emit(Commit{slot, std::exchange(uncounted(slot), 0) - tokens}, {});
  }
  void read(std::int64_t slot) override {
    commit(slot);
    for (std::int64_t layer = 0; layer < options_.num_layers; ++layer) {
      emit(ShowViews{slot, layer}, {.views = shown(rows(slot, layer))});
      emit(ShowPacked{slot, layer});
    }
    emit(SeqLen{slot}, {length(slot)});
    emit(MaxSeqLen{slot}, {options_.max_seq_len});
    emit(FreeBlocks{});
  }
  void end(std::int64_t slot) override {
    emit(Free{slot}, {});
    uncounted(slot) = 0;
  }

 private:
  std::int64_t& uncounted(std::int64_t slot) { return uncounted_[static_cast<std::size_t>(slot)]; }

  void commit(std::int64_t slot) {
    const std::int64_t tokens = std::exchange(uncounted(slot), 0);
    if (tokens > 0) emit(Commit{slot, tokens}, {});
  }
  // The tokens of a layer, cut where blocks end.
  [[nodiscard]] std::vector<ShownView> shown(std::span<const replay::TaggedRow> rows) const {
    std::vector<ShownView> views;
    for (std::int64_t start = 0; start < std::ssize(rows); start += options_.block_size) {
      const std::int64_t count = std::min(options_.block_size, std::ssize(rows) - start);
      const auto [k, v] =
          tensors(rows.subspan(static_cast<std::size_t>(start), static_cast<std::size_t>(count)));
      views.push_back({.start = start,
                       .length = count,
                       .k = replay::as_stored(k, stored()),
                       .v = replay::as_stored(v, stored())});
    }
    return views;
  }

  Options options_;
  std::vector<std::int64_t> uncounted_;  ///< [slot] tokens that no commit has counted
  bool draft_ = false;                   ///< the next append is one
};

}  // namespace

std::vector<replay::Lowering> lowerings() {
  return {{.kind = &paged_kind(),
           .setup = replay::setup_by<config_of>,
           .lower = replay::lower_by<PagedStream>}};
}

}  // namespace kvo::views
