// tools/watch/watcher.hpp: follows the events of running engines, and only reads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/watch/judge.hpp"
#include "tools/watch/prober.hpp"
#include "tools/watch/stream_log.hpp"
#include "tools/watch/zeromq.hpp"

namespace kvo::tools {

struct WatchOptions {
  std::vector<std::string> endpoints;     ///< one of each worker: "tcp://127.0.0.1:5557"
  std::vector<std::string> replays = {};  ///< of the same workers; fewer: the others have none
  std::optional<std::int64_t> block_size = std::nullopt;  ///< that a follower expects
  std::int64_t batches = 0;                               ///< how many to read; 0: any
  std::chrono::milliseconds time{0};                      ///< how long; 0: until `stop`
  std::chrono::milliseconds patience{5'000};              ///< for the next batch of a replay
  Prober* prober = nullptr;  ///< of the first endpoint's engine, rank 0; null: none
  std::chrono::milliseconds between_probes{1'000};
};

/// What was seen.
struct Watched {
  std::map<events::Engine, StreamJudge::Held> engines = {};
  std::vector<StreamFinding> findings = {};
  std::set<std::string> topics = {};
  std::optional<std::int64_t> block_size = std::nullopt;
  std::int64_t messages = 0;
};

/// Reads until the options say that it is enough. `log`: gets everything, too; may be null.
/// `found`: gets each finding when it is new. Throws ZeroMqError.
[[nodiscard]] Watched watch(const WatchOptions& options, StreamLog* log,
                            const std::function<bool()>& stop,
                            const std::function<void(const StreamFinding&)>& found);

}  // namespace kvo::tools
