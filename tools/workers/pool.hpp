// tools/workers/pool.hpp: many cases in processes of their own, taken in order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tools/workers/process.hpp"

namespace kvo::tools {

/// What the processes of a pool do.
struct Work {
  /// In one of them: what case `index` gives. May ask for another process by Message::Kind::kAgain.
  std::function<Message(std::uint64_t index)> answer;
  /// In a new one that runs no subject itself, after a process has died of the case, or has asked
  /// for that (`first` is null then): each subject is to have a process of its own.
  std::function<std::string(std::uint64_t index, const Death* first)> isolated;
  /// In this process: what a case gives that ended even the process that isolated it.
  std::function<std::string(std::uint64_t index, const Death& death)> lost;
  /// In this process, in order of index; false when no more is wanted.
  std::function<bool(std::uint64_t index, const std::string& answer)> take;
  /// In this process: where it gives another number than before, processes that were forked until
  /// then are replaced, for they do not know what this one has learnt since; may be empty.
  std::function<std::uint64_t()> generation = {};
  /// In this process, now and then while cases are under way; may be empty.
  std::function<void()> waiting = {};
};

/// Answers the cases from `first` to before `last` with `jobs` processes, or in this one where
/// limits say so. Answers do not depend on how many there are. Faults (FileError, UsageError) are
/// thrown where their case is taken.
/// Requires  this process has one thread.
void work_in_order(std::uint64_t first, std::uint64_t last, unsigned jobs, const Limits& limits,
                   const Work& work);

}  // namespace kvo::tools
