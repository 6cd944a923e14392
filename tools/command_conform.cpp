// tools/command_conform.cpp: `kvoracle conform`: recorded logs against subjects.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "properties/campaign/conform.hpp"
#include "tools/campaign_options.hpp"
#include "tools/commands.hpp"
#include "tools/console.hpp"
#include "tools/json_file.hpp"
#include "tools/program_name.hpp"
#include "tools/progress.hpp"
#include "tools/quantities.hpp"
#include "tools/selection.hpp"
#include "tools/serving/backtrace.hpp"
#include "tools/serving/isolated.hpp"
#include "tools/serving/pool.hpp"
#include "tools/usage.hpp"
#include "traces/io/kept_input.hpp"

namespace kvo::tools {
namespace {

struct ConformArguments {
  std::vector<std::string> logs;
  std::vector<std::string> words;
  std::string law_name;
  std::optional<Profile> profile;  // absent: that of each case
  std::uint64_t schedules = 1;
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

/// A quirk that a case shows.
struct QuirkRecord {
  std::string rule;
  std::string quirk;
  std::uint64_t op_index = 0;
  std::string op;
};
BOOST_DESCRIBE_STRUCT(QuirkRecord, (), (rule, quirk, op_index, op))

/// What a process answers of a recorded case.
struct ConformRecord {
  CaseAnswer answer = {};
  std::vector<QuirkRecord> quirks = {};
};
BOOST_DESCRIBE_STRUCT(ConformRecord, (), (answer, quirks))

/// A quirk that logs show, where profile documented was asked for.
struct QuirkSummary {
  std::string rule;
  std::string quirk;
  std::uint64_t cases = 0;
  std::string first;  ///< case and operation
};
BOOST_DESCRIBE_STRUCT(QuirkSummary, (), (rule, quirk, cases, first))

void count(const ConformRecord& conformed, std::vector<QuirkSummary>& summaries) {
  for (const QuirkRecord& seen : conformed.quirks) {
    auto known = std::ranges::find(summaries, seen.quirk, &QuirkSummary::quirk);
    if (known == summaries.end())
      known = summaries.insert(
          summaries.end(),
          {seen.rule, seen.quirk, 0,
           fmt::format("{}, op {} {}", conformed.answer.record.name, seen.op_index, seen.op)});
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
               {"first seen in", Align::kLeft, 1}});
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
    options_.profile = arguments.profile;
    options_.schedules = arguments.schedules;
    if (!arguments.law_name.empty()) options_.law = &law_named(contracts, arguments.law_name);
  }

  /// Nothing behind the last case. Throws FileError.
  std::optional<ConformRecord> conform(std::uint64_t index) {
    return conform(index, [this](const CacheKind& kind) { return subjects_of(kind); });
  }

  /// The same, each subject in a process of its own. `first`: as of run_case_isolated.
  std::optional<ConformRecord> isolated(std::uint64_t index, const Death* first) {
    if (!go_to(index)) return std::nullopt;
    const auto header = must(log_->next_case());
    if (!header) return std::nullopt;
    const Subject& reference = contracts_.reference_of(*header->kind);
    const CasePlan plan{.kind = header->kind,
                        .name = header->name,
                        .baseline = &reference,
                        .subjects = subjects_of(*header->kind)};
    ConformRecord whole{.answer = {.record = {.index = index,
                                              .name = path() + ": " + header->name,
                                              .kind = header->kind->name(),
                                              .law = std::string(agreement().name())}}};
    bool dies = false;
    const std::string shrunk_by = header->name;
    const Part alone = part_of(reference, index);
    for (const Subject* subject : plan.subjects) {
      const Part part = subject == &reference ? alone : part_of(*subject, index);
      dies = std::holds_alternative<Death>(part) || dies;
      add_part(whole, *subject, part, subject == &reference ? nullptr : &alone);
      SubjectRecord& own = whole.answer.record.subjects.back();
      if (failed(own.outcome) && !own.repeat) own.repeat = shrink_command(shrunk_by, own.subject);
    }
    const Subject* told = first != nullptr && !dies ? blamed(*first, plan) : nullptr;
    std::vector<SubjectRecord>& all = whole.answer.record.subjects;
    for (std::size_t i = 0; i < all.size() && told != nullptr && !first->killed; ++i)
      if (all[i].subject == told->name() && !failed(all[i].outcome)) {
        tell_not_repeated(*first, told, all[i]);
        whole.answer.add(i, *first);
      }
    begun_ = false;
    return whole;
  }

