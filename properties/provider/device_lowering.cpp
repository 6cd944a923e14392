// Requests as operations of provider.device: one sequence at a time, row by row; every second one
// comes from device memory, where the position is the device's own counter. There is no truncate,
// so there are no drafts. A read shows the whole buffers, rows of earlier sequences included.
#include <algorithm>
#include <utility>
#include <vector>

#include "properties/provider/lowering.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/provider/device_operations.hpp"

namespace kvo::provider {
namespace {

using replay::LoweringInput;

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

}  // namespace

replay::Lowering device_lowering() {
  return {.kind = &device_kind(),
          .setup = [](const LoweringInput& /*input*/) { return Setup{}; },
          .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
            return std::make_unique<DeviceStream>(without_drafts(input));
          }};
}

}  // namespace kvo::provider
