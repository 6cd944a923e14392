// reference/provider/tracing_cache.hpp: the reference of `provider.tracing`.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "reference/provider/tracing_operations.hpp"

namespace kvo::provider {

/// The shortest cache that keeps the contract. It has no quirks: the real provider does.
class TracingCache final : public Tracing {
 public:
  static Result<std::unique_ptr<Tracing>> make(std::unique_ptr<Provider> real,
                                               const std::vector<const Tensor*>& frozen);
  /// The reference provider of a config; errors as of its maker.
  static Result<std::unique_ptr<Provider>> make_real(const TracingConfig& config,
                                                     QuirkSet<Quirk> quirks,
                                                     QuirkSet<block_pool::Quirk> pool_quirks);

  TracingCache(std::unique_ptr<Provider> real, const std::vector<const Tensor*>& frozen);

  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override;
  [[nodiscard]] Result<std::optional<KvPair>> get(std::int64_t layer) override;
  [[nodiscard]] std::int64_t seq_len() const override { return real_->seq_len(); }
  [[nodiscard]] Status reset() override { return real_->reset(); }
  [[nodiscard]] Status truncate(std::int64_t n) override { return real_->truncate(n); }
  [[nodiscard]] TraceLog trace() const override { return log_; }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return real_->broken_invariant();
  }

 private:
  /// What an operation adds to the log once it has succeeded.
  struct Entry {
    std::map<const Tensor*, std::int64_t> slots = {};
    std::vector<SlotShape> shapes = {};
    std::vector<TraceOp> ops = {};
  };

  /// The tensor's slot; the next one, noted in `entry`, when it is seen for the first time.
  [[nodiscard]] std::int64_t slot_of(const Tensor& tensor, Entry& entry) const;
  [[nodiscard]] std::int64_t new_slot(const Shape& shape, Entry& entry) const;
  /// Makes room for two operations, so that commit does not throw.
  void make_room();
  void commit(Entry entry);

  std::unique_ptr<Provider> real_;
  std::map<const Tensor*, std::int64_t> slots_;
  TraceLog log_;
};

}  // namespace kvo::provider
