// tools/commands/mutants.cpp: `kvoracle mutants`: the kill matrix of the seeded faults.
#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "properties/campaign/kill.hpp"
#include "properties/contracts.hpp"
#include "tools/commands/campaign_options.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/conventions.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/not_negative.hpp"
#include "tools/commands/program_name.hpp"
#include "tools/commands/selection.hpp"
#include "tools/commands/usage.hpp"
#include "tools/commands/word_option.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/failure_text.hpp"
#include "tools/reports/json_file.hpp"
#include "tools/reports/junit.hpp"
#include "tools/reports/progress.hpp"
#include "tools/reports/quantities.hpp"
#include "tools/reports/result_file.hpp"
#include "tools/workers/isolated.hpp"
#include "tools/workers/pool.hpp"

namespace kvo::tools {
namespace {

struct MutantsArguments {
  std::vector<std::string> words;
  std::string contract;
  std::uint64_t seed = 1;
  std::optional<std::uint64_t> cases;
  std::optional<Profile> profile;  // absent: each that a mutant shows in
  unsigned jobs = 1;
  Limits limits;
  bool scripts = false;
  bool judges = false;
  std::vector<std::string> logs;
  std::vector<std::string> conventions;
  std::string json;
  std::string junit;

  /// After which a mutant got away; of --judges, from each law.
  [[nodiscard]] std::uint64_t most_cases() const { return cases.value_or(judges ? 400 : 20'000); }
};

/// A mutant in one profile.
struct Prey {
  const Mutant* mutant;
  Profile profile;
};

/// One row of the kill matrix; a mutant that got away has no law.
struct MutantRecord {
  std::string mutant;
  Profile profile = Profile::kOriginal;
  std::string fault = {};
  std::string origin = {};
  std::optional<std::string> law = std::nullopt;
  std::uint64_t cases = 0;
  std::uint64_t operations = 0;
  std::uint64_t shrunk_operations = 0;
  std::string difference = {};
  /// As it showed before the script was made smaller; absent where that is alike.
  std::optional<std::string> before = std::nullopt;
  std::vector<std::string> inside = {};  ///< where a cache inside of the mutant goes wrong
  std::optional<std::string> schedule = std::nullopt;  ///< as of Shrunk
  std::vector<std::string> script = {};
};
BOOST_DESCRIBE_STRUCT(MutantRecord, (),
                      (mutant, profile, fault, origin, law, cases, operations, shrunk_operations,
                       difference, before, inside, schedule, script))

MutantRecord record_of(const Prey& prey) {
  return {.mutant = prey.mutant->subject.name(),
          .profile = prey.profile,
          .fault = prey.mutant->fault,
          .origin = prey.mutant->origin};
}

// Requires  a shrunk script.
void add_kill(const SubjectResult& result, MutantRecord& record) {
  const Shrunk& shrunk = *result.shrunk;
  record.law = shrunk.law;
  record.shrunk_operations = shrunk.operations;
  record.difference = shrunk.verdict.text();
  if (result.verdict.symptom() != shrunk.verdict.symptom()) record.before = result.verdict.text();
  record.inside = shrunk.inside;
  record.schedule = shrunk.schedule;
  record.script = script_text(shrunk);
}

MutantRecord hunted(const Contracts& contracts, const Prey& prey,
                    const MutantsArguments& arguments) {
  MutantRecord record = record_of(prey);
  const Hunt done =
      hunt(contracts, prey.mutant->subject, arguments.seed, arguments.most_cases(), prey.profile);
  record.cases = done.cases;
  record.operations = done.operations;
  const auto& kill = done.kill;
  if (!kill) return record;
  add_kill(kill->result, record);
  return record;
}

// The same cases, each in processes of its own: a mutant that ends its process is caught.
MutantRecord hunted_isolated(const Contracts& contracts, const Prey& prey,
                             const MutantsArguments& arguments) {
  MutantRecord record = record_of(prey);
  while (!record.law && record.cases < arguments.most_cases()) {
    const CasePlan plan =
        hunted_case(contracts, prey.mutant->subject, arguments.seed, record.cases, prey.profile);
    const CaseResult result = run_case_isolated(
        record.cases++, plan, {.shrink_attempts = 20'000, .limits = arguments.limits});
    record.operations += result.operations;
    const SubjectResult& judged = result.subjects.back();
    if (judged.verdict.failed() && judged.shrunk) add_kill(judged, record);
  }
  return record;
}

// What is found of each of so many, in order, in worker processes. Fewer where it is interrupted.
template <class Record>
std::vector<Record> records_of(
    const char* what, std::uint64_t count, const MutantsArguments& arguments,
    const std::function<Record(std::uint64_t index)>& answer,
    const std::function<Record(std::uint64_t index, const Death* first)>& isolated,
    const std::function<Record(std::uint64_t index, const Death& death)>& lost) {
  std::vector<Record> records;
  Progress progress(what, count);
  const auto take = [&](std::uint64_t /*index*/, const std::string& text) {
    records.push_back(unpacked<Record>(text));
    progress.advance();
    return true;
  };
  work_in_order(
      0, count, arguments.jobs, arguments.limits,
      {.answer =
           [&](std::uint64_t index) {
             return Message{Message::Kind::kAnswer, packed(answer(index))};
           },
       .isolated = [&](std::uint64_t index,
                       const Death* first) { return packed(isolated(index, first)); },
       .lost = [&](std::uint64_t index, const Death& death) { return packed(lost(index, death)); },
       .take = take,
       .waiting = [&] { progress.advance(0); }});
  return records;
}

void print_matrix(const std::vector<MutantRecord>& records, bool scripts) {
  Table table({column("mutant"), column("profile", 5), column("origin", 4), column("caught by"),
               numbers("cases", 2), numbers("operations", 3), numbers("shrunk to", 1)});
  const Paint paint(stdout);
  for (const MutantRecord& record : records)
    table.row({record.mutant, word_of(record.profile),
               record.origin.substr(0, record.origin.find(':')),
               record.law ? *record.law : paint(Colour::kRed, "GOT AWAY"), count_text(record.cases),
               count_text(record.operations), count_text(record.shrunk_operations)});
  print_out(table.text(0, output_columns()));
  for (const MutantRecord& record : records) {
    if (!scripts) break;
    print_out(fmt::format("\n{}, {}: {}\n  {}\n", record.mutant, word_of(record.profile),
                          record.fault, record.origin));
    if (record.before) print_out(fmt::format("  before it was shrunk: {}\n", *record.before));
    print_out(fmt::format("  {}\n", record.difference));
    for (const std::string& line : record.inside) print_out("  " + line + "\n");
    if (record.schedule) print_out(fmt::format("  schedule: {}\n", *record.schedule));
    for (const std::string& line : record.script) print_out("  " + line + "\n");
  }
}

// A suite a cache; a mutant that got away is a failure.
std::vector<JunitSuite> junit_suites(const std::vector<MutantRecord>& records) {
  std::vector<JunitSuite> suites;
  for (const MutantRecord& record : records) {
    const std::string kind = record.mutant.substr(0, record.mutant.find('@'));
    if (suites.empty() || suites.back().name != kind) suites.push_back({kind});
    JunitTest& test = suites.back().tests.emplace_back(
        JunitTest{.name = fmt::format("{}, {}", record.mutant, word_of(record.profile))});
    if (record.law) continue;
    test.state = JunitTest::State::kFailed;
    test.message = "GOT AWAY";
    test.details = {record.fault, record.origin};
  }
  return suites;
}

std::uint64_t median_length(const std::vector<MutantRecord>& records) {
  std::vector<std::uint64_t> lengths;
  for (const MutantRecord& record : records)
    if (record.law) lengths.push_back(record.shrunk_operations);
  if (lengths.empty()) return 0;
  std::ranges::sort(lengths);
  return lengths[lengths.size() / 2];
}

std::vector<const Mutant*> chosen_mutants(const Contracts& contracts,
                                          const std::vector<std::string>& words) {
  check_has_mutants(contracts);
  std::vector<const Mutant*> chosen;
  std::vector<std::string> idle = words;
  std::vector<std::string> names;
  for (const Mutant& mutant : contracts.mutants()) {
    const auto meant = [&](const std::string& word) { return means(word, mutant.subject); };
    if (words.empty() || std::ranges::any_of(words, meant)) chosen.push_back(&mutant);
    std::erase_if(idle, meant);
    names.push_back(mutant.subject.name());
  }
  if (!idle.empty()) throw unknown_word("mutant", idle.front(), kind_words(contracts), names);
  return chosen;
}

std::vector<Prey> prey_of(const std::vector<const Mutant*>& mutants,
                          std::optional<Profile> profile) {
  std::vector<Prey> all;
  for (const Mutant* mutant : mutants)
    for (const Profile one : {Profile::kOriginal, Profile::kDocumented})
      if (one == mutant->profile.value_or(one) && one == profile.value_or(one))
        all.push_back({mutant, one});
  return all;
}

std::vector<traces::Case> cases_of(const Contracts& contracts,
                                   const std::vector<std::string>& paths) {
  std::vector<traces::Case> cases;
  for (const std::string& path : paths) {
    auto log = must(open_log(path, contracts));
    while (auto read = must(log.next_whole_case())) cases.push_back(std::move(*read));
  }
  return cases;
}

void print_judges(const std::vector<JudgedAlone>& records) {
  std::vector<Table::Column> columns{column("mutant"), column("profile")};
  for (const SoleJudge judge : kSoleJudges) columns.push_back(column(word_of(judge)));
  Table table(columns);
  for (std::size_t at = 0; at + kSoleJudges.size() <= records.size(); at += kSoleJudges.size()) {
    std::vector<std::string> cells{records[at].mutant, word_of(records[at].profile)};
    for (std::size_t judge = 0; judge < kSoleJudges.size(); ++judge) {
      const JudgedAlone& record = records[at + judge];
      cells.push_back(record.caught_by.value_or(record.cases > 0 ? "GOT AWAY" : "-"));
    }
    table.row(cells);
  }
  print_out(table.text(0, output_columns()));
}

// Each mutant before each judge. A judge whose process a mutant ends has caught it.
int run_judges(const Contracts& contracts, const std::vector<Prey>& chosen,
               const MutantsArguments& arguments) {
  std::vector<std::string> rules;
  for (const traces::EmbeddedFile& file : rule_case_files()) rules.emplace_back(file.name);
  JudgeTerms terms{.seed = arguments.seed,
                   .most_cases = arguments.most_cases(),
                   .recorded = cases_of(contracts, arguments.logs),
                   .rules = cases_of(contracts, rules)};
  const auto answer = [&](std::uint64_t index) {
    const Prey& prey = chosen[index / kSoleJudges.size()];
    terms.profile = prey.profile;
    return judge_alone(contracts, prey.mutant->subject, kSoleJudges[index % kSoleJudges.size()],
                       terms);
  };
  const auto died = [&](std::uint64_t index, const Death* death) {
    const Prey& prey = chosen[index / kSoleJudges.size()];
    return JudgedAlone{
        .mutant = prey.mutant->subject.name(),
        .profile = prey.profile,
        .judge = kSoleJudges[index % kSoleJudges.size()],
        .caught_by = "died",
        .difference = death != nullptr ? death->how : "needs more memory than it may have"};
  };
  const std::uint64_t all = chosen.size() * kSoleJudges.size();
  const auto records = records_of<JudgedAlone>(
      "judges", all, arguments, answer, died,
      [&](std::uint64_t index, const Death& death) { return died(index, &death); });
  if (interrupted()) {
    print_error(fmt::format("interrupted after {} of {} judgements", records.size(), all));
    return kExitInterrupted;
  }
  if (!arguments.json.empty())
    write_result(arguments.json, "judges",
                 {{"seed", arguments.seed}, {"judgements", write_json(records)}});
  if (arguments.json != kStandardOutput) print_judges(records);
  return kExitConforms;
}

// Mutants of kinds in the files are judged under their conventions, as `copies`.
void give_conventions(const Contracts& contracts, const std::vector<std::string>& files,
                      std::vector<const Mutant*>& mutants, std::deque<Mutant>& copies) {
  for (const auto& [kind, conventions] : conventions_of(contracts, files)) {
    bool any = false;
    for (const Mutant*& mutant : mutants) {
      if (mutant->subject.kind != kind) continue;
      Mutant& copy = copies.emplace_back(*mutant);
      copy.subject.conventions = conventions;
      mutant = &copy;
      any = true;
    }
    if (!any) throw UsageError(fmt::format("--conventions: no mutant of {}", kind->name()));
  }
}

int run_mutants(const Contracts& contracts, const MutantsArguments& arguments) {
  std::vector<std::string> words = arguments.words;
  if (!arguments.contract.empty()) words.push_back(arguments.contract);
  std::vector<const Mutant*> mutants = chosen_mutants(contracts, words);
  std::deque<Mutant> copies;
  give_conventions(contracts, arguments.conventions, mutants, copies);
  const std::vector<Prey> chosen = prey_of(mutants, arguments.profile);
  if (chosen.empty()) throw UsageError("none of these mutants shows in that profile");
  check_reports(arguments.json, arguments.junit, arguments.logs);
  catch_interruption();
  if (arguments.judges) return run_judges(contracts, chosen, arguments);
  const auto lost = [&](std::uint64_t index, const Death& death) {
    MutantRecord record = record_of(chosen[index]);
    record.difference = death.how;
    return record;
  };
  const auto records = records_of<MutantRecord>(
      "mutants", chosen.size(), arguments,
      [&](std::uint64_t index) { return hunted(contracts, chosen[index], arguments); },
      [&](std::uint64_t index, const Death* /*first*/) {
        return hunted_isolated(contracts, chosen[index], arguments);
      },
      lost);
  const auto caught = static_cast<std::uint64_t>(std::ranges::count_if(
      records, [](const MutantRecord& record) { return record.law.has_value(); }));
  std::uint64_t longest = 0;
  std::uint64_t operations = 0;
  for (const MutantRecord& record : records) {
    longest = std::max(longest, record.shrunk_operations);
    operations += record.operations;
  }
  if (!arguments.json.empty())
    write_result(arguments.json, "mutants",
                 {{"seed", arguments.seed},
                  {"mutants", write_json(records)},
                  {"caught", caught},
                  {"median_shrunk_operations", median_length(records)}});
  if (!arguments.junit.empty())
    write_junit(arguments.junit, program_name() + " mutants", junit_suites(records));
  if (arguments.json != kStandardOutput && arguments.junit != kStandardOutput) {
    print_matrix(records, arguments.scripts);
    print_out(
        fmt::format("\n{} of {} caught in {} operations; shrunk scripts: median {}, longest {}; "
                    "seed {}\n",
                    caught, records.size(), count_text(operations), median_length(records), longest,
                    arguments.seed));
  }
  if (interrupted()) {
    print_error(fmt::format("interrupted after {} of {} mutants", records.size(), chosen.size()));
    return kExitInterrupted;
  }
  return caught == records.size() ? kExitConforms : kExitDiffers;
}

}  // namespace

Run declare_mutants(CLI::App& app, const Contracts& contracts) {
  const auto arguments = std::make_shared<MutantsArguments>();
  app.add_option("mutants", arguments->words,
                 "contracts, caches or mutants, as 'provider.paged@mutant:*'; none: all")
      ->type_name("MUTANT");
  app.add_option("--contract", arguments->contract, "the same as a name")->type_name("CONTRACT");
  app.add_option("--seed", arguments->seed, "the same seed gives the same matrix")
      ->check(not_negative())
      ->capture_default_str();
  app.add_option("--cases", arguments->cases, "cases after which a mutant got away")
      ->check(positive())
      ->default_str("20000, with --judges 400 of each law")
      ->group(kExtentGroup);
  declare_profile(app, arguments->profile, "each that a mutant shows in");
  declare_workers(app, arguments->jobs, arguments->limits, true);
  CLI::Option* judges = app.add_flag(
      "--judges", arguments->judges,
      "judge each mutant by lock-step, oracle, laws, logs and rule cases, each of them alone");
  declare_conventions(app, arguments->conventions);
  app.add_option("--logs", arguments->logs, "recorded logs that judge")
      ->type_name("FILE")
      ->needs(judges);
  app.add_flag("--scripts", arguments->scripts, "print the shrunk scripts")
      ->excludes(judges)
      ->group(kRunningGroup);
  declare_reports(app, arguments->json, arguments->junit);
  app.get_option("--junit")->excludes(judges);
  return [&contracts, arguments] { return run_mutants(contracts, *arguments); };
}

}  // namespace kvo::tools
