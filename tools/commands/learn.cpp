// tools/commands/learn.cpp: `kvoracle learn`: in what a cache lawfully differs from its contract.
#include "properties/campaign/learn.hpp"

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tools/commands/campaign_options.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/convention_table.hpp"
#include "tools/commands/diff.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/not_negative.hpp"
#include "tools/commands/program_name.hpp"
#include "tools/commands/selection.hpp"
#include "tools/commands/usage.hpp"
#include "tools/commands/word_option.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/json_file.hpp"
#include "tools/reports/quantities.hpp"
#include "tools/reports/result_file.hpp"
#include "tools/workers/isolated.hpp"
#include "traces/log/case_notation.hpp"
#include "traces/log/conventions_file.hpp"

namespace kvo::tools {
namespace {

struct LearnArguments {
  std::string subject;
  std::string output;
  std::string json;
  std::string markdown;
  SurveyTerms terms;
  Limits limits;
};

/// A convention with the shortest script found that shows it.
struct Proof {
  std::string convention;
  std::uint64_t case_index = 0;
  std::vector<std::string> script = {};
};
BOOST_DESCRIBE_STRUCT(Proof, (), (convention, case_index, script))

const Subject& learning_subject(const Contracts& contracts, const std::string& name) {
  const Subject& subject = subject_named(contracts, name);
  if (contracts.generator_of(*subject.kind) == nullptr)
    throw UsageError(fmt::format("{} has no random cases", subject.kind->name()));
  return subject;
}

// What make() gives in a process of its own. Throws UsageError: it died.
template <class T>
T made_isolated(const LearnArguments& arguments, const std::function<T()>& make) {
  auto made = in_process<T>(arguments.limits, make);
  if (const auto* death = std::get_if<Death>(&made))
    throw UsageError(fmt::format("{} {}: `{} check {}` shows where", arguments.subject, death->how,
                                 program_name(), arguments.subject));
  return std::get<T>(std::move(made));
}

// A cache that crashes at calls of no use is surveyed without them.
Survey surveyed(const Contracts& contracts, const Subject& subject, LearnArguments& arguments) {
  const auto survey = [&] { return survey_of(contracts, subject, arguments.terms); };
  auto made = in_process<Survey>(arguments.limits, survey);
  if (auto* whole = std::get_if<Survey>(&made)) return std::move(*whole);
  print_note(fmt::format("{} {} at calls that make no sense: they are left out", arguments.subject,
                         std::get<Death>(made).how));
  arguments.terms.plain = false;
  return made_isolated<Survey>(arguments, survey);
}

/// Makes the proofs of one subject's conventions.
class Prover {
 public:
  Prover(const Contracts& contracts, const Subject& subject, const SurveyTerms& terms,
         const Survey& survey, const Learned& learned)
      : contracts_(contracts),
        subject_(subject),
        terms_(terms),
        survey_(survey),
        all_(learned.conventions()) {}

  [[nodiscard]] Proof of(const LearnedConvention& shown) const {
    Subject without = subject_;
    without.conventions = all_;
    std::erase_if(without.conventions.refusals, [&](const RefusalConvention& row) {
      return traces::convention_text(row) == traces::convention_text(shown.row);
    });
    return surveyed(traces::convention_text(shown.row), without, shown.shown.round,
                    shown.shown.case_index, shown.shown.op_index);
  }
  [[nodiscard]] Proof of(const SurveyedName& shown) const {
    Subject without = subject_;
    without.conventions = all_;
    std::erase(without.conventions.named, shown.name);
    if (shown.name != kNoPromiseAfterFailedAllocation)
      return surveyed(shown.name, without, shown.round, shown.case_index, shown.op_index);
    CasePlan plan = failing_case(contracts_, without, terms_, shown.case_index);
    constexpr std::uint64_t kAll = 1'000;
    Script script = script_until(plan, kAll);
    return proof(shown.name, std::move(plan), without, shown.case_index, std::move(script));
  }

