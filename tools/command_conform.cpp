// tools/command_conform.cpp: `kvoracle conform`: recorded logs against subjects.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "properties/campaign/conform.hpp"
#include "tools/campaign_options.hpp"
#include "tools/commands.hpp"
#include "tools/console.hpp"
#include "tools/crash_guard.hpp"
#include "tools/json_file.hpp"
#include "tools/program_name.hpp"
#include "tools/progress.hpp"
#include "tools/quantities.hpp"
#include "tools/selection.hpp"
#include "tools/usage.hpp"

namespace kvo::tools {
namespace {

struct Arguments {
  std::vector<std::string> logs;
  std::vector<std::string> words;
  std::string law_name;
  std::optional<Profile> profile;  // absent: that of each case
  ReportOptions report;
};

// The subjects that were asked for and keep the contract of a case.
std::vector<const Subject*> chosen(const std::vector<Comparison>& comparisons,
                                   const CacheKind& kind, bool with_reference) {
  const auto found = std::ranges::find(comparisons, &kind, &Comparison::kind);
  if (found == comparisons.end()) return {};
  std::vector<const Subject*> subjects = found->subjects;
  if (with_reference) subjects.insert(subjects.begin(), found->reference);
  return subjects;
}

bool names_reference(const std::vector<std::string>& words) {
  if (words.empty()) return true;
  return std::ranges::any_of(words, [](const std::string& word) {
    return word.find('@') == std::string::npos || word.ends_with("@reference");
  });
}

/// A quirk that logs show, where profile documented was asked for.
struct QuirkSummary {
  std::string rule;
  std::string quirk;
  std::uint64_t cases = 0;
  std::string first;  ///< case and operation
};
BOOST_DESCRIBE_STRUCT(QuirkSummary, (), (rule, quirk, cases, first))

void count(const CaseResult& result, const std::string& name,
           std::vector<QuirkSummary>& summaries) {
  for (const Attribution& attribution : result.attributions) {
    auto known = std::ranges::find(summaries, attribution.quirk.name(), &QuirkSummary::quirk);
    if (known == summaries.end())
      known = summaries.insert(
          summaries.end(),
          {std::string(attribution.quirk.rule), attribution.quirk.name(), 0,
           fmt::format("{}, op {} {}", name, attribution.op_index, attribution.op)});
    ++known->cases;
  }
}

void print_quirks(std::vector<QuirkSummary> summaries) {
  if (summaries.empty()) return;
  std::ranges::sort(summaries, {}, &QuirkSummary::rule);
  using Align = Table::Align;
  Table table({{"rule", Align::kLeft},
               {"quirk of the recorded system", Align::kLeft},
               {"cases", Align::kRight},
               {"first seen in", Align::kLeft}});
  for (const QuirkSummary& row : summaries)
    table.row({row.rule, row.quirk, count_text(row.cases), row.first});
  print_out("The logs differ from profile documented by:\n" + table.text() + "\n");
}

int run_conform(const Contracts& contracts, const Arguments& arguments) {
  const std::vector<Comparison> comparisons = select_subjects(contracts, arguments.words);
  const bool with_reference = names_reference(arguments.words);
  ConformOptions options;
  options.profile = arguments.profile;
  if (!arguments.law_name.empty()) options.law = &law_named(contracts, arguments.law_name);
  Summary summary;
  std::vector<QuirkSummary> quirks;
  Progress progress("cases");
  for (const std::string& path : arguments.logs) {
    traces::LogReader log = must(traces::LogReader::open(path, contracts.kind_finder()));
    while (true) {
      const Activity activity("a case of " + path, program_name() + " conform " + path);
      const auto result = must(conform_next(
          contracts, log,
          [&](const CacheKind& kind) { return chosen(comparisons, kind, with_reference); },
          options));
      if (!result) break;
      CaseRecord record = record_of(summary.cases(), *result);
      record.name = path + ": " + record.name;
      summary.add(record);
      count(*result, record.name, quirks);
      progress.advance();
    }
  }
  progress.clear();
  if (arguments.report.json != kStandardOutput) print_quirks(quirks);
  boost::json::object facts;
  if (arguments.profile == Profile::kDocumented) facts["quirks"] = write_json(quirks);
  ReportOptions options_of_report = arguments.report;
  options_of_report.profile = arguments.profile.value_or(Profile::kOriginal);
  return report(summary, options_of_report, std::move(facts));
}

}  // namespace

Run declare_conform(CLI::App& app, const Contracts& contracts) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("logs", arguments->logs, "operation logs, .jsonl or .jsonl.gz")->required();
  app.add_option("--subject", arguments->words, "contracts, caches or subjects; none: all");
  app.add_option("--law", arguments->law_name, "the law whose script a log is (kvoracle list)");
  app.add_option("--json", arguments->report.json,
                 "write the summary as JSON; - for standard output");
  app.add_flag("--timings", arguments->report.timings, "a table of all operations");
  declare_profile(app, arguments->profile);
  return [&contracts, arguments] { return run_conform(contracts, *arguments); };
}

}  // namespace kvo::tools
