// tools/commands/diff.cpp: `kvoracle diff`: where two caches part.
//
// Two subjects of a kind run the same random cases. Caches of several kinds run scripts of the
// operations that mean the same in all of them (shared_operations.hpp).
#include "tools/commands/diff.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "properties/campaign/quirk_attribution.hpp"
#include "properties/campaign/random_case.hpp"
#include "tools/commands/campaign_options.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/not_negative.hpp"
#include "tools/commands/program_name.hpp"
#include "tools/commands/selection.hpp"
#include "tools/commands/shared_operations.hpp"
#include "tools/commands/usage.hpp"
#include "tools/commands/word_option.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/found_or_added.hpp"
#include "tools/reports/json_file.hpp"
#include "tools/reports/quantities.hpp"
#include "tools/reports/result_file.hpp"
#include "tools/workers/isolated.hpp"
#include "traces/log/case_notation.hpp"
#include "traces/log/conventions_file.hpp"

namespace kvo::tools {
namespace {

struct DiffArguments {
  std::vector<std::string> subjects;
  Profile profile = Profile::kOriginal;
  std::optional<Profile> other_profile;
  std::uint64_t seed = 1;
  std::uint64_t cases = 400;
  std::optional<std::int64_t> window;
  double shrink_time = 1;  // seconds, of each sort of difference
  std::string json;
  Limits limits;
};

/// A way in which two subjects part, with the shortest script found.
struct Parting {
  std::string what;  ///< a convention, a quirk, or the operation and the place
  std::uint64_t cases = 0;
  std::string difference = {};
  std::vector<std::string> script = {};
};
BOOST_DESCRIBE_STRUCT(Parting, (), (what, cases, difference, script))

struct Partings {
  std::uint64_t cases = 0;
  std::uint64_t alike = 0;
  std::vector<Parting> all = {};
};
BOOST_DESCRIBE_STRUCT(Partings, (), (cases, alike, all))

// The subject, whatever profile a case has.
Subject in_profile(const Subject& subject, Profile profile, const std::string& suffix) {
  Subject made = subject;
  made.variant += suffix;
  made.over = nullptr;
  made.open = [&subject, profile](Setup setup) {
    setup.profile = profile;
    return subject.open(setup);
  };
  return made;
}

// ---- two subjects of one kind ----

/// Runs two subjects side by side and sorts their differences.
class Differ {
 public:
  Differ(const Contracts& contracts, const DiffArguments& arguments, const Subject& a,
         const Subject& b)
      : contracts_(contracts),
        arguments_(arguments),
        reference_(contracts.reference_of(*a.kind)),
        first_(in_profile(a, arguments.profile, "")),
        second_(in_profile(b, arguments.other_profile.value_or(arguments.profile),
                           a.name() == b.name() ? ":other" : "")) {}

  Partings run() {
    if (first_.variant == "reference" && arguments_.profile == Profile::kOriginal &&
        arguments_.other_profile == Profile::kDocumented)
      return run_quirks();
    Partings found;
    for (std::uint64_t index = 0; index < arguments_.cases; ++index) {
      CasePlan plan = plan_of(index);
      const CaseResult result = run_case(plan, {.attempts = 0});
      for (const SubjectResult& one : result.subjects) {
        if (one.subject != second_.name() || &one == result.subjects.data()) continue;
        ++found.cases;
        if (!one.verdict.failed())
          ++found.alike;
        else
          add(found.all, plan, one.verdict);
      }
    }
    std::ranges::sort(found.all, std::greater(), &Parting::cases);
    return found;
  }

