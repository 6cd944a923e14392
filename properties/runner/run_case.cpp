#include "properties/runner/run_case.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "properties/runner/linked_script.hpp"
#include "properties/runner/shrunk.hpp"
#include "reference/contract/describe/shrink.hpp"

namespace kvo {
namespace {

using One = std::array<const Subject*, 1>;

std::optional<Judge::Clock::time_point> end_of(const ShrinkOptions& options) {
  if (options.time.count() <= 0) return std::nullopt;
  return Judge::Clock::now() + std::chrono::duration_cast<Judge::Clock::duration>(options.time);
}

// Of one script, however many there are.
constexpr std::chrono::duration<double> kLeastTime{0.1};

// The simplest list of choices with which the script still fails. True if it got simpler.
bool shrink_choices(CasePlan& plan, const std::function<bool()>& fails) {
  std::vector<std::uint32_t> choices = plan.setup.schedule.given();
  const auto fails_with = [&](std::vector<std::uint32_t> tried) {
    // 0 is what a list is followed by.
    while (!tried.empty() && tried.back() == 0) tried.pop_back();
    if (tried == choices) return false;
    const Schedule before = std::exchange(plan.setup.schedule, Schedule(tried));
    if (!fails()) {
      plan.setup.schedule = before;
      return false;
    }
    choices = std::move(tried);
    return true;
  };
  bool any = fails_with(choices);
  // So a list is cut rather than thinned out.
  for (std::size_t cut = choices.size() / 2; cut > 0; cut /= 2)
    while (choices.size() >= cut &&
           fails_with({choices.begin(), choices.end() - std::ptrdiff_t(cut)}))
      any = true;
  for (std::size_t at = choices.size(); at-- > 0;)
    for (const std::uint32_t smaller : {0U, choices[at] / 2, choices[at] - 1}) {
      if (smaller >= choices[at]) continue;
      std::vector<std::uint32_t> lower = choices;
      lower[at] = smaller;
      if (!fails_with(std::move(lower))) continue;
      any = true;
      at = std::min(at, choices.size());  // zeros at the end are cut
      break;
    }
  return any;
}

// What is drawn for a smaller script is another schedule: it may hide the fault, and the next one
// show it. That stays, then.
bool fails_in_another(CasePlan& plan, const std::function<bool()>& fails) {
  constexpr std::uint64_t kTried = 4;
  if (!plan.setup.schedule.seed()) return false;
  const Schedule before = plan.setup.schedule;
  for (std::uint64_t number = 1; number <= kTried; ++number) {
    plan.setup.schedule = Schedule(*before.seed() + number);
    if (fails()) return true;
  }
  plan.setup.schedule = before;
  return false;
}

// Work as late as can be and in the order of its queueing, if the script fails so, too. True if it
// was not before.
bool in_plain_order(CasePlan& plan, const std::function<bool()>& fails) {
  if (!plan.setup.schedule.seed() && plan.setup.schedule.given().empty()) return false;
  const Schedule before = std::exchange(plan.setup.schedule, Schedule());
  if (fails()) return true;
  plan.setup.schedule = before;
  return false;
}

// Who must keep the law on a smaller script as well, so that shrinking does not leave for a fault
// that is not the subject's: the same over the reference of its inside, else the reference itself.
std::optional<Subject> control_of(const CasePlan& plan, const Subject& subject) {
  if (subject.inside && plan.reference_of) {
    Subject outer = subject;
    outer.inside = nullptr;
    return over_cache(outer, plan.reference_of(*subject.inside->kind));
  }
  if (plan.baseline == nullptr || plan.baseline == &subject || !plan.law->judges_reference())
    return std::nullopt;
  return *plan.baseline;
}

/// One script of one subject on its way to a smaller one.
class Shrinking {
 public:
  Shrinking(const CasePlan& plan, const Subject& subject, Script script,
            const ShrinkOptions& options)
      : options_(options),
        subject_(subject),
        simpler_(plan),
        trial_{std::move(script), plan.setup.config},
        until_(end_of(options)),
        judge_([this](const Shrinkable& candidate) { return fails_alike(candidate); },
               options.attempts, until_) {
    if (!judge_.may_ask()) return;
    link();
    first_ = options.judge(plan, subject, trial_.script);
    // A smaller script, or schedule, that fails otherwise is likely to tell of another fault.
    control_ = control_of(plan, subject);
    if (control_ && options.judge(plan, *control_, trial_.script).failed()) control_.reset();
  }
  Shrinking(const Shrinking&) = delete;
  Shrinking& operator=(const Shrinking&) = delete;

  /// How the script fails as it was given; agrees where nothing is tried.
  [[nodiscard]] const Verdict& before() const { return first_; }

