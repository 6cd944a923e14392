#include "tools/workers/isolated.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "properties/runner/shrunk.hpp"
#include "tools/workers/journal.hpp"

namespace kvo::tools {
namespace {

// What a process that tries one script may take: nearly all of them take microseconds.
constexpr std::chrono::seconds kAttemptSilence{2};
constexpr std::chrono::duration<double> kHungAttemptSilence{0.25};
// Each costs a process, or the silence.
constexpr std::uint64_t kMostAttempts = 2'000;
constexpr std::uint64_t kMostHungAttempts = 16;

/// One subject's part of a case.
struct Part {
  CaseResult result = {};
  Verdict verdict = {};
};
BOOST_DESCRIBE_STRUCT(Part, (), (result, verdict))

Verdict no_memory() {
  return {.outcome = Outcome::kOutOfMemory, .op = "case", .reason = kNeedsMemory};
}

bool used_up(const Verdict& verdict) {
  return verdict.outcome == Outcome::kOutOfMemory && verdict.reason == kNeedsMemory;
}

// "provider.paged@mutant:x" becomes part of a file name.
std::string file_word(std::string_view name) {
  constexpr std::size_t kMost = 80;
  std::string word;
  for (const char c : name.substr(0, kMost))
    word += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' ? c : '_';
  return word;
}

// The operation that a death names: a subject may have overwritten what it wrote there.
const OpKind* known_op(const Death& death, const CacheKind& kind) {
  const auto found = std::ranges::find(kind.operations, death.op);
  return found != kind.operations.end() ? *found : nullptr;
}

Limits attempt_limits(Limits limits, std::chrono::duration<double> silence = kAttemptSilence) {
  limits.quiet = true;
  if (limits.silence.count() <= 0 || limits.silence > silence) limits.silence = silence;
  return limits;
}

// What is known of a death beside its verdict.
void add_death(SubjectResult& result, const Death& death) {
  if (!death.frames.empty()) result.frames = death.frames;
  result.library = death.library;
  if (death.report.empty()) return;
  auto& trace = result.trace.emplace();
  constexpr std::size_t kMostTraceLines = 40;
  for (std::size_t i = 0; i < death.report.size() && trace.size() < kMostTraceLines;) {
    const std::size_t end = std::min(death.report.find('\n', i), death.report.size());
    trace.push_back(death.report.substr(i, end - i));
    i = end + 1;
  }
}

/// A case under way, each subject in a process of its own.
class Isolation {
 public:
  Isolation(std::uint64_t index, const CasePlan& plan, const Isolating& how)
      : plan_(plan), how_(how), limits_(how.limits), first_(how.first) {
    limits_.quiet = true;
    result_ = {.index = index,
               .name = plan.name,
               .kind = plan.kind->name(),
               .law = std::string(plan.law->name())};
  }

  CaseResult run() {
    const bool judged = std::ranges::find(plan_.subjects, plan_.baseline) != plan_.subjects.end();
    // One that makes the choices of a subject runs that subject, too.
    if (plan_.baseline != nullptr && plan_.led == nullptr) run_baseline(judged);
    for (const Subject* subject : plan_.subjects)
      if (subject != plan_.baseline) run_subject(*subject);
    if (first_ != nullptr && !dies_) tell_first();
    std::ranges::sort(result_.labels);
    return std::move(result_);
  }

 private:
  void run_baseline(bool judged) {
    const Journal journal;
    Part part = part_of(judged ? plan_.baseline : nullptr, *plan_.baseline, journal);
    script_ = journal.script(*plan_.kind, plan_.setup);
    if (part.verdict.outcome == Outcome::kDied) baseline_dies_ = part.verdict.reason;
    baseline_used_up_ = used_up(part.verdict);
    const bool told = judged || !how_.run;
    if (told) add(part, *plan_.baseline, journal);
    death_.reset();
  }
  void run_subject(const Subject& subject) {
    Journal own;
    Part part = part_of(&subject, subject, own);
    fault_if_used_up(part.verdict, subject);
    add(part, subject, own);
  }

  // Where the baseline has memory enough for the case.
  void fault_if_used_up(Verdict& verdict, const Subject& subject) const {
    if (!used_up(verdict) || baseline_used_up_ || plan_.baseline == nullptr ||
        plan_.baseline == &subject || plan_.led != nullptr)
      return;
    verdict.outcome = Outcome::kBroken;
    verdict.reason += "; the baseline alone does not";
  }