 private:
  // What the original does is explained by quirks, one after the other. The case ends where it
  // aborts.
  Partings run_quirks() {
    Partings found;
    for (std::uint64_t index = 0; index < arguments_.cases; ++index) {
      const CasePlan plan = plan_of(index);
      const auto original = first_.open(plan.setup);
      if (!original) continue;
      traces::Case recorded{.header = {.kind = plan.kind, .config = plan.setup.config}};
      const auto ops = plan.ops();
      Probe probe;
      Labels unused;
      while (const auto op = ops->next()) {
        recorded.steps.push_back({.op = *op, .recorded = (*original)->apply(*op, probe)});
        const Observation& seen = *recorded.steps.back().recorded;
        ops->observe(*op, seen, unused);
        if (seen.failed_with(Code::kPrecondition)) break;
      }
      ++found.cases;
      const QuirkAttribution quirks = attribute_quirks(reference_, recorded);
      found.alike += quirks.explained.empty() && !quirks.rest.failed() ? 1 : 0;
      const auto add_one = [&](std::string what, std::uint64_t op_index) {
        Parting& parting =
            found_or_added(found.all, Parting{.what = std::move(what)}, &Parting::what);
        if (parting.cases++ > 0) return;
        Script script;
        for (std::size_t at = 0; at <= op_index; ++at) script.push_back(recorded.steps[at].op);
        show(parting, plan, std::move(script));
      };
      for (const Attribution& one : quirks.explained)
        add_one(fmt::format("quirk {} ({})", one.quirk, one.rule), one.op_index);
      if (quirks.rest.failed()) add_one("no quirk: " + quirks.rest.op, quirks.rest.op_index);
    }
    std::ranges::sort(found.all, std::greater(), &Parting::cases);
    return found;
  }

  // The script, made smaller.
  void show(Parting& parting, const CasePlan& plan, Script script) const {
    constexpr std::uint64_t kAttempts = 2'000;
    const Smaller smaller = smaller_case(
        plan, second_, std::move(script),
        {.attempts = kAttempts, .time = std::chrono::duration<double>(arguments_.shrink_time)});
    parting.difference = smaller.verdict.text();
    for (const Op& op : smaller.script) parting.script.push_back(traces::operation_text(op));
  }

  [[nodiscard]] CasePlan plan_of(std::uint64_t index) const {
    constexpr std::uint64_t kLargeEvery = 6;
    CasePlan plan = random_case(contracts_, *contracts_.find_law("agrees_with_reference"),
                                {&second_}, arguments_.seed, index, arguments_.profile,
                                index % kLargeEvery == 0 ? Scale::kLarge : Scale::kSmall);
    plan.baseline = &first_;
    plan.led.reset();
    plan.history = nullptr;
    return plan;
  }

  void add(std::vector<Parting>& all, const CasePlan& plan, const Verdict& verdict) const {
    Script script = script_until(plan, verdict.op_index);
    std::string what = name_of(plan, script, verdict);
    Parting& parting = found_or_added(all, Parting{.what = std::move(what)}, &Parting::what);
    if (parting.cases++ > 0) return;
    show(parting, plan, std::move(script));
  }

  // The convention that the difference is; else where it shows.
  [[nodiscard]] std::string name_of(const CasePlan& plan, const Script& script,
                                    const Verdict& verdict) const {
    if (script.empty() || verdict.outcome != Outcome::kMismatch) return verdict.text();
    auto a = first_.open(plan.setup);
    auto b = second_.open(plan.setup);
    if (!a || !b) return verdict.text();
    Probe probe;
    const Conventions named = named_of(*plan.kind);
    Settlement settlement(named, *plan.kind, plan.setup);
    std::string what;
    for (const Op& op : script) {
      const Observation want = (*a)->apply(op, probe);
      const Observation got = (*b)->apply(op, probe);
      const Observation settled = settlement.settled(op, want, got);
      if (!observation_difference(want, got)) continue;
      what = what_of(op, want, got, !observation_difference(want, settled), settlement.used());
    }
    return what;
  }
  static Conventions named_of(const CacheKind& kind) {
    Conventions all;
    for (const ConventionInfo* info : named_conventions(kind))
      if (info->relation != nullptr) all.named.emplace_back(info->name);
    return all;
  }
  static std::string what_of(const Op& op, const Observation& want, const Observation& got,
                             bool settled, const std::vector<std::string_view>& used) {
    if (settled && !used.empty()) return std::string(used.back());
    if (want.error) {
      RefusalConvention row{.operation = std::string(op.kind().name),
                            .wanted = want.error->code_text()};
      if (got.error) row.given = got.error->code_text();
      return traces::convention_text(row);
    }
    if (got.error) return fmt::format("refuses {} as {}", op.kind().name, got.error->code_text());
    const auto difference = observation_difference(want, got);
    const std::string place = difference ? difference->place : "";
    return fmt::format("{}: {}", op.kind().name, place.substr(0, place.find('[')));
  }

