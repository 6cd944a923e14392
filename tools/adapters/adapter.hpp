// tools/adapters/adapter.hpp: caches of other programs, which answer operations line by line.
//
// Words    adapter   a program that has caches inside and speaks the protocol of docs/adapters.md.
//          greeting  what it says of itself first.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "properties/campaign/contracts.hpp"
#include "tools/adapters/greeting.hpp"

namespace kvo::tools {

/// How long an adapter may take for an answer.
struct AdapterDeadlines {
  std::chrono::duration<double> greeting{120};  ///< large libraries load slowly
  std::chrono::duration<double> open{10};
  std::chrono::duration<double> operation{10};
};

/// The subjects that the adapter run by `command` has, one a kind. `variant` names them; empty:
/// "exec:COMMAND".
/// They start it when a session is opened, once in each process, and again after it has died.
/// Throws  UsageError: it gives no greeting; another version of the protocol; a kind, an operation
///         or a row of conventions that there is not.
[[nodiscard]] std::vector<Subject> subjects_of_adapter(const Contracts& contracts,
                                                       const std::string& command,
                                                       const AdapterDeadlines& deadlines = {},
                                                       const std::string& variant = {});

/// What the adapter says of itself. Throws UsageError: it gives no greeting, or another version of
/// the protocol.
[[nodiscard]] Greeting greeting_of_adapter(const std::string& command,
                                           const AdapterDeadlines& deadlines = {});

}  // namespace kvo::tools