  // In a process of its own; the baseline alone where `subject` is null.
  Part part_of(const Subject* subject, const Subject& named, const Journal& journal) {
    if (told_pulse != nullptr) tell(named, 0);  // for whoever watches this process
    const auto made = in_process<Part>(limits_of(named), [&]() -> Part {
      CasePlan alone = plan_;
      if (plan_.ops) alone.ops = [&] { return journal.writing(plan_.ops()); };
      alone.subjects.clear();
      if (subject != nullptr) alone.subjects.push_back(subject);
      try {
        Part part{how_.run ? how_.run(alone) : run_case(alone, {.attempts = 0})};
        part.verdict = part.result.subjects.back().verdict;
        for (const SubjectResult& one : part.result.subjects)
          if (used_up(one.verdict)) part.verdict = one.verdict;
        return part;
      } catch (const std::bad_alloc&) {
        free_reserve();
        return {.verdict = no_memory()};
      }
    });
    if (const auto* part = std::get_if<Part>(&made)) return *part;
    const auto& death = std::get<Death>(made);
    if (death.subject == nullptr && !death.killed)
      throw std::runtime_error(
          fmt::format("case {}: a process {} while no subject was at work", plan_.name, death.how));
    dies_ = true;
    death_ = death;
    return {.verdict = verdict_of(death, named, &named == plan_.baseline ? "" : baseline_dies_)};
  }
  // Who has hung for as long as it may needs no such time again.
  [[nodiscard]] Limits limits_of(const Subject& subject) const {
    const bool hung = first_ != nullptr && first_->hung && first_->subject == &subject;
    return hung ? attempt_limits(limits_) : limits_;
  }

  void add(const Part& part, const Subject& subject, const Journal& journal) {
    const std::size_t at = result_.subjects.size();
    SubjectResult& own = result_.subjects.emplace_back();
    const CaseResult& one = part.result;
    if (!one.subjects.empty() && one.subjects.back().subject == subject.name())
      own = one.subjects.back();
    own.shrunk.reset();  // as one process has it
    own.log.reset();
    own.subject = subject.name();
    own.verdict = part.verdict;
    result_.operations = std::max(result_.operations, one.operations);
    for (const std::string& label : one.labels)
      if (std::ranges::find(result_.labels, label) == result_.labels.end())
        result_.labels.push_back(label);
    if (result_.figures.empty()) result_.figures = one.figures;
    if (result_.attributions.empty()) result_.attributions = one.attributions;
    const auto death = std::exchange(death_, std::nullopt);
    if (!part.verdict.failed()) return;
    result_.config = config_text(plan_.setup.config);
    if (death) add_death(own, *death);
    if (!plan_.ops) return;
    Script script = script_of(&journal, part.verdict);
    const bool hung = death && death->hung;
    const Limits attempt =
        hung ? attempt_limits(limits_, kHungAttemptSilence) : attempt_limits(limits_);
    const auto judge = [&](const CasePlan& tried, const Subject& judged, const Script& candidate) {
      Verdict verdict = run_script_isolated(tried, judged, candidate, attempt);
      if (&judged == &subject) fault_if_used_up(verdict, subject);
      return verdict;
    };
    Smaller smaller = simplest_case(
        plan_, subject, script,
        {.attempts = std::min(how_.shrink_attempts, hung ? kMostHungAttempts : kMostAttempts),
         .time = how_.shrink_time,
         .follows_handles = false,
         .judge = judge});
    // On a busy machine what is slow looks as if it hung.
    if (hung)
      smaller.verdict =
          run_script_isolated(smaller.plan, subject, smaller.script, attempt_limits(limits_));
    if (hung && !smaller.verdict.failed())
      smaller = {.plan = plan_, .script = script, .before = part.verdict, .verdict = part.verdict};
    tell_script(at, subject, smaller);
  }

  // Up to the guilty operation. Where what the subject's process wrote was damaged, the baseline's
  // answers lead to the same operations.
  [[nodiscard]] Script script_of(const Journal* journal, const Verdict& verdict) const {
    if (verdict.op == "open") return {};
    const bool whole =
        plan_.law->needs_whole_script() || verdict.op == "unknown" || verdict.op == no_memory().op;
    const std::size_t needed = verdict.op_index + (verdict.op == "close" ? 0 : 1);
    Script script = journal != nullptr ? journal->script(*plan_.kind, plan_.setup) : script_;
    if (whole ? script.empty() : script.size() < needed) script = script_;
    return whole ? script : without(script, needed, script.size());
  }

  void tell_script(std::size_t at, const Subject& subject, const Smaller& smaller) {
    const auto with_script = [&](bool run) {
      SubjectResult told = result_.subjects[at];
      add_shrunk(smaller, subject, told, run);
      return told;
    };
    auto told =
        in_process<SubjectResult>(attempt_limits(limits_), [&] { return with_script(true); });
    const bool lives = std::holds_alternative<SubjectResult>(told);
    result_.subjects[at] = lives ? std::get<SubjectResult>(std::move(told)) : with_script(false);
  }

