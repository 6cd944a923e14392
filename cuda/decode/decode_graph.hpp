// cuda/decode/decode_graph.hpp: a decode loop that is captured once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "cuda/decode/decode_step.hpp"

namespace kvo::cuda {

/// One decode step of all layers as a graph. Each replay takes the rows that the sources hold by
/// then and appends them at the position in the counter, which moves on on the device; the host
/// hears of it by sync_counter. Truncate, reset, sync_counter and host rows behind it may come
/// between replays. On the default stream: who writes the sources there needs not wait.
///
///   auto graph = DecodeGraph::capture(cache, rows, DecodeGraph::Launches::kFused);
///   for (each token) { write the rows; (*graph)->replay(); }
///   cache.sync_counter();
class DecodeGraph {
 public:
  enum class Launches : std::uint8_t {
    kEach,   ///< a launch a row
    kFused,  ///< one launch for all rows
  };
  /// Captures; nothing is carried out and the cache is as before. The sources must live as long as
  /// the graph.
  /// Errors  those of DecodeCache::decode_step, FusedRows::make and the device, for instance
  ///         other:capturing.
  static Result<std::unique_ptr<DecodeGraph>> capture(DecodeCache& cache,
                                                      std::span<const LayerRows> rows,
                                                      Launches launches);
  ~DecodeGraph();
  DecodeGraph(const DecodeGraph&) = delete;
  DecodeGraph& operator=(const DecodeGraph&) = delete;

  /// Queues one step. A step at max_seq_len or above writes no row, but counts.
  /// Errors  kClosed: the cache has given its buffers back since, or is gone; those of
  ///         DecodeCache::before_replay; the device's own.
  [[nodiscard]] Status replay();

 private:
  explicit DecodeGraph(DecodeCache& cache) : device_(cache.device()), cache_(&cache) {}
  [[nodiscard]] Status capture(const DecodeStep& step);

  std::shared_ptr<Device> device_;
  DecodeCache* cache_;              ///< while life_ is there
  std::weak_ptr<const void> life_;  ///< of the cache's buffers
  std::optional<FusedRows> fused_;
  Graph graph_;  ///< 0: none
};

}  // namespace kvo::cuda