 private:
  [[nodiscard]] const std::string& path() const { return arguments_.logs[log_number_]; }
  [[nodiscard]] std::vector<const Subject*> subjects_of(const CacheKind& kind) const {
    return chosen(comparisons_, kind, with_reference_);
  }

  std::optional<ConformRecord> conform(std::uint64_t index, const ChooseSubjects& choose) {
    while (go_to(index)) {
      const auto result = must(conform_next(contracts_, *log_, choose, options_));
      if (!result) {
        open(log_number_ + 1);
        continue;
      }
      ++next_;
      ConformRecord conformed{.answer = {.record = record_of(index, *result)}};
      CaseRecord& record = conformed.answer.record;
      record.name = path() + ": " + record.name;
      for (std::size_t i = 0; i < result->subjects.size(); ++i)
        if (result->subjects[i].verdict.failed())
          record.subjects[i].repeat = shrink_command(result->name, result->subjects[i].subject,
                                                     result->subjects[i].schedule);
      for (const Attribution& found : result->attributions)
        conformed.quirks.push_back(
            {std::string(found.quirk.rule), found.quirk.name(), found.op_index, found.op});
      return conformed;
    }
    return std::nullopt;
  }

  // The whole log is known: what helps is less of it.
  [[nodiscard]] std::optional<std::string> shrink_command(
      const std::string& name, const std::string& subject,
      std::optional<std::uint64_t> schedule = std::nullopt) const {
    constexpr std::size_t kMostTyped = 500;  // a longer name is not typed
    if (name.size() > kMostTyped) return std::nullopt;
    return fmt::format("{} shrink {} --case {} --subject {}{}{}{}", program_name(),
                       shell_word(path()), shell_word(name), shell_word(subject),
                       schedule ? fmt::format(" --schedule {}", *schedule) : "",
                       options_.law != nullptr ? " --law " + arguments_.law_name : "",
                       arguments_.profile == Profile::kDocumented ? " --profile documented" : "");
  }

  using Part = std::variant<ConformRecord, Death>;
  Part part_of(const Subject& subject, std::uint64_t index) {
    Limits limits = arguments_.limits;
    limits.quiet = true;
    if (told_pulse != nullptr) tell(subject, 0);
    return in_process<ConformRecord>(limits, [&]() -> ConformRecord {
      begun_ = false;
      const auto only = [&](const CacheKind&) { return std::vector<const Subject*>{&subject}; };
      try {
        return *conform(index, only);
      } catch (const std::bad_alloc&) {
        free_reserve();
        const SubjectRecord judged{.subject = subject.name(),
                                   .outcome = Outcome::kOutOfMemory,
                                   .problem = kNeedsMemory};
        return {.answer = {.record = {.subjects = {judged}}}};
      }
    });
  }

  /// `alone`: how the reference came out by itself; null for its own part.
  static void add_part(ConformRecord& whole, const Subject& subject, const Part& part,
                       const Part* alone) {
    CaseRecord& record = whole.answer.record;
    const auto* reference_dies = alone != nullptr ? std::get_if<Death>(alone) : nullptr;
    if (const auto* death = std::get_if<Death>(&part)) {
      const Verdict verdict =
          verdict_of(*death, subject, reference_dies != nullptr ? reference_dies->how : "");
      record.subjects.push_back({.subject = subject.name(),
                                 .outcome = verdict.outcome,
                                 .problem = verdict.text(),
                                 .alike = verdict.signature()});
      whole.answer.add(record.subjects.size() - 1, *death);
      return;
    }
    const auto& own = std::get<ConformRecord>(part);
    record.operations = std::max(record.operations, own.answer.record.operations);
    for (SubjectRecord judged : own.answer.record.subjects) {
      const auto* reference = alone != nullptr ? std::get_if<ConformRecord>(alone) : nullptr;
      if (used_up(judged) && reference != nullptr &&
          std::ranges::none_of(reference->answer.record.subjects, used_up)) {
        judged.outcome = Outcome::kBroken;
        *judged.problem += "; the reference alone does not";
        judged.alike = "broken memory";
      }
      record.subjects.push_back(std::move(judged));
    }
    if (whole.quirks.empty()) whole.quirks = own.quirks;
  }

