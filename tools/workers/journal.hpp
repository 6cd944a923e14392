// tools/workers/journal.hpp: the script of a process that may die before it can hand it over.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "properties/runner/shrinker.hpp"
#include "reference/contract/subject/op_stream.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo::tools {

/// Memory that a process and those that it forks share. Each operation of a script is written there
/// before it begins, so that it outlives the process, its descriptors and its limits.
class Journal {
 public:
  /// Throws std::bad_alloc when the system has no memory left.
  Journal();
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// The same operations, written as they are handed out. The stream must not outlive this object.
  [[nodiscard]] std::unique_ptr<OpStream> writing(std::unique_ptr<OpStream> ops) const;
  /// What was written so far of a case of `kind` with this setup; whatever does not read, and what
  /// follows it, is left out.
  [[nodiscard]] Script script(const CacheKind& kind, const Setup& setup) const;
  /// Nothing more is written in this process: it is a copy of the one that does.
  static void close();

  struct Memory {
    static constexpr std::size_t kMost = std::size_t{256} << 20U;  // pages come as they are used
    std::atomic<std::size_t> size;
    char text[kMost];  // NOLINT: mapped
  };

 private:
  Memory* memory_;
};

}  // namespace kvo::tools
