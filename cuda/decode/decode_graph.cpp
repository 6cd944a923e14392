#include "cuda/decode/decode_graph.hpp"

#include <utility>

#include "cuda/jobs/rows.hpp"
#include "cuda/memory/staging.hpp"
#include "reference/contract/device/jobs.hpp"

namespace kvo::cuda {
namespace {

Status queue_counts(Device& device, const std::vector<DevicePtr>& counters, Stream stream) {
  for (const DevicePtr counter : counters)
    if (Status done = device.launch(IncrementJob{counter.as<std::int32_t>(), 1}, stream); !done)
      return done;
  return {};
}

template <class Queue>
Status queue_around(Device& device, const DecodeStep& step, Stream stream, const Queue& rows) {
  if (Status done = queue_counts(device, step.counted_first, stream); !done) return done;
  if (Status done = rows(); !done) return done;
  return queue_counts(device, step.counted_last, stream);
}

}  // namespace

Job DecodeStep::job(const Row& row) const {
  const auto* from = row.source.as<const std::uint32_t>();
  const auto* position = counter.as<const std::int32_t>();
  if (row.half)
    return OffsetCopyHalfJob{row.buffer.as<std::uint16_t>(), from, position, row.dim, max_seq_len};
  return OffsetCopyJob{row.buffer.as<std::uint32_t>(), from, position, row.dim, max_seq_len};
}

Status queue(Device& device, const DecodeStep& step, Stream stream) {
  return queue_around(device, step, stream, [&]() -> Status {
    for (const DecodeStep::Row& row : step.rows)
      if (Status done = device.launch(step.job(row), stream); !done) return done;
    return {};
  });
}

Status queue(Device& device, const DecodeStep& step, const FusedRows& rows, Stream stream) {
  return queue_around(device, step, stream,
                      [&]() -> Status { return device.launch(rows.job(), stream); });
}

Result<FusedRows> FusedRows::make(const std::shared_ptr<Device>& device, const DecodeStep& step) {
  FusedRows made;
  std::vector<DevicePtr> addresses;
  addresses.reserve(2 * step.rows.size());
  if (!step.rows.empty()) made.like_ = step.rows.front();
  for (const DecodeStep::Row& row : step.rows) {
    if (row.dim != made.like_.dim || row.half != made.like_.half)
      return fail(Code::kNotSupported, "layers of several dims or types in one launch");
    addresses.push_back(row.buffer);
  }
  for (const DecodeStep::Row& row : step.rows) addresses.push_back(row.source);
  auto room = DeviceStorage::make(device, std::ssize(addresses), sizeof(DevicePtr));
  if (!room) return error_of_device(room.error());
  made.addresses_ = std::move(*room);
  const auto bytes = std::as_bytes(std::span(addresses));
  if (Status done = device->to_device(made.addresses_->ptr(), bytes); !done) return done.error();
  made.count_ = std::ssize(step.rows);
  made.counter_ = step.counter;
  made.max_seq_len_ = step.max_seq_len;
  return made;
}

Job FusedRows::job() const {
  const DevicePtr buffers = addresses_->ptr();
  const DevicePtr sources = buffers + count_ * static_cast<std::int64_t>(sizeof(DevicePtr));
  const auto all = [&]<class Cell>(Cell /*cell*/) {
    return Job(
        AppendLayers<Cell>{buffers.as<Cell* const>(), sources.as<const std::uint32_t* const>(),
                           counter_.as<const std::int32_t>(), count_, like_.dim, max_seq_len_});
  };
  return like_.half ? all(std::uint16_t()) : all(std::uint32_t());
}

Result<std::unique_ptr<DecodeGraph>> DecodeGraph::capture(DecodeCache& cache,
                                                          std::span<const LayerRows> rows,
                                                          Launches launches) {
  const auto step = cache.decode_step(rows);
  if (!step) return step.error();
  std::unique_ptr<DecodeGraph> made(new DecodeGraph(cache));
  made->life_ = step->life;
  if (launches == Launches::kFused) {
    auto fused = FusedRows::make(cache.device(), *step);
    if (!fused) return fused.error();
    made->fused_ = std::move(*fused);
  }
  if (Status captured = made->capture(*step); !captured) return captured.error();
  return made;
}

Status DecodeGraph::capture(const DecodeStep& step) {
  if (Status begun = device_->begin_capture(Stream()); !begun) return begun;
  Status queued =
      fused_ ? queue(*device_, step, *fused_, Stream()) : queue(*device_, step, Stream());
  const auto ended = device_->end_capture(Stream());
  if (ended) graph_ = *ended;
  return queued && !ended ? Status(ended.error()) : queued;
}

DecodeGraph::~DecodeGraph() {
  if (graph_.id == 0) return;
  (void)device_->synchronize(Stream());  // replays use the addresses of a fused launch
  (void)device_->destroy(graph_);
}

Status DecodeGraph::replay() {
  if (life_.expired()) return fail(Code::kClosed, "the buffers that the graph was captured over");
  if (Status ready = cache_->before_replay(); !ready) return ready;
  return device_->replay(graph_, Stream());
}

}  // namespace kvo::cuda
