#include "tools/apart.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "tools/in_child.hpp"
#include "tools/told_script.hpp"

namespace kvo::tools {
namespace {

// What a process that tries one script may take: nearly all of them take microseconds.
constexpr std::chrono::seconds kAttemptSilence{2};
// Each costs a process, or the silence.
constexpr std::uint64_t kMostAttempts = 2'000;
constexpr std::uint64_t kMostHungAttempts = 16;

/// One subject's part of a case.
struct Part {
  CaseRecord record = {};
  Verdict verdict = {};
  bool hung = false;
};
BOOST_DESCRIBE_STRUCT(Part, (), (record, verdict, hung))

Verdict no_memory() {
  return {.outcome = Outcome::kOutOfMemory,
          .op = "case",
          .reason = "needs more memory than a case may have"};
}

Verdict death_verdict(const Death& death, const CasePlan& plan, const Subject* subject) {
  if (death.subject == plan.baseline && subject != plan.baseline)
    return {.outcome = Outcome::kVacuous,
            .op_index = death.op_index,
            .reason = "the baseline " + death.how};
  return {.outcome = Outcome::kDied, .op_index = death.op_index, .op = "", .reason = death.how};
}

/// The baseline alone where `subject` is null.
Part run_part(std::uint64_t index, const CasePlan& plan, const Subject* subject, ChildLimits limits,
              const ToldScript& told) {
  const auto part = in_child<Part>(limits, [&]() -> Part {
    CasePlan alone = plan;
    alone.ops = [&] { return told.tell(plan.ops()); };
    alone.subjects.clear();
    if (subject != nullptr) alone.subjects.push_back(subject);
    try {
      const CaseResult result = run_case(alone, {.attempts = 0});
      return {record_of(index, result), result.subjects.back().verdict};
    } catch (const std::bad_alloc&) {
      return {.verdict = no_memory()};
    }
  });
  if (const auto* judged = std::get_if<Part>(&part)) return *judged;
  const auto& death = std::get<Death>(part);
  const Subject* asked = subject != nullptr ? subject : plan.baseline;
  return {.verdict = death_verdict(death, plan, asked), .hung = death.hung};
}

SubjectRecord record_of_part(const Part& part, const std::string& name, std::string_view law) {
  if (!part.record.subjects.empty() && part.record.subjects.back().subject == name)
    return part.record.subjects.back();
  return {.subject = name,
          .outcome = part.verdict.outcome,
          .problem = part.verdict.text(),
          .alike = fmt::format("{} {}", law, part.verdict.signature())};
}

}  // namespace

Verdict run_script_apart(const CasePlan& plan, const Subject& subject, const Script& script,
                         ChildLimits limits) {
  limits.quiet = true;
  const auto judged = in_child<Verdict>(limits, [&] {
    try {
      return run_script(plan, subject, script);
    } catch (const std::bad_alloc&) {
      return no_memory();
    }
  });
  if (const auto* verdict = std::get_if<Verdict>(&judged)) return *verdict;
  Verdict verdict = death_verdict(std::get<Death>(judged), plan, &subject);
  if (verdict.op_index < script.size()) verdict.op = script[verdict.op_index].kind().name;
  return verdict;
}

CaseRecord run_case_apart(std::uint64_t index, const CasePlan& plan, std::uint64_t shrink_attempts,
                          ChildLimits limits,
                          const std::function<void(const SubjectResult&, SubjectRecord&)>& keep) {
  CaseRecord record{.index = index,
                    .name = plan.name,
                    .kind = plan.kind->name(),
                    .law = std::string(plan.law->name())};
  const bool baseline_judged =
      std::ranges::find(plan.subjects, plan.baseline) != plan.subjects.end();
  std::vector<const Subject*> subjects = plan.subjects;
  if (plan.baseline != nullptr && !baseline_judged) subjects.insert(subjects.begin(), nullptr);
  ChildLimits attempt = limits;
  attempt.silence = std::min<std::chrono::duration<double>>(
      limits.silence.count() > 0 ? limits.silence : kAttemptSilence, kAttemptSilence);
  const auto judge = [&](const CasePlan& tried, const Subject& subject, const Script& script) {
    return run_script_apart(tried, subject, script, attempt);
  };
  for (const Subject* subject : subjects) {
    const Subject& named = subject != nullptr ? *subject : *plan.baseline;
    const ToldScript told;
    Part part = run_part(index, plan, subject, limits, told);
    SubjectRecord& own =
        record.subjects.emplace_back(record_of_part(part, named.name(), record.law));
    record.operations = std::max(record.operations, part.record.operations);
    for (const std::string& label : part.record.labels)
      if (std::ranges::find(record.labels, label) == record.labels.end())
        record.labels.push_back(label);
    if (record.figures.empty()) record.figures = part.record.figures;
    if (!part.verdict.failed()) continue;
    Script script = told.script(*plan.kind);
    if (!plan.law->needs_whole_script())
      script = without(script, part.verdict.op_index + 1, script.size());
    if (script.empty()) continue;
    if (part.verdict.outcome == Outcome::kDied) {
      part.verdict.op = script.back().kind().name;
      own.problem = part.verdict.text();
    }
    const std::uint64_t most = part.hung ? kMostHungAttempts : kMostAttempts;
    SubjectResult result{.subject = named.name(), .verdict = part.verdict};
    result.repro = shrink_case(plan, named, std::move(script),
                               {.attempts = std::min(shrink_attempts, most), .judge = judge});
    own.shrunk = shrunk_record(*result.repro);
    keep(result, own);
  }
  std::ranges::sort(record.labels);
  return record;
}

}  // namespace kvo::tools
