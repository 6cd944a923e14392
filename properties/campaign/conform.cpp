#include "properties/campaign/conform.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "properties/campaign/quirk_attribution.hpp"
#include "properties/runner/led_reference.hpp"
#include "traces/log/case_notation.hpp"

namespace kvo {
namespace {

void add_result(CaseResult& result, const Lockstep::Participant& participant) {
  result.subjects.push_back(result_of(judgement_of(participant)));
}

traces::TraceResult<traces::Case> rest_of_case(traces::LogReader& log, traces::CaseHeader header) {
  traces::Case read{std::move(header)};
  while (true) {
    auto step = log.next_step();
    if (!step) return step.error();
    if (!*step) return read;
    read.steps.push_back(std::move(**step));
  }
}

// What the subjects observe is judged by the reference, what it observes by the log's quirks.
void conform_documented(const Subject& reference, const traces::Case& recorded,
                        std::vector<const Subject*> subjects, const Setup& setup,
                        CaseResult& result) {
  const bool shown = std::erase(subjects, &reference) > 0;
  QuirkAttribution attribution = attribute_quirks(reference, recorded);
  Lockstep lockstep(&reference, subjects, setup);
  for (const traces::Step& step : recorded.steps) lockstep.step(step.op);
  result.operations = lockstep.operations();
  if (shown || attribution.rest.failed()) {
    add_result(result, *lockstep.baseline());
    result.subjects.back().verdict = attribution.rest;
    result.subjects.back().evidence.compared = recorded.steps.size();
  }
  for (const Lockstep::Participant& participant : lockstep.participants())
    add_result(result, participant);
  result.attributions = std::move(attribution.explained);
}

// The log is the script of a law.
void conform_law(const Law& law, const Subject& reference, const traces::Case& script,
                 std::vector<const Subject*> subjects, const Setup& setup, CaseResult& result) {
  if (!law.judges_reference()) std::erase(subjects, &reference);
  if (!law.applies_to(*script.header.kind)) {
    for (const Subject* subject : subjects)
      result.subjects.push_back(
          result_of({.subject = subject,
                     .verdict = {.outcome = Outcome::kNotSupported,
                                 .reason = "law " + std::string(law.name()) +
                                           " does not apply to " + script.header.kind->name()}}));
    return;
  }
  const CasePlan plan{.kind = script.header.kind, .setup = setup, .law = &law};
  std::vector<Op> ops;
  for (const traces::Step& step : script.steps) ops.push_back(step.op);
  ListedOps listed(std::move(ops));
  LawRun run = law.run(plan, &reference, subjects, listed);
  result.operations = run.operations;
  for (const Judgement& judgement : run.judgements) result.subjects.push_back(result_of(judgement));
}

// Three have answered each operation; where two agree, the third is likely to be wrong.
std::string sides_of(const Verdict& subject, const Verdict& reference) {
  if (!reference.failed() || reference.op_index > subject.op_index)
    return "reference and recording agree: two to one against the subject";
  if (reference.op_index < subject.op_index)
    return "the reference had parted from the recording before, at op " +
           std::to_string(reference.op_index);
  if (reference.difference.place == subject.difference.place &&
      reference.difference.got == subject.difference.got)
    return "reference and subject agree: two to one against the recording";
  return "subject, reference and recording all differ; the reference: " + reference.text();
}

// Where a rule case states what a subject does not do.
std::string stated_at(const traces::CaseHeader& header, const traces::Step& step,
                      const std::string& file) {
  std::string text =
      file + ":" + std::to_string(step.line) + ": " + traces::operation_text(step.op);
  if (step.recorded)
    if (const std::string answer = traces::answer_text(*step.recorded); !answer.empty())
      text += " -> " + answer;
  for (const std::string& rule : header.rules)
    text += (&rule == header.rules.data() ? "; rules " : ", ") + rule;
  return text;
}

using NextStep = std::function<traces::TraceResult<std::optional<traces::Step>>()>;

NextStep steps_of(const traces::Case& recorded) {
  return [&recorded,
          at = std::size_t{0}]() mutable -> traces::TraceResult<std::optional<traces::Step>> {
    if (at == recorded.steps.size()) return std::optional<traces::Step>();
    return std::optional<traces::Step>(recorded.steps[at++]);
  };
}

/// A case of a log that is judged by what the log says.
struct JudgedCase {
  const traces::CaseHeader& header;
  const std::string& file;
  NextStep next;
};

// Step by step as the log is read. The reference goes along for its opinion if nobody asked for it.
traces::TraceResult<void> conform_original(const JudgedCase& judged, const Setup& setup,
                                           const Subject& reference,
                                           std::vector<const Subject*> subjects,
                                           CaseResult& result) {
  const bool asked_for = std::ranges::find(subjects, &reference) != subjects.end();
  if (!asked_for && !subjects.empty()) subjects.insert(subjects.begin(), &reference);
  Lockstep lockstep(nullptr, subjects, setup);
  std::vector<traces::Step> stated;
  while (true) {
    const auto step = judged.next();
    if (!step) return step.error();
    if (!*step) break;
    if (judged.header.stated) stated.push_back(**step);
    const auto& recorded = (*step)->recorded;
    if (lockstep.worthwhile(true)) lockstep.step((*step)->op, recorded ? &*recorded : nullptr);
  }
  result.operations = lockstep.operations();
  const auto opinion =
      std::ranges::find(lockstep.participants(), &reference, &Lockstep::Participant::subject);
  for (const Lockstep::Participant& participant : lockstep.participants()) {
    const bool itself = participant.subject == &reference;
    if (itself && !asked_for) continue;
    add_result(result, participant);
    const Verdict& verdict = participant.verdict;
    if (verdict.failed() && verdict.op_index < stated.size())
      result.subjects.back().sides =
          stated_at(judged.header, stated[verdict.op_index], judged.file);
    else if (verdict.outcome == Outcome::kMismatch && !itself)
      result.subjects.back().sides = sides_of(verdict, opinion->verdict);
  }
  return {};
}

// Whether a config stores rows in a type of its own choice.
bool chooses_storage(const Record& config) {
  const auto& fields = config.type().fields;
  const auto storage = std::ranges::find(fields, "storage", &Field::name);
  if (storage == fields.end()) return false;
  const auto fresh = config.type().made();
  return first_difference(*storage->type, storage->of(fresh.get()), storage->of(config.get()))
      .has_value();
}

// Storage types are optional: a subject takes no part in a rule case whose storage it refuses.
void leave_out_refused_storage(const traces::CaseHeader& header, CaseResult& result) {
  if (!header.stated || !header.config || !chooses_storage(header.config)) return;
  const std::string reference = header.kind->name() + "@reference";
  std::erase_if(result.subjects, [&](const SubjectResult& one) {
    return one.verdict.outcome == Outcome::kNotSupported && one.verdict.op_index == 0 &&
           one.subject != reference;
  });
}

// What else a schedule brings to light of subjects that draw from it; they are judged as before.
void add_schedules(const std::function<CaseResult(const Subject&, const Setup&)>& conform,
                   const std::vector<const Subject*>& subjects, const Setup& setup,
                   std::uint64_t schedules, CaseResult& result) {
  for (const Subject* subject : subjects) {
    const auto found = std::ranges::find(result.subjects, subject->name(), &SubjectResult::subject);
    if (!subject->scheduled || found == result.subjects.end()) continue;
    for (std::uint64_t number = 1; number < schedules && !found->verdict.failed(); ++number) {
      SubjectResult again = conform(*subject, in_schedule(setup, number)).subjects.back();
      found->evidence.add(again.evidence);
      merge(found->timings, again.timings);
      if (!again.verdict.failed()) continue;
      found->verdict = std::move(again.verdict);
      found->sides = std::move(again.sides);
      found->schedule = in_schedule(setup, number).schedule.seed();
    }
  }
}

}  // namespace

Setup setup_of(const traces::CaseHeader& header, std::optional<Profile> profile) {
  const Profile own = header.profile.value_or(Profile::kOriginal);
  return {.profile = header.stated ? own : profile.value_or(own),
          .config = header.config,
          .schedule = header.schedule.value_or(schedule_of(case_seed(0, header.line)))};
}

traces::TraceResult<std::optional<CaseResult>> conform_next(const Contracts& contracts,
                                                            traces::LogReader& log,
                                                            const ChooseSubjects& choose,
                                                            const ConformOptions& options) {
  const auto header = log.next_case();
  if (!header) return header.error();
  if (!*header) return std::optional<CaseResult>();
  const traces::CaseHeader& found = **header;
  const Law* law = options.law;
  if (law == nullptr && !found.law.empty() && found.law != agreement().name()) {
    law = contracts.find_law(found.law);
    if (law == nullptr)
      return traces::error_at({found.name, found.line}, "law", found.law, "is no known law");
  }
  const Setup setup = setup_of(found, options.profile);
  CaseResult result{.name = found.name,
                    .kind = found.kind->name(),
                    .law = std::string(law != nullptr ? law->name() : agreement().name())};
  const bool attributed =
      !found.stated && setup.profile == Profile::kDocumented && !found.kind->quirks.empty();
  std::vector<const Subject*> subjects = choose(*found.kind);
  const Subject* chooser = chooser_among(subjects);
  const Subject& followed = contracts.reference_of(*found.kind);
  const Subject reference_of_chooser = chooser != nullptr ? led_by(followed, *chooser) : Subject();
  const Subject& reference = chooser != nullptr ? reference_of_chooser : followed;
  if (chooser != nullptr) std::ranges::replace(subjects, &followed, &reference);
  const bool again = options.schedules > 1 && setup.schedule.seed() &&
                     std::ranges::any_of(subjects, &Subject::scheduled);
  if (law == nullptr && !attributed && !again) {
    const JudgedCase judged{found, log.name(), [&] { return log.next_step(); }};
    if (auto read = conform_original(judged, setup, reference, subjects, result); !read)
      return read.error();
    leave_out_refused_storage(found, result);
    return std::optional<CaseResult>(std::move(result));
  }
  const auto recorded = rest_of_case(log, found);
  if (!recorded) return recorded.error();
  const auto conform = [&](const std::vector<const Subject*>& judged, const Setup& own,
                           CaseResult& into) {
    if (law != nullptr) return conform_law(*law, reference, *recorded, judged, own, into);
    if (attributed) return conform_documented(reference, *recorded, judged, own, into);
    // The whole case is there: reading it cannot fail.
    (void)conform_original({found, log.name(), steps_of(*recorded)}, own, reference, judged, into);
  };
  conform(subjects, setup, result);
  const auto alone = [&](const Subject& subject, const Setup& own) {
    CaseResult part;
    conform({&subject}, own, part);
    return part;
  };
  leave_out_refused_storage(found, result);
  if (again) add_schedules(alone, subjects, setup, options.schedules, result);
  return std::optional<CaseResult>(std::move(result));
}

std::vector<Observation> observe_case(const traces::Case& script, const Subject& reference,
                                      Profile profile) {
  Setup setup = setup_of(script.header, profile);
  setup.profile = profile;
  const std::array<const Subject*, 1> only{&reference};
  Lockstep lockstep(nullptr, only, setup);
  std::vector<Observation> seen;
  if (lockstep.participants().front().verdict.outcome == Outcome::kNotSupported) return seen;
  for (const traces::Step& step : script.steps) seen.push_back(lockstep.step(step.op));
  return seen;
}

Verdict run_recorded(const traces::Case& recorded, const Subject& subject, const Setup& setup) {
  const std::array<const Subject*, 1> only{&subject};
  Lockstep lockstep(nullptr, only, setup);
  for (const traces::Step& step : recorded.steps)
    if (lockstep.worthwhile(true))
      lockstep.step(step.op, step.recorded ? &*step.recorded : nullptr);
  return lockstep.participants().front().verdict;
}

traces::Case shrink_recorded(traces::Case recorded, const Subject& subject, const Setup& setup) {
  const Verdict first = run_recorded(recorded, subject, setup);
  if (!first.failed()) return recorded;
  const traces::Step guilty = recorded.steps[first.op_index];
  recorded.steps = without(recorded.steps, first.op_index, recorded.steps.size());
  const auto fails = [&](const std::vector<traces::Step>& before) {
    traces::Case tried{.header = recorded.header, .steps = before};
    tried.steps.push_back(guilty);
    const Verdict verdict = run_recorded(tried, subject, setup);
    return verdict.op_index == before.size() && verdict.outcome == first.outcome &&
           verdict.reason == first.reason && verdict.difference.text() == first.difference.text();
  };
  while (!recorded.steps.empty() && drop_chunks(recorded.steps, fails)) {
  }
  recorded.steps.push_back(guilty);
  return recorded;
}

}  // namespace kvo
