// tools/command_check.cpp: `kvoracle check`: random cases against the laws.
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "properties/campaign/random_case.hpp"
#include "tools/campaign_options.hpp"
#include "tools/commands.hpp"
#include "tools/console.hpp"
#include "tools/exit_status.hpp"
#include "tools/not_negative.hpp"
#include "tools/selection.hpp"
#include "tools/usage.hpp"
#include "tools/version.hpp"

namespace kvo::tools {
namespace {

constexpr std::uint64_t kDefaultCases = 2'000;

struct CheckArguments : CampaignArguments {
  std::vector<std::string> words;
  std::vector<std::string> law_names;
  std::uint64_t cases = 0;
  std::optional<std::uint64_t> only_case;
  bool require_states = false;
};

// Cases go round over kinds and laws, so that a campaign cut short has tried all of them.
class RandomCases {
 public:
  RandomCases(const Contracts& contracts, const CheckArguments& arguments, const CLI::App& app)
      : contracts_(contracts), arguments_(arguments), app_(app) {
    for (const std::string& word : arguments.law_names)
      for (const Law* law : laws_named(contracts, word))
        if (std::ranges::find(laws_, law) == laws_.end()) laws_.push_back(law);
    if (laws_.empty()) laws_ = contracts.laws();
    for (Comparison& comparison : select_subjects(contracts, arguments.words)) {
      std::vector<const Law*> apply = applicable(*comparison.kind);
      if (contracts.generator_of(*comparison.kind) == nullptr || apply.empty()) continue;
      comparisons_.push_back(std::move(comparison));
      laws_of_comparisons_.push_back(std::move(apply));
    }
    if (comparisons_.empty())
      throw UsageError("none of these subjects has a generator and a law that applies");
  }

  [[nodiscard]] CasePlan plan(std::uint64_t index) const {
    const Comparison& comparison = comparisons_[index % comparisons_.size()];
    const std::vector<const Law*>& apply = laws_of_comparisons_[index % comparisons_.size()];
    const std::uint64_t of_kind = index / comparisons_.size();
    const Law& law = *apply[of_kind % apply.size()];
    std::vector<const Subject*> subjects{comparison.reference};
    subjects.insert(subjects.end(), comparison.subjects.begin(), comparison.subjects.end());
    CasePlan planned = random_case(contracts_, law, subjects, arguments_.seed, index,
                                   arguments_.profile, scale_of(law, of_kind / apply.size()));
    planned.schedules = arguments_.schedules;
    planned.repeat = repeat_command(app_, arguments_.seed, index);
    return planned;
  }

  [[nodiscard]] const std::vector<Comparison>& comparisons() const { return comparisons_; }

  [[nodiscard]] RunHeader header() const {
    RunHeader header{.kvoracle = std::string(kVersion),
                     .command = "check",
                     .seed = arguments_.seed,
                     .profile = arguments_.profile,
                     .subjects = subject_names(comparisons_),
                     .options = {}};
    boost::json::array names;
    for (const Law* law : laws_) names.emplace_back(law->name());
    header.options["laws"] = std::move(names);
    if (arguments_.schedules > 1) header.options["schedules"] = arguments_.schedules;
    return header;
  }

 private:
  [[nodiscard]] std::vector<const Law*> applicable(const CacheKind& kind) const {
    std::vector<const Law*> apply;
    std::ranges::copy_if(laws_, std::back_inserter(apply),
                         [&](const Law* law) { return law->applies_to(kind); });
    return apply;
  }

