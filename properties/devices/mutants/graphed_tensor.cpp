// Decode steps from a graph, under generated scripts.
#include <memory>
#include <span>
#include <utility>

#include "properties/devices/mutants/device_mutant.hpp"
#include "properties/seeded/cuda/decode/decode_graph.hpp"
#include "properties/seeded/cuda/provider/tensor_device_cache.hpp"
#include "reference/contract/device/recorded_device.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/provider/tensor.hpp"

namespace kvo::devices {
namespace {

namespace seeded = cuda::seeded;
using provider::Rows;

constexpr std::int64_t kFloatBytes = sizeof(float);

/// Requires that the device of the options is a RecordedDevice, as that of a session is.
class GraphedTensor final : public seeded::TensorDeviceCache {
 public:
  GraphedTensor(const provider::TensorOptions& options, QuirkSet<provider::Quirk> quirks)
      : TensorDeviceCache(options, quirks),
        suited_(options.num_layers == 1 && quirks.empty() && options.memory != nullptr),
        recorded_(dynamic_cast<RecordedDevice*>(options.memory.get())) {}
  ~GraphedTensor() override { drop_graph(); }
  GraphedTensor(const GraphedTensor&) = delete;
  GraphedTensor& operator=(const GraphedTensor&) = delete;

  [[nodiscard]] Status update(std::int64_t layer, const Rows& rows) override;

 private:
  [[nodiscard]] bool replayable(std::int64_t layer, const Rows& rows) const;
  /// Captures a step with rows of that shape. False: the layer does not hold such rows.
  [[nodiscard]] bool capture(const Shape& shape);
  void drop_graph();

  bool suited_;  ///< one layer, profile documented
  RecordedDevice* recorded_;
  Shape shape_;  ///< of the captured rows
  seeded::LayerRows sources_;
  std::unique_ptr<seeded::DecodeGraph> graph_;
};

void GraphedTensor::drop_graph() {
  graph_.reset();
  for (DevicePtr* source : {&sources_.k, &sources_.v}) {
    if (*source) (void)recorded_->below().free(*source);
    *source = {};
  }
}

bool GraphedTensor::replayable(std::int64_t layer, const Rows& rows) const {
  if (!suited_ || layer != 0 || rows.k == nullptr || rows.v == nullptr) return false;
  if (!rows.k_device || !rows.v_device || rows.k->shape != rows.v->shape) return false;
  if (rows.k->shape.size() != 3 || rows.k->shape[1] != 1 || rows.k->bytes.empty()) return false;
  return recorded_->faults().kernel == 0 && seq_len() < max_seq_len();
}

bool GraphedTensor::capture(const Shape& shape) {
  const auto step = decode_step(std::span(&sources_, 1));
  const bool fits =
      step && std::ssize(step->rows) == 2 * shape[0] && step->rows.front().dim == shape[2];
  if (!fits) return false;
  for (DevicePtr* source : {&sources_.k, &sources_.v})
    *source = recorded_->below().alloc(shape[0] * shape[2] * kFloatBytes).value();
  graph_ = seeded::DecodeGraph::capture(*this, std::span(&sources_, 1),
                                        seeded::DecodeGraph::Launches::kEach)
               .value();
  shape_ = shape;
  return true;
}

Status GraphedTensor::update(std::int64_t layer, const Rows& rows) {
  if (!replayable(layer, rows)) return TensorDeviceCache::update(layer, rows);
  // The first rows of a layer, and those of another shape, are for the cache to take or refuse.
  if (!graph_ && !capture(rows.k->shape)) return TensorDeviceCache::update(layer, rows);
  if (rows.k->shape != shape_) return TensorDeviceCache::update(layer, rows);
  const std::int64_t bytes = shape_[0] * shape_[2] * kFloatBytes;
  for (const auto& [to, from] :
       {std::pair(sources_.k, rows.k_device), std::pair(sources_.v, rows.v_device)})
    if (Status queued = recorded_->copy_async(to, from, bytes, Stream()); !queued) return queued;
  Status replayed = graph_->replay();
  if (!replayed && replayed.error() == fail(Code::kClosed)) {
    drop_graph();
    return TensorDeviceCache::update(layer, rows);
  }
  return replayed ? sync_counter() : replayed;
}

}  // namespace

Subject graphed_tensor(const std::string& variant, const OpenDevice& open) {
  const auto make =
      [](const provider::TensorOptions& options,
         QuirkSet<provider::Quirk> quirks) -> Result<std::unique_ptr<provider::TensorBacked>> {
    auto made = GraphedTensor::make_as<GraphedTensor>(options, quirks);
    if (!made) return made.error();
    return std::move(*made);
  };
  return provider::make_tensor_subject(variant, "decode steps from a graph", make, open);
}

}  // namespace kvo::devices
