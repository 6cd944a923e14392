// properties/devices/graphed_tensor.hpp: decode steps from a graph, under generated scripts.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cuda/decode/decode_graph.hpp"
#include "cuda/provider/tensor_device_cache.hpp"

namespace kvo::devices {

/// A TensorDeviceCache whose decode steps come from a graph where that shows the same: of a cache
/// with one layer, in profile documented, while no launch is to fail. The graph is captured once
/// and lives until the cache refuses it; truncate, reset and everything else come between replays.
class GraphedTensor final : public provider::TensorBacked {
 public:
  /// Requires that the device of a cache is a RecordedDevice, as that of its session is.
  GraphedTensor(std::unique_ptr<cuda::TensorDeviceCache> cache,
                const provider::TensorOptions& options, QuirkSet<provider::Quirk> quirks);
  ~GraphedTensor() override;
  GraphedTensor(const GraphedTensor&) = delete;
  GraphedTensor& operator=(const GraphedTensor&) = delete;

  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override;
  [[nodiscard]] Result<std::optional<provider::KvPair>> get(std::int64_t layer) override {
    return cache_->get(layer);
  }
  [[nodiscard]] Result<std::optional<provider::KvPair>> full_buffer(std::int64_t layer) override {
    return cache_->full_buffer(layer);
  }
  [[nodiscard]] std::int64_t seq_len() const override { return cache_->seq_len(); }
  [[nodiscard]] std::int64_t max_seq_len() const override { return cache_->max_seq_len(); }
  [[nodiscard]] Status reset() override { return cache_->reset(); }
  [[nodiscard]] Status truncate(std::int64_t n) override { return cache_->truncate(n); }
  [[nodiscard]] Status sync_counter() override { return cache_->sync_counter(); }
  [[nodiscard]] provider::CounterPtrs counters() const override { return cache_->counters(); }
  void free() override { cache_->free(); }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return cache_->broken_invariant();
  }

 private:
  [[nodiscard]] bool replayable(std::int64_t layer, const provider::Rows& rows) const;
  /// Captures a step with rows of that shape. False: the layer does not hold such rows.
  [[nodiscard]] bool capture(const Shape& shape);
  void drop_graph();

  std::unique_ptr<cuda::TensorDeviceCache> cache_;
  bool suited_;  ///< one layer, profile documented
  std::shared_ptr<Device> memory_;
  Shape shape_;  ///< of the captured rows
  cuda::LayerRows sources_;
  std::unique_ptr<cuda::DecodeGraph> graph_;
};

}  // namespace kvo::devices
