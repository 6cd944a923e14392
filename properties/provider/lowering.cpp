// How requests become operations of contract `provider`: a slot is a cache, a layer gets its rows
// in one update, and truncate takes rows back.
#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/replay/engine.hpp"
#include "reference/provider/contiguous.hpp"
#include "reference/provider/device_operations.hpp"
#include "reference/provider/operations.hpp"
#include "reference/provider/paged.hpp"
#include "reference/provider/tensor.hpp"
#include "reference/provider/tracing_operations.hpp"

namespace kvo::provider {
namespace {

using replay::Lowering;
using replay::LoweringInput;

class ProviderStream : public replay::SequenceOps {
 public:
  using SequenceOps::SequenceOps;

 protected:
  /// Emits the update of one layer.
  virtual void update(std::int64_t slot, std::int64_t layer, Tensor k, Tensor v) {
    emit_append(slot, Update{slot, layer, std::move(k), std::move(v)});
  }
  /// Emits queries of the contract that a read ends with; the reference knows what they return.
  virtual void query(std::int64_t /*slot*/) {}

  [[nodiscard]] Shape shape(std::int64_t tokens) const override { return {1, tokens, width()}; }

  void begin(std::int64_t slot) override { emit(SeqLen{slot}, {0}); }
  void append(std::int64_t slot, std::int64_t tokens) override {
    for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) {
      auto [k, v] = grow(slot, layer, tokens);
      update(slot, layer, std::move(k), std::move(v));
    }
  }
  void reject(std::int64_t slot, std::int64_t tokens) override {
    cut(slot, length(slot) - tokens);
    emit(Truncate{slot, length(slot)});
  }
  // No handle is stored: a replay may last for days.
  void read(std::int64_t slot) override {
    for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) {
      Found found{.found = length(slot) > 0};
      if (found.found) std::tie(found.k, found.v) = tensors(rows(slot, layer));
      emit(Get{slot, layer, false}, std::move(found));
    }
    emit(SeqLen{slot}, {length(slot)});
    query(slot);
  }
  void end(std::int64_t slot) override { emit(Reset{slot}); }
};

class ContiguousStream final : public ProviderStream {
 public:
  explicit ContiguousStream(const LoweringInput& input) : ProviderStream(input) {
    for (std::int64_t slot = 0; slot < slots(); ++slot)
      emit(NewContiguous{slot, policy().num_layers, input.longest_sequence()});
  }

 protected:
  void query(std::int64_t slot) override { emit(NumLayers{slot}); }
};

class PagedStream final : public ProviderStream {
 public:
  explicit PagedStream(const LoweringInput& input) : ProviderStream(input) {
    constexpr std::int64_t kMegabyte = std::int64_t{1} << 20U;
    const replay::Demand demand = replay::demand_of(input, policy().block_size);
    blocks_ = std::max(demand.longest, demand.most * policy().pool_percent / 100);
    const std::int64_t block_bytes =
        2 * policy().num_layers * policy().block_size * width() * std::int64_t{sizeof(float)};
    emit(NewPool{policy().num_layers, policy().block_size, width(),
                 (blocks_ * block_bytes + kMegabyte - 1) / kMegabyte});
    // Pools come in whole megabytes. The surplus blocks are removed.
    emit(DrainPool{blocks_});
    for (std::int64_t slot = 0; slot < slots(); ++slot) emit(NewPaged{slot, policy().num_layers});
  }

 protected:
  [[nodiscard]] Shape shape(std::int64_t tokens) const override {
    return {policy().num_heads, tokens, policy().head_dim};
  }
  [[nodiscard]] std::int64_t heads() const override { return policy().num_heads; }
  // One block after the other, whichever sequence holds it.
  void query(std::int64_t slot) override {
    emit(Table{slot});
    emit(block_pool::Available{});
    emit(block_pool::ReadBlock{queries_++ % blocks_});
  }
  void end(std::int64_t slot) override { emit(Free{slot}); }

 private:
  std::int64_t blocks_ = 1;
  std::int64_t queries_ = 0;
};

class TensorStream final : public ProviderStream {
 public:
  explicit TensorStream(const LoweringInput& input) : ProviderStream(input) {
    for (std::int64_t slot = 0; slot < slots(); ++slot)
      emit(NewTensor{.cache = slot,
                     .num_layers = policy().num_layers,
                     .max_seq_len = input.longest_sequence(),
                     .dtype = half() ? "fp16" : "fp32",
                     .device = place(slot),
                     .stream = place(slot) == Place::kGpu});
  }

