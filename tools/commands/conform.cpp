// tools/commands/conform.cpp: `kvoracle conform`: recorded logs against subjects.
#include "properties/campaign/conform.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "properties/contracts.hpp"
#include "tools/commands/campaign_options.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/conventions.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/program_name.hpp"
#include "tools/commands/selection.hpp"
#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/found_or_added.hpp"
#include "tools/reports/json_file.hpp"
#include "tools/reports/progress.hpp"
#include "tools/reports/quantities.hpp"
#include "tools/workers/isolated.hpp"
#include "tools/workers/pool.hpp"
#include "traces/io/kept_input.hpp"
#include "traces/log/cases.hpp"

namespace kvo::tools {
namespace {

struct ConformArguments {
  std::vector<std::string> logs;  // none: the rule cases of this tree
  bool update = false;
  std::vector<std::string> words;
  std::string law_name;
  std::optional<Profile> profile;  // absent: that of each case
  std::uint64_t schedules = 1;
  std::vector<std::string> conventions;
  ReportOptions report;
  unsigned jobs = 1;
  Limits limits;
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

/// A quirk that logs show, where profile documented was asked for.
struct QuirkSummary {
  std::string rule;
  std::string quirk;
  std::uint64_t cases = 0;
  std::string first;  ///< case and operation
};
BOOST_DESCRIBE_STRUCT(QuirkSummary, (), (rule, quirk, cases, first))

void count(const CaseResult& conformed, std::vector<QuirkSummary>& summaries) {
  for (const Attribution& seen : conformed.attributions) {
    const std::string where = fmt::format("{}, op {} {}", conformed.name, seen.op_index, seen.op);
    ++found_or_added(summaries, {seen.rule, seen.quirk, 0, where}, &QuirkSummary::quirk).cases;
  }
}

void print_quirks(std::vector<QuirkSummary> summaries) {
  if (summaries.empty()) return;
  std::ranges::sort(summaries, {}, &QuirkSummary::rule);
  Table table({column("rule"), column("quirk of the recorded system"), numbers("cases"),
               column("first seen in", 1)});
  for (const QuirkSummary& row : summaries)
    table.row({row.rule, row.quirk, count_text(row.cases), printable(row.first, 120)});
  print_out("The logs differ from profile documented by:\n" + table.text(0, output_columns()) +
            "\n");
}

/// The cases of all logs, numbered through: a worker reads on to the one that it is asked for.
class RecordedCases {
 public:
  RecordedCases(const Contracts& contracts, const ConformArguments& arguments)
      : contracts_(contracts),
        arguments_(arguments),
        comparisons_(select_subjects(contracts, arguments.words)),
        with_reference_(means_references(contracts, arguments.words)) {
    apply_conventions(contracts, arguments.conventions, comparisons_);
    options_.profile = arguments.profile;
    options_.schedules = arguments.schedules;
    if (!arguments.law_name.empty()) options_.law = &law_named(contracts, arguments.law_name);
  }

  /// Those of the subjects.
  [[nodiscard]] std::vector<ShownConventions> conventions() const {
    return shown_conventions(comparisons_);
  }

  /// What a process answers of a case; no text behind the last one. Throws FileError.
  Message answer(std::uint64_t index) {
    auto result = conform(index, [this](const CacheKind& kind) { return subjects_of(kind); });
    if (!result) return {Message::Kind::kAnswer, {}};
    const bool again = std::ranges::any_of(
        result->subjects, [](const SubjectResult& one) { return one.verdict.lacks_memory(); });
    result->index = index;
    for (SubjectResult& subject : result->subjects)
      add_command(subject, result->name, subject.schedule);
    result->name = path() + ": " + result->name;
    return {again ? Message::Kind::kAgain : Message::Kind::kAnswer, packed(*result)};
  }

  /// The same, each subject in a process of its own. `first`: as of Isolating.
  std::string isolated(std::uint64_t index, const Death* first) {
    if (!go_to(index)) return {};
    const auto header = must(log_->next_case());
    if (!header) return {};
    const CasePlan plan{.kind = header->kind,
                        .name = path() + ": " + header->name,
                        .baseline = &contracts_.reference_of(*header->kind),
                        .subjects = subjects_of(*header->kind)};
    const auto run = [&](const CasePlan& alone) {
      begun_ = false;
      std::vector<const Subject*> judged = alone.subjects;
      if (judged.empty()) judged.push_back(alone.baseline);
      return *conform(index, [&](const CacheKind&) { return judged; });
    };
    CaseResult result =
        run_case_isolated(index, plan, {.limits = arguments_.limits, .first = first, .run = run});
    for (SubjectResult& subject : result.subjects) add_command(subject, header->name);
    begun_ = false;
    return packed(result);
  }

