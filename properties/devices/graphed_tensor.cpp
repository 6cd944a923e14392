#include "properties/devices/graphed_tensor.hpp"

#include <span>
#include <utility>

#include "reference/contract/device/recorded_device.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo::devices {

using provider::Rows;
using provider::TensorOptions;

namespace {

constexpr std::int64_t kFloatBytes = sizeof(float);

}  // namespace

GraphedTensor::GraphedTensor(std::unique_ptr<cuda::TensorDeviceCache> cache,
                             const TensorOptions& options, QuirkSet<provider::Quirk> quirks)
    : cache_(std::move(cache)),
      suited_(options.num_layers == 1 && quirks.empty() && options.memory != nullptr),
      memory_(options.memory) {}

GraphedTensor::~GraphedTensor() {
  drop_graph();
}

void GraphedTensor::drop_graph() {
  graph_.reset();
  auto* const recorded = dynamic_cast<RecordedDevice*>(memory_.get());
  for (DevicePtr* source : {&sources_.k, &sources_.v}) {
    if (*source) (void)recorded->below().free(*source);
    *source = {};
  }
}

bool GraphedTensor::replayable(std::int64_t layer, const Rows& rows) const {
  if (!suited_ || layer != 0 || rows.k == nullptr || rows.v == nullptr) return false;
  if (!rows.k_device || !rows.v_device || rows.k->shape != rows.v->shape) return false;
  if (rows.k->shape.size() != 3 || rows.k->shape[1] != 1 || rows.k->bytes.empty()) return false;
  const auto* const recorded = dynamic_cast<const RecordedDevice*>(memory_.get());
  return recorded->faults().kernel == 0 && cache_->seq_len() < cache_->max_seq_len();
}

bool GraphedTensor::capture(const Shape& shape) {
  const auto step = cache_->decode_step(std::span(&sources_, 1));
  const bool fits =
      step && std::ssize(step->rows) == 2 * shape[0] && step->rows.front().dim == shape[2];
  if (!fits) return false;
  auto& below = dynamic_cast<RecordedDevice*>(memory_.get())->below();
  for (DevicePtr* source : {&sources_.k, &sources_.v}) {
    const auto made = below.alloc(shape[0] * shape[2] * kFloatBytes);
    KVO_CHECK(made.has_value());
    *source = *made;
  }
  auto captured = cuda::DecodeGraph::capture(*cache_, std::span(&sources_, 1),
                                             cuda::DecodeGraph::Launches::kEach);
  KVO_CHECK(captured.has_value());
  graph_ = std::move(*captured);
  shape_ = shape;
  return true;
}

Status GraphedTensor::update(std::int64_t layer, const Rows& rows) {
  if (!replayable(layer, rows)) return cache_->update(layer, rows);
  // The first rows of a layer, and those of another shape, are for the cache to take or refuse.
  if (!graph_ && !capture(rows.k->shape)) return cache_->update(layer, rows);
  if (rows.k->shape != shape_) return cache_->update(layer, rows);
  const std::int64_t bytes = shape_[0] * shape_[2] * kFloatBytes;
  for (const auto& [to, from] :
       {std::pair(sources_.k, rows.k_device), std::pair(sources_.v, rows.v_device)})
    if (Status queued = memory_->copy_async(to, from, bytes, Stream()); !queued) return queued;
  Status replayed = graph_->replay();
  if (!replayed && replayed.error() == fail(Code::kClosed)) {
    drop_graph();
    return cache_->update(layer, rows);
  }
  return replayed ? cache_->sync_counter() : replayed;
}

}  // namespace kvo::devices
