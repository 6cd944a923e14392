#include "cuda/decode/decode_graph.hpp"

#include <utility>

namespace kvo::cuda {

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
