// tools/command_conform.cpp: `kvoracle conform`: recorded logs against subjects.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "properties/all_subjects.hpp"
#include "properties/conform.hpp"
#include "tools/campaign_options.hpp"
#include "tools/commands.hpp"
#include "tools/console.hpp"
#include "tools/crash_guard.hpp"
#include "tools/json_file.hpp"
#include "tools/progress.hpp"
#include "tools/quantities.hpp"
#include "tools/selection.hpp"
#include "tools/usage.hpp"

namespace kvo::tools {
namespace {

struct Arguments {
  std::vector<std::string> logs;
  std::vector<std::string> words;
  std::string law_name = std::string(laws().front().name);
  Profile profile = Profile::kOriginal;
  ReportOptions report;
};

// The subjects that were asked for and keep the contract of a case; none at all means everybody.
std::vector<const Subject*> chosen(const std::vector<Lineup>& lineups, const CacheKind& kind,
                                   bool with_reference) {
  for (const Lineup& lineup : lineups) {
    if (lineup.kind != &kind) continue;
    if (with_reference) return lineup.subjects;
    return {lineup.subjects.begin() + 1, lineup.subjects.end()};
  }
  return {};
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
  for (const Parting& parting : result.partings) {
    auto known = std::ranges::find(summaries, parting.quirk.name, &QuirkSummary::quirk);
    if (known == summaries.end())
      known = summaries.insert(summaries.end(),
                               {std::string(parting.quirk.rule), std::string(parting.quirk.name), 0,
                                fmt::format("{}, op {} {}", name, parting.op_index, parting.op)});
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
  print_out("The logs part from profile documented by:\n" + table.text() + "\n");
}

int run_conform(const Arguments& arguments) {
  const std::vector<Lineup> lineups = select_subjects(arguments.words);
  const bool with_reference = names_reference(arguments.words);
  const LockstepOptions options = law_named(arguments.law_name).options();
  Summary summary;
  std::vector<QuirkSummary> quirks;
  Progress progress("cases");
  for (const std::string& path : arguments.logs) {
    traces::LogReader log = must(traces::LogReader::open(path, find_kind));
    while (true) {
      const Activity activity("a case of " + path, "kvoracle conform " + path);
      const auto result = must(conform_next(
          log, [&](const CacheKind& kind) { return chosen(lineups, kind, with_reference); },
          arguments.profile, options));
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
  return report(summary, arguments.report, std::move(facts));
}

}  // namespace

Run declare_conform(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("logs", arguments->logs, "operation logs, .jsonl or .jsonl.gz")->required();
  app.add_option("--subject", arguments->words, "contracts, caches or subjects; none: all");
  app.add_option("--law", arguments->law_name, "the law whose script a log is (kvoracle list)")
      ->capture_default_str();
  app.add_option("--json", arguments->report.json,
                 "write the summary as JSON; - for standard output");
  app.add_flag("--timings", arguments->report.timings, "a table of all operations");
  declare_profile(app, arguments->profile);
  return [arguments] { return run_conform(*arguments); };
}

}  // namespace kvo::tools
