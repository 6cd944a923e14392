// tools/reports/brief_report.hpp: a run on one screen: the verdict, a line a contract, what is
// slow.
#pragma once

#include <string>
#include <vector>

#include "tools/reports/summary.hpp"

namespace kvo::tools {

/// An operation that takes longer than in the reference.
struct SlowerOperation {
  std::string subject;
  std::string op;
  float ratio = 0;  ///< median of the cases
};

/// Not of a reference, a mutant, or a subject over another cache: the reference has its own inside.
[[nodiscard]] bool is_beside_reference(const std::string& subject);

/// Those of subjects beside their reference, the slowest first. Operations of less than 100 ns are
/// left out: there the clock decides.
[[nodiscard]] std::vector<SlowerOperation> slower_operations(
    const std::vector<SubjectSummary>& subjects);

/// "PASS: 31 caches, 64 subjects, 86 cases, 12.4 M operations, no difference".
[[nodiscard]] std::string verdict_line(const Summary& summary,
                                       const std::vector<SubjectSummary>& subjects);

/// A line a contract: cases, operations, the median of the times over the reference's, and the
/// operation that is slowest beside it.
[[nodiscard]] std::string contracts_table(const std::vector<SubjectSummary>& subjects);

/// "slower than the reference: layered.vector@optimized clone_from 7.03x; ..."; empty without any.
[[nodiscard]] std::string slower_text(const std::vector<SlowerOperation>& slower);

}  // namespace kvo::tools