  const Contracts& contracts_;
  const DiffArguments& arguments_;
  const Subject& reference_;
  Subject first_;
  Subject second_;
};

int diff_of_kind(const Contracts& contracts, const DiffArguments& arguments, const Subject& a,
                 const Subject& b) {
  if (contracts.generator_of(*a.kind) == nullptr)
    throw UsageError(fmt::format("{} has no random cases", a.kind->name()));
  const auto made = in_process<Partings>(arguments.limits,
                                         [&] { return Differ(contracts, arguments, a, b).run(); });
  if (const auto* death = std::get_if<Death>(&made))
    throw UsageError(
        fmt::format("one of the subjects {}: `{} check` shows where", death->how, program_name()));
  const auto& found = std::get<Partings>(made);
  if (arguments.json != kStandardOutput) {
    print_out(
        fmt::format("{} of {} alike\n", count_text(found.alike), count_text(found.cases, "case")));
    for (const Parting& parting : found.all) {
      print_out(
          fmt::format("{}: {}\n", printable(parting.what), count_text(parting.cases, "case")));
      for (const std::string& line : parting.script)
        print_out("    " + printable(line, 120) + "\n");
      print_out("    " + printable(parting.difference, 200) + "\n");
    }
  }
  if (!arguments.json.empty())
    write_result(arguments.json, "diff",
                 {{"subjects", write_json(std::vector{a.name(), b.name()})},
                  {"cases", found.cases},
                  {"alike", found.alike},
                  {"partings", write_json(found.all)}});
  return found.all.empty() ? kExitConforms : kExitDiffers;
}

// ---- caches of several kinds ----

/// A script that not all caches answer alike.
struct SharedRow {
  std::string script;
  std::vector<std::string> answers = {};                  ///< by subject
  std::vector<std::vector<std::string>> operations = {};  ///< of each subject, as in logs
};
BOOST_DESCRIBE_STRUCT(SharedRow, (), (script, answers, operations))

struct SharedTable {
  std::uint64_t scripts = 0;
  std::uint64_t alike = 0;
  std::vector<SharedRow> rows = {};
};
BOOST_DESCRIBE_STRUCT(SharedTable, (), (scripts, alike, rows))

/// Subjects with how each is asked.
using Sharing = std::vector<std::pair<const Subject*, SharingKind>>;

// Scripts at whose last operation the caches part, and not before: of each way to part, the
// shortest.
SharedTable shared_table(const Sharing& sharing, Profile profile) {
  constexpr std::size_t kLongest = 3;
  SharedTable table;
  std::set<std::string> parting;
  std::set<std::string> ways;
  for (const SharedScript& script : shared_scripts(kLongest)) {
    SharedRow row{text_of(script)};
    for (const auto& [subject, kind] : sharing) {
      const SharedAnswer answer = kind.answer(*subject, profile, script);
      row.answers.push_back(answer.text());
      std::vector<std::string>& operations = row.operations.emplace_back();
      for (const Op& op : answer.ops) operations.push_back(traces::operation_text(op));
    }
    ++table.scripts;
    std::set<std::string> offered(row.answers.begin(), row.answers.end());
    offered.erase("not offered");
    if (offered.size() < 2) {
      ++table.alike;
      continue;
    }
    const SharedScript before(script.begin(), script.end() - 1);
    const bool earlier = parting.contains(text_of(before));
    parting.insert(row.script);
    std::string way = script.back().text();
    for (const std::string& answer : row.answers) way += "|" + answer.substr(0, answer.find(','));
    if (!earlier && ways.insert(std::move(way)).second) table.rows.push_back(std::move(row));
  }
  return table;
}

Sharing sharing_of(const Contracts& contracts, const DiffArguments& arguments,
                   const std::vector<const Subject*>& subjects) {
  Sharing sharing;
  const std::vector<SharingKind> kinds = sharing_kinds(arguments.window);
  std::string known;
  for (const SharingKind& kind : kinds)
    known += (known.empty() ? "" : ", ") + std::string(kind.kind);
  for (const Subject* subject : subjects) {
    const auto found = std::ranges::find(kinds, subject->kind->name(), &SharingKind::kind);
    if (found == kinds.end())
      throw UsageError(
          fmt::format("{}: caches of several kinds are compared among {}", subject->name(), known));
    sharing.emplace_back(subject, *found);
  }
  if (subjects.empty())
    for (const SharingKind& kind : kinds)
      sharing.emplace_back(contracts.find_subject(std::string(kind.kind) + "@reference"), kind);
  return sharing;
}

// A script, and a line for each answer with the caches that give it.
std::string row_text(const SharedRow& row, const std::vector<std::string>& names) {
  std::string text = row.script + "\n";
  std::vector<std::string> given;
  for (const std::string& answer : row.answers) {
    if (std::ranges::find(given, answer) != given.end()) continue;
    given.push_back(answer);
    std::vector<std::string> who;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (row.answers[i] == answer) who.push_back(names[i]);
    text += fmt::format("    {:<36}  {}\n", answer, fmt::join(who, ", "));
  }
  return text;
}

int diff_of_kinds(const Contracts& contracts, const DiffArguments& arguments,
                  const std::vector<const Subject*>& subjects) {
  const Sharing sharing = sharing_of(contracts, arguments, subjects);
  const auto made = in_process<SharedTable>(
      arguments.limits, [&] { return shared_table(sharing, arguments.profile); });
  if (const auto* death = std::get_if<Death>(&made))
    throw UsageError(fmt::format("one of the subjects {}", death->how));
  const auto& found = std::get<SharedTable>(made);
  std::vector<std::string> names;
  for (const auto& [subject, kind] : sharing) names.push_back(subject->name());
  if (arguments.json != kStandardOutput) {
    print_out(
        fmt::format("{} of {} answered alike; how the others part, each in its shortest script:\n",
                    count_text(found.alike), count_text(found.scripts, "script")));
    for (const SharedRow& row : found.rows) print_out(row_text(row, names));
  }
  if (!arguments.json.empty())
    write_result(arguments.json, "diff",
                 {{"subjects", write_json(names)},
                  {"scripts", found.scripts},
                  {"alike", found.alike},
                  {"rows", write_json(found.rows)}});
  return found.rows.empty() ? kExitConforms : kExitDiffers;
}

}  // namespace

int report_quirks(const Contracts& contracts, const Subject& reference, std::uint64_t seed,
                  std::uint64_t cases, const std::string& json, const Limits& limits) {
  DiffArguments arguments;
  arguments.other_profile = Profile::kDocumented;
  arguments.seed = seed;
  arguments.cases = cases;
  arguments.json = json;
  arguments.limits = limits;
  return diff_of_kind(contracts, arguments, reference, reference);
}

namespace {

int run_diff(const Contracts& contracts, DiffArguments& arguments) {
  check_outputs({{"--json", arguments.json}}, {});
  std::vector<const Subject*> subjects;
  for (const std::string& name : arguments.subjects)
    subjects.push_back(&subject_named(contracts, name));
  if (subjects.size() == 1)
    throw UsageError("one subject: name two, or none for the caches that share operations");
  const bool one_kind = !subjects.empty() && std::ranges::all_of(subjects, [&](const Subject* one) {
    return one->kind == subjects.front()->kind;
  });
  if (one_kind && subjects.size() == 2 && !arguments.window)
    return diff_of_kind(contracts, arguments, *subjects[0], *subjects[1]);
  return diff_of_kinds(contracts, arguments, subjects);
}

}  // namespace

Run declare_diff(CLI::App& app, const Contracts& contracts) {
  const auto arguments = std::make_shared<DiffArguments>();
  app.add_option("subjects", arguments->subjects,
                 "two caches of a kind, or several that share operations; none: all that do")
      ->type_name("SUBJECT");
  app.add_option("--window", arguments->window, "caches that show a window of so many tokens")
      ->type_name("TOKENS")
      ->check(positive());
  app.add_option("--json", arguments->json, "write the differences as JSON; - for standard output")
      ->type_name("FILE")
      ->group(kRunningGroup);
  app.add_option("--seed", arguments->seed, "the same seed gives the same cases")
      ->check(not_negative())
      ->capture_default_str();
  app.add_option("--cases", arguments->cases, "random cases of two caches of a kind")
      ->check(positive())
      ->capture_default_str()
      ->group(kExtentGroup);
  app.add_option("--shrink-time", arguments->shrink_time,
                 "seconds in which the script of a difference is made smaller")
      ->check(not_negative())
      ->capture_default_str()
      ->group(kExtentGroup);
  declare_profile(app, arguments->profile);
  add_word_option<Profile>(
      app, "--other-profile",
      {{word_of(Profile::kOriginal), Profile::kOriginal},
       {word_of(Profile::kDocumented), Profile::kDocumented}},
      [arguments](Profile profile) { arguments->other_profile = profile; },
      "profile of the second cache, where it is another one")
      ->type_name("PROFILE");
  declare_limits(app, arguments->limits);
  return [&contracts, arguments] { return run_diff(contracts, *arguments); };
}

}  // namespace kvo::tools
