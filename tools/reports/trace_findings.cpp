#include "tools/reports/trace_findings.hpp"

#include <vector>

#include <boost/describe/enumerators.hpp>
#include <boost/mp11/algorithm.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/commands/program_name.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/quantities.hpp"
#include "traces/io/kept_input.hpp"

namespace kvo::tools {

using traces::FindingKind;

std::string findings_text(const traces::Validation& validation) {
  return count_text(validation.errors(), "error") + ", " +
         count_text(validation.warnings(), "warning");
}

std::string errors_line(const std::string& file, const traces::Validation& validation) {
  std::vector<std::string> kinds;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<FindingKind>>([&](auto one) {
    const FindingKind kind = one.value;
    if (severity(kind) == traces::Severity::kError && validation.count(kind) > 0)
      kinds.push_back(
          fmt::format("{} in {}", name(kind), count_text(validation.count(kind), "place")));
  });
  if (kinds.empty()) return {};
  return fmt::format("{}: {}: prefixes mean nothing; `{} trace info {}` shows where",
                     traces::shown_name(file), fmt::join(kinds, ", "), program_name(),
                     shell_word(file));
}

void print_findings(const std::string& name, const traces::Validation& validation) {
  for (const traces::Finding& finding : validation.findings)
    print_note(traces::text(name, finding));
  const std::uint64_t shown = validation.findings.size();
  const std::uint64_t all = validation.errors() + validation.warnings();
  if (all > shown)
    print_note(
        fmt::format("{}: {} of the same kinds", name, count_text(all - shown, "further finding")));
}

}  // namespace kvo::tools
