// tools/commands/record.cpp: `kvoracle record`: what a cache answers to random operations, as an
// operation log.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "properties/campaign/random_case.hpp"
#include "tools/commands/campaign_options.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/not_negative.hpp"
#include "tools/commands/selection.hpp"
#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/quantities.hpp"
#include "tools/workers/isolated.hpp"
#include "tools/workers/journal.hpp"

namespace kvo::tools {
namespace {

struct RecordArguments {
  std::vector<std::string> subjects;
  std::string output = "-";
  std::uint64_t seed = 1;
  std::uint64_t cases = 100;
  Profile profile = Profile::kOriginal;
  Limits limits;
};

// The operations of a plan, as its baseline's answers lead to them, with the subject's answers.
// None where the subject refuses the setup.
traces::Case answered_case(const CasePlan& plan, const Subject& subject, traces::CaseHeader header,
                           const Journal& journal) {
  traces::Case recorded{.header = std::move(header)};
  const auto led = plan.baseline->open(plan.setup).value();
  const auto session = subject.open(plan.setup);
  if (!session) return recorded;
  const auto ops = journal.writing(plan.ops());
  Probe probe;
  Labels unused;
  while (const auto op = ops->next()) {
    Observation seen = (*session)->apply(*op, probe);
    if (seen.unsupported) break;
    const bool over = seen.failed_with(Code::kDied) || seen.failed_with(Code::kThrew);
    if (seen.failed_with(Code::kDied)) recorded.header.note = "died: " + seen.error->detail;
    recorded.steps.push_back({.op = *op});
    if (!over) recorded.steps.back().recorded = std::move(seen);
    if (over) break;
    ops->observe(*op, led->apply(*op, probe), unused);
  }
  return recorded;
}

/// What a process hands over of a case.
struct RecordedCase {
  std::vector<std::string> lines;
  std::uint64_t operations = 0;
  std::string died;
};
BOOST_DESCRIBE_STRUCT(RecordedCase, (), (lines, operations, died))

RecordedCase recorded_case(const CasePlan& plan, const Subject& subject, const Limits& limits) {
  const traces::CaseHeader header{.kind = plan.kind,
                                  .system = subject.name(),
                                  .version = KVO_VERSION,
                                  .name = plan.name,
                                  .profile = plan.setup.profile,
                                  .config = plan.setup.config};
  const Journal journal;
  const auto made = in_process<RecordedCase>(limits, [&]() -> RecordedCase {
    const traces::Case recorded = answered_case(plan, subject, header, journal);
    return {traces::lines_of(recorded), recorded.steps.size(), recorded.header.note};
  });
  if (const auto* whole = std::get_if<RecordedCase>(&made)) return *whole;
  traces::Case begun{.header = header};
  begun.header.note = "died: " + std::get<Death>(made).how;
  for (Op& op : journal.script(*plan.kind, plan.setup))
    begun.steps.push_back({.op = std::move(op)});
  return {traces::lines_of(begun), begun.steps.size(), begun.header.note};
}

int run_record(const Contracts& contracts, const RecordArguments& arguments) {
  catch_interruption();
  check_outputs({{"--output", arguments.output}}, {});
  std::vector<const Subject*> subjects;
  for (const Comparison& comparison : select_subjects(contracts, arguments.subjects)) {
    if (contracts.generator_of(*comparison.kind) == nullptr)
      throw UsageError(fmt::format("{} has no random cases", comparison.kind->name()));
    subjects.insert(subjects.end(), comparison.subjects.begin(), comparison.subjects.end());
    if (comparison.subjects.empty()) subjects.push_back(comparison.reference);
  }
  std::string log;
  std::uint64_t operations = 0;
  std::uint64_t cases = 0;
  std::string died;
  const Law& law = *contracts.find_law("agrees_with_reference");
  for (std::uint64_t index = 0; index < arguments.cases; ++index) {
    const Subject& subject = *subjects[index % subjects.size()];
    const std::uint64_t nth = index / subjects.size();
    const CasePlan plan = random_case(contracts, law, {&subject}, arguments.seed, index,
                                      arguments.profile, scale_of(law, nth));
    const RecordedCase one = recorded_case(plan, subject, arguments.limits);
    if (one.operations == 0) continue;
    ++cases;
    log += fmt::format("{}\n", fmt::join(one.lines, "\n"));
    operations += one.operations;
    if (died.empty()) died = one.died;
  }
  write_text_file(arguments.output, log);
  print_error(
      fmt::format("{} of {}", count_text(operations, "operation"), count_text(cases, "case")));
  if (died.empty()) return kExitConforms;
  print_error(printable(died));
  return kExitCrashed;
}

}  // namespace

Run declare_record(CLI::App& app, const Contracts& contracts) {
  const auto arguments = std::make_shared<RecordArguments>();
  app.add_option("subjects", arguments->subjects, "the caches that answer")
      ->type_name("SUBJECT")
      ->required();
  app.add_option("--output,-o", arguments->output, "file for the log; - for standard output")
      ->type_name("FILE")
      ->capture_default_str()
      ->group(kRunningGroup);
  app.add_option("--seed", arguments->seed, "the same seed gives the same operations")
      ->check(not_negative())
      ->capture_default_str();
  app.add_option("--cases", arguments->cases, "random cases")
      ->check(positive())
      ->capture_default_str()
      ->group(kExtentGroup);
  declare_profile(app, arguments->profile);
  declare_limits(app, arguments->limits);
  return [&contracts, arguments] { return run_record(contracts, *arguments); };
}

}  // namespace kvo::tools
