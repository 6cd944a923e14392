// tools/commands/shrink.cpp: `kvoracle shrink`: the smallest script of a log that a subject fails.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "properties/campaign/conform.hpp"
#include "properties/contracts.hpp"
#include "properties/runner/led_reference.hpp"
#include "properties/runner/shrunk.hpp"
#include "tools/adapters/program.hpp"
#include "tools/adapters/style.hpp"
#include "tools/commands/campaign_options.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/conventions.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/not_negative.hpp"
#include "tools/commands/selection.hpp"
#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/json_file.hpp"
#include "tools/reports/result_file.hpp"
#include "tools/workers/isolated.hpp"

namespace kvo::tools {
namespace {

struct ShrinkArguments {
  std::string log;
  std::string case_name;
  std::string subject;
  std::string law_name;  // empty: that of the case
  std::string language;  // of a program; empty: a log
  std::string cache;
  std::string output = "-";
  std::string json;
  std::uint64_t attempts = 100'000;
  std::optional<Profile> profile;         // absent: that of the case
  std::optional<std::uint64_t> schedule;  // absent: that of the case
  std::vector<std::string> conventions;
  unsigned jobs = 1;
  Limits limits;
};

/// A shrunk log, as it is printed.
struct ShrunkLog {
  std::vector<std::string> lines;
  std::uint64_t operations = 0;
  std::string difference;
};
BOOST_DESCRIBE_STRUCT(ShrunkLog, (), (lines, operations, difference))

ShrunkLog shrink_with(const ShrinkOptions& options, const CasePlan& plan, const Subject& subject,
                      const Script& script) {
  const Smaller smaller = smaller_case(plan, subject, script, options);
  return {.lines = traces::lines_of(log_of(smaller, subject)),
          .operations = smaller.script.size(),
          .difference = smaller.verdict.text()};
}

// One process for all attempts; one an attempt where the subject ends it.
ShrunkLog shrink(const ShrinkArguments& arguments, const CasePlan& plan, const Subject& subject,
                 const Script& script, bool died) {
  if (!died) {
    const auto shrunk = in_process<ShrunkLog>(arguments.limits, [&] {
      return shrink_with({.attempts = arguments.attempts}, plan, subject, script);
    });
    if (const auto* whole = std::get_if<ShrunkLog>(&shrunk)) return *whole;
  }
  const auto judge = [&](const CasePlan& tried, const Subject& judged, const Script& candidate) {
    return run_script_isolated(tried, judged, candidate, arguments.limits);
  };
  return shrink_with({.attempts = arguments.attempts, .follows_handles = false, .judge = judge},
                     plan, subject, script);
}

// A difference from what was recorded where subject and reference agree; nothing if there is none.
std::optional<ShrunkLog> shrink_as_recorded(const ShrinkArguments& arguments,
                                            const Subject& subject, const traces::Case& recorded,
                                            const Setup& setup) {
  const auto excerpt = in_process<ShrunkLog>(arguments.limits, [&]() -> ShrunkLog {
    const traces::Case smaller = shrink_recorded(recorded, subject, setup);
    const Verdict verdict = run_recorded(smaller, subject, setup);
    return {.lines = traces::lines_of(smaller),
            .operations = smaller.steps.size(),
            .difference = verdict.failed() ? verdict.text() : ""};
  });
  const auto* shrunk = std::get_if<ShrunkLog>(&excerpt);
  if (shrunk == nullptr || shrunk->difference.empty()) return std::nullopt;
  return *shrunk;
}

Setup setup_of(const traces::CaseHeader& header, const ShrinkArguments& arguments) {
  Setup setup = kvo::setup_of(header, arguments.profile);
  if (arguments.schedule) setup.schedule = Schedule(*arguments.schedule);
  return setup;
}

CasePlan plan_of(const Contracts& contracts, const ShrinkArguments& arguments,
                 const Subject& subject, const traces::CaseHeader& header) {
  std::string law = arguments.law_name.empty() ? header.law : arguments.law_name;
  if (law.empty() || law == agreement().name()) law = "agrees_with_reference";
  CasePlan plan{.kind = subject.kind,
                .name = header.name,
                .note = header.note,
                .setup = setup_of(header, arguments),
                .law = &law_named(contracts, law),
                .baseline = &contracts.reference_of(*subject.kind),
                .subjects = {&subject},
                .reference_of = contracts.reference_finder(),
                .history = contracts.oracle_of(*subject.kind)};
  lead(plan);
  return plan;
}

// The shrunk log as a program, which wants what the baseline returns.
std::string as_program(const Contracts& contracts, const ShrinkArguments& arguments,
                       const CasePlan& plan, const ShrunkLog& shrunk, const std::string& lines) {
  const traces::Case failing = must(traces::read_case(
      traces::LogReader::in_memory("shrunk log", lines, contracts.kind_finder()), ""));
  if (failing.steps.empty()) throw UsageError("--as: the case fails without an operation");
  Setup setup = plan.setup;
  setup.config = failing.header.config;
  const auto session = plan.baseline->open(setup).value();
  Probe probe;
  std::vector<Observation> returned;
  for (const traces::Step& step : failing.steps) returned.push_back(session->apply(step.op, probe));
  return program_text(arguments.language, failing, setup, returned, shrunk.difference,
                      arguments.cache);
}

int run_shrink(const Contracts& contracts, const ShrinkArguments& arguments) {
  catch_interruption();
  check_outputs({{"--output", arguments.output}, {"--json", arguments.json}}, {arguments.log});
  const Subject& subject = with_conventions(contracts, arguments.conventions,
                                            subject_named(contracts, arguments.subject));
  const traces::Case failing =
      must(traces::read_case(open_log(arguments.log, contracts), arguments.case_name));
  if (failing.header.kind != subject.kind)
    throw UsageError(fmt::format("{} is a case of {}, not of {}",
                                 traces::excerpt(failing.header.name), failing.header.kind->name(),
                                 subject.kind->name()));
  const CasePlan plan = plan_of(contracts, arguments, subject, failing.header);
  Script script;
  for (const traces::Step& step : failing.steps) script.push_back(step.op);
  const Verdict verdict = run_script_isolated(plan, subject, script, arguments.limits);
  if (verdict.outcome == Outcome::kNotSupported)
    throw UsageError(fmt::format("{} does not support case {}: {}", subject.name(),
                                 traces::excerpt(plan.name), verdict.text()));
  const bool died = verdict.outcome == Outcome::kDied;
  std::optional<ShrunkLog> shrunk;
  if (verdict.failed())
    shrunk = shrink(arguments, plan, subject, script, died);
  else if (arguments.law_name.empty())
    shrunk = shrink_as_recorded(arguments, subject, failing, plan.setup);
  if (!shrunk) {
    print_error(
        fmt::format("{} agrees with its reference and the recording in case {}: nothing to "
                    "shrink",
                    subject.name(), printable(plan.name)));
    return kExitConforms;
  }
  const std::string lines = fmt::format("{}\n", fmt::join(shrunk->lines, "\n"));
  write_text_file(arguments.output, arguments.language.empty()
                                        ? lines
                                        : as_program(contracts, arguments, plan, *shrunk, lines));
  if (!arguments.json.empty())
    write_result(arguments.json, "shrink",
                 {{"subject", subject.name()},
                  {"case", plan.name},
                  {"operations", script.size()},
                  {"shrunk_operations", shrunk->operations},
                  {"judge", verdict.failed() ? "reference" : "recording"},
                  {"difference", shrunk->difference}});
  print_error(fmt::format("{} of {} operations are enough: {}{}", shrunk->operations, script.size(),
                          printable(shrunk->difference),
                          verdict.failed() ? ""
                                           : "; reference and subject agree, the recording "
                                             "differs"));
  return died ? kExitCrashed : kExitDiffers;
}

}  // namespace

Run declare_shrink(CLI::App& app, const Contracts& contracts) {
  const auto arguments = std::make_shared<ShrinkArguments>();
  app.add_option("log", arguments->log, "operation log, plain or gzip; -: standard input")
      ->type_name("FILE")
      ->required();
  app.add_option("--subject", arguments->subject, "the subject that fails")
      ->type_name("SUBJECT")
      ->required();
  app.add_option("--case", arguments->case_name, "the case of the log; default: its first")
      ->type_name("NAME");
  app.add_option("--law", arguments->law_name,
                 "the law that is broken; default: that of the log's header")
      ->type_name("LAW");
  app.add_option("--output,-o", arguments->output, "file for the shrunk log; - for standard output")
      ->type_name("FILE")
      ->capture_default_str()
      ->group(kRunningGroup);
  app.add_option("--as", arguments->language, "write a program that fails, in this language")
      ->check(CLI::IsMember(
          std::vector<std::string>(program_languages().begin(), program_languages().end())))
      ->group(kRunningGroup);
  app.add_option("--style", arguments->language,
                 "write a test that fails, in the style of the project that has the cache")
      ->check(CLI::IsMember(style_names()))
      ->excludes("--as")
      ->group(kRunningGroup);
  app.add_option("--cache", arguments->cache,
                 "of --as: where the program gets the cache from, in Python MODULE:CLASS")
      ->group(kRunningGroup);
  app.add_option("--json", arguments->json, "write the verdict as JSON; - for standard output")
      ->type_name("FILE")
      ->group(kRunningGroup);
  app.add_option("--attempts", arguments->attempts, "most scripts to try")
      ->check(positive())
      ->capture_default_str()
      ->group(kExtentGroup);
  app.add_option("--schedule", arguments->schedule,
                 "seed of the schedule of a simulated device; default: that of the case")
      ->type_name("SEED")
      ->check(not_negative())
      ->group(kExtentGroup);
  declare_profile(app, arguments->profile, "that of the log, else original");
  declare_conventions(app, arguments->conventions);
  declare_workers(app, arguments->jobs, arguments->limits);
  return [&contracts, arguments] { return run_shrink(contracts, *arguments); };
}

}  // namespace kvo::tools