  const Contracts& contracts_;
  const CheckArguments& arguments_;
  const CLI::App& app_;
  std::vector<Comparison> comparisons_;
  std::vector<const Law*> laws_;                              // those asked for
  std::vector<std::vector<const Law*>> laws_of_comparisons_;  // of these, what applies to each
};

/// The states that matter of one kind, and those that no case went through.
struct States {
  std::string kind;
  std::size_t wanted = 0;
  std::vector<std::string_view> missing = {};
};

std::vector<States> states_of(const Contracts& contracts, const RandomCases& cases,
                              const Summary& summary, Profile profile) {
  const std::vector<LabelSummary> reached = summary.labels();
  std::vector<States> all;
  for (const Comparison& comparison : cases.comparisons()) {
    const auto labels = contracts.generator_of(*comparison.kind)->labels(profile);
    States& states = all.emplace_back(States{comparison.kind->name(), labels.size()});
    std::ranges::copy_if(labels, std::back_inserter(states.missing), [&](std::string_view label) {
      return std::ranges::none_of(reached, [&](const LabelSummary& row) {
        return row.kind == states.kind && row.label == label;
      });
    });
  }
  return all;
}

// A campaign that never went through a state proves less than it seems to.
void print_states(const std::vector<States>& all) {
  for (const States& states : all)
    print_out(states.missing.empty() ? fmt::format("{}: all {} states that matter were reached\n",
                                                   states.kind, states.wanted)
                                     : wrapped(fmt::format("{}: never reached: {}", states.kind,
                                                           fmt::join(states.missing, "; ")),
                                               output_columns(), 2) +
                                           "\n");
}

JunitSuite junit_suite(const std::vector<States>& all) {
  JunitSuite suite{"states that matter"};
  for (const States& states : all) {
    JunitTest& test = suite.tests.emplace_back(JunitTest{.name = states.kind});
    if (states.missing.empty()) continue;
    test.state = JunitTest::State::kFailed;
    test.message = fmt::format("never reached: {} of {}", states.missing.size(), states.wanted);
    test.details.assign(states.missing.begin(), states.missing.end());
  }
  return suite;
}

int run_check(const Contracts& contracts, CheckArguments& arguments, const CLI::App& app) {
  check_files(arguments, {});
  const RandomCases cases(contracts, arguments, app);
  // Random sizes may be absurd on purpose; a case that memory ends has shown all it can.
  arguments.report.memory_matters = false;
  arguments.report.laws = true;
  arguments.report.result = "check";
  arguments.report.profile = arguments.profile;
  arguments.campaign.cases = arguments.cases;
  if (arguments.cases == 0)
    arguments.campaign.cases =
        arguments.campaign.seconds > 0 ? CampaignOptions::kEndless : kDefaultCases;
  std::uint64_t offset = 0;
  if (arguments.only_case) {
    offset = *arguments.only_case;
    arguments.campaign.cases = 1;
  }
  const Campaign campaign =
      run_campaign(cases.header(), arguments.campaign,
                   [&](std::uint64_t index) { return cases.plan(index + offset); });
  const auto states = states_of(contracts, cases, campaign.summary, arguments.profile);
  if (arguments.require_states) arguments.report.suites = {junit_suite(states)};
  int status = report(campaign.summary, arguments.report, {{"seed", arguments.seed}});
  if (arguments.report.text()) {
    print_states(states);
    print_out(fmt::format("seed {}\n", arguments.seed));
  }
  const bool all =
      std::ranges::all_of(states, [](const States& of_kind) { return of_kind.missing.empty(); });
  if (arguments.require_states && !all && status == kExitConforms) status = kExitDiffers;
  return end_of_campaign(campaign, arguments.campaign.output, status);
}

}  // namespace

Run declare_check(CLI::App& app, const Contracts& contracts) {
  const auto arguments = std::make_shared<CheckArguments>();
  app.add_option(
         "subjects", arguments->words,
         "contracts, caches or subjects, as provider.paged@optimized or '*@optimized'; none: "
         "all")
      ->type_name("SUBJECT");
  app.add_option("--law", arguments->law_names, "only these laws (kvoracle list)")
      ->type_name("LAW");
  app.add_option("--cases", arguments->cases, "number of cases; without --time 2000")
      ->check(positive())
      ->group(kExtentGroup);
  app.add_option("--time", arguments->campaign.seconds, "how long to go on")
      ->type_name("SECONDS")
      ->check(positive())
      ->group(kExtentGroup);
  app.add_option("--case", arguments->only_case, "only the case of this index")
      ->check(not_negative())
      ->group(kExtentGroup);
  app.add_flag("--require-states", arguments->require_states,
               "a state that matters and was not reached is a failure (exit status 1)")
      ->group(kRunningGroup);
  app.add_flag("--timings", arguments->report.timings, "a table of all operations")
      ->group(kRunningGroup);
  declare_campaign(app, *arguments);
  return [&contracts, &app, arguments] { return run_check(contracts, *arguments, app); };
}

}  // namespace kvo::tools
