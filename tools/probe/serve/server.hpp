// tools/probe/serve/server.hpp: an engine for tests that serves the probe: its rows are stored in
// a cache of a contract, without arithmetic.
//
// Each generated token is computed from what the cache returns. So a wrong table of blocks, mask or
// shift of the cache makes wrong tokens. The model is not run: a token reads the rows that it sees
// as the probe's rule says (reference/probe/rows.hpp).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "tools/probe/http.hpp"
#include "tools/probe/serve/cache.hpp"
#include "tools/probe/serve/faults.hpp"

namespace kvo::tools {

struct ServerOptions {
  const Subject* cache = nullptr;      ///< of one of served_kinds()
  const ServerFault* fault = nullptr;  ///< null: none
  std::uint64_t seed = 1;              ///< chooses what a fault changes
  std::size_t rows = 4096;             ///< that the cache has space for; a multiple of 16
  probe::Shape shape = {};             ///< of the model
};

/// Gives several requests the cache in turn, one pass each.
class Turns {
 public:
  explicit Turns(std::size_t space) : space_(space) {}
  /// Waits until `space` is free and it is the caller's turn.
  void enter(std::size_t space);
  /// Lets all others who wait have a turn first.
  void yield();
  void leave(std::size_t space);

 private:
  void wait(std::unique_lock<std::mutex>& lock);
  void done();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t space_;
  std::size_t running_ = 0;  // requests between enter() and leave()
  std::uint64_t next_ = 0;   // turn that is given out next
  std::uint64_t now_ = 0;    // turn that runs
};

/// An engine. Several threads may use it; their requests run at the same time, in turn.
class ProbeServer {
 public:
  /// Throws UsageError: the cache's kind is not served, or the subject refuses the config.
  explicit ProbeServer(const ServerOptions& options);

  /// Answers POST .../completions. Status 400: what is wrong with a request; 500: an error of the
  /// cache.
  [[nodiscard]] HttpAnswer answer(const std::string& path, const std::string& body);

 private:
  struct Asked;
  class Generation;
  [[nodiscard]] Result<ProbeTokens> generate(const Asked& asked);
  [[nodiscard]] Damage damage_for(const ProbeTokens& prompt, std::size_t reused) const;

  ServerOptions options_;
  probe::Tables tables_;
  std::unique_ptr<ServedCache> cache_;
  Turns turns_;
  // During a turn:
  std::deque<ServedText> texts_;  // the last ones, where a fault needs them
  std::uint64_t answered_ = 0;
};

}  // namespace kvo::tools
