#include "tools/reports/failure_text.hpp"

#include <fmt/format.h>

#include "tools/commands/program_name.hpp"
#include "tools/reports/quantities.hpp"

namespace kvo::tools {
namespace {

// "op 3, get: k[batch 0]: want 1, got 2"
std::string verdict_text(const Verdict& verdict) {
  return fmt::format("op {}, {}: {}", verdict.op_index, verdict.op, verdict.problem());
}

}  // namespace

std::vector<std::string> script_text(const Shrunk& shrunk) {
  std::vector<std::string> lines;
  for (const ScriptLine& line : shrunk.script) {
    const std::string number = line.op_index ? fmt::format("op {}", *line.op_index) : "";
    lines.push_back(fmt::format("{:<2} {:<5} {}", line.mark, number, line.text));
    for (const std::string& note : line.notes) lines.push_back("           " + note);
  }
  return lines;
}

std::vector<std::string> failure_text(const FailedCase& found, const SubjectResult& result,
                                      std::string_view law_doc) {
  std::vector<std::string> lines;
  lines.push_back(
      fmt::format("law: {}{}{}", result.last_law(found.law), law_doc.empty() ? "" : ": ", law_doc));
  const std::string_view config =
      result.shrunk ? std::string_view(result.shrunk->config) : found.config;
  if (config != "{}" && !config.empty())
    lines.push_back(fmt::format("config, where it is not the default: {}", config));
  const bool by_other = result.last_law(found.law) != found.law;
  lines.push_back(fmt::format(
      "found in {} of {}{}: {}", found.name, count_text(found.operations, "operation"),
      by_other ? fmt::format(", by law {}", found.law) : "", verdict_text(result.verdict)));
  if (result.sides) lines.push_back(*result.sides);
  for (const std::string& line : result.trace.value_or(std::vector<std::string>()))
    lines.push_back("  " + line);
  if (!result.shrunk) return lines;
  const Shrunk& shrunk = *result.shrunk;
  lines.push_back(fmt::format("shrunk to {}{}: {}", count_text(shrunk.operations, "operation"),
                              shrunk.cut_short ? ", not fully (--shrink-time)" : "",
                              shrunk.verdict.failed() ? verdict_text(shrunk.verdict)
                                                      : "run again, the subject agreed; it does "
                                                        "not answer alike each time"));
  for (const std::string& origin : shrunk.origins) lines.push_back("  " + origin);
  for (const std::string& place : shrunk.inside) lines.push_back("  " + place);
  if (shrunk.schedule) lines.push_back("  schedule: " + *shrunk.schedule);
  for (const std::string& line : script_text(shrunk)) lines.push_back(line);
  if (!shrunk.rules.empty())
    lines.push_back(
        fmt::format("rules of the operation: {} ({} explain RULE)", shrunk.rules, program_name()));
  return lines;
}

}  // namespace kvo::tools
