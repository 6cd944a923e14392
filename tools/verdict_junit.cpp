#include "tools/verdict_junit.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tools/quantities.hpp"

namespace kvo::tools {
namespace {

using State = JunitTest::State;

void add_failure(JunitTest& test, const FailureSummary& failure, const ReportOptions& options) {
  if (test.message.empty())
    test.message = failure.shrunk ? failure.shrunk->problem : failure.problem;
  auto& lines = test.details;
  if (!lines.empty()) lines.emplace_back();
  lines.push_back(cases_text(failure));
  for (std::string& line : failure_lines(failure, options)) lines.push_back(std::move(line));
}

// Why nothing was judged.
std::string idle_text(const Summary& summary, const LawVerdict& verdict) {
  const auto first = std::ranges::find_if(summary.unsupported(), [&](const FailureSummary& row) {
    return row.subject == verdict.subject && row.law == verdict.law;
  });
  return first != summary.unsupported().end() ? first->problem : "nothing was compared or judged";
}

JunitTest test_of(const Summary& summary, const LawVerdict& verdict, const ReportOptions& options) {
  JunitTest test{.name = verdict.law};
  if (options.timings) test.seconds = static_cast<double>(verdict.nanoseconds) / 1e9;
  if (verdict.failed > 0) {
    test.state = verdict.died > 0 ? State::kError : State::kFailed;
    for (const FailureSummary& failure : summary.failures())
      if (failure.subject == verdict.subject && failure.law == verdict.law)
        add_failure(test, failure, options);
    if (test.message.empty())
      test.message =
          fmt::format("{} of {} cases failed; others are told", verdict.failed, verdict.cases);
  } else if (verdict.judged == 0) {
    const auto law = std::ranges::find(summary.laws(), verdict.law, &LawSummary::law);
    test.state = law->vacuous ? State::kError : State::kSkipped;
    test.message = idle_text(summary, verdict);
  }
  return test;
}

}  // namespace

std::vector<JunitSuite> junit_suites(const Summary& summary, const ReportOptions& options) {
  std::vector<JunitSuite> suites;
  for (const LawVerdict& verdict : summary.law_verdicts()) {
    auto known = std::ranges::find(suites, verdict.subject, &JunitSuite::name);
    if (known == suites.end()) known = suites.insert(suites.end(), {verdict.subject, {}});
    known->tests.push_back(test_of(summary, verdict, options));
  }
  suites.insert(suites.end(), options.suites.begin(), options.suites.end());
  return suites;
}

}  // namespace kvo::tools
