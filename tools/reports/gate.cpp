#include "tools/reports/gate.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/reports/found_or_added.hpp"
#include "tools/reports/paired_ratios.hpp"
#include "tools/reports/quantities.hpp"
#include "tools/reports/summary.hpp"

namespace kvo::tools {
namespace {

using Pair = std::pair<std::string, std::string>;

constexpr std::string_view kNeverReached = "never reached: ";

// ---- What was found, and what was reached ----

struct Reached {
  std::vector<std::string> subjects;  // in order of first appearance
  std::map<std::string, std::uint64_t> operations;
  std::set<Pair> states;  // kind, label
  LawVerdicts laws;
};

Reached reached_in(const RunRecord& run) {
  Reached reached;
  for (const CaseResult& record : run.cases) {
    for (const std::string& label : record.labels) reached.states.insert({record.kind, label});
    for (const SubjectResult& subject : record.subjects) {
      if (!reached.operations.contains(subject.subject))
        reached.subjects.push_back(subject.subject);
      reached.operations[subject.subject] += record.operations;
    }
    reached.laws.add(record);
  }
  return reached;
}

bool is_fewer(std::uint64_t now, std::uint64_t before, const GateTerms& terms) {
  return static_cast<double>(now) < static_cast<double>(before) * (1 - terms.fewer);
}

void look_at_reach(const Reached& before, const Reached& now, const GateTerms& terms,
                   std::vector<GateFinding>& findings) {
  for (const std::string& subject : before.subjects) {
    const auto known = now.operations.find(subject);
    const std::uint64_t had = before.operations.at(subject);
    if (known == now.operations.end())
      findings.push_back({Regression::kSubjectGone, subject,
                          fmt::format("takes no part; it had {}", count_text(had, "operation"))});
    else if (is_fewer(known->second, had, terms))
      findings.push_back(
          {Regression::kFewerOperations, subject,
           fmt::format("{}, {} before", count_text(known->second, "operation"), count_text(had))});
  }
  std::map<Pair, std::uint64_t> judged;
  for (const LawVerdict& row : now.laws.rows()) judged[{row.subject, row.law}] = row.judged;
  for (const LawVerdict& row : before.laws.rows())
    if (const std::uint64_t cases = judged[{row.subject, row.law}];
        now.operations.contains(row.subject) && is_fewer(cases, row.judged, terms))
      findings.push_back({Regression::kFewerCases, row.subject,
                          fmt::format("{} judged by {}, {} before", count_text(cases, "case"),
                                      row.law, count_text(row.judged))});
  for (const auto& [kind, label] : before.states)
    if (!now.states.contains({kind, label}))
      findings.push_back({Regression::kStateLost, kind, std::string(kNeverReached) + label});
}

// Whose case failed how. Where the cases of two runs differ, which one it was says nothing.
using Failure = std::tuple<std::string, std::uint64_t, std::string>;

Failure failure_of(const CaseResult& record, const SubjectResult& subject, bool by_case) {
  return {subject.subject, by_case ? record.index : 0,
          record.law + " " + subject.verdict.symptom()};
}

void look_at_failures(const RunRecord& baseline, const RunRecord& current, GateResult& result) {
  const bool by_case = same_cases(baseline.header, current.header);
  std::set<Failure> known;
  for (const CaseResult& record : baseline.cases)
    for (const SubjectResult& subject : record.subjects)
      if (subject.verdict.failed()) known.insert(failure_of(record, subject, by_case));
  std::map<Pair, std::size_t> told;  // subject and way to fail -> its finding
  std::vector<std::uint64_t> cases;
  for (const CaseResult& record : current.cases)
    for (const SubjectResult& subject : record.subjects) {
      if (!subject.verdict.failed()) continue;
      if (known.contains(failure_of(record, subject, by_case))) {
        ++result.known_failures;
        continue;
      }
      const auto [one, fresh] =
          told.try_emplace({subject.subject, subject.group(record.law)}, cases.size());
      if (!fresh) {
        ++cases[one->second];
        continue;
      }
      cases.push_back(1);
      result.findings.push_back(
          {Regression::kFailure, subject.subject,
           fmt::format("fails in case {}: {}", record.name, subject.verdict.text())});
    }
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (cases[i] > 1)
      result.findings[i].what += fmt::format(" (and alike in {} more)", count_text(cases[i] - 1));
}

// ---- Times ----

struct Times {
  std::string subject;
  std::string op;
  std::vector<double> before = {};  // logarithms of ratios
  std::vector<double> now = {};
  std::vector<double> growth = {};
  std::vector<double> noise = {};
};

const SubjectResult* agreeing(const CaseResult& record, const std::string& name) {
  const auto found = std::ranges::find(record.subjects, name, &SubjectResult::subject);
  return found != record.subjects.end() && found->verdict.outcome == Outcome::kAgrees ? &*found
                                                                                      : nullptr;
}

// What a call of an operation takes, of all of them for the empty name, and how long all calls
// take.
struct Spent {
  double nanoseconds = 0;
  double calls = 0;
};

Spent spent_in(const SubjectResult& subject, const std::string& op) {
  Spent spent;
  for (const TimingRecord& timing : subject.timings) {
    if (!op.empty() && timing.op != op) continue;
    spent.nanoseconds += static_cast<double>(timing.total_nanoseconds);
    for (const HistogramRecord& bucket : timing.histogram)
      spent.calls += static_cast<double>(bucket.count);
  }
  return spent;
}

// Of shorter calls a good part is the reading of the clock.
bool is_too_short(const Spent& spent) {
  constexpr double kLeastNanoseconds = 200;
  return spent.nanoseconds < kLeastNanoseconds * std::max(spent.calls, 1.0);
}

// The logarithm of a subject's time over the reference's, in one case; nothing without both, and
// where one is too short to tell.
std::optional<double> ratio_in(const CaseResult& record, const std::string& subject,
                               const std::string& op) {
  const SubjectResult* one = agreeing(record, subject);
  const SubjectResult* reference = agreeing(record, reference_name(subject));
  if (one == nullptr || reference == nullptr) return std::nullopt;
  const Spent own = spent_in(*one, op);
  const Spent other = spent_in(*reference, op);
  if (is_too_short(own) || is_too_short(other)) return std::nullopt;
  return std::log(own.nanoseconds / other.nanoseconds);
}

bool are_one_case(const CaseResult& one, const CaseResult& other) {
  return one.name == other.name && one.kind == other.kind && one.law == other.law &&
         one.operations == other.operations;
}

void add_case(const CaseResult& before, const CaseResult& now, const CaseResult* again,
              std::vector<Times>& all) {
  if (!are_one_case(before, now)) return;
  if (again != nullptr && !are_one_case(before, *again)) again = nullptr;
  for (const SubjectResult& subject : now.subjects) {
    const std::string& name = subject.subject;
    if (name == reference_name(name) || name.ends_with("@" + std::string(kLimitVariant))) continue;
    std::vector<std::string> ops{""};
    for (const TimingRecord& timing : subject.timings) ops.push_back(timing.op);
    for (const std::string& op : ops) {
      const auto one = ratio_in(before, name, op);
      const auto other = ratio_in(now, name, op);
      if (!one || !other) continue;
      Times& times = found_or_added(all, {name, op}, &Times::subject, &Times::op);
      times.before.push_back(*one);
      times.now.push_back(*other);
      times.growth.push_back(*other - *one);
      const auto repeated = again != nullptr ? ratio_in(*again, name, op) : std::nullopt;
      if (repeated) times.noise.push_back(*repeated - *one);
    }
  }
}

GateTiming timing_of(const Times& times, const GateTerms& terms) {
  GateTiming timing{.subject = times.subject,
                    .op = times.op,
                    .cases = times.growth.size(),
                    .before = std::exp(median(times.before)),
                    .now = std::exp(median(times.now)),
                    .factor = std::exp(median(times.growth))};
  const double noise = times.noise.empty() ? 0 : std::abs(median(times.noise));
  timing.noise = std::exp(noise);
  if (times.growth.size() < kLeastPairs) return timing;
  std::vector<double> beyond;
  beyond.reserve(times.growth.size());
  for (const double growth : times.growth)
    beyond.push_back(growth - std::log1p(terms.slower) - noise);
  timing.probability = signed_rank_probability(beyond);
  return timing;
}

void look_at_times(const RunRecord& baseline, const RunRecord& current, const RunRecord* again,
                   const GateTerms& terms, GateResult& result) {
  if (!same_cases(baseline.header, current.header)) {
    result.untimed = "the runs have other cases: options or seeds differ";
    return;
  }
  std::vector<Times> all;
  const std::size_t cases = std::min(baseline.cases.size(), current.cases.size());
  const bool repeats = again != nullptr && same_cases(baseline.header, again->header);
  for (std::size_t i = 0; i < cases; ++i)
    add_case(baseline.cases[i], current.cases[i],
             repeats && i < again->cases.size() ? &again->cases[i] : nullptr, all);
  for (const Times& times : all) result.timings.push_back(timing_of(times, terms));
  if (all.empty()) result.untimed = "no case has times in both that are long enough to tell";
  std::vector<std::optional<double>> probabilities;
  for (const GateTiming& timing : result.timings) probabilities.push_back(timing.probability);
  const std::vector<bool> slower = too_small(probabilities, terms.error);
  for (std::size_t i = 0; i < slower.size(); ++i) {
    GateTiming& timing = result.timings[i];
    timing.slower = slower[i];
    if (timing.slower)
      result.findings.push_back(
          {Regression::kSlower, timing.subject,
           fmt::format("{} takes {} the time of the baseline: {} of the reference's, {} before, in "
                       "{}",
                       timing.op.empty() ? "a case" : timing.op, ratio_text(timing.factor),
                       ratio_text(timing.now), ratio_text(timing.before),
                       count_text(timing.cases, "case"))});
  }
}

// ---- One line a cause ----

std::string kind_of(const std::string& subject) {
  return subject.substr(0, subject.find('@'));
}

// "a; b; c; and 4 more"
std::string first_few(const std::vector<std::string>& all) {
  constexpr std::size_t kMost = 3;
  const std::span shown = std::span(all).first(std::min(kMost, all.size()));
  std::string text = fmt::format("{}", fmt::join(shown, "; "));
  if (all.size() > kMost) text += fmt::format("; and {} more", count_text(all.size() - kMost));
  return text;
}

/// Findings of one cause on the way to one line.
class Causes {
 public:
  Causes(const RunRecord& baseline, const RunRecord& current, const Reached& before,
         const Reached& now, const std::vector<GateFinding>& findings)
      : before_(before) {
    for (const std::string& subject : before.subjects) gone_.insert(kind_of(subject));
    for (const auto& [subject, operations] : now.operations) gone_.erase(kind_of(subject));
    std::set<std::string> subjects;
    std::set<std::string> kinds;
    for (const GateFinding& finding : findings)
      if (is_fewer(finding.regression)) {
        subjects.insert(finding.name);
        kinds.insert(kind_of(finding.name));
      }
    if (current.cases.size() < baseline.cases.size() && kinds.size() > 1)
      shorter_ =
          fmt::format("{}, {} before: less of {}", count_text(current.cases.size(), "case"),
                      count_text(baseline.cases.size()), count_text(subjects.size(), "subject"));
    for (const GateFinding& finding : findings) add(finding);
  }

