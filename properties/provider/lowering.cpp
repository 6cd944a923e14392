// How requests become operations of contract `provider`.
#include "properties/replay/lowering.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/provider/contiguous_operations.hpp"
#include "reference/provider/device_operations.hpp"
#include "reference/provider/operations.hpp"
#include "reference/provider/paged_operations.hpp"
#include "reference/provider/tensor_operations.hpp"
#include "reference/provider/tracing_operations.hpp"

namespace kvo::provider {
namespace {

using replay::LoweringInput;

/// A slot is one cache; a layer gets its rows in one update; taking back is truncate. What a read
/// must show follows from the tags of the rows that were appended and not taken back.
class ProviderStream : public replay::SequenceOps {
 public:
  explicit ProviderStream(const replay::LoweringInput& input);

 protected:
  /// Shape of an update of `tokens` positions: [batch or channels, tokens, dim].
  [[nodiscard]] virtual Shape rows(std::int64_t tokens) const = 0;
  /// What a cache stores; elements are exact in it.
  [[nodiscard]] virtual replay::ElementType stored() const { return replay::ElementType::kF32; }
  /// Emits queries of the contract that a read ends with; the reference says what they return.
  virtual void ask(std::int64_t /*slot*/) {}
  /// Emits the update of one layer.
  virtual void update(std::int64_t slot, std::int64_t layer, Tensor k, Tensor v);

  void begin(std::int64_t slot) override;
  void append(std::int64_t slot, std::int64_t tokens) override;
  void reject(std::int64_t slot, std::int64_t tokens) override;
  void read(std::int64_t slot) override;

 private:
  /// An update as it was appended, and how many of its positions are left.
  struct Chunk {
    std::uint64_t first_tag;
    std::int64_t appended;
    std::int64_t left;
  };
  std::vector<Chunk>& chunks(std::int64_t slot, std::int64_t layer) {
    return chunks_[static_cast<std::size_t>(slot * policy().num_layers + layer)];
  }
  [[nodiscard]] Found shown(const std::vector<Chunk>& chunks) const;

  std::vector<std::vector<Chunk>> chunks_;
};

/// The stream of one kind. Derived has, for each T of Ops,
///   static std::optional<std::int64_t> appends_to(const T& op);   the slot, if it is an append
/// An append that fails preempts the slot's sequence.
template <class Derived, class Ops>
class KindStream : public ProviderStream {
 public:
  using ProviderStream::ProviderStream;

  void saw(const Op& op, const Observation& seen, Labels& labels) final {
    visit_op(Ops(), op, [&](const auto& operation) {
      const std::optional<std::int64_t> slot = Derived::appends_to(operation);
      if (slot && seen.error) preempt(*slot, labels);
    });
  }
};

std::int64_t positions(const auto& chunks) {
  std::int64_t sum = 0;
  for (const auto& chunk : chunks) sum += chunk.left;
  return sum;
}

ProviderStream::ProviderStream(const replay::LoweringInput& input)
    : SequenceOps(input),
      chunks_(static_cast<std::size_t>(input.schedule.max_running * input.policy.num_layers)) {}

void ProviderStream::begin(std::int64_t slot) {
  for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) chunks(slot, layer).clear();
  emit(SeqLen{slot}, {0});
}

void ProviderStream::append(std::int64_t slot, std::int64_t tokens) {
  for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) {
    chunks(slot, layer).push_back({tagger().last() + 1, tokens, tokens});
    auto [k, v] = tagger().pair(rows(tokens));
    for (Tensor* side : {&k, &v}) replay::make_storable(side->floats(), stored());
    update(slot, layer, std::move(k), std::move(v));
  }
}

void ProviderStream::update(std::int64_t slot, std::int64_t layer, Tensor k, Tensor v) {
  emit(Update{slot, layer, std::move(k), std::move(v)});
}

void ProviderStream::reject(std::int64_t slot, std::int64_t tokens) {
  emit(Truncate{slot, positions(chunks(slot, 0)) - tokens});
  for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) {
    std::vector<Chunk>& held = chunks(slot, layer);
    for (std::int64_t surplus = tokens; surplus > 0;) {
      const std::int64_t cut = std::min(surplus, held.back().left);
      held.back().left -= cut;
      surplus -= cut;
      if (held.back().left == 0) held.pop_back();
    }
  }
}

// No handle is kept: a replay may last for days.
void ProviderStream::read(std::int64_t slot) {
  for (std::int64_t layer = 0; layer < policy().num_layers; ++layer)
    emit(Get{slot, layer, false}, shown(chunks(slot, layer)));
  emit(SeqLen{slot}, {positions(chunks(slot, 0))});
  ask(slot);
}

