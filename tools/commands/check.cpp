// tools/commands/check.cpp: `kvoracle check`: random cases against the laws.
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
#include "tools/adapters/systems.hpp"
#include "tools/commands/campaign_options.hpp"
#include "tools/commands/card.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/conventions.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/not_negative.hpp"
#include "tools/commands/program_name.hpp"
#include "tools/commands/selection.hpp"
#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/quantities.hpp"
#include "tools/workers/corpus.hpp"

namespace kvo::tools {
namespace {

constexpr double kDefaultSeconds = 20;

struct CheckArguments : CampaignArguments {
  std::vector<std::string> words;
  std::vector<std::string> law_names;
  std::uint64_t cases = 0;
  std::optional<std::uint64_t> only_case;
  bool require_states = false;
  std::string corpus;  // empty: none
  bool go_on = false;  // with the campaign that the corpus knows
};

// Cases go round over kinds and laws, so that a campaign cut short has tried all of them.
class RandomCases {
 public:
  RandomCases(const Contracts& contracts, const CheckArguments& arguments, const CLI::App& app)
      : contracts_(contracts), arguments_(arguments), app_(app) {
    laws_ = choose_laws(contracts, arguments.law_names);
    std::vector<Comparison> chosen = select_subjects(contracts, arguments.words);
    apply_conventions(contracts, arguments.conventions, chosen);
    for (Comparison& comparison : chosen) {
      std::vector<const Law*> apply = applicable(comparison);
      if (contracts.generator_of(*comparison.kind) == nullptr || apply.empty()) continue;
      comparisons_.push_back(std::move(comparison));
      laws_of_comparisons_.push_back(std::move(apply));
    }
    if (comparisons_.empty())
      throw UsageError("none of these subjects has a generator and a law that applies");
  }

  /// Of its kind under its law, from 0.
  [[nodiscard]] std::uint64_t nth(std::uint64_t index) const {
    return index / comparisons_.size() / laws_for(index).size();
  }

  [[nodiscard]] CasePlan plan(std::uint64_t index) const {
    const Comparison& comparison = comparisons_[index % comparisons_.size()];
    const std::vector<const Law*>& apply = laws_for(index);
    const Law& law = *apply[index / comparisons_.size() % apply.size()];
    std::vector<const Subject*> subjects{comparison.reference};
    subjects.insert(subjects.end(), comparison.subjects.begin(), comparison.subjects.end());
    CasePlan planned = random_case(contracts_, law, subjects, arguments_.seed, index,
                                   arguments_.profile, scale_of(law, nth(index)));
    planned.simpler_laws = apply;
    planned.schedules = arguments_.schedules;
    planned.repeat = repeat_command(app_, arguments_.seed, index);
    return planned;
  }

  [[nodiscard]] const std::vector<Comparison>& comparisons() const { return comparisons_; }
  [[nodiscard]] const std::vector<const Law*>& laws() const { return laws_; }

  /// What decides which cases these are.
  [[nodiscard]] CorpusCampaign campaign() const {
    CorpusCampaign campaign{.seed = arguments_.seed,
                            .profile = arguments_.profile,
                            .schedules = arguments_.schedules,
                            .subjects = subject_names(comparisons_)};
    for (const Law* law : laws_) campaign.laws.emplace_back(law->name());
    return campaign;
  }

  [[nodiscard]] RunHeader header(std::uint64_t first) const {
    RunHeader header{.kvoracle = std::string(kVersion),
                     .command = "check",
                     .seed = arguments_.seed,
                     .profile = arguments_.profile,
                     .subjects = subject_names(comparisons_),
                     .options = {}};
    boost::json::array names;
    for (const Law* law : laws_) names.emplace_back(law->name());
    header.options["laws"] = std::move(names);
    add_conventions(header.options, comparisons_);
    if (arguments_.schedules > 1) header.options["schedules"] = arguments_.schedules;
    if (first > 0) header.options["first"] = first;
    return header;
  }

