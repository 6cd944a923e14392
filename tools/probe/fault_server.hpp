// tools/probe/fault_server.hpp: an engine that serves the probe without arithmetic, with a fault of
// its cache: what `kvoracle probe check` must find, and what it must not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "reference/probe/rows.hpp"
#include "tools/probe/http.hpp"

namespace kvo::tools {

/// Faults by name: "none", "stale_tail", "lost_prefix", ..
[[nodiscard]] std::vector<std::string_view> server_faults();

/// Keeps the rows of the last texts, and begins each text with those that it shares with one of
/// them, in whole blocks of 16.
class FaultServer {
 public:
  /// Requires  fault is one of server_faults().
  FaultServer(std::string_view fault, std::uint64_t seed, const probe::Shape& shape = {});

  /// Answers POST .../completions, as one JSON or as events; status 400 names what is wrong with
  /// a request.
  [[nodiscard]] HttpAnswer answer(const std::string& path, const std::string& body);

 private:
  struct Stored {
    std::vector<probe::Token> tokens;
    probe::Rows rows;
  };
  /// Rows for the first tokens of a prompt, as many as it says.
  [[nodiscard]] probe::Rows begin_of(const std::vector<probe::Token>& prompt, bool shares) const;
  [[nodiscard]] bool has(std::string_view fault) const { return fault_ == fault; }

  std::string fault_;
  std::uint64_t seed_;
  probe::Tables tables_;
  std::mutex mutex_;
  std::vector<Stored> stored_;
  std::uint64_t answered_ = 0;
};

}  // namespace kvo::tools