Found ProviderStream::shown(const std::vector<Chunk>& held) const {
  const std::int64_t total = positions(held);
  if (total == 0) return {};
  const Shape shape = rows(total);
  const std::int64_t dim = shape[2];
  Found found{.found = true, .k = make_tensor(shape), .v = make_tensor(shape)};
  const auto keys = found.k->floats();
  const auto values = found.v->floats();
  std::int64_t base = 0;
  for (const Chunk& chunk : held) {
    for (std::int64_t outer = 0; outer < shape[0]; ++outer) {
      const auto to = static_cast<std::size_t>((outer * total + base) * dim);
      const std::uint64_t from =
          chunk.first_tag + static_cast<std::uint64_t>(outer * chunk.appended * dim);
      for (std::size_t i = 0; i < static_cast<std::size_t>(chunk.left * dim); ++i) {
        keys[to + i] = replay::storable(tag(from + i), stored());
        values[to + i] = -keys[to + i];
      }
    }
    base += chunk.left;
  }
  return found;
}

class ContiguousStream final : public KindStream<ContiguousStream, ContiguousOps> {
 public:
  explicit ContiguousStream(const LoweringInput& input) : KindStream(input) {
    for (std::int64_t slot = 0; slot < input.schedule.max_running; ++slot)
      emit(NewContiguous{slot, policy().num_layers, input.longest_sequence()});
  }

  static std::optional<std::int64_t> appends_to(const Update& op) { return op.cache; }
  template <OneOf<NewContiguous, Get, Reread, Poke, Truncate, Reset, SeqLen, NumLayers> T>
  static std::optional<std::int64_t> appends_to(const T& /*no append*/) {
    return std::nullopt;
  }

 protected:
  [[nodiscard]] Shape rows(std::int64_t tokens) const override {
    return {1, tokens, policy().num_heads * policy().head_dim};
  }
  void ask(std::int64_t slot) override { emit(NumLayers{slot}); }
  void end(std::int64_t slot) override { emit(Reset{slot}); }
};

replay::Lowering contiguous_lowering() {
  return {.kind = &contiguous_kind(),
          .setup = [](const LoweringInput& /*input*/) { return Setup{}; },
          .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
            return std::make_unique<ContiguousStream>(input);
          }};
}

class PagedStream final : public KindStream<PagedStream, PagedOps> {
 public:
  explicit PagedStream(const LoweringInput& input) : KindStream(input) {
    const std::int64_t width = policy().num_heads * policy().head_dim;
    const std::int64_t block_bytes =
        2 * policy().num_layers * policy().block_size * width * std::int64_t{sizeof(float)};
    blocks_ = blocks_wanted(input);
    constexpr std::int64_t kMegabyte = std::int64_t{1} << 20U;
    emit(NewPool{policy().num_layers, policy().block_size, width,
                 (blocks_ * block_bytes + kMegabyte - 1) / kMegabyte});
    // Pools come in whole megabytes; the blocks that are too many are taken out of it.
    emit(DrainPool{blocks_});
    for (std::int64_t slot = 0; slot < input.schedule.max_running; ++slot)
      emit(NewPaged{slot, policy().num_layers});
  }

  static std::optional<std::int64_t> appends_to(const Update& op) { return op.cache; }
  template <OneOf<NewPool, NewPaged, Get, Reread, Poke, Truncate, Reset, Free, SeqLen, NumLayers,
                  Table, block_pool::Available, block_pool::Alloc, block_pool::FreeBlock,
                  block_pool::ReadBlock, DrainPool>
                T>
  static std::optional<std::int64_t> appends_to(const T& /*no append*/) {
    return std::nullopt;
  }

 protected:
  [[nodiscard]] Shape rows(std::int64_t tokens) const override {
    return {policy().num_heads, tokens, policy().head_dim};
  }
  // One block after the other, whoever holds it.
  void ask(std::int64_t slot) override {
    emit(Table{slot});
    emit(block_pool::Available{});
    emit(block_pool::ReadBlock{asked_++ % blocks_});
  }
  void end(std::int64_t slot) override { emit(Free{slot}); }

