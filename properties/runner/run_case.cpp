#include "properties/runner/run_case.hpp"

#include <array>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "properties/runner/explained.hpp"
#include "properties/runner/inside.hpp"
#include "reference/contract/describe/element.hpp"
#include "reference/contract/describe/shrink.hpp"

namespace kvo {
namespace {

using One = std::array<const Subject*, 1>;

// What the baseline observes of a script; a subject without one is its own.
std::vector<traces::Step> recorded(const CasePlan& plan, const Subject& subject,
                                   const Script& script) {
  const One leading{plan.baseline != nullptr ? plan.baseline : &subject};
  Lockstep lockstep(nullptr, leading, plan.setup);
  std::vector<traces::Step> steps;
  for (const Op& op : script) steps.push_back({op, lockstep.step(op)});
  return steps;
}

std::vector<traces::Step> unrecorded(const Script& script) {
  std::vector<traces::Step> steps;
  for (const Op& op : script) steps.push_back({op, std::nullopt});
  return steps;
}

// What the operations up to the guilty one put into the cache, told by its elements: tags differ.
std::vector<std::string> origins_of(const Script& script, const Verdict& verdict) {
  constexpr std::size_t kMostElements = 1'000'000;
  if (verdict.difference.elements == 0) return {};
  std::map<std::string, std::vector<std::string>> found{{verdict.difference.want, {}},
                                                        {verdict.difference.got, {}}};
  std::size_t looked_at = 0;
  for (std::size_t i = 0; i < script.size() && i <= verdict.op_index; ++i)
    for_each_tensor(script[i].arguments().type(), script[i].arguments().get(),
                    [&](std::string_view place, const Tensor& tensor, AxisNames axes) {
                      const std::size_t count = tensor.bytes.size() / dtype_bytes(tensor.dtype);
                      for (std::size_t at = 0; at < count && looked_at < kMostElements; ++at) {
                        ++looked_at;
                        const auto known = found.find(element_text(tensor, at));
                        if (known != found.end())
                          known->second.push_back(known->first + " is " + std::string(place) +
                                                  coordinates(tensor.shape, at, axes) + " of op " +
                                                  std::to_string(i) + " " +
                                                  std::string(script[i].kind().name));
                      }
                    });
  std::vector<std::string> origins;
  for (const std::string& value : {verdict.difference.want, verdict.difference.got})
    if (const auto& places = found[value]; places.size() == 1) origins.push_back(places.front());
  return origins;
}

// The simplest config with which the script still fails.
void shrink_config(CasePlan& plan, const std::function<bool()>& fails) {
  while (plan.setup.config && shrink_record(plan.setup.config, [&](Record simpler) {
           const Record before = std::exchange(plan.setup.config, std::move(simpler));
           if (fails()) return true;
           plan.setup.config = before;
           return false;
         })) {
  }
}

// The simplest list of choices with which the script still fails.
void shrink_choices(CasePlan& plan, const std::function<bool()>& fails) {
  const auto fails_with = [&](const std::vector<std::uint32_t>& choices) {
    const Schedule before = std::exchange(plan.setup.schedule, Schedule(choices));
    if (fails()) return true;
    plan.setup.schedule = before;
    return false;
  };
  std::vector<std::uint32_t> choices = plan.setup.schedule.given();
  // 0 is what stands behind the end of a list, so a list is cut rather than thinned out.
  for (std::size_t cut = choices.size() / 2; cut > 0; cut /= 2)
    while (choices.size() >= cut) {
      std::vector<std::uint32_t> shorter(choices.begin(), choices.end() - std::ptrdiff_t(cut));
      if (!fails_with(shorter)) break;
      choices = std::move(shorter);
    }
  for (std::size_t at = choices.size(); at-- > 0;)
    for (const std::uint32_t smaller : {0U, choices[at] / 2, choices[at] - 1}) {
      if (smaller >= choices[at]) continue;
      std::vector<std::uint32_t> lower = choices;
      lower[at] = smaller;
      if (!fails_with(lower)) continue;
      choices = std::move(lower);
      break;
    }
  while (!choices.empty() && choices.back() == 0) choices.pop_back();
  (void)fails_with(choices);
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

// Work as late as can be and in the order of its queueing, if the script fails so, too.
void in_plain_order(CasePlan& plan, const std::function<bool()>& fails) {
  const Schedule before = std::exchange(plan.setup.schedule, Schedule());
  if (!fails()) plan.setup.schedule = before;
}

// Whether a verdict depends on the setup's schedule.
bool scheduled(const CasePlan& plan, const Subject& subject) {
  return subject.scheduled || plan.law->draws();
}

// The plain one, too: a log without one has a seed by its place.
std::optional<Schedule> header_schedule(const CasePlan& plan, const Subject& subject) {
  return scheduled(plan, subject) ? std::optional(plan.setup.schedule) : std::nullopt;
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
        script_(std::move(script)),
        left_(options.attempts) {
    if (left_ == 0) return;
    first_ = options.judge(plan, subject, script_);
    // A smaller script, or schedule, that fails otherwise is likely to tell of another fault.
    control_ = control_of(plan, subject);
    if (control_ && options.judge(plan, *control_, script_).failed()) control_.reset();
  }

  /// How the script fails as it was given; agrees where nothing is tried.
  [[nodiscard]] const Verdict& before() const { return first_; }

  /// Makes script() and simpler() as small and simple as can be. Requires  before().failed().
  void shrink() {
    const Script queries = simplest_queries(simpler_.kind->operations);
    const auto fails = [&](const Script& candidate) { return fails_alike(candidate); };
    const auto still_fails = [&] { return asked() && fails_alike(script_); };
    const bool drawn = scheduled(simpler_, subject_);
    symptom_ = first_.symptom();
    prefer_reading(queries);
    // In a drawn schedule a fault may hide from a smaller script.
    if (drawn) in_plain_order(simpler_, still_fails);
    script_ = shrink_script(std::move(script_), fails, options_.attempts, queries);
    if (drawn && simpler_.setup.schedule.seed()) {
      const Schedule before = simpler_.setup.schedule;
      simpler_.setup.schedule = Schedule(options_.judge(simpler_, subject_, script_).choices);
      if (still_fails()) {
        shrink_choices(simpler_, still_fails);
        script_ = shrink_script(std::move(script_), fails, options_.attempts, queries);
        shrink_choices(simpler_, still_fails);
      } else {
        simpler_.setup.schedule = before;  // it does not tell what it draws
      }
    }
    shrink_config(simpler_, still_fails);
  }
  [[nodiscard]] const Script& script() const { return script_; }
  [[nodiscard]] const CasePlan& simpler() const { return simpler_; }

 private:
  bool asked() { return left_ > 0 && left_-- > 0; }
  [[nodiscard]] bool control_keeps(const Script& candidate) const {
    return !control_ || !options_.judge(simpler_, *control_, candidate).failed();
  }
  [[nodiscard]] bool fails_as_set(const Script& candidate) const {
    const Verdict verdict = options_.judge(simpler_, subject_, candidate);
    return verdict.failed() && verdict.symptom() == symptom_ && control_keeps(candidate);
  }
  bool fails_alike(const Script& candidate) {
    return fails_as_set(candidate) ||
           (scheduled(simpler_, subject_) &&
            fails_in_another(simpler_, [&] { return fails_as_set(candidate); }));
  }

  // An error tells less of a fault than what is read: the script is cut off before the operation
  // that gives it, or earlier, and ended by a query, if other values show there.
  void prefer_reading(const Script& queries) {
    constexpr std::size_t kMostCuts = 40;
    if (!first_.differs_in_error()) return;
    for (std::size_t cut = 1; cut <= kMostCuts && cut < script_.size(); ++cut)
      for (const Op& query : queries) {
        Script candidate = without(script_, script_.size() - cut, script_.size());
        candidate.push_back(query);
        if (!asked()) return;
        const Verdict verdict = options_.judge(simpler_, subject_, candidate);
        if (verdict.outcome != Outcome::kMismatch || verdict.differs_in_error() ||
            !control_keeps(candidate))
          continue;
        symptom_ = verdict.symptom();
        script_ = std::move(candidate);
        return;
      }
  }

  const ShrinkOptions& options_;
  const Subject& subject_;
  CasePlan simpler_;
  Script script_;
  std::uint64_t left_;
  std::optional<Subject> control_;
  Verdict first_;
  std::string symptom_;
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
    if (script.size() <= last) ops->saw(*op, lockstep.step(*op, ops->expected()), unused);
  }
  return script;
}

CaseResult run_case(const CasePlan& plan, const ShrinkOptions& shrink) {
  const auto ops = plan.ops();
  LawRun run = plan.law->run(plan, plan.baseline, plan.subjects, *ops);
  const auto failing = add_schedules(plan, run);
  CaseResult result{.name = plan.name,
                    .kind = plan.kind->name(),
                    .law = plan.law->name(),
                    .operations = run.operations,
                    .labels = std::move(run.labels),
                    .figures = std::move(run.figures)};
  for (Judgement& judgement : run.judgements) {
    SubjectResult& subject = result.subjects.emplace_back(
        SubjectResult{judgement.subject->name(), judgement.verdict, judgement.evidence,
                      std::move(judgement.timings)});
    if (!judgement.verdict.failed()) continue;
    if (judgement.verdict.lacks_memory() && !shrink.without_memory) continue;
    CasePlan guilty = plan;
    if (const auto number = failing.find(judgement.subject); number != failing.end()) {
      guilty.setup = in_schedule(plan.setup, number->second);
      subject.schedule = guilty.setup.schedule.seed();
    }
    const std::uint64_t last =
        plan.law->needs_whole_script() ? run.operations - 1 : judgement.verdict.op_index;
    subject.repro = shrink_case(guilty, *judgement.subject, script_until(plan, last), shrink);
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
          .verdict = shrink.judge(shrinking.simpler(), subject, shrinking.script())};
}

Repro repro_of(const Smaller& smaller, const Subject& subject, bool run) {
  const CasePlan& plan = smaller.plan;
  const Verdict& last = smaller.verdict;
  // Who dies of the script cannot be asked what it observes.
  const bool leads = plan.baseline == nullptr || plan.baseline == &subject;
  const bool dies = leads && last.outcome == Outcome::kDied;
  Repro repro{
      .script = {.header = {.kind = plan.kind,
                            .system = "kvoracle",
                            .version = (plan.baseline != nullptr ? *plan.baseline : subject).name(),
                            .name = plan.name,
                            .note = plan.note,
                            .profile = plan.setup.profile,
                            .law = std::string(plan.law->name()),
                            .config = plan.setup.config,
                            .schedule = header_schedule(plan, subject)},
                 .steps = run && !dies ? recorded(plan, subject, smaller.script)
                                       : unrecorded(smaller.script)},
      .verdict = last,
      .before = smaller.before};
  repro.origins = origins_of(smaller.script, repro.verdict);
  if (run && last.failed() && last.outcome != Outcome::kDied) {
    repro.inside = told_inside(plan, subject, smaller.script, last.op_index);
    for (std::string& line : explained(plan, subject, smaller.script, last))
      repro.inside.push_back(std::move(line));
  }
  return repro;
}

Repro shrink_case(const CasePlan& plan, const Subject& subject, Script script,
                  const ShrinkOptions& shrink) {
  return repro_of(smaller_case(plan, subject, std::move(script), shrink), subject);
}

}  // namespace kvo
