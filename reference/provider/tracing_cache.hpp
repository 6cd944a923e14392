// reference/provider/tracing_cache.hpp: the reference of `provider.tracing`.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <vector>

#include "reference/block_pool/stack_pool.hpp"
#include "reference/provider/contiguous_cache.hpp"
#include "reference/provider/paged_cache.hpp"
#include "reference/provider/tensor_cache.hpp"
#include "reference/provider/tracing_operations.hpp"

namespace kvo::provider {

/// The shortest cache that keeps the contract. It has no quirks: the real provider does.
class TracingCache final : public Tracing {
 public:
  static Result<std::unique_ptr<Tracing>> make(std::unique_ptr<Provider> real,
                                               const std::vector<const Tensor*>& frozen) {
    return std::make_unique<TracingCache>(std::move(real), frozen);
  }
  /// The reference provider of a config; errors as of its maker.
  static Result<std::unique_ptr<Provider>> make_real(const TracingConfig& config,
                                                     QuirkSet<Quirk> quirks,
                                                     QuirkSet<block_pool::Quirk> pool_quirks) {
    const std::int64_t max_seq_len = config.max_seq_len.value_or(0);
    switch (config.real) {
      case Real::kKv:
        return as_provider(ContiguousCache::make({config.num_layers, max_seq_len}, quirks));
      case Real::kTensor:
        return as_provider(TensorCache::make(
            {.num_layers = config.num_layers, .max_seq_len = max_seq_len, .dtype = ""}, quirks));
      case Real::kPaged: {
        const block_pool::New sizes = config.pool.value_or(block_pool::New{});
        auto pool = block_pool::StackPool::make(
            {sizes.num_layers, sizes.block_size, sizes.head_dim, sizes.max_memory_mb}, pool_quirks);
        if (!pool) return pool.error();
        return as_provider(PagedCache::make(
            {.pool = std::move(*pool), .num_layers = config.num_layers, .owner = 1}, quirks));
      }
    }
    return fail(Code::kNotSupported, "real");
  }

  TracingCache(std::unique_ptr<Provider> real, const std::vector<const Tensor*>& frozen)
      : real_(std::move(real)) {
    for (const Tensor* tensor : frozen) {
      Entry entry;
      log_.frozen_slots.push_back(slot_of(*tensor, entry));
      make_room();
      commit(std::move(entry));
    }
  }

  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override {
    Entry entry;
    if (rows.k != nullptr && rows.v != nullptr) {  // no provider takes a null tensor
      const std::int64_t k = slot_of(*rows.k, entry);
      const std::int64_t v = slot_of(*rows.v, entry);
      entry.ops = {{"KVCacheAppendK", {k}, k, layer}, {"KVCacheAppendV", {v}, v, layer}};
    }
    make_room();
    if (const Status done = real_->update(layer, rows); !done) return done;
    commit(std::move(entry));
    return {};
  }
  [[nodiscard]] Result<std::optional<KvPair>> get(std::int64_t layer) override {
    auto pair = real_->get(layer);
    if (!pair || !*pair) return pair;
    // Every result is a pair of new objects (ZF-71).
    Entry entry;
    const std::int64_t k = new_slot((*pair)->k.shape, entry);
    const std::int64_t v = new_slot((*pair)->v.shape, entry);
    entry.ops = {{"KVCacheGetK", {}, k, layer}, {"KVCacheGetV", {}, v, layer}};
    make_room();
    commit(std::move(entry));
    return pair;
  }
  [[nodiscard]] std::int64_t seq_len() const override { return real_->seq_len(); }
  [[nodiscard]] Status reset() override { return real_->reset(); }
  [[nodiscard]] Status truncate(std::int64_t n) override { return real_->truncate(n); }
  [[nodiscard]] TraceLog trace() const override { return log_; }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return real_->broken_invariant();
  }

 private:
  /// Doubling, as push_back would: room for two more at a time would copy everything each time.
  template <class T>
  static void make_room_in(std::vector<T>& items) {
    if (items.capacity() < items.size() + 2)
      items.reserve(std::max(items.size() + 2, 2 * items.size()));
  }

  template <class T>
  static Result<std::unique_ptr<Provider>> as_provider(Result<std::unique_ptr<T>> made) {
    if (!made) return made.error();
    return std::unique_ptr<Provider>(std::move(*made));
  }

  /// What an operation adds to the log once it has succeeded.
  struct Entry {
    std::map<const Tensor*, std::int64_t> slots = {};
    std::vector<SlotShape> shapes = {};
    std::vector<TraceOp> ops = {};
  };

  /// The tensor's slot; the next one, noted in `entry`, when it is seen for the first time.
  [[nodiscard]] std::int64_t slot_of(const Tensor& tensor, Entry& entry) const {
    if (const auto seen = slots_.find(&tensor); seen != slots_.end()) return seen->second;
    if (const auto seen = entry.slots.find(&tensor); seen != entry.slots.end()) return seen->second;
    return entry.slots[&tensor] = new_slot(tensor.shape, entry);
  }
  [[nodiscard]] std::int64_t new_slot(const Shape& shape, Entry& entry) const {
    const std::int64_t slot = log_.next_slot + std::ssize(entry.shapes);
    entry.shapes.push_back({slot, {shape.begin(), shape.end()}});
    return slot;
  }
  /// Makes room for two operations, so that commit does not throw.
  void make_room() {
    make_room_in(log_.ops);
    make_room_in(log_.shapes);
  }
  void commit(Entry entry) {
    slots_.merge(entry.slots);
    log_.next_slot += std::ssize(entry.shapes);
    std::ranges::move(entry.shapes, std::back_inserter(log_.shapes));
    std::ranges::move(entry.ops, std::back_inserter(log_.ops));
  }

  std::unique_ptr<Provider> real_;
  std::map<const Tensor*, std::int64_t> slots_;
  TraceLog log_;
};

}  // namespace kvo::provider