  void open(std::size_t log_number) {
    log_.reset();
    log_number_ = log_number;
    if (log_number_ < arguments_.logs.size())
      log_ = must(traces::LogReader::open(path(), contracts_.kind_finder()));
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

int run_conform(const Contracts& contracts, const ConformArguments& arguments) {
  const Interruptible interruptible;
  // Of what can be read only once each worker would take a part.
  for (const std::string& log : arguments.logs) must(traces::keep_input(log));
  check_reports(arguments.report.json, arguments.report.junit, arguments.logs);
  RecordedCases cases(contracts, arguments);
  Summary summary;
  std::vector<QuirkSummary> quirks;
  Progress progress("cases");
  const auto answer = [&](std::uint64_t index) {
    const auto conformed = cases.conform(index);
    if (!conformed) return Message{Message::Kind::kAnswer, {}};
    const bool again = std::ranges::any_of(conformed->answer.record.subjects, lacks_memory);
    return Message{again ? Message::Kind::kAgain : Message::Kind::kAnswer, packed(*conformed)};
  };
  const auto isolated = [&](std::uint64_t index, const Death* first) {
    const auto conformed = cases.isolated(index, first);
    return conformed ? packed(*conformed) : std::string();
  };
  const auto lost = [&](std::uint64_t index, const Death& death) {
    return packed(
        ConformRecord{.answer = {.record = lost_record(index, death, contracts.subjects())}});
  };
  const auto take = [&](std::uint64_t /*index*/, const std::string& text) {
    if (text.empty()) return false;
    auto conformed = unpacked<ConformRecord>(text);
    tell_crashes(conformed.answer);
    summary.add(conformed.answer.record);
    count(conformed, quirks);
    progress.advance();
    return true;
  };
  Campaign campaign;
  try {
    work_in_order(
        0, CampaignOptions::kEndless, arguments.jobs, arguments.limits,
        {.answer = answer, .isolated = isolated, .lost = lost, .take = take, .waiting = [&] {
           progress.advance(0);
         }});
  } catch (const FileError& error) {
    if (summary.failed() == 0) throw;
    campaign.fault = error.what();  // what was found is told all the same
  }
  progress.clear();
  if (arguments.report.text()) print_quirks(quirks);
  boost::json::object facts;
  if (arguments.profile == Profile::kDocumented) facts["quirks"] = write_json(quirks);
  ReportOptions options_of_report = arguments.report;
  options_of_report.result = "conform";
  options_of_report.profile = arguments.profile.value_or(Profile::kOriginal);
  const int status = report(summary, options_of_report, std::move(facts));
  campaign.summary = std::move(summary);
  campaign.interrupted = interrupted();
  return end_of_campaign(campaign, "", status);
}

}  // namespace

Run declare_conform(CLI::App& app, const Contracts& contracts) {
  const auto arguments = std::make_shared<ConformArguments>();
  app.add_option("logs", arguments->logs, "operation logs, plain or gzip; -: standard input")
      ->type_name("FILE")
      ->required();
  app.add_option("--subject", arguments->words, "contracts, caches or subjects; none: all")
      ->type_name("SUBJECT");
  app.add_option("--law", arguments->law_name, "the law whose script a log is (kvoracle list)")
      ->type_name("LAW");
  declare_reports(app, arguments->report.json, arguments->report.junit);
  app.add_flag("--timings", arguments->report.timings, "a table of all operations")
      ->group(kRunningGroup);
  declare_schedules(app, arguments->schedules);
  declare_profile(app, arguments->profile);
  declare_workers(app, arguments->jobs, arguments->limits);
  return [&contracts, arguments] { return run_conform(contracts, *arguments); };
}

}  // namespace kvo::tools
