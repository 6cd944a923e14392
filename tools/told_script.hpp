// tools/told_script.hpp: the script of a process that may not live to hand it over.
#pragma once

#include <memory>

#include "properties/runner/shrinker.hpp"
#include "reference/contract/subject/op_stream.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo::tools {

/// Memory that a process and those that it forks share. Whoever carries out a script writes each
/// operation there before it begins it.
class ToldScript {
 public:
  /// Throws std::system_error when the system has no file left.
  ToldScript();
  ~ToldScript();
  ToldScript(const ToldScript&) = delete;
  ToldScript& operator=(const ToldScript&) = delete;

  /// The same operations, told as they are handed out. The stream must not outlive this object.
  [[nodiscard]] std::unique_ptr<OpStream> tell(std::unique_ptr<OpStream> ops) const;
  /// What was told so far of a case of `kind`.
  [[nodiscard]] Script script(const CacheKind& kind) const;

 private:
  int file_;
};

}  // namespace kvo::tools
