// tools/command_check.cpp: `kvoracle check`: random cases against the laws.
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "properties/campaign/random_case.hpp"
#include "tools/campaign_options.hpp"
#include "tools/commands.hpp"
#include "tools/console.hpp"
#include "tools/crash_guard.hpp"
#include "tools/exit_status.hpp"
#include "tools/not_negative.hpp"
#include "tools/program_name.hpp"
#include "tools/selection.hpp"
#include "tools/usage.hpp"
#include "tools/version.hpp"

namespace kvo::tools {
namespace {

constexpr std::uint64_t kDefaultCases = 2'000;

struct Arguments : CampaignArguments {
  std::vector<std::string> words;
  std::vector<std::string> law_names;
  std::uint64_t cases = 0;
  std::optional<std::uint64_t> only_case;
};

// Cases go round over kinds and laws, so that a campaign cut short has tried all of them.
class Campaign {
 public:
  Campaign(const Contracts& contracts, const Arguments& arguments)
      : contracts_(contracts), arguments_(arguments) {
    for (const std::string& name : arguments.law_names)
      laws_.push_back(&law_named(contracts, name));
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
    const Law& law = *apply[index / comparisons_.size() % apply.size()];
    std::vector<const Subject*> subjects{comparison.reference};
    subjects.insert(subjects.end(), comparison.subjects.begin(), comparison.subjects.end());
    CasePlan planned =
        random_case(contracts_, law, subjects, arguments_.seed, index, arguments_.profile);
    planned.repeat = repeat(index);
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
    return header;
  }

 private:
  // The command that runs this case alone: what decides which case it is, and nothing else.
  [[nodiscard]] std::string repeat(std::uint64_t index) const {
    std::string text = program_name() + " check";
    for (const std::string& word : arguments_.words) text += " " + word;
    for (const std::string& law : arguments_.law_names) text += " --law " + law;
    if (arguments_.profile == Profile::kDocumented) text += " --profile documented";
    return text + fmt::format(" --seed {} --case {}", arguments_.seed, index);
  }

  [[nodiscard]] std::vector<const Law*> applicable(const CacheKind& kind) const {
    std::vector<const Law*> apply;
    std::ranges::copy_if(laws_, std::back_inserter(apply),
                         [&](const Law* law) { return law->applies_to(kind); });
    return apply;
  }

  const Contracts& contracts_;
  const Arguments& arguments_;
  std::vector<Comparison> comparisons_;
  std::vector<const Law*> laws_;                              // those asked for
  std::vector<std::vector<const Law*>> laws_of_comparisons_;  // of these, what applies to each
};

// Says which states that matter were never reached: such a campaign proves less than it seems to.
void print_labels(const Contracts& contracts, const Campaign& campaign, const Summary& summary,
                  Profile profile) {
  const std::vector<LabelSummary> reached = summary.labels();
  for (const Comparison& comparison : campaign.comparisons()) {
    const Generator* generator = contracts.generator_of(*comparison.kind);
    std::string missing;
    for (const std::string_view label : generator->labels(profile)) {
      const bool seen = std::ranges::any_of(reached, [&](const LabelSummary& row) {
        return row.kind == comparison.kind->name() && row.label == label;
      });
      if (!seen) missing += fmt::format("{}{}", missing.empty() ? "" : "; ", label);
    }
    const std::size_t wanted = generator->labels(profile).size();
    if (missing.empty())
      print_out(fmt::format("{}: all {} states that matter were reached\n", comparison.kind->name(),
                            wanted));
    else
      print_out(fmt::format("{}: never reached: {}\n", comparison.kind->name(), missing));
  }
}

int run_check(const Contracts& contracts, Arguments& arguments) {
  const Campaign campaign(contracts, arguments);
  // Random sizes may be absurd on purpose; a case that memory ends has shown all it can.
  arguments.report.memory_matters = false;
  arguments.report.laws = true;
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
  const Watchdog watchdog{std::chrono::duration<double>(arguments.case_timeout)};
  const Summary summary =
      must(run_campaign(campaign.header(), arguments.campaign,
                        [&](std::uint64_t index) { return campaign.plan(index + offset); }));
  const int status = report(summary, arguments.report, {{"seed", arguments.seed}});
  if (arguments.report.json != "-") {
    print_labels(contracts, campaign, summary, arguments.profile);
    print_out(fmt::format("seed {}\n", arguments.seed));
  }
  return status;
}

}  // namespace

Run declare_check(CLI::App& app, const Contracts& contracts) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("subjects", arguments->words,
                 "contracts, caches or subjects, for instance provider.paged@optimized; none: all");
  app.add_option("--law", arguments->law_names, "only these laws (kvoracle list)");
  app.add_option("--cases", arguments->cases, "number of cases; without --time 2000")
      ->check(positive());
  app.add_option("--time", arguments->campaign.seconds, "seconds to go on for")->check(positive());
  app.add_option("--case", arguments->only_case, "only the case of this index")
      ->check(not_negative());
  app.add_flag("--timings", arguments->report.timings, "a table of all operations");
  declare_campaign(app, *arguments);
  return [&contracts, arguments] { return run_check(contracts, *arguments); };
}

}  // namespace kvo::tools
