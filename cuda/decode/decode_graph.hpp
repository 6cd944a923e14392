// cuda/decode/decode_graph.hpp: a decode step of all layers of a cache, and a decode loop that is
// captured once.
//
// Words    ahead    what the counters on the device are of the host's lengths, from a replay to the
//                   next sync_counter.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reference/contract/device/device.hpp"

namespace kvo::cuda {

/// Where the rows of one layer lie in device memory, as the cache's own decode step takes them:
/// packed f32 cells of one position.
struct LayerRows {
  DevicePtr k;
  DevicePtr v;
};

/// The launches of one step. What they do depends on device memory alone.
struct DecodeStep {
  /// A row that goes to the position in the counter; nothing at max_seq_len or above.
  struct Row {
    DevicePtr buffer;  ///< [max_seq_len, dim]
    DevicePtr source;  ///< [dim], f32
    std::int64_t dim = 0;
    bool half = false;  ///< the buffer holds fp16
  };
  std::vector<DevicePtr> counted_first = {};  ///< counters that go up by 1 before the rows
  std::vector<Row> rows = {};
  std::vector<DevicePtr> counted_last = {};  ///< and behind them
  DevicePtr counter = {};
  std::int64_t max_seq_len = 0;         ///< positions
  std::weak_ptr<const void> life = {};  ///< gone: so are the buffers or the counters

  [[nodiscard]] Job job(const Row& row) const;
};

/// Queues a step on a stream, a launch a row; also inside a capture. Errors  the device's own.
[[nodiscard]] Status queue(Device& device, const DecodeStep& step, Stream stream);

/// All rows of a step in one launch, by arrays of addresses in device memory.
class FusedRows {
 public:
  /// Waits for the device, so not inside a capture.
  /// Errors  kNotSupported: rows of several dims or types; kOutOfMemory; the device's own.
  static Result<FusedRows> make(const std::shared_ptr<Device>& device, const DecodeStep& step);

  [[nodiscard]] Job job() const;

 private:
  std::shared_ptr<DeviceStorage> addresses_;  ///< of the buffers, then of the sources
  std::int64_t count_ = 0;
  DecodeStep::Row like_ = {};
  DevicePtr counter_ = {};
  std::int64_t max_seq_len_ = 0;
};

/// Queues a step on a stream, its rows in one launch. Errors  the device's own.
[[nodiscard]] Status queue(Device& device, const DecodeStep& step, const FusedRows& rows,
                           Stream stream);

/// A cache with its position in device memory. While it is ahead its lengths lag, and it refuses
/// rows with kBadPosition.
class DecodeCache {
 public:
  virtual ~DecodeCache() = default;

  [[nodiscard]] virtual const std::shared_ptr<Device>& device() const = 0;
  /// A step that takes its rows from there, layer by layer. Nothing is queued, nothing changes.
  /// Errors  kOutOfRange: another number of layers; kClosed; kNotSupported: no counters, or a layer
  ///         that is not on the device yet.
  [[nodiscard]] virtual Result<DecodeStep> decode_step(std::span<const LayerRows> rows) = 0;
  /// To be called before a step of decode_step() is carried out: makes the counters the lengths,
  /// unless they are ahead already. From now on they are. May wait for the device.
  /// Errors  kClosed; kFull; kBadPosition: layers of several lengths; the device's own.
  [[nodiscard]] virtual Status before_replay() = 0;
};

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
