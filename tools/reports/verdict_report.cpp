#include "tools/reports/verdict_report.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "properties/runner/law.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/program_name.hpp"
#include "tools/reports/brief_report.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/failure_text.hpp"
#include "tools/reports/found_or_added.hpp"
#include "tools/reports/json_file.hpp"
#include "tools/reports/quantities.hpp"
#include "tools/reports/result_file.hpp"

namespace kvo::tools {
namespace {

using State = JunitTest::State;

// Text is wrapped at so many columns.
constexpr std::size_t kBriefColumns = 110;

// Of cases, with what it lies between where that is known.
std::string optional_ratio(const std::optional<float>& ratio,
                           const std::optional<float>& low = std::nullopt,
                           const std::optional<float>& high = std::nullopt) {
  return ratio ? interval_text(*ratio, low, high) : "";
}

std::string subjects_table(const std::vector<SubjectSummary>& subjects) {
  Table table({column("subject"), numbers("cases", 1), numbers("operations", 3),
               numbers("mismatches"), numbers("broken"), numbers("died"),
               numbers("not supported", 2), numbers("time / reference", 4)});
  const Paint paint(stdout);
  const auto faults = [&](std::uint64_t count) {
    return count == 0 ? "0" : paint(Colour::kRed, count_text(count));
  };
  for (const SubjectSummary& subject : subjects) {
    table.row({subject.subject, count_text(subject.cases), count_text(subject.operations),
               faults(subject.mismatches), faults(subject.broken), faults(subject.died),
               subject.not_supported == 0 ? "" : count_text(subject.not_supported),
               optional_ratio(subject.time_ratio, subject.ratio_low, subject.ratio_high)});
  }
  return table.text(0, output_columns());
}

std::string timings_table(const std::vector<SubjectSummary>& subjects) {
  Table table({column("subject"), column("operation"), numbers("count", 3), numbers("total", 5),
               numbers("median"), numbers("99 %", 2), numbers("payload", 6), numbers("rate", 4),
               numbers("/ reference", 1), numbers("/ memcpy", 7)});
  for (const SubjectSummary& subject : subjects) {
    for (const OperationSummary& row : subject.timings) {
      const bool view = row.ratio_to_memcpy && *row.ratio_to_memcpy < kViewOverMemcpy;
      const auto time = [&](std::uint64_t measured) {
        return row.total_nanoseconds == 0 ? "" : duration_text(static_cast<double>(measured));
      };
      table.row({subject.subject, row.op, count_text(row.count), time(row.total_nanoseconds),
                 time(row.median_nanoseconds), time(row.p99_nanoseconds),
                 row.payload_bytes == 0 ? "" : bytes_text(row.payload_bytes),
                 row.payload_bytes == 0 || row.total_nanoseconds == 0 ? ""
                 : view                                               ? "view"
                        : throughput_text(static_cast<double>(row.payload_bytes),
                                          static_cast<double>(row.total_nanoseconds)),
                 optional_ratio(row.ratio_to_reference, row.ratio_low, row.ratio_high),
                 view ? "" : optional_ratio(row.ratio_to_memcpy)});
    }
  }
  return table.text(0, output_columns());
}

std::string laws_table(const std::vector<LawSummary>& laws) {
  Table table({column("law"), numbers("cases"), numbers("operations", 2), numbers("compared", 1),
               numbers("rows judged", 1), numbers("rows skipped", 3),
               numbers("failures injected", 1), numbers("retried, deferred, skipped", 4),
               column("")});
  const Paint paint(stdout);
  const auto ways = [](const Evidence& evidence) {
    if (evidence.failures == 0) return std::string();
    return fmt::format("{}, {}, {}", count_text(evidence.retried), count_text(evidence.deferred),
                       count_text(evidence.skipped));
  };
  for (const LawSummary& law : laws)
    table.row({law.law, count_text(law.cases), count_text(law.operations),
               count_text(law.evidence.compared), count_text(law.evidence.rows_judged),
               count_text(law.evidence.rows_skipped), count_text(law.evidence.failures),
               ways(law.evidence), law.vacuous ? paint(Colour::kRed, "vacuous") : ""});
  return table.text(0, output_columns());
}

std::string figures_table(const std::vector<FigureSummary>& figures) {
  constexpr double kPercent = 100;
  Table table({column("cache"), column("figure"), numbers("value"), numbers("share", 1)});
  for (const FigureSummary& figure : figures)
    table.row({figure.kind, printable(figure.figure),
               figure.value < 0 ? fmt::to_string(figure.value)
                                : count_text(static_cast<std::uint64_t>(figure.value)),
               figure.share ? fmt::format("{:.2f} %", kPercent * *figure.share) : ""});
  return table.text(0, output_columns());
}

// What equal runs have in common.
boost::json::array verdicts_json(const std::vector<SubjectSummary>& subjects) {
  boost::json::array rows;
  for (const SubjectSummary& subject : subjects) {
    boost::json::object row = write_json(subject).as_object();
    row.erase("timings");
    for (const char* time : {"time_ratio", "ratio_low", "ratio_high"}) row.erase(time);
    rows.push_back(std::move(row));
  }
  return rows;
}

// What they have not.
boost::json::array timings_json(const std::vector<SubjectSummary>& subjects) {
  boost::json::array rows;
  for (const SubjectSummary& subject : subjects)
    rows.push_back({{"subject", subject.subject},
                    {"time_ratio", write_json(subject.time_ratio)},
                    {"ratio_low", write_json(subject.ratio_low)},
                    {"ratio_high", write_json(subject.ratio_high)},
                    {"operations", write_json(subject.timings)}});
  return rows;
}

/// What is reported, and how.
struct Reporting {
  const Contracts& contracts;
  const Summary& summary;
  const ReportOptions& options;
};

// The command that repeats a failure, or nothing.
std::string repeat_text(const FailureSummary& failure, const ReportOptions& options) {
  const SubjectResult& result = failure.result;
  if (!result.repro) return result.repeat.value_or("");
  const std::string law = result.last_law(failure.law);
  const bool plain = law == agreement().name();  // as logs are compared
  std::string files;
  for (const std::string& file : options.convention_files)
    files += " --conventions " + shell_word(file);
  return fmt::format("{} conform {} --subject {}{}{}{}", program_name(), shell_word(*result.repro),
                     shell_word(result.subject), plain ? "" : " --law " + law,
                     options.profile == Profile::kDocumented ? " --profile documented" : "", files);
}

std::string_view law_doc(const Contracts& contracts, const std::string& name) {
  const Law* law = name == agreement().name() ? &agreement() : contracts.find_law(name);
  return law != nullptr ? law->doc() : "";
}

std::vector<std::string> failure_lines(const Reporting& of, const FailureSummary& failure) {
  std::vector<std::string> lines =
      failure_text({failure.name, failure.law, failure.operations, failure.config.value_or("{}")},
                   failure.result, law_doc(of.contracts, failure.result.last_law(failure.law)));
  if (const std::string command = repeat_text(failure, of.options); !command.empty())
    lines.push_back(std::string(kRepeatWith) + command);
  return lines;
}

// Whether only the answer to a refused call differs.
bool may_be_convention(const Verdict& verdict) {
  return verdict.differs_in_error() && !verdict.difference.want.starts_with("no error");
}

/// Failures of one subject with one symptom: that of the simplest law, and the others.
struct Cause {
  const FailureSummary* shown = nullptr;
  std::vector<const FailureSummary*> others = {};
};

std::vector<Cause> causes_of(const Summary& summary) {
  const auto rank = [&](const FailureSummary* failure) {
    const std::string law = failure->result.last_law(failure->law);
    return std::ranges::find(summary.laws(), law, &LawSummary::law) - summary.laws().begin();
  };
  std::vector<Cause> causes;
  for (const FailureSummary& failure : summary.failures()) {
    const auto known = std::ranges::find_if(causes, [&](const Cause& cause) {
      return cause.shown->result.subject == failure.result.subject &&
             cause.shown->result.last_verdict().symptom() ==
                 failure.result.last_verdict().symptom();
    });
    if (known == causes.end()) {
      causes.push_back({&failure});
    } else {
      const FailureSummary* other = &failure;
      if (rank(other) < rank(known->shown)) std::swap(other, known->shown);
      known->others.push_back(other);
    }
  }
  // Faults first: lawful differences would hide them.
  std::stable_partition(causes.begin(), causes.end(), [](const Cause& cause) {
    return !may_be_convention(cause.shown->result.last_verdict());
  });
  return causes;
}

// Of one subject so many failures are shown with their scripts, the others on a line each.
constexpr std::size_t kMostWhole = 3;

std::string cause_line(const FailureSummary& failure) {
  const SubjectResult& result = failure.result;
  return fmt::format("{} in {}, by law {}: {}{}", result.subject, count_text(failure.cases, "case"),
                     result.last_law(failure.law), result.last_verdict().text(),
                     result.repro ? ": " + *result.repro : "");
}

// A failure as a block of lines that are fit to print; the first begins with `failed`.
std::vector<std::string> block_of(const Reporting& of, const Cause& cause,
                                  std::string_view failed) {
  const FailureSummary& failure = *cause.shown;
  std::vector<std::string> block{fmt::format("{} {} in {}", failed, failure.result.subject,
                                             count_text(failure.cases, "case"))};
  for (const std::string& line : failure_lines(of, failure))
    block.push_back("  " +
                    (line.starts_with(kRepeatWith) ? printable_command(line) : printable(line)));
  for (const FailureSummary* other : cause.others)
    block.push_back(printable(fmt::format(
        "  law {} fails alike in {}{}", other->result.last_law(other->law),
        count_text(other->cases, "case"), other->result.repro ? ": " + *other->result.repro : "")));
  return block;
}

void print_failures(const Reporting& of) {
  const Summary& summary = of.summary;
  const std::string failed = Paint(stdout)(Colour::kRed, "FAILED");
  std::map<std::string, std::size_t> whole;
  std::vector<std::string> further;
  const std::vector<Cause> causes = causes_of(summary);
  for (const Cause& cause : causes)
    if (whole[cause.shown->result.subject]++ < kMostWhole)
      print_out(fmt::format("\n{}\n", fmt::join(block_of(of, cause, failed), "\n")));
    else
      further.push_back(cause_line(*cause.shown));
  if (!further.empty()) print_out("\nfurther failures of these subjects:\n");
  for (const std::string& line : further) print_out(fmt::format("  {}\n", printable(line)));
  for (const auto& [subject, shown] : whole)
    if (const Subject* judged = of.contracts.find_subject(subject);
        judged != nullptr && judged->guest && !judged->conventions.any() &&
        std::ranges::any_of(causes, [&, subject = subject](const Cause& cause) {
          return cause.shown->result.subject == subject &&
                 may_be_convention(cause.shown->result.last_verdict());
        }))
      print_out("\n" +
                wrapped(fmt::format("{} answers calls that the rules refuse in its own way. If "
                                    "that is lawful: {} learn {}",
                                    subject, program_name(), subject),
                        output_columns(), 2) +
                "\n");
  if (summary.failures().size() == Summary::kMostFailures)
    print_out(fmt::format("\nat most {} kinds of failures are shown; {} failed\n",
                          Summary::kMostFailures, count_text(summary.failed(), "case")));
}

constexpr double kMostUnsupported = 0.1;

double unsupported_share(const SubjectSummary& subject) {
  return static_cast<double>(subject.not_supported) /
         std::max(static_cast<double>(subject.cases), 1.0);
}

// A subject that takes no part in many cases.
bool lacks_verdict(const SubjectSummary& subject) {
  constexpr std::uint64_t kLeastCases = 10;
  return subject.cases >= kLeastCases && unsupported_share(subject) > kMostUnsupported;
}

// The verdict on each subject that has conventions: how many, and its faults.
void print_verdicts(const Reporting& of) {
  constexpr std::size_t kMostRows = 6;
  const std::vector<Cause> causes = causes_of(of.summary);
  const std::vector<SubjectSummary> subjects = of.summary.subjects(false);
  for (const ShownConventions& shown : of.options.conventions) {
    const auto judged = std::ranges::find(subjects, shown.subject, &SubjectSummary::subject);
    if (judged != subjects.end() && lacks_verdict(*judged)) continue;
    std::vector<std::string> faults;
    for (const Cause& cause : causes)
      if (cause.shown->result.subject == shown.subject)
        faults.push_back(cause.shown->result.last_verdict().text());
    const std::size_t rows = shown.rows.size();
    std::string text =
        fmt::format("{} {} to {}, profile {}, under {}: {}", shown.subject,
                    faults.empty() ? "conforms" : "does not conform", shown.contract,
                    of.options.profile == Profile::kOriginal ? "original" : "documented",
                    count_text(rows, "convention"),
                    fmt::join(std::span(shown.rows).first(std::min(rows, kMostRows)), "; "));
    if (rows > kMostRows) text += fmt::format("; and {} more", rows - kMostRows);
    if (!faults.empty())
      text += fmt::format(". {}: {}", count_text(faults.size(), "fault"), faults.front());
    print_out("\n" + wrapped(printable(text, 2'000), output_columns(), 2) + "\n");
  }
}

void print_firsts(const std::vector<FailureSummary>& firsts, std::string_view what) {
  for (const FailureSummary& first : firsts)
    print_out(fmt::format("\n{} {} case {}\n  {}\n", first.result.subject, what,
                          printable(first.name), printable(first.result.verdict.text())));
}

void add_failure(const Reporting& of, const FailureSummary& failure, JunitTest& test) {
  if (test.message.empty()) test.message = failure.result.last_verdict().text();
  auto& lines = test.details;
  if (!lines.empty()) lines.emplace_back();
  lines.push_back(count_text(failure.cases, "case"));
  for (std::string& line : failure_lines(of, failure)) lines.push_back(std::move(line));
}

// Why nothing was judged.
std::string idle_text(const Summary& summary, const LawVerdict& verdict) {
  const auto first = std::ranges::find_if(summary.unsupported(), [&](const FailureSummary& row) {
    return row.result.subject == verdict.subject && row.law == verdict.law;
  });
  return first != summary.unsupported().end() ? first->result.verdict.text()
                                              : "nothing was compared or judged";
}

// A test fails with every kind of failure that was kept of its subject and law, shrunk script and
// repeat command; it is an error if the subject died, or the law judged nothing in the whole run,
// and skipped if the law judged nothing of this subject.
JunitTest test_of(const Reporting& of, const LawVerdict& verdict) {
  const auto& [contracts, summary, options] = of;
  JunitTest test{.name = verdict.law};
  if (options.timings) test.seconds = static_cast<double>(verdict.nanoseconds) / 1e9;
  if (verdict.failed > 0) {
    test.state = verdict.died > 0 ? State::kError : State::kFailed;
    for (const FailureSummary& failure : summary.failures())
      if (failure.result.subject == verdict.subject &&
          std::ranges::find(failure.laws, verdict.law) != failure.laws.end())
        add_failure(of, failure, test);
    if (test.message.empty())
      test.message =
          fmt::format("{} of {} cases failed; others are told", verdict.failed, verdict.cases);
  } else if (verdict.judged == 0) {
    const auto law = std::ranges::find(summary.laws(), verdict.law, &LawSummary::law);
    test.state = law->vacuous ? State::kError : State::kSkipped;
    test.message = idle_text(summary, verdict);
  }
  return test;
}

// A suite a subject, a test a law, and behind them the suites of the options.
std::vector<JunitSuite> junit_suites(const Reporting& of) {
  std::vector<JunitSuite> suites;
  for (const LawVerdict& verdict : of.summary.law_verdicts()) {
    found_or_added(suites, {verdict.subject}, &JunitSuite::name)
        .tests.push_back(test_of(of, verdict));
  }
  suites.insert(suites.end(), of.options.suites.begin(), of.options.suites.end());
  return suites;
}

// No green without evidence: in words why a run proved nothing, or nothing.
std::string missing_evidence(const Summary& summary) {
  if (summary.cases() == 0) return "there was no case: nothing was compared";
  std::string vacuous;
  for (const LawSummary& law : summary.laws())
    if (law.vacuous) vacuous += (vacuous.empty() ? "" : ", ") + law.law;
  return vacuous.empty() ? "" : "nothing was compared or judged: " + vacuous + " is vacuous";
}

int status_of(const Summary& summary, const ReportOptions& options, bool unjudged) {
  if (summary.died() > 0) return kExitCrashed;
  if (summary.failed() > 0) return kExitDiffers;
  if (unjudged || !missing_evidence(summary).empty()) return kExitUsage;
  return summary.out_of_memory() > 0 && options.memory_matters ? kExitUsage : kExitConforms;
}

}  // namespace

std::function<std::vector<std::string>(const Summary&)> first_failure_text(
    const Contracts& contracts, const ReportOptions& options) {
  return [&contracts, options](const Summary& summary) {
    const std::vector<Cause> causes = causes_of(summary);
    if (causes.empty()) return std::vector<std::string>();
    auto block = block_of({contracts, summary, options}, causes.front(), "FAILED");
    block.insert(block.begin(), "first failure; the campaign goes on:");
    return block;
  };
}

bool ReportOptions::text() const {
  return json != kStandardOutput && junit != kStandardOutput;
}

// Of subjects without a verdict: why, a line a subject.
std::vector<std::string> too_few_judged(const std::vector<SubjectSummary>& subjects) {
  constexpr double kPercent = 100;
  std::vector<std::string> lines;
  for (const SubjectSummary& subject : subjects)
    if (lacks_verdict(subject))
      lines.push_back(fmt::format(
          "{}: no verdict: {} of {} ({:.0f} %) ended because the subject answered not_supported, "
          "and at most {:.0f} % may",
          subject.subject, count_text(subject.not_supported), count_text(subject.cases, "case"),
          kPercent * unsupported_share(subject), kPercent * kMostUnsupported));
  return lines;
}

// Cases that a convention ends early judge only what comes before.
std::vector<std::string> ended_early(const std::vector<SubjectSummary>& subjects) {
  std::vector<std::string> lines;
  for (const SubjectSummary& subject : subjects)
    if (subject.ended > 0)
      lines.push_back(fmt::format(
          "{}: {} of {} ended at a call that the rules refuse and its "
          "conventions allow; it agreed before",
          subject.subject, count_text(subject.ended), count_text(subject.cases, "case")));
  return lines;
}

void print_brief(const Reporting& of, const std::vector<SubjectSummary>& subjects) {
  print_out(verdict_line(of.summary, subjects) + "\n" + contracts_table(subjects) + "\n");
  if (const std::string slower = slower_text(slower_operations(subjects)); !slower.empty())
    print_out(wrapped(slower, std::min(output_columns(), kBriefColumns), 2) + "\n");
}

void print_tables(const Reporting& of, const std::vector<SubjectSummary>& subjects) {
  const auto& [contracts, summary, options] = of;
  if (options.brief) print_brief(of, subjects);
  if (options.timings && (options.timings_table || !options.brief))
    print_out((options.brief ? "\n" : "") + timings_table(subjects) + "\n");
  if (!options.brief || options.subjects) print_out(subjects_table(subjects));
  if (options.laws) print_out("\n" + laws_table(summary.laws()));
  if (const auto figures = summary.figures(); options.figures && !figures.empty())
    print_out("\n" + figures_table(figures));
  for (const std::string& line : ended_early(subjects))
    print_out(wrapped(line, std::min(output_columns(), kBriefColumns), 2) + "\n");
  for (const std::string& note : options.notes)
    print_out(wrapped(printable(note), std::min(output_columns(), kBriefColumns), 2) + "\n");
  print_failures(of);
  print_verdicts(of);
  print_firsts(summary.unsupported(), "does not support");
  if (options.memory_matters) print_firsts(summary.without_memory(), "was out of memory in");
  if (options.brief) return;
  std::uint64_t operations = 0;
  std::uint64_t faults = 0;
  for (const SubjectSummary& subject : subjects) {
    operations += subject.operations;
    faults += subject.mismatches + subject.broken + subject.died;
  }
  const std::uint64_t played = summary.played_cases();
  print_out(fmt::format(
      "\n{}{}, {}, {}\n", count_text(summary.cases(), "case"),
      played < summary.cases() ? fmt::format(", {} with a chosen subject", count_text(played)) : "",
      count_text(operations, "operation"), count_text(faults, "mismatch")));
}

int report(const Contracts& contracts, const Summary& summary, const ReportOptions& options,
           boost::json::object facts) {
  const Reporting reporting{contracts, summary, options};
  const bool beside_memcpy =
      options.timings && (!options.brief || options.timings_table || !options.json.empty());
  const auto subjects = summary.subjects(beside_memcpy);
  if (options.text()) print_tables(reporting, subjects);
  const std::vector<std::string> unjudged = too_few_judged(subjects);
  for (const std::string& line : unjudged) print_error(line);
  const bool without_memory = summary.out_of_memory() > 0 && options.memory_matters;
  if (without_memory)
    print_error(fmt::format("{} asks for more memory than a case may have (--case-memory) in {}",
                            summary.without_memory().front().result.subject,
                            summary.without_memory().front().name));
  // Last: what cannot be written must not keep what can be read.
  if (!options.json.empty()) {
    if (!options.conventions.empty()) facts["conventions"] = write_json(options.conventions);
    facts["cases"] = summary.cases();
    facts["failed_cases"] = summary.failed();
    facts["subjects"] = verdicts_json(subjects);
    facts["failures"] = write_json(summary.failures());
    facts["unsupported"] = write_json(summary.unsupported());
    facts["labels"] = write_json(summary.labels());
    facts["figures"] = write_json(summary.figures());
    facts["laws"] = write_json(summary.laws());
    if (options.timings) facts["timings"] = timings_json(subjects);
    write_result(options.json, options.result, facts);
  }
  if (!options.junit.empty())
    write_junit(options.junit, fmt::format("{} {}", program_name(), options.result),
                junit_suites(reporting));
  const std::string missing = missing_evidence(summary);
  if (!missing.empty() && summary.failed() == 0 && !without_memory) print_error(missing);
  return status_of(summary, options, !unjudged.empty());
}

}  // namespace kvo::tools