  [[nodiscard]] std::vector<GateFinding> lines() const {
    std::vector<GateFinding> lines;
    for (const Cause& cause : causes_) {
      GateFinding& line = lines.emplace_back(cause.line);
      if (line.regression == Regression::kStateLost) line.what = kNeverReached;
      line.what += first_few(cause.parts);
    }
    return lines;
  }

 private:
  struct Cause {
    GateFinding line;  // without the parts
    std::vector<std::string> parts;
  };

  static bool is_fewer(Regression regression) {
    return regression == Regression::kFewerCases || regression == Regression::kFewerOperations;
  }

  // Those of the cause of that name, which may be new.
  std::vector<std::string>& parts_of(Regression regression, const std::string& name) {
    const auto known = std::ranges::find_if(causes_, [&](const Cause& one) {
      return one.line.name == name && (one.line.regression == regression ||
                                       (is_fewer(one.line.regression) && is_fewer(regression)));
    });
    if (known != causes_.end()) return known->parts;
    return causes_.emplace_back(Cause{{regression, name, {}}, {}}).parts;
  }

  void add(const GateFinding& finding) {
    const auto& [regression, name, what] = finding;
    const std::string kind = kind_of(name);
    const bool absent = gone_.contains(kind);
    if (regression == Regression::kStateLost && absent) return;
    if (regression == Regression::kFailure || (regression == Regression::kSubjectGone && !absent)) {
      causes_.push_back({finding, {}});
    } else if (regression == Regression::kSubjectGone) {
      parts_of(regression, kind) = {gone_text(kind)};
    } else if (is_fewer(regression) && !shorter_.empty()) {
      parts_of(Regression::kFewerCases, "the current run") = {shorter_};
    } else {
      std::vector<std::string>& parts = parts_of(regression, name);
      const bool more = regression == Regression::kSlower && !parts.empty();
      const std::size_t begin = regression == Regression::kStateLost ? kNeverReached.size() : 0;
      parts.push_back(what.substr(begin, more ? what.find(" the time") : what.size()));
    }
  }