 protected:
  void update(std::int64_t slot, std::int64_t layer, Tensor k, Tensor v) override {
    emit_append(slot,
                UpdateTensor{slot, layer, std::move(k), std::move(v), place(slot), place(slot)});
  }
  [[nodiscard]] replay::ElementType stored() const override {
    return half() ? replay::ElementType::kF16 : replay::ElementType::kF32;
  }
  void query(std::int64_t slot) override {
    emit(Counters{slot});
    emit(MaxSeqLen{slot});
  }

 private:
  [[nodiscard]] bool half() const { return policy().storage != replay::ElementType::kF32; }
  static Place place(std::int64_t slot) { return slot % 2 == 0 ? Place::kCpu : Place::kGpu; }
};

class TracingStream final : public ProviderStream {
 public:
  explicit TracingStream(const LoweringInput& input) : ProviderStream(input.with_slots(1)) {
    emit(NewTracing{.cache = 0, .frozen_shapes = {}});
  }

 protected:
  void update(std::int64_t slot, std::int64_t layer, Tensor k, Tensor v) override {
    const std::int64_t id = next_id_;
    next_id_ += 2;
    emit_append(slot, UpdateTraced{slot, layer, std::move(k), std::move(v), id, id + 1});
  }

 private:
  std::int64_t next_id_ = 0;  // every tensor is an object of its own
};

TracingConfig tracing_config(const LoweringInput& input) {
  return {.real = Real::kKv,
          .num_layers = input.policy.num_layers,
          .max_seq_len = input.longest_sequence()};
}

// One cache whose buffers hold a row a position, also those of earlier sequences.
class DeviceStream final : public replay::SequenceOps {
 public:
  explicit DeviceStream(const LoweringInput& input)
      : SequenceOps(input.with_slots(1).without_drafts()),
        written_(
            static_cast<std::size_t>(policy().num_layers),
            std::vector<replay::TaggedRow>(static_cast<std::size_t>(input.longest_sequence()))) {
    emit(NewDevice{policy().num_layers, input.longest_sequence(), policy().num_heads,
                   policy().head_dim, false, Kernels::kHost});
  }

 protected:
  void begin(std::int64_t /*slot*/) override {
    length_ = 0;
    from_device_ = !from_device_;
    emit(SeqLen{}, {0});
  }
  void append(std::int64_t slot, std::int64_t tokens) override {
    for (std::int64_t token = 0; token < tokens; ++token, ++length_)
      for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) append_row(slot, layer);
  }
  void reject(std::int64_t /*slot*/, std::int64_t /*tokens*/) override {}
  void read(std::int64_t /*slot*/) override {
    for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) {
      auto [k, v] = tensors(written_[static_cast<std::size_t>(layer)]);
      emit(ReadBuffer{layer}, {.found = true, .k = std::move(k), .v = std::move(v)});
    }
    emit(SeqLen{}, {length_});
    emit(ReadCounter{});
  }
  void end(std::int64_t /*slot*/) override { emit(ResetDevice{}); }

 private:
  void append_row(std::int64_t slot, std::int64_t layer) {
    written_[static_cast<std::size_t>(layer)][static_cast<std::size_t>(length_)] = {
        .first = tagger().last() + 1};
    std::vector<float> k(static_cast<std::size_t>(width()));
    std::vector<float> v(k.size());
    tagger().fill(k, v);
    if (from_device_)
      emit_append(slot, AppendGpu{layer, std::move(k), std::move(v)});
    else
      emit_append(slot, Append{layer, length_, std::move(k), std::move(v)});
  }

  std::vector<std::vector<replay::TaggedRow>> written_;  ///< [layer][position]
  std::int64_t length_ = 0;
  bool from_device_ = true;
};

template <class Stream>
Lowering lowering_of(const CacheKind& kind) {
  return {.kind = &kind, .setup = replay::no_setup, .lower = replay::lower_by<Stream>};
}

}  // namespace

std::vector<Lowering> lowerings() {
  Lowering tracing = lowering_of<TracingStream>(tracing_kind());
  tracing.setup = replay::setup_by<tracing_config>;
  return {lowering_of<ContiguousStream>(contiguous_kind()), lowering_of<PagedStream>(paged_kind()),
          lowering_of<TensorStream>(tensor_kind()), lowering_of<DeviceStream>(device_kind()),
          tracing};
}

}  // namespace kvo::provider