 private:
  // Blocks for the longest sequences of as many requests as there are slots, times the policy's
  // percentage; at least those of the longest one.
  static std::int64_t blocks_wanted(const LoweringInput& input) {
    std::vector<std::int64_t> blocks;
    for (const replay::Request& request : input.requests) {
      const std::int64_t tokens = replay::scaled(request.input_tokens, input.schedule.scale) +
                                  replay::scaled(request.output_tokens, input.schedule.scale) +
                                  input.schedule.draft_tokens;
      blocks.push_back(replay::scaled(tokens, input.policy.block_size));
    }
    std::ranges::sort(blocks, std::greater());
    const auto slots =
        std::min(blocks.size(), static_cast<std::size_t>(input.schedule.max_running));
    std::int64_t most = 0;
    for (std::size_t i = 0; i < slots; ++i) most += blocks[i];
    const std::int64_t longest = blocks.empty() ? 1 : blocks.front();
    return std::max(longest, most * input.policy.pool_percent / 100);
  }

  std::int64_t blocks_ = 1;
  std::int64_t asked_ = 0;
};

replay::Lowering paged_lowering() {
  return {.kind = &paged_kind(),
          .setup = [](const LoweringInput& /*input*/) { return Setup{}; },
          .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
            return std::make_unique<PagedStream>(input);
          }};
}

class TensorStream final : public KindStream<TensorStream, TensorOps> {
 public:
  explicit TensorStream(const LoweringInput& input) : KindStream(input) {
    for (std::int64_t slot = 0; slot < input.schedule.max_running; ++slot)
      emit(NewTensor{.cache = slot,
                     .num_layers = policy().num_layers,
                     .max_seq_len = input.longest_sequence(),
                     .dtype = stored() == replay::ElementType::kF16 ? "fp16" : "fp32",
                     .device = place(slot),
                     .stream = place(slot) == Place::kGpu});
  }

  static std::optional<std::int64_t> appends_to(const UpdateTensor& op) { return op.cache; }
  template <OneOf<NewTensor, Get, Reread, Poke, Truncate, Reset, SeqLen, GetFullBuffer, Counters,
                  SyncTensorCounter, FreeTensor, MaxSeqLen, InjectTensor>
                T>
  static std::optional<std::int64_t> appends_to(const T& /*no append*/) {
    return std::nullopt;
  }

 protected:
  [[nodiscard]] Shape rows(std::int64_t tokens) const override {
    return {1, tokens, policy().num_heads * policy().head_dim};
  }
  void update(std::int64_t slot, std::int64_t layer, Tensor k, Tensor v) override {
    emit(UpdateTensor{slot, layer, std::move(k), std::move(v), place(slot), place(slot)});
  }
  [[nodiscard]] replay::ElementType stored() const final {
    const bool half = policy().storage != replay::ElementType::kF32;
    return half ? replay::ElementType::kF16 : replay::ElementType::kF32;
  }
  void ask(std::int64_t slot) override {
    emit(Counters{slot});
    emit(MaxSeqLen{slot});
  }
  void end(std::int64_t slot) override { emit(Reset{slot}); }

 private:
  static Place place(std::int64_t slot) { return slot % 2 == 0 ? Place::kCpu : Place::kGpu; }
};

replay::Lowering tensor_lowering() {
  return {.kind = &tensor_kind(),
          .setup = [](const LoweringInput& /*input*/) { return Setup{}; },
          .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
            return std::make_unique<TensorStream>(input);
          }};
}

LoweringInput without_drafts(LoweringInput input) {
  input.schedule.max_running = 1;
  input.schedule.draft_every = 0;
  return input;
}

class DeviceStream final : public replay::SequenceOps {
 public:
  explicit DeviceStream(const LoweringInput& input)
      : SequenceOps(input),
        positions_(input.longest_sequence()),
        written_(static_cast<std::size_t>(policy().num_layers),
                 std::vector<std::uint64_t>(static_cast<std::size_t>(positions_), kNever)) {
    emit(NewDevice{policy().num_layers, positions_, policy().num_heads, policy().head_dim, false,
                   Kernels::kHost});
  }

  void saw(const Op& op, const Observation& seen, Labels& labels) override {
    visit_op(DeviceOps(), op, [&](const auto& operation) {
      if (appends(operation) && seen.error) preempt(0, labels);
    });
  }

 protected:
  void begin(std::int64_t /*slot*/) override {
    length_ = 0;
    from_device_ = !from_device_;
    emit(SeqLen{}, {0});
  }
  void append(std::int64_t /*slot*/, std::int64_t tokens) override {
    for (std::int64_t token = 0; token < tokens; ++token, ++length_)
      for (std::int64_t layer = 0; layer < policy().num_layers; ++layer) append_row(layer);
  }
  void reject(std::int64_t /*slot*/, std::int64_t /*tokens*/) override {}
  void read(std::int64_t /*slot*/) override {
    for (std::int64_t layer = 0; layer < policy().num_layers; ++layer)
      emit(ReadBuffer{layer}, buffers(layer));
    emit(SeqLen{}, {length_});
    emit(ReadCounter{});
  }
  void end(std::int64_t /*slot*/) override { emit(ResetDevice{}); }

