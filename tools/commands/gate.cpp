// tools/commands/gate.cpp: `kvoracle gate BASELINE CURRENT`: whether a run is worse than an earlier
// one.
#include "tools/reports/gate.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tools/commands/campaign_options.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/not_negative.hpp"
#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/gate_report.hpp"
#include "tools/reports/json_file.hpp"
#include "tools/reports/result_file.hpp"

namespace kvo::tools {
namespace {

struct GateArguments {
  std::string baseline;
  std::string current;
  std::string again;
  double slower = 10;
  double fewer = 0;
  double error = 1;
  bool no_timings = false;
  bool all = false;
  std::string json;
  std::string junit;
  std::string markdown;
};

RunRecord run_of(const std::string& path) {
  RunRecord run = must(read_run(path));
  if (run.cases.empty()) throw FileError(fmt::format("{}: holds no case", printable(path)));
  if (run.torn) print_note(fmt::format("{}: the last line is torn and left out", path));
  return run;
}

// Runs of two kinds would differ in everything.
void refuse_unlike(const RunRecord& baseline, const RunRecord& other, const std::string& path) {
  if (baseline.header.command != other.header.command)
    throw FileError(fmt::format("{}: command: '{}', the baseline is of '{}'", printable(path),
                                printable(other.header.command),
                                printable(baseline.header.command)));
  if (baseline.header.profile != other.header.profile)
    throw FileError(fmt::format("{}: profile: is not that of the baseline", printable(path)));
  const auto conventions = [](const RunRecord& run) {
    const boost::json::value* found = run.header.options.if_contains("conventions");
    return found != nullptr ? *found : boost::json::value();
  };
  if (conventions(baseline) != conventions(other))
    throw FileError(fmt::format("{}: conventions: are not those of the baseline", printable(path)));
}

int run_gate(const GateArguments& arguments) {
  std::vector<std::string> inputs{arguments.baseline, arguments.current};
  if (!arguments.again.empty()) inputs.push_back(arguments.again);
  check_outputs({{"--json", arguments.json},
                 {"--junit", arguments.junit},
                 {"--markdown", arguments.markdown}},
                inputs);
  const RunRecord baseline = run_of(arguments.baseline);
  const RunRecord current = run_of(arguments.current);
  refuse_unlike(baseline, current, arguments.current);
  std::optional<RunRecord> again;
  if (!arguments.again.empty()) {
    again = run_of(arguments.again);
    refuse_unlike(baseline, *again, arguments.again);
  }
  constexpr double kPercent = 100;
  const GateTerms terms{.slower = arguments.slower / kPercent,
                        .error = arguments.error / kPercent,
                        .fewer = arguments.fewer / kPercent,
                        .timings = !arguments.no_timings};
  const GateResult result = compare_runs(baseline, current, again ? &*again : nullptr, terms);
  if (!arguments.json.empty()) write_result(arguments.json, "gate", gate_json(result));
  if (!arguments.junit.empty()) write_gate_junit(arguments.junit, result);
  if (!arguments.markdown.empty()) write_text_file(arguments.markdown, gate_markdown(result));
  if (arguments.json != kStandardOutput && arguments.junit != kStandardOutput &&
      arguments.markdown != kStandardOutput)
    print_out(gate_text(result, arguments.all));
  return result.findings.empty() ? kExitConforms : kExitDiffers;
}

}  // namespace

Run declare_gate(CLI::App& app, const Contracts& /*contracts*/) {
  const auto arguments = std::make_shared<GateArguments>();
  app.add_option("baseline", arguments->baseline, "a run file that was good")
      ->required()
      ->type_name("BASELINE");
  app.add_option("current", arguments->current, "a run file of the same command")
      ->required()
      ->type_name("CURRENT");
  app.add_option("--again", arguments->again,
                 "another run of what the baseline is of: what differs between them is noise")
      ->type_name("FILE");
  app.add_option("--slower", arguments->slower, "growth of a ratio of times that passes")
      ->check(not_negative())
      ->type_name("PERCENT")
      ->capture_default_str();
  app.add_option("--error", arguments->error, "false alarms in so many gates, by chance")
      ->check(percent())
      ->check(positive())
      ->type_name("PERCENT")
      ->capture_default_str();
  app.add_option("--fewer", arguments->fewer, "loss of operations and judged cases that passes")
      ->check(percent())
      ->type_name("PERCENT")
      ->capture_default_str();
  app.add_flag("--no-timings", arguments->no_timings, "compare no times");
  app.add_flag("--all", arguments->all, "show every time that was compared");
  add_output(app, "--markdown", arguments->markdown,
             "write the findings as Markdown; - for stdout");
  declare_reports(app, arguments->json, arguments->junit);
  return [arguments] { return run_gate(*arguments); };
}

}  // namespace kvo::tools