  // What a cache that takes no part costs.
  [[nodiscard]] std::string gone_text(const std::string& kind) const {
    const auto subjects = std::ranges::count(before_.subjects, kind, kind_of);
    const auto states = std::ranges::count(before_.states, kind, &Pair::first);
    std::set<std::string> laws;
    for (const LawVerdict& row : before_.laws.rows())
      if (kind_of(row.subject) == kind && row.judged > 0) laws.insert(row.law);
    return fmt::format("takes no part; it had {}, {}, {}",
                       count_text(static_cast<std::uint64_t>(subjects), "subject"),
                       count_text(static_cast<std::uint64_t>(states), "state"),
                       count_text(laws.size(), "law"));
  }

  const Reached& before_;
  std::set<std::string> gone_;  // kinds
  std::string shorter_;         // the run as a whole: how many cases; empty: it is not
  std::vector<Cause> causes_;
};

}  // namespace

bool same_cases(const RunHeader& one, const RunHeader& other) {
  return one.command == other.command && one.seed == other.seed && one.profile == other.profile &&
         one.options == other.options;
}

GateResult compare_runs(const RunRecord& baseline, const RunRecord& current, const RunRecord* again,
                        const GateTerms& terms) {
  GateResult result;
  look_at_failures(baseline, current, result);
  const Reached before = reached_in(baseline);
  result.subjects = before.subjects.size();
  result.states = before.states.size();
  const Reached now = reached_in(current);
  look_at_reach(before, now, terms, result.findings);
  if (terms.timings)
    look_at_times(baseline, current, again, terms, result);
  else
    result.untimed = "not asked for";
  result.causes = Causes(baseline, current, before, now, result.findings).lines();
  return result;
}

}  // namespace kvo::tools
