// tools/workers.hpp: many cases in processes of their own, taken in order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tools/child.hpp"

namespace kvo::tools {

/// What workers do.
struct Work {
  /// In a worker: what case `index` gives. `apart`: a worker has died of this case; each subject is
  /// to have a process of its own. May throw UsageError and FileError; they are thrown again where
  /// the case is taken.
  std::function<std::string(std::uint64_t index, bool apart)> answer;
  /// In this process: what a case gives of which even the second worker died.
  std::function<std::string(std::uint64_t index, const Death& death)> lost;
  /// In this process, in order of index; false when no more is wanted.
  std::function<bool(std::uint64_t index, const std::string& answer)> take;
  /// In this process, now and then while cases are under way; may be empty.
  std::function<void()> waiting = {};
};

/// Answers the cases from `first` to before `last` with `jobs` workers. Answers do not depend on
/// how many there are.
/// Requires  this process has one thread.
void work_in_order(std::uint64_t first, std::uint64_t last, unsigned jobs, ChildLimits limits,
                   const Work& work);

/// Whether somebody has asked this process to end (SIGINT, SIGTERM) while an Interruptible lived.
[[nodiscard]] bool interrupted();

/// While it lives, SIGINT and SIGTERM end the work in order, so that what was found is told.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
};

}  // namespace kvo::tools