  /// Makes script() and simpler() as small and simple as can be. Requires  before().failed().
  void shrink() {
    const Script queries = simplest_queries(simpler_.kind->operations);
    set_symptom(first_);
    simplify(queries);
    while (judge_.may_ask()) {
      // Other queries would give other symptoms.
      Script alike = queries;
      std::erase_if(alike, [&](const Op& query) { return query.kind().name != op_; });
      const bool smaller = shrink_trial(trial_, judge_, alike);
      simpler_.setup.config = trial_.config;
      trial_.script = linked_.resolved(trial_.script, simpler_.setup);
      // Arguments that were made simpler refer to results again.
      if (smaller && link()) continue;
      if (!simplify(queries) && !shrink_schedule()) break;
    }
    simpler_.setup.config = trial_.config;
  }
  [[nodiscard]] const Script& script() const { return trial_.script; }
  [[nodiscard]] const CasePlan& simpler() const { return simpler_; }
  [[nodiscard]] bool is_late() const { return judge_.is_late(); }

 private:
  // True if arguments refer to results.
  bool link() {
    if (!options_.follows_handles || simpler_.baseline == nullptr) return false;
    linked_ = LinkedScript(*simpler_.baseline, simpler_.setup, trial_.script);
    return linked_.links();
  }
  Verdict verdict_of(const Shrinkable& candidate, const Subject& subject) {
    simpler_.setup.config = candidate.config;
    return options_.judge(simpler_, subject, linked_.resolved(candidate.script, simpler_.setup));
  }
  void set_symptom(const Verdict& verdict) {
    symptom_ = verdict.symptom();
    op_ = verdict.op;
    in_error_ = verdict.differs_in_error() && !verdict.lacks_memory();
  }
  bool control_keeps(const Shrinkable& candidate) {
    return !control_ || !verdict_of(candidate, *control_).failed();
  }
  bool fails_as_set(const Shrinkable& candidate) {
    const Verdict verdict = verdict_of(candidate, subject_);
    return verdict.failed() && verdict.symptom() == symptom_ && control_keeps(candidate);
  }
  bool fails_alike(const Shrinkable& candidate) {
    return fails_as_set(candidate) || (draws(simpler_, subject_) && fails_in_another(simpler_, [&] {
                                         return fails_as_set(candidate);
                                       }));
  }

  // What the rest of the shrinking depends on. True if it changed.
  bool simplify(const Script& queries) {
    const bool reads = prefer_reading(queries);
    // In a drawn schedule a fault may hide from a smaller script.
    return (draws(simpler_, subject_) &&
            in_plain_order(simpler_, [&] { return judge_(trial_); })) ||
           reads;
  }

  // Fewer choices, in the place of the seed that they are drawn from. True if any could be.
  bool shrink_schedule() {
    const auto still_fails = [&] { return judge_(trial_); };
    if (!draws(simpler_, subject_)) return false;
    if (!simpler_.setup.schedule.seed()) return shrink_choices(simpler_, still_fails);
    const Schedule before = simpler_.setup.schedule;
    simpler_.setup.schedule = Schedule(verdict_of(trial_, subject_).choices);
    if (!still_fails()) {
      simpler_.setup.schedule = before;  // it does not tell what it draws
      return false;
    }
    (void)shrink_choices(simpler_, still_fails);
    return true;
  }

  // An error tells less of a fault than what is read: the script is cut off before the operation
  // that gives it, or earlier, and ended by a query, if other values show there. True if so.
  bool prefer_reading(const Script& queries) {
    constexpr std::size_t kMostCuts = 40;
    const Script& script = trial_.script;
    if (!in_error_) return false;
    Verdict read;
    Judge shows(
        [&](const Shrinkable& candidate) {
          read = verdict_of(candidate, subject_);
          return read.outcome == Outcome::kMismatch && !read.differs_in_error() &&
                 control_keeps(candidate);
        },
        options_.attempts, until_);
    for (std::size_t cut = 1; cut <= kMostCuts && cut < script.size(); ++cut)
      for (const Op& query : queries) {
        Script candidate = without(script, script.size() - cut, script.size());
        candidate.push_back(query);
        if (!shows.replaces(trial_, std::move(candidate))) continue;
        set_symptom(read);
        return true;
      }
    return false;
  }

