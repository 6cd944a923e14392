#include "tools/reports/gate_report.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "reference/contract/describe/json.hpp"
#include "tools/commands/program_name.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/junit.hpp"
#include "tools/reports/quantities.hpp"

namespace kvo::tools {
namespace {

// "fewer cases"
std::string word_of(Regression regression) {
  std::string word(write_json(regression).as_string());
  std::ranges::replace(word, '_', ' ');
  return word;
}

// What the verdict rests on.
std::string summary_text(const GateResult& result) {
  std::string text = result.findings.empty() ? std::string("no regression")
                                             : count_text(result.findings.size(), "regression");
  text += fmt::format(": {}, {}", count_text(result.subjects, "subject"),
                      count_text(result.states, "state"));
  if (!result.untimed.empty()) {
    text += "; times were not compared: " + result.untimed;
  } else {
    const auto few = static_cast<std::uint64_t>(std::ranges::count_if(
        result.timings, [](const GateTiming& timing) { return !timing.probability; }));
    text += ", " + count_text(result.timings.size() - few, "time");
    if (few > 0) text += fmt::format(" ({} more: too few cases to tell)", count_text(few));
  }
  if (result.known_failures > 0)
    text += fmt::format("; {} as before", count_text(result.known_failures, "failing case"));
  return text;
}

std::string op_text(const GateTiming& timing) {
  return timing.op.empty() ? "a case" : timing.op;
}

std::string verdict_text(const GateTiming& timing) {
  if (timing.slower) return "slower";
  return timing.probability ? "" : "too few cases to tell";
}

// A cell of a Markdown table.
std::string cell(const std::string& text) {
  std::string safe;
  for (const char c : printable(text)) {
    if (c == '|' || c == '<' || c == '>' || c == '\\' || c == '`') safe += '\\';
    safe += c;
  }
  return safe;
}

}  // namespace

std::string gate_text(const GateResult& result, bool all) {
  const Paint paint(stdout);
  std::string text;
  if (all && !result.timings.empty()) {
    Table table({column("subject"), column("operation"), numbers("cases", 3), numbers("before", 2),
                 numbers("now", 2), numbers("factor"), numbers("noise", 1), column("")});
    for (const GateTiming& timing : result.timings)
      table.row({timing.subject, op_text(timing), count_text(timing.cases),
                 ratio_text(timing.before), ratio_text(timing.now), ratio_text(timing.factor),
                 ratio_text(timing.noise), verdict_text(timing)});
    text += table.text(0, output_columns()) + "\n";
  }
  for (const GateFinding& finding : result.causes)
    text += fmt::format("{} {}: {}\n", paint(Colour::kRed, "WORSE, " + word_of(finding.regression)),
                        printable(finding.name), printable(finding.what));
  text += paint(result.findings.empty() ? Colour::kGreen : Colour::kRed, summary_text(result));
  if (result.causes.size() < result.findings.size())
    text += fmt::format("; {} shown, --markdown, --json or --junit has each regression",
                        count_text(result.causes.size(), "cause"));
  return text + "\n";
}

std::string gate_markdown(const GateResult& result) {
  std::string text = fmt::format("### kvoracle gate\n\n{}\n", cell(summary_text(result)));
  if (result.findings.empty()) return text;
  text += "\n| regression | of | what |\n| --- | --- | --- |\n";
  for (const GateFinding& finding : result.findings)
    text += fmt::format("| {} | {} | {} |\n", word_of(finding.regression), cell(finding.name),
                        cell(finding.what));
  return text;
}

boost::json::object gate_json(const GateResult& result) {
  return {{"regressions", write_json(result.findings)},
          {"timings", write_json(result.timings)},
          {"subjects", result.subjects},
          {"states", result.states},
          {"known_failures", result.known_failures},
          {"untimed", result.untimed}};
}

void write_gate_junit(const std::string& path, const GateResult& result) {
  using State = JunitTest::State;
  JunitSuite found{.name = "found and reached"};
  for (const GateFinding& finding : result.findings)
    if (finding.regression != Regression::kSlower)
      found.tests.push_back({.name = word_of(finding.regression) + ", " + finding.name,
                             .state = State::kFailed,
                             .message = finding.what});
  if (found.tests.empty())
    found.tests.push_back(
        {.name = fmt::format("{} subjects, {} states", result.subjects, result.states)});
  JunitSuite times{.name = "times"};
  for (const GateTiming& timing : result.timings) {
    JunitTest& test =
        times.tests.emplace_back(JunitTest{.name = timing.subject + ", " + op_text(timing)});
    test.message = timing.slower ? ratio_text(timing.factor) + " the time of the baseline"
                                 : verdict_text(timing);
    if (!timing.probability) test.state = State::kSkipped;
    if (timing.slower) test.state = State::kFailed;
  }
  if (!result.untimed.empty())
    times.tests.push_back({.name = "all", .state = State::kSkipped, .message = result.untimed});
  write_junit(path, program_name() + " gate", {found, times});
}

}  // namespace kvo::tools
