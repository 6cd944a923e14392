// tools/testing/evil_deeds.hpp: what a hostile subject does to its process and to the harness.
//
// Each deed is bounded: processes end after a minute, memory stays below a few GiB, and files are
// changed in the current folder only. Deeds that act a limited number of times make a file for each
// time in the folder EVIL_DIR (environment); without that folder they do nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <sys/types.h>

namespace kvo::tools {

enum class When : std::uint8_t {
  kAdvance,    ///< in each `advance`
  kOperation,  ///< in each operation
  kOpen,       ///< when a session opens
  kDestroy,    ///< when a session ends
};

struct Deed {
  std::string_view name;
  void (*act)();
  When when = When::kAdvance;
  bool lies = false;  ///< `advance` reports an error after the deed, the reference does not
  int times = 0;      ///< that it is done, over all processes; 0: any number
};

/// Deeds that end or block a process.
[[nodiscard]] std::span<const Deed> deadly_deeds();
/// Deeds about what a process shares with others: descriptors, processes, files, memory, limits.
[[nodiscard]] std::span<const Deed> sly_deeds();

/// Does the deed, unless it was done so many times.
void act(const Deed& deed);
/// Whether a deed is due: the first `times` calls of that name, over all processes.
[[nodiscard]] bool falls_due(std::string_view name, int times);
/// Whether this is the first call in this process, not counting the one that it was forked from.
/// `process` is the deed's own static variable, 0 at first.
[[nodiscard]] bool is_first(pid_t& process);
/// Writes to address 0.
void crash();
/// Sleeps for a minute and ends the process.
[[noreturn]] void sleep_long();
/// The same, but computes all the time.
[[noreturn]] void compute_long();

}  // namespace kvo::tools