  const ShrinkOptions& options_;
  const Subject& subject_;
  CasePlan simpler_;
  Shrinkable trial_;
  LinkedScript linked_;
  std::optional<Judge::Clock::time_point> until_;
  Judge judge_;
  std::optional<Subject> control_;
  Verdict first_;
  std::string symptom_;
  std::string op_;         // of the symptom
  bool in_error_ = false;  // the symptom is one, but for lack of memory
};

// Judges the subjects that draw from it in the further schedules, each until it fails. Returns the
// schedules that they failed in.
std::map<const Subject*, std::uint64_t> add_schedules(const CasePlan& plan, LawRun& run) {
  std::map<const Subject*, std::uint64_t> failing;
  if (!plan.setup.schedule.seed()) return failing;
  for (Judgement& judgement : run.judgements) {
    const One one{judgement.subject};
    if (!judgement.subject->scheduled || judgement.subject == plan.baseline) continue;
    for (std::uint64_t number = 1; number < plan.schedules && !judgement.verdict.failed();
         ++number) {
      CasePlan further = plan;
      further.setup = in_schedule(plan.setup, number);
      const auto ops = plan.ops();
      LawRun again = plan.law->run(further, plan.baseline, one, *ops);
      Judgement& same = again.judgements.back();
      run.operations = std::max(run.operations, again.operations);
      judgement.evidence.add(same.evidence);
      judgement.timings.merge(same.timings);
      if (!same.verdict.failed()) continue;
      judgement.verdict = std::move(same.verdict);
      failing[judgement.subject] = number;
    }
  }
  return failing;
}

}  // namespace

Setup in_schedule(Setup setup, std::uint64_t number) {
  if (number > 0 && setup.schedule.seed())
    setup.schedule = Schedule(*setup.schedule.seed() + number);
  return setup;
}

Script script_until(const CasePlan& plan, std::uint64_t last) {
  const One leading{plan.baseline != nullptr ? plan.baseline : plan.subjects.front()};
  Lockstep lockstep(nullptr, leading, plan.setup);
  const auto ops = plan.ops();
  Labels unused;
  Script script;
  while (script.size() <= last) {
    auto op = ops->next();
    if (!op) break;
    script.push_back(*op);
    if (script.size() <= last) ops->observe(*op, lockstep.step(*op, ops->expected()), unused);
  }
  return script;
}

bool draws(const CasePlan& plan, const Subject& subject) {
  return subject.scheduled || plan.law->draws();
}

SubjectResult result_of(const Judgement& judgement) {
  SubjectResult result{.subject = judgement.subject->name(),
                       .verdict = judgement.verdict,
                       .evidence = judgement.evidence};
  for (const Timings::Row& row : judgement.timings.rows())
    result.timings.push_back(timing_record(row.op->name, row.durations));
  return result;
}

CaseResult run_case(const CasePlan& plan, const ShrinkOptions& shrink) {
  const auto ops = plan.ops();
  LawRun run = plan.law->run(plan, plan.baseline, plan.subjects, *ops);
  const auto failing = add_schedules(plan, run);
  CaseResult result{.name = plan.name,
                    .kind = plan.kind->name(),
                    .law = std::string(plan.law->name()),
                    .operations = run.operations,
                    .labels = {run.labels.begin(), run.labels.end()},
                    .figures = std::move(run.figures)};
  const auto end = end_of(shrink);
  auto failed = std::ranges::count_if(run.judgements,
                                      [](const Judgement& one) { return one.verdict.failed(); });
  for (const Judgement& judgement : run.judgements) {
    SubjectResult& subject = result.subjects.emplace_back(result_of(judgement));
    if (!judgement.verdict.failed()) continue;
    result.config = config_text(plan.setup.config);
    if (judgement.verdict.lacks_memory() && !shrink.without_memory) continue;
    CasePlan guilty = plan;
    if (const auto number = failing.find(judgement.subject); number != failing.end()) {
      guilty.setup = in_schedule(plan.setup, number->second);
      subject.schedule = guilty.setup.schedule.seed();
    }
    const std::uint64_t last =
        plan.law->needs_whole_script() ? run.operations - 1 : judgement.verdict.op_index;
    ShrinkOptions share = shrink;
    if (end)
      share.time = std::max<std::chrono::duration<double>>(
          (*end - Judge::Clock::now()) / double(failed--), kLeastTime);
    add_shrunk(simplest_case(guilty, *judgement.subject, script_until(plan, last), share),
               *judgement.subject, subject);
  }
  return result;
}

Verdict run_script(const CasePlan& plan, const Subject& subject, const Script& script) {
  // A baseline that fails is judged without anybody to agree with.
  const bool itself = &subject == plan.baseline && !plan.law->judges_reference();
  ListedOps ops(script);
  const LawRun run = plan.law->run(plan, itself ? nullptr : plan.baseline, One{&subject}, ops);
  return run.judgements.back().verdict;
}

Smaller smaller_case(const CasePlan& plan, const Subject& subject, Script script,
                     const ShrinkOptions& shrink) {
  Shrinking shrinking(plan, subject, std::move(script), shrink);
  // A fault that only a stream's expectation shows is the baseline's too: the script stays whole.
  if (shrinking.before().failed()) shrinking.shrink();
  return {.plan = shrinking.simpler(),
          .script = shrinking.script(),
          .before = shrinking.before(),
          .verdict = shrink.judge(shrinking.simpler(), subject, shrinking.script()),
          .cut_short = shrinking.is_late()};
}

}  // namespace kvo