 private:
  // The script that leads there, made smaller on the subject with all other conventions.
  [[nodiscard]] Proof surveyed(const std::string& name, const Subject& without, std::uint64_t round,
                               std::uint64_t number, std::uint64_t op) const {
    Subject as_surveyed = subject_;
    as_surveyed.conventions = survey_.rounds[round];
    CasePlan plan = surveyed_case(contracts_, as_surveyed, terms_, number);
    Script script = script_until(plan, op);
    if (!chooses(without.conventions, *without.kind) && plan.led != nullptr) {
      plan.led.reset();
      plan.baseline = &contracts_.reference_of(*subject_.kind);
    }
    return proof(name, std::move(plan), without, number, std::move(script));
  }
  static Proof proof(const std::string& name, CasePlan plan, const Subject& without,
                     std::uint64_t number, Script script) {
    constexpr std::uint64_t kAttempts = 2'000;
    plan.subjects = {&without};
    Proof made{name, number};
    const Smaller smaller =
        smaller_case(plan, without, std::move(script),
                     {.attempts = kAttempts, .time = std::chrono::duration<double>(1)});
    for (const Op& op : smaller.script) made.script.push_back(traces::operation_text(op));
    return made;
  }

  const Contracts& contracts_;
  const Subject& subject_;
  const SurveyTerms& terms_;
  const Survey& survey_;
  Conventions all_;
};

std::string answers_text(const SurveyedRefusal& refusal) {
  std::string text =
      fmt::format("{}, where the rules refuse it as {}{}: ", refusal.operation, refusal.wanted,
                  refusal.because.empty() ? "" : " (" + refusal.because + ")");
  for (const SurveyedAnswer& answer : refusal.answers)
    text += fmt::format("{}{} {}", &answer == &refusal.answers.front() ? "" : ", ",
                        answer.given.value_or("carried out"), count_text(answer.times, "time"));
  return text;
}

void print_proofs(const Learned& learned, const std::vector<Proof>& proofs) {
  for (const Proof& proof : proofs) {
    print_out(printable(proof.convention) + "\n");
    for (const std::string& line : proof.script) print_out("    " + printable(line, 120) + "\n");
  }
  for (const std::string& operation : learned.without) print_out("without " + operation + "\n");
  for (const ConfigConvention& row : learned.configs)
    print_out(printable(traces::convention_text(row)) + "\n");
}

// Beside what random cases show: whether failed allocations leave something behind.
void add_failed_allocations(const Contracts& contracts, const Subject& subject,
                            const LearnArguments& arguments, Learned& learned) {
  using Found = std::vector<std::uint64_t>;  // none, or one
  const auto made = in_process<Found>(arguments.limits, [&] {
    const auto shown =
        failed_allocation_shows(contracts, subject, learned.conventions(), arguments.terms);
    return shown ? Found{*shown} : Found();
  });
  if (const auto* found = std::get_if<Found>(&made); found != nullptr && !found->empty())
    learned.named.push_back({std::string(kNoPromiseAfterFailedAllocation), 0, found->front(), 0});
}

int run_learn(const Contracts& contracts, LearnArguments& arguments) {
  catch_interruption();
  check_outputs({{"--output", arguments.output},
                 {"--json", arguments.json},
                 {"--markdown", arguments.markdown}},
                {});
  const Subject& subject = learning_subject(contracts, arguments.subject);
  if (&subject == &contracts.reference_of(*subject.kind)) {
    if (!arguments.output.empty() || !arguments.markdown.empty())
      throw UsageError(fmt::format("{}: a reference has quirks, and no conventions",
                                   arguments.output.empty() ? "--markdown" : "--output"));
    return report_quirks(contracts, subject, arguments.terms.seed, arguments.terms.cases,
                         arguments.json, arguments.limits);
  }
  const Survey survey = surveyed(contracts, subject, arguments);
  if (survey.cases == 0) throw UsageError(arguments.subject + " takes part in no random case");
  Learned learned = learned_from(survey);
  // A cache with another difference may show that one in the order of these cases.
  if (survey.differing == 0 && learned.undecided.empty())
    add_failed_allocations(contracts, subject, arguments, learned);
  const auto proofs = made_isolated<std::vector<Proof>>(arguments, [&] {
    std::vector<Proof> all;
    const Prover prover(contracts, subject, arguments.terms, survey, learned);
    for (const LearnedConvention& one : learned.refusals) all.push_back(prover.of(one));
    for (const SurveyedName& one : learned.named) all.push_back(prover.of(one));
    return all;
  });
  std::vector<std::string> undecided;
  for (const SurveyedRefusal& refusal : learned.undecided)
    undecided.push_back(answers_text(refusal));
  const std::string text =
      traces::conventions_text({.kind = subject.kind, .conventions = learned.conventions()});
  const bool prints = arguments.json != kStandardOutput && arguments.output != kStandardOutput &&
                      arguments.markdown != kStandardOutput;
  if (prints) {
    print_out(fmt::format("{}, profile {}: {}, {}\n", arguments.subject,
                          word_of(arguments.terms.profile), count_text(survey.cases, "case"),
                          count_text(survey.operations, "operation")));
    print_out(fmt::format(
        "{}\n",
        count_text(proofs.size() + learned.without.size() + learned.configs.size(), "convention")));
    print_proofs(learned, proofs);
    for (const std::string& line : undecided)
      print_out(wrapped("no convention: " + printable(line, 300), output_columns(), 2) + "\n");
    if (survey.ended > 0)
      print_out(fmt::format("{} of {} ended at a call that the rules refuse\n",
                            count_text(survey.ended), count_text(survey.cases, "case")));
    for (const SurveyedOperation& one : survey.operations_asked)
      if (one.missing > 0 && one.answered > 0)
        print_out(fmt::format("{} of {} ended at {}, which the cache does not support there\n",
                              count_text(one.missing), count_text(survey.cases, "case"),
                              one.operation));
    if (survey.refused_configs > 0)
      print_out(fmt::format("not opened with the config of {}\n",
                            count_text(survey.refused_configs, "case")));
    if (survey.differing > 0)
      print_out(fmt::format("{} of {} differ in something that no convention allows\n",
                            count_text(survey.differing), count_text(survey.cases, "case")));
  }
  if (!arguments.output.empty()) {
    write_text_file(arguments.output,
                    fmt::format("# {}, profile {}, seed {}\n{}", arguments.subject,
                                word_of(arguments.terms.profile), arguments.terms.seed, text));
    print_error(fmt::format("judge by them: {} check {} --profile {} --conventions {}",
                            program_name(), arguments.subject, word_of(arguments.terms.profile),
                            shell_word(arguments.output)));
  }
  std::vector<ConventionRow> table;
  if (!arguments.json.empty() || !arguments.markdown.empty()) {
    const Subject system = system_of(contracts, *subject.kind);
    const auto shown = made_isolated<Survey>(
        arguments, [&] { return survey_of(contracts, system, arguments.terms); });
    table = convention_table(survey, learned.conventions(), shown);
  }
  if (!arguments.markdown.empty())
    write_text_file(arguments.markdown, convention_markdown(arguments.subject, *subject.kind,
                                                            arguments.terms.profile, table));
  const bool explained = survey.differing == 0 && learned.undecided.empty();
  if (!arguments.json.empty())
    write_result(arguments.json, "learn",
                 {{"subject", arguments.subject},
                  {"profile", word_of(arguments.terms.profile)},
                  {"seed", arguments.terms.seed},
                  {"cases", survey.cases},
                  {"operations", survey.operations},
                  {"differing_cases", survey.differing},
                  {"without", write_json(learned.without)},
                  {"configs", write_json(learned.configs)},
                  {"table", write_json(table)},
                  {"conventions", write_json(proofs)},
                  {"no_convention", write_json(undecided)},
                  {"explained", explained}});
  return explained ? kExitConforms : kExitDiffers;
}

}  // namespace

Run declare_learn(CLI::App& app, const Contracts& contracts) {
  const auto arguments = std::make_shared<LearnArguments>();
  app.add_option("subject", arguments->subject,
                 "the cache, as layered.vector@mine; of a reference: its quirks")
      ->type_name("SUBJECT")
      ->required();
  app.add_option("--output,-o", arguments->output, "file for the conventions")
      ->type_name("FILE")
      ->group(kRunningGroup);
  app.add_option("--markdown", arguments->markdown,
                 "write a table of the cache beside the system that its reference follows")
      ->type_name("FILE")
      ->group(kRunningGroup);
  app.add_option("--json", arguments->json, "write what was learned as JSON; - for standard output")
      ->type_name("FILE")
      ->group(kRunningGroup);
  app.add_option("--seed", arguments->terms.seed, "the same seed gives the same cases")
      ->check(not_negative())
      ->capture_default_str();
  app.add_option("--cases", arguments->terms.cases, "random cases")
      ->check(positive())
      ->capture_default_str()
      ->group(kExtentGroup);
  declare_profile(app, arguments->terms.profile);
  declare_limits(app, arguments->limits);
  return [&contracts, arguments] { return run_learn(contracts, *arguments); };
}

}  // namespace kvo::tools