  // The death of the shared process does not repeat.
  void tell_first() {
    const Subject* subject = first_->killed ? nullptr : blamed(*first_, plan_);
    std::vector<SubjectResult>& all = result_.subjects;
    const std::string name = subject != nullptr ? subject->name() : first_->thread_of;
    if (name.empty()) {
      (void)std::fprintf(stderr, "a process %s in case %s; the case was run again\n",
                         first_->how.c_str(), plan_.name.c_str());
      return;
    }
    auto own = std::ranges::find(all, name, &SubjectResult::subject);
    // A thread may have been started in an earlier case, of another kind of cache.
    if (own == all.end()) own = all.insert(all.end(), {.subject = name});
    if (own->verdict.failed()) return;
    Verdict verdict{.outcome = Outcome::kDied, .op = "of another case", .reason = first_->how};
    if (subject != nullptr) verdict = verdict_of(*first_, *subject);
    verdict.reason += kNotRepeated;
    own->verdict = verdict;
    const auto at = static_cast<std::size_t>(own - all.begin());
    add_death(*own, *first_);
    if (subject == nullptr || !plan_.ops) return;
    tell_script(at, *subject,
                {.plan = plan_, .script = script_of(nullptr, verdict), .before = verdict});
  }

  const CasePlan& plan_;
  const Isolating& how_;
  Limits limits_;
  const Death* first_;
  CaseResult result_;
  Script script_;                   // of the baseline
  std::string baseline_dies_ = {};  // and how; empty: it does not
  bool baseline_used_up_ = false;
  bool dies_ = false;           // anybody
  std::optional<Death> death_;  // of the part under way
};

}  // namespace

// Scripts of other laws and profiles may have the same seed and case.
std::string file_name(const CaseResult& result, const SubjectResult& subject, Profile profile) {
  return fmt::format("{}-{}-{}{}.jsonl", file_word(subject.subject), file_word(result.name),
                     file_word(subject.shrunk ? subject.shrunk->law : result.law),
                     profile == Profile::kDocumented ? "-documented" : "");
}

Verdict verdict_of(const Death& death, const Subject& subject, const std::string& baseline_dies) {
  const OpKind* op = known_op(death, *subject.kind);
  const bool known = op != nullptr || death.op == nullptr;
  Verdict verdict{.outcome = Outcome::kDied,
                  .op_index = known ? death.op_index : 0,
                  .op = op != nullptr         ? std::string(op->name)
                        : !known              ? "unknown"
                        : death.op_index == 0 ? "open"
                                              : "close",
                  .reason = death.how};
  if (!baseline_dies.empty()) {
    verdict.outcome = Outcome::kVacuous;
    verdict.reason = "the baseline " + baseline_dies;
  } else if (death.subject != &subject && death.subject != nullptr && !death.late) {
    verdict.reason += " while another subject was at work in its process";
  }
  return verdict;
}

const Subject* blamed(const Death& death, const CasePlan& plan) {
  const auto in_plan = [&](const auto& is) -> const Subject* {
    const auto found = std::ranges::find_if(plan.subjects, is);
    return found != plan.subjects.end() ? *found : nullptr;
  };
  if (!death.thread_of.empty())
    return in_plan([&](const Subject* one) { return one->name() == death.thread_of; });
  const Subject* at_work = death.subject == plan.baseline
                               ? plan.baseline
                               : in_plan([&](const Subject* one) { return one == death.subject; });
  if (at_work != nullptr && at_work->guest && at_work != plan.baseline) return at_work;
  if (const Subject* guest = in_plan([](const Subject* one) { return one->guest; })) return guest;
  if (at_work != plan.baseline || at_work == nullptr) return at_work;
  const Subject* other = in_plan([&](const Subject* one) { return one != plan.baseline; });
  return other != nullptr ? other : at_work;
}

CaseResult lost_case(std::uint64_t index, const Death& death,
                     std::span<const Subject* const> subjects) {
  const auto subject = std::ranges::find(subjects, death.subject);
  if (subject == subjects.end())
    throw std::runtime_error(
        fmt::format("case {}: the process that isolated its subjects {}", index, death.how));
  CaseResult result{
      .index = index, .name = "case" + std::to_string(index), .kind = (*subject)->kind->name()};
  result.subjects.push_back({.subject = (*subject)->name(),
                             .verdict = {.outcome = Outcome::kDied,
                                         .op = "of the process that isolated it",
                                         .reason = death.how}});
  return result;
}

CaseResult run_case_isolated(std::uint64_t index, const CasePlan& plan, const Isolating& how) {
  return Isolation(index, plan, how).run();
}

Verdict run_script_isolated(const CasePlan& plan, const Subject& subject, const Script& script,
                            Limits limits) {
  limits.quiet = true;
  const auto judged = in_process<Verdict>(limits, [&] {
    try {
      return run_script(plan, subject, script);
    } catch (const std::bad_alloc&) {
      free_reserve();
      return no_memory();
    }
  });
  if (const auto* verdict = std::get_if<Verdict>(&judged)) return *verdict;
  return verdict_of(std::get<Death>(judged), subject);
}

}  // namespace kvo::tools