 private:
  [[nodiscard]] const std::string& path() const { return arguments_.logs[log_number_]; }
  [[nodiscard]] std::vector<const Subject*> subjects_of(const CacheKind& kind) const {
    return chosen(comparisons_, kind, with_reference_);
  }

  std::optional<CaseResult> conform(std::uint64_t index, const ChooseSubjects& choose) {
    while (go_to(index)) {
      auto result = must(conform_next(contracts_, *log_, choose, options_));
      if (result) {
        ++next_;
        return result;
      }
      open(log_number_ + 1);
    }
    return std::nullopt;
  }

  // The whole log is known: what helps is less of it.
  void add_command(SubjectResult& subject, const std::string& name,
                   std::optional<std::uint64_t> schedule = std::nullopt) const {
    constexpr std::size_t kMostTyped = 500;  // a longer name is not typed
    if (!subject.verdict.failed() || name.size() > kMostTyped) return;
    std::string files;
    for (const std::string& file : arguments_.conventions)
      files += " --conventions " + shell_word(file);
    subject.repeat = fmt::format(
        "{} shrink {} --case {} --subject {}{}{}{}{}", program_name(), shell_word(path()),
        shell_word(name), shell_word(subject.subject),
        schedule ? fmt::format(" --schedule {}", *schedule) : "",
        options_.law != nullptr ? " --law " + arguments_.law_name : "",
        arguments_.profile == Profile::kDocumented ? " --profile documented" : "", files);
  }

  void open(std::size_t log_number) {
    log_.reset();
    log_number_ = log_number;
    if (log_number_ >= arguments_.logs.size()) return;
    log_ = must(open_log(path(), contracts_));
    if (arguments_.profile) log_->only_profile(*arguments_.profile);
  }

  // True if case `index` is the next one, or its log has ended.
  bool go_to(std::uint64_t index) {
    if (!begun_ || next_ > index) {
      begun_ = true;
      open(0);
      next_ = 0;
    }
    while (log_ && next_ < index) {
      if (must(log_->next_case()))
        ++next_;
      else
        open(log_number_ + 1);
    }
    return log_.has_value();
  }

