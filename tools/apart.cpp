#include "tools/apart.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "reference/contract/describe/json.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo::tools {
namespace {

// What a process that tries one script may take: nearly all of them take microseconds.
constexpr std::chrono::seconds kAttemptSilence{2};
// Each costs a process, or the silence.
constexpr std::uint64_t kMostAttempts = 2'000;
constexpr std::uint64_t kMostHungAttempts = 16;

/// One subject's part of a case.
struct Part {
  CaseRecord record;
  Verdict verdict;
};
BOOST_DESCRIBE_STRUCT(Part, (), (record, verdict))

template <class T>
std::string packed(const T& value) {
  return boost::json::serialize(write_json(value));
}

template <class T>
T unpacked(const std::string& text) {
  T value;
  JsonFault fault;
  KVO_CHECK(read_json(boost::json::parse(text), value, fault));
  return value;
}

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
Part run_part(std::uint64_t index, const CasePlan& plan, const Subject* subject,
              ChildLimits limits) {
  Child child(
      [&](std::string_view /*request*/) {
        CasePlan alone = plan;
        alone.subjects.clear();
        if (subject != nullptr) alone.subjects.push_back(subject);
        Part part;
        try {
          const CaseResult result = run_case(alone, {.attempts = 0});
          part = {record_of(index, result), result.subjects.back().verdict};
        } catch (const std::bad_alloc&) {
          part.verdict = no_memory();
        }
        return packed(part);
      },
      limits);
  child.ask("");
  if (child.wait() == Child::State::kAnswered) return unpacked<Part>(child.take_answer());
  const Subject* asked = subject != nullptr ? subject : plan.baseline;
  return {.record = {}, .verdict = death_verdict(child.death(), plan, asked)};
}

SubjectRecord record_of_part(const Part& part, const std::string& name) {
  if (!part.record.subjects.empty() && part.record.subjects.back().subject == name)
    return part.record.subjects.back();
  return {.subject = name, .outcome = part.verdict.outcome, .problem = part.verdict.text()};
}

}  // namespace

Verdict run_script_apart(const CasePlan& plan, const Subject& subject, const Script& script,
                         ChildLimits limits) {
  limits.quiet = true;
  Child child(
      [&](std::string_view /*request*/) {
        try {
          return packed(run_script(plan, subject, script));
        } catch (const std::bad_alloc&) {
          return packed(no_memory());
        }
      },
      limits);
  child.ask("");
  if (child.wait() == Child::State::kAnswered) return unpacked<Verdict>(child.take_answer());
  Verdict verdict = death_verdict(child.death(), plan, &subject);
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
    Part part = run_part(index, plan, subject, limits);
    SubjectRecord& own = record.subjects.emplace_back(record_of_part(part, named.name()));
    record.operations = std::max(record.operations, part.record.operations);
    for (const std::string& label : part.record.labels)
      if (std::ranges::find(record.labels, label) == record.labels.end())
        record.labels.push_back(label);
    // The script of a baseline that fails cannot be had from its answers.
    if (!part.verdict.failed() || &named == plan.baseline) continue;
    const bool hung = part.verdict.reason.starts_with("hung");
    const std::uint64_t last =
        plan.law->needs_whole_script() ? ~std::uint64_t{0} - 1 : part.verdict.op_index;
    const std::uint64_t most = hung ? kMostHungAttempts : kMostAttempts;
    Script script = script_until(plan, last);
    if (part.verdict.outcome == Outcome::kDied && !script.empty()) {
      part.verdict.op = script.back().kind().name;
      own.problem = part.verdict.text();
    }
    SubjectResult result{.subject = named.name(), .verdict = part.verdict};
    result.repro = shrink_case(plan, named, std::move(script),
                               {.attempts = std::min(shrink_attempts, most), .judge = judge});
    own.repro_operations = result.repro->script.steps.size();
    keep(result, own);
  }
  std::ranges::sort(record.labels);
  return record;
}

}  // namespace kvo::tools