 private:
  [[nodiscard]] const std::vector<const Law*>& laws_for(std::uint64_t index) const {
    return laws_of_comparisons_[index % comparisons_.size()];
  }
  // A law that concerns no subject but the reference would leave its cases empty.
  [[nodiscard]] std::vector<const Law*> applicable(const Comparison& comparison) const {
    const auto& subjects = comparison.subjects;
    std::vector<const Law*> apply;
    std::ranges::copy_if(laws_, std::back_inserter(apply), [&](const Law* law) {
      const auto concerned = [&](const Subject* subject) { return law->concerns(*subject); };
      return law->applies_to(*comparison.kind) &&
             (subjects.empty() || std::ranges::any_of(subjects, concerned));
    });
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

// From so many cases of a kind on, a state that was not reached is worth a look: most kinds have
// reached all but a few by then.
constexpr std::uint64_t kTellingCases = 300;

// A campaign that never went through a state proves less than it seems to. Names are for campaigns
// that are long enough for few kinds, and on request; else the states are counted.
void print_states(const std::vector<States>& all, std::uint64_t cases, bool by_name) {
  constexpr std::size_t kFewKinds = 3;
  std::size_t wanted = 0;
  std::size_t missing = 0;
  for (const States& states : all) {
    wanted += states.wanted;
    missing += states.missing.size();
  }
  const bool telling = missing == 0 || cases >= kTellingCases * all.size();
  if (!by_name && (all.size() > kFewKinds || !telling)) {
    const std::string text =
        fmt::format("states that matter: {} of {} reached{}", count_text(wanted - missing),
                    count_text(wanted), missing == 0 ? "" : "; --require-states lists the others");
    print_out(wrapped(text, output_columns(), 2) + "\n");
    return;
  }
  for (const States& states : all)
    print_out(states.missing.empty() ? fmt::format("{}: all {} states that matter were reached\n",
                                                   states.kind, states.wanted)
                                     : wrapped(fmt::format("{}: never reached: {}", states.kind,
                                                           fmt::join(states.missing, "; ")),
                                               output_columns(), 2) +
                                           "\n");
}

// Of releases that are not known: what differs may be their own way, and no fault.
std::vector<std::string> drift_texts(const std::vector<Comparison>& chosen) {
  std::vector<std::string> texts;
  for (const Comparison& comparison : chosen)
    for (const Subject* subject : comparison.subjects)
      if (!subject->conventions_of.empty())
        texts.push_back(
            fmt::format("{} is {}, no known release, and is judged by the conventions of {}: what "
                        "differs may be drift between the releases, and no fault",
                        subject->name(), subject->doc, subject->conventions_of));
  return texts;
}

// Subjects of the chosen caches that take part only where they are named, in words; empty: none.
std::string left_out_text(const Contracts& contracts, const std::vector<Comparison>& chosen) {
  constexpr std::size_t kFew = 3;
  std::vector<std::string> names;
  for (const Comparison& comparison : chosen)
    for (const Subject* subject : contracts.subjects_without_card(*comparison.kind))
      if (subject->on_request &&
          std::ranges::find(comparison.subjects, subject) == comparison.subjects.end())
        names.push_back(subject->name());
  if (names.empty()) return "";
  return fmt::format("not tried unless named: {}",
                     names.size() > kFew ? fmt::format("'*@cuda-sim' of {} caches", names.size())
                                         : fmt::format("{}", fmt::join(names, ", ")));
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

void check_corpus(const CheckArguments& arguments, const CLI::App& app) {
  if (arguments.corpus.empty() && arguments.go_on)
    throw UsageError("--continue needs the folder that knows where the campaign stopped: --corpus");
  if (arguments.go_on && arguments.only_case)
    throw UsageError("--continue and --case name different cases");
  if (!arguments.corpus.empty() && app.get_option("--repros")->count() > 0)
    throw UsageError("--corpus keeps failing scripts itself: leave --repros out");
}

// The end of a campaign in which finds are looked for: its last hour, or half of a shorter one.
double late_seconds(double seconds) {
  constexpr double kHour = 3600;
  return std::min(kHour, seconds / 2);
}

/// How many finds of a sort there were, and how many of them late.
struct Finds {
  std::uint64_t all = 0;
  std::uint64_t late = 0;
};

Finds finds_of(const Corpus& corpus, bool states) {
  const double late = corpus.seconds() - late_seconds(corpus.seconds());
  Finds counted;
  for (const CorpusFind& find : corpus.finds()) {
    if (find.state != states) continue;
    ++counted.all;
    counted.late += find.seconds >= late ? 1 : 0;
  }
  return counted;
}

void print_corpus(const Corpus& corpus, const std::string& folder, std::uint64_t replayed,
                  std::uint64_t next) {
  constexpr std::size_t kMostShown = 10;
  const Finds states = finds_of(corpus, true);
  const Finds failures = finds_of(corpus, false);
  print_out(fmt::format(
      "corpus {}: {} replayed; new to it: {}, {}; it has {} and {}; case {} is next\n",
      printable(folder), count_text(replayed, "case"), count_text(states.all, "state"),
      count_text(failures.all, "failure"), count_text(corpus.state().scripts.size(), "script"),
      count_text(corpus.state().cases.size(), "case"), next));
  constexpr double kNanoseconds = 1e9;
  const double late = late_seconds(corpus.seconds());
  print_out(fmt::format("the last {} found {} and {}\n", duration_text(late * kNanoseconds),
                        count_text(states.late, "new state"),
                        count_text(failures.late, "new failure")));
  std::size_t shown = 0;
  for (const CorpusFind& find : corpus.finds())
    if (find.seconds >= corpus.seconds() - late && shown++ < kMostShown)
      print_out(fmt::format("  {}\n", printable(find.what)));
}

boost::json::object corpus_json(const Corpus& corpus, std::uint64_t replayed, std::uint64_t first,
                                std::uint64_t next) {
  const Finds states = finds_of(corpus, true);
  const Finds failures = finds_of(corpus, false);
  return {{"scripts", corpus.state().scripts.size()},
          {"cases", corpus.state().cases.size()},
          {"replayed", replayed},
          {"first", first},
          {"next", next},
          {"new_states", states.all},
          {"new_failures", failures.all},
          {"late_states", states.late},
          {"late_failures", failures.late}};
}

/// A campaign beside what its corpus keeps; without a corpus, the campaign alone.
class KeptCampaign {
 public:
  KeptCampaign(const Contracts& contracts, CheckArguments& arguments, const RandomCases& cases)
      : arguments_(arguments), cases_(cases), first_(arguments.only_case.value_or(0)) {
    if (arguments.corpus.empty()) return;
    arguments.campaign.repro_folder = arguments.corpus;
    corpus_.emplace(arguments.corpus, contracts);
    if (arguments.go_on) first_ = corpus_->next_case(cases.campaign());
  }

  Campaign run() {
    Summary all;
    Campaign campaign;
    if (corpus_) campaign = replay(all);
    if (campaign.interrupted || !campaign.fault.empty()) return campaign;
    const auto seen = [&](CaseResult record) {
      const std::uint64_t index = first_ + record.index;
      if (corpus_) corpus_->found(record, index, cases_.nth(index));
      all.add(record);
    };
    if (corpus_) corpus_->begin(cases_.campaign());
    campaign = run_campaign(
        cases_.header(first_), arguments_.campaign,
        [&](std::uint64_t index) { return cases_.plan(first_ + index); }, seen);
    next_ = first_ + campaign.summary.cases();
    campaign.summary = std::move(all);
    if (corpus_) corpus_->save();
    return campaign;
  }

  [[nodiscard]] const std::optional<Corpus>& corpus() const { return corpus_; }
  [[nodiscard]] std::uint64_t replayed() const { return replayed_; }
  [[nodiscard]] std::uint64_t first() const { return first_; }
  /// The index behind the last case.
  [[nodiscard]] std::uint64_t next() const { return next_; }

 private:
  Campaign replay(Summary& all) {
    const auto plans = corpus_->replays(cases_.comparisons(), cases_.laws(), arguments_.profile);
    CampaignOptions options = arguments_.campaign;
    options.cases = plans.size();
    options.seconds = 0;
    options.output.clear();
    Campaign campaign = run_campaign(
        {}, options, [&](std::uint64_t index) { return plans[index]; },
        [&](CaseResult record) {
          corpus_->replayed(record, arguments_.profile);
          all.add(record);
        });
    replayed_ = campaign.summary.cases();
    return campaign;
  }

  CheckArguments& arguments_;
  const RandomCases& cases_;
  std::optional<Corpus> corpus_;
  std::uint64_t first_;
  std::uint64_t next_ = 0;
  std::uint64_t replayed_ = 0;
};

// Without any of these options a campaign takes a while that people wait for.
void set_extent(CheckArguments& arguments) {
  CampaignOptions& campaign = arguments.campaign;
  campaign.cases = arguments.only_case ? 1 : arguments.cases;
  if (campaign.cases > 0) return;
  campaign.cases = CampaignOptions::kEndless;
  if (campaign.seconds <= 0) campaign.seconds = kDefaultSeconds;
}

// Whoever stops by the clock can have the same cases again by their number.
void print_extent(const CheckArguments& arguments, const KeptCampaign& kept) {
  const bool by_clock = arguments.campaign.cases == CampaignOptions::kEndless;
  print_out(fmt::format("seed {}{}\n", arguments.seed,
                        by_clock && kept.first() == 0
                            ? fmt::format("; the same cases again: --cases {}", kept.next())
                            : ""));
}

int run_check(const Contracts& contracts, CheckArguments& arguments, const CLI::App& app) {
  check_files(arguments,
              {arguments.corpus.empty() ? std::string() : arguments.corpus + "/corpus.json"});
  check_corpus(arguments, app);
  catch_interruption();
  const RandomCases cases(contracts, arguments, app);
  if (const auto missing = missing_card(cases.comparisons()); !missing.empty())
    print_error(missing);
  arguments.campaign.timings =
      arguments.report.timings || app.get_option("--timings")->count() == 0;
  // Random sizes may be absurd on purpose; a case that memory ends has shown all it can.
  arguments.report.memory_matters = false;
  arguments.report.laws = true;
  arguments.report.result = "check";
  arguments.report.profile = arguments.profile;
  const bool named = std::ranges::any_of(arguments.words, [](const std::string& word) {
    return word.find('@') != word.npos || find_system(word) != nullptr;
  });
  if (std::string note = left_out_text(contracts, cases.comparisons()); !named && !note.empty())
    arguments.report.notes = {std::move(note)};
  for (std::string& note : drift_texts(cases.comparisons()))
    arguments.report.notes.push_back(std::move(note));
  arguments.report.convention_files = arguments.conventions;
  arguments.report.conventions = shown_conventions(cases.comparisons());
  set_extent(arguments);
  arguments.campaign.first_failure = first_failure_text(contracts, arguments.report);
  KeptCampaign kept(contracts, arguments, cases);
  const Campaign campaign = kept.run();
  const auto states = states_of(contracts, cases, campaign.summary, arguments.profile);
  if (arguments.require_states) arguments.report.suites = {junit_suite(states)};
  boost::json::object facts{{"seed", arguments.seed}};
  if (kept.corpus())
    facts["corpus"] = corpus_json(*kept.corpus(), kept.replayed(), kept.first(), kept.next());
  int status = report(contracts, campaign.summary, arguments.report, std::move(facts));
  if (arguments.report.text()) {
    print_states(states, campaign.summary.cases(), arguments.require_states);
    if (kept.corpus()) print_corpus(*kept.corpus(), arguments.corpus, kept.replayed(), kept.next());
    print_extent(arguments, kept);
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
  app.add_option("--law", arguments->law_names,
                 "only these laws, as a_b_a or 'order*'; '!NAME': all but this one (list laws)")
      ->type_name("LAW");
  app.add_option("--cases", arguments->cases, "number of cases")
      ->check(positive())
      ->group(kExtentGroup);
  app.add_option("--time", arguments->campaign.seconds,
                 "how long to go on; 20 where neither this nor a number of cases is given")
      ->type_name("SECONDS")
      ->check(positive())
      ->group(kExtentGroup);
  app.add_option("--case", arguments->only_case, "only the case of this index")
      ->check(not_negative())
      ->group(kExtentGroup);
  app.add_flag("--require-states", arguments->require_states,
               "a state that matters and was not reached is a failure (exit status 1)")
      ->group(kRunningGroup);
  app.add_flag("--timings,!--no-timings", arguments->report.timings,
               "a table of all operations; --no-timings: nor are times in the run file")
      ->group(kRunningGroup);
  app.add_option("--corpus", arguments->corpus,
                 "folder that keeps failing scripts and cases that reach new states; what it holds "
                 "is replayed first")
      ->type_name("FOLDER")
      ->group(kRunningGroup);
  app.add_flag("--continue", arguments->go_on,
               "begin with the case at which the last campaign of the corpus stopped")
      ->group(kExtentGroup);
  declare_campaign(app, *arguments, true);
  return [&contracts, &app, arguments] { return run_check(contracts, *arguments, app); };
}

}  // namespace kvo::tools