 private:
  static constexpr std::uint64_t kNever = 0;  // no tag: the cells are zero

  template <OneOf<Append, AppendGpu> T>
  static bool appends(const T& /*op*/) {
    return true;
  }
  template <OneOf<NewDevice, SeqLen, Pointers, CounterPtr, ReadCounter, DevicePointerArrays,
                  ReadBuffer, LiveBuffers, SyncDeviceCounter, ResetDevice, Close, InjectDevice>
                T>
  static bool appends(const T& /*op*/) {
    return false;
  }

  void append_row(std::int64_t layer) {
    written_[static_cast<std::size_t>(layer)][static_cast<std::size_t>(length_)] =
        tagger().last() + 1;
    std::vector<float> k(static_cast<std::size_t>(policy().num_heads * policy().head_dim));
    std::vector<float> v(k.size());
    tagger().fill(k, v);
    if (from_device_)
      emit(AppendGpu{layer, std::move(k), std::move(v)});
    else
      emit(Append{layer, length_, std::move(k), std::move(v)});
  }

  [[nodiscard]] ReadBuffer::Returns buffers(std::int64_t layer) const {
    const std::int64_t width = policy().num_heads * policy().head_dim;
    const auto& first_tags = written_[static_cast<std::size_t>(layer)];
    auto [k, v] = replay::tagged_rows(first_tags, width);
    for (std::size_t row = 0; row < first_tags.size(); ++row) {
      if (first_tags[row] != kNever) continue;
      const auto begin = row * static_cast<std::size_t>(width);
      for (auto side : {k.floats(), v.floats()})
        std::ranges::fill(side.subspan(begin, static_cast<std::size_t>(width)), 0.0F);
    }
    k.shape = v.shape = {positions_, width};
    return {.found = true, .k = std::move(k), .v = std::move(v)};
  }

  std::int64_t positions_;
  std::vector<std::vector<std::uint64_t>> written_;  // by layer and position: the row's first tag
  std::int64_t length_ = 0;
  bool from_device_ = true;
};

replay::Lowering device_lowering() {
  return {.kind = &device_kind(),
          .setup = [](const LoweringInput& /*input*/) { return Setup{}; },
          .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
            return std::make_unique<DeviceStream>(without_drafts(input));
          }};
}

LoweringInput one_at_a_time(LoweringInput input) {
  input.schedule.max_running = 1;
  return input;
}

class TracingStream final : public KindStream<TracingStream, TracingOps> {
 public:
  explicit TracingStream(const LoweringInput& input) : KindStream(input) {
    emit(NewTracing{.cache = 0, .frozen_shapes = {}});
  }

  static std::optional<std::int64_t> appends_to(const UpdateTraced& op) { return op.cache; }
  template <OneOf<NewTracing, Get, Reread, Poke, Truncate, Reset, SeqLen, Trace> T>
  static std::optional<std::int64_t> appends_to(const T& /*no append*/) {
    return std::nullopt;
  }

 protected:
  [[nodiscard]] Shape rows(std::int64_t tokens) const override {
    return {1, tokens, policy().num_heads * policy().head_dim};
  }
  void update(std::int64_t slot, std::int64_t layer, Tensor k, Tensor v) override {
    const std::int64_t id = next_id_;
    next_id_ += 2;
    emit(UpdateTraced{slot, layer, std::move(k), std::move(v), id, id + 1});
  }
  void end(std::int64_t slot) override { emit(Reset{slot}); }

 private:
  std::int64_t next_id_ = 0;  // every tensor is an object of its own
};

replay::Lowering tracing_lowering() {
  return {.kind = &tracing_kind(),
          .setup =
              [](const LoweringInput& input) {
                return Setup{
                    .config = Record::of(TracingConfig{.real = Real::kKv,
                                                       .num_layers = input.policy.num_layers,
                                                       .max_seq_len = input.longest_sequence()})};
              },
          .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
            return std::make_unique<TracingStream>(one_at_a_time(input));
          }};
}

}  // namespace

std::vector<replay::Lowering> lowerings() {
  return {contiguous_lowering(), paged_lowering(), tensor_lowering(), device_lowering(),
          tracing_lowering()};
}

}  // namespace kvo::provider
