// tools/command_shrink.cpp: `kvoracle shrink`: the smallest script of a log that a subject fails.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "properties/runner/run_case.hpp"
#include "tools/campaign_options.hpp"
#include "tools/commands.hpp"
#include "tools/console.hpp"
#include "tools/crash_guard.hpp"
#include "tools/exit_status.hpp"
#include "tools/json_file.hpp"
#include "tools/not_negative.hpp"
#include "tools/program_name.hpp"
#include "tools/usage.hpp"

namespace kvo::tools {
namespace {

struct Arguments {
  std::string log;
  std::string case_name;
  std::string subject;
  std::string law_name;  // empty: that of the case
  std::string output = "-";
  std::string json;
  std::uint64_t attempts = 100'000;
  std::optional<Profile> profile;  // absent: that of the case
};

const Subject& subject_named(const Contracts& contracts, const std::string& name) {
  if (const Subject* found = contracts.find_subject(name)) return *found;
  std::vector<std::string> known;
  for (const Subject* subject : contracts.subjects()) known.push_back(subject->name());
  throw unknown_word("subject", name, known);
}

int run_shrink(const Contracts& contracts, const Arguments& arguments) {
  const Subject& subject = subject_named(contracts, arguments.subject);
  const traces::Case failing =
      must(traces::read_case(arguments.log, arguments.case_name, contracts.kind_finder()));
  if (failing.header.kind != subject.kind)
    throw UsageError(fmt::format("{} is a case of {}, not of {}", failing.header.name,
                                 failing.header.kind->name(), subject.kind->name()));
  std::string law = arguments.law_name.empty() ? failing.header.law : arguments.law_name;
  if (law.empty()) law = "agrees_with_reference";
  const CasePlan plan{.kind = subject.kind,
                      .name = failing.header.name,
                      .note = failing.header.note,
                      .setup = {.profile = arguments.profile.value_or(
                                    failing.header.profile.value_or(Profile::kOriginal)),
                                .config = failing.header.config},
                      .law = &law_named(contracts, law),
                      .baseline = &contracts.reference_of(*subject.kind),
                      .subjects = {&subject}};
  Script script;
  for (const traces::Step& step : failing.steps) script.push_back(step.op);
  const Activity activity(subject.name() + " case " + plan.name,
                          program_name() + " shrink " + arguments.log);
  if (!run_script(plan, subject, script).failed()) {
    print_error(fmt::format("{} agrees with its reference in case {}: nothing to shrink",
                            subject.name(), plan.name));
    return kExitConforms;
  }
  const Repro repro = shrink_case(plan, subject, script, {.attempts = arguments.attempts});
  if (arguments.output == "-") {
    print_out(traces::header_line(repro.script.header) + "\n");
    for (const traces::Step& step : repro.script.steps)
      print_out(traces::step_line(step.op, *step.recorded) + "\n");
  } else {
    must(traces::write_case(arguments.output, repro.script));
  }
  if (!arguments.json.empty())
    write_json_file(arguments.json, {{"subject", subject.name()},
                                     {"case", plan.name},
                                     {"operations", script.size()},
                                     {"shrunk_operations", repro.script.steps.size()},
                                     {"difference", repro.verdict.text()}});
  print_error(fmt::format("{} of {} operations are enough: {}", repro.script.steps.size(),
                          script.size(), repro.verdict.text()));
  return kExitDiffers;
}

}  // namespace

Run declare_shrink(CLI::App& app, const Contracts& contracts) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("log", arguments->log, "operation log, .jsonl or .jsonl.gz")->required();
  app.add_option("--subject", arguments->subject, "the subject that fails")->required();
  app.add_option("--case", arguments->case_name, "the case of the log; default: its first");
  app.add_option("--law", arguments->law_name,
                 "the law that is broken; default: that of the log's header");
  app.add_option("--output,-o", arguments->output, "file for the shrunk log; - for standard output")
      ->capture_default_str();
  app.add_option("--json", arguments->json, "write the verdict as JSON");
  app.add_option("--attempts", arguments->attempts, "most scripts to try")
      ->check(positive())
      ->capture_default_str();
  declare_profile(app, arguments->profile);
  return [&contracts, arguments] { return run_shrink(contracts, *arguments); };
}

}  // namespace kvo::tools