  const Contracts& contracts_;
  const ConformArguments& arguments_;
  std::vector<Comparison> comparisons_;
  bool with_reference_;
  ConformOptions options_;
  std::optional<traces::LogReader> log_;
  bool begun_ = false;
  std::size_t log_number_ = 0;
  std::uint64_t next_ = 0;  // case of all logs that is read next
};

// Rule cases: the file with documented answers as the reference gives them. A log: its cases whose
// answers differ there, as text.
void update(const Contracts& contracts, const std::string& path) {
  const auto observe = [&](const traces::Case& script) {
    return observe_case(script, contracts.reference_of(*script.header.kind),
                        script.header.profile.value_or(Profile::kDocumented));
  };
  if (traces::holds_rule_cases(path)) {
    const std::string text = must(traces::text_of(must(traces::TextSource::open(path))));
    const std::string updated =
        must(traces::updated_cases(path, text, contracts.kind_finder(), observe));
    if (updated != text) write_text_file(path, updated);
    return;
  }
  auto log = must(traces::LogReader::open(path, contracts.kind_finder()));
  const CacheKind* kind = nullptr;
  while (const auto recorded = must(log.next_whole_case())) {
    const std::vector<Observation> documented = observe(*recorded);
    if (documented.empty()) continue;  // a config that is not supported there
    const bool differs = !std::ranges::equal(
        recorded->steps, documented, [](const traces::Step& step, const Observation& seen) {
          return !step.recorded ||
                 !observation_difference(*step.recorded, seen, {.wanted = Wanted::kRecorded});
        });
    if (!differs) continue;
    if (kind != recorded->header.kind) print_out("kind " + recorded->header.kind->name() + "\n\n");
    kind = recorded->header.kind;
    print_out(traces::case_text(*recorded, &documented));
  }
}

bool names_log(const std::string& word) {
  std::error_code ignored;
  return word == traces::kStandardInput || word.ends_with(".jsonl") || word.ends_with(".gz") ||
         traces::holds_rule_cases(word) ||
         (std::filesystem::exists(word, ignored) && !std::filesystem::is_directory(word, ignored));
}

int run_conform(const Contracts& contracts, ConformArguments arguments) {
  // `--subject NAME LOG`: an option with several words takes all that follow.
  const auto first_log = std::ranges::find_if(arguments.words, names_log);
  arguments.logs.insert(arguments.logs.end(), first_log, arguments.words.end());
  arguments.words.erase(first_log, arguments.words.end());
  if (arguments.update) {
    for (const std::string& path : arguments.logs) update(contracts, path);
    return kExitConforms;
  }
  if (arguments.logs.empty())
    for (const traces::EmbeddedFile& file : rule_case_files())
      arguments.logs.emplace_back(file.name);
  catch_interruption();
  // Of what can be read only once each worker would take a part.
  for (const std::string& log : arguments.logs) must(traces::keep_input(log));
  check_reports(arguments.report.json, arguments.report.junit, arguments.logs);
  RecordedCases cases(contracts, arguments);
  Summary summary;
  std::vector<QuirkSummary> quirks;
  Progress progress("cases");
  const auto lost = [&](std::uint64_t index, const Death& death) {
    return packed(lost_case(index, death, contracts.subjects()));
  };
  const auto take = [&](std::uint64_t /*index*/, const std::string& text) {
    if (text.empty()) return false;
    auto conformed = unpacked<CaseResult>(text);
    name_frames(conformed);
    summary.add(conformed);
    count(conformed, quirks);
    progress.advance();
    return true;
  };
  Campaign campaign;
  try {
    work_in_order(0, CampaignOptions::kEndless, arguments.jobs, arguments.limits,
                  {.answer = [&](std::uint64_t index) { return cases.answer(index); },
                   .isolated = [&](std::uint64_t index,
                                   const Death* first) { return cases.isolated(index, first); },
                   .lost = lost,
                   .take = take,
                   .waiting = [&] { progress.advance(0); }});
  } catch (const FileError& error) {
    if (summary.failed() == 0) throw;
    campaign.fault = error.what();  // findings so far are reported
  }
  progress.clear();
  if (arguments.report.text()) print_quirks(quirks);
  boost::json::object facts;
  if (arguments.profile == Profile::kDocumented) facts["quirks"] = write_json(quirks);
  ReportOptions options_of_report = arguments.report;
  options_of_report.result = "conform";
  options_of_report.conventions = cases.conventions();
  options_of_report.profile = arguments.profile.value_or(Profile::kOriginal);
  const int status = report(contracts, summary, options_of_report, std::move(facts));
  campaign.summary = std::move(summary);
  campaign.interrupted = interrupted();
  return end_of_campaign(campaign, "", status);
}

}  // namespace

Run declare_conform(CLI::App& app, const Contracts& contracts) {
  const auto arguments = std::make_shared<ConformArguments>();
  CLI::Option* files =
      app.add_option("logs", arguments->logs,
                     "operation logs, plain or gzip, or rule cases (*.cases); -: standard input; "
                     "none: all rule cases of kvoracle")
          ->type_name("FILE");
  app.add_flag("--update", arguments->update,
               "write the documented answers of the references into files of rule cases; of a log, "
               "print the cases whose documented answers differ")
      ->needs(files);
  app.add_option("--subject", arguments->words, "contracts, caches or subjects; none: all")
      ->type_name("SUBJECT");
  app.add_option("--law", arguments->law_name, "the law whose script a log is (kvoracle list)")
      ->type_name("LAW");
  declare_reports(app, arguments->report.json, arguments->report.junit);
  app.add_flag("--timings", arguments->report.timings, "a table of all operations")
      ->group(kRunningGroup);
  declare_schedules(app, arguments->schedules);
  declare_profile(app, arguments->profile, "that of the log, else original");
  declare_conventions(app, arguments->conventions);
  declare_workers(app, arguments->jobs, arguments->limits);
  return [&contracts, arguments] { return run_conform(contracts, *arguments); };
}

}  // namespace kvo::tools
