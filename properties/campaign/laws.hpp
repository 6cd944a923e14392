// properties/campaign/laws.hpp: the laws that hold in every contract.
#pragma once

#include <cstdint>
#include <vector>

#include "properties/runner/law.hpp"

namespace kvo {

/// Operations of the longest script that is worth trying where each is carried out once.
inline constexpr std::uint64_t kLongScript = 80;

/// agrees_with_reference, failed_allocation_changes_nothing.
[[nodiscard]] std::vector<const Law*> general_laws();

/// Every subject beside a baseline of its own, each operation in one of three ways:
///
///   retried   its 1st, 2nd, ... allocation fails, and it is repeated at once each time
///   skipped   one of its allocations fails, and it is not repeated: the baseline leaves it out
///   deferred  one of its allocations fails, and the next operation comes before it is repeated
///
/// A retry may hide a partial change; the other two show it. The way and the
/// allocation are drawn from the setup's schedule, an operation in turn, so that a script fails
/// alike each time; for a subject that draws from it itself, from its seed. How many allocations an
/// operation makes is up to the subject: one that keeps memory from case to case, or makes tables
/// when it is first used, makes fewer later, and then another one fails, or none.
class FailedAllocations final : public Law {
 public:
  using Law::Law;

  /// Not where an operation that ran out of memory cannot be repeated.
  [[nodiscard]] bool applies_to(const CacheKind& kind) const override { return kind.repeatable; }
  /// Not subjects that promise nothing after a failed allocation.
  [[nodiscard]] bool concerns(const Subject& subject) const override {
    return subject.survives_failed_allocation;
  }
  /// A deferred operation runs after the operation that a verdict names.
  [[nodiscard]] bool needs_whole_script() const override { return true; }
  [[nodiscard]] bool draws() const override { return true; }
  /// At each operation which allocations failed, and what was done then.
  [[nodiscard]] std::vector<ScriptLine> shown(const CasePlan& plan, const Subject& subject,
                                              const std::vector<Op>& script,
                                              const Verdict& verdict) const override;
  /// The script is what `baseline` leads to where nothing fails. Requires  a baseline.
  [[nodiscard]] LawRun run(const CasePlan& plan, const Subject* baseline,
                           std::span<const Subject* const> subjects, OpStream& ops) const override;
};

}  // namespace kvo
