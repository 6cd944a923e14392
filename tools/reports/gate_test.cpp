// What a gate calls worse, and what it lets pass.
#include "tools/reports/gate.hpp"

#include <algorithm>
#include <string>

#include <boost/mp11/algorithm.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/reports/gate_report.hpp"
#include "tools/reports/glossary.hpp"

namespace kvo::tools {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::uint64_t kCases = 40;
constexpr std::size_t kOwn = 1;  // the subject beside its reference

SubjectResult timed(const std::string& subject, std::uint64_t nanoseconds) {
  SubjectResult record{.subject = subject};
  record.timings = {{"append", nanoseconds, 0, {}}, {"read", 1'000, 0, {}}};
  record.evidence.compared = 5;
  return record;
}

// A run of two subjects; times vary from case to case, not between runs.
RunRecord a_run() {
  RunRecord run{.header = {.kvoracle = "1",
                           .command = "check",
                           .seed = 1,
                           .profile = Profile::kOriginal,
                           .subjects = {"a.b@reference", "a.b@own"},
                           .options = {}},
                .cases = {}};
  for (std::uint64_t i = 0; i < kCases; ++i)
    run.cases.push_back({.index = i,
                         .name = "case " + std::to_string(i),
                         .kind = "a.b",
                         .law = "agrees",
                         .operations = 10,
                         .labels = {i == 3 ? "rare" : "common"},
                         .figures = {},
                         .subjects = {timed("a.b@reference", 10'000 + 100 * i),
                                      timed("a.b@own", 2'000 + 100 * (i % 7))}});
  return run;
}

void fail(SubjectResult& subject, const std::string& op) {
  subject.verdict = {.outcome = Outcome::kMismatch,
                     .op_index = 3,
                     .op = op,
                     .difference = {.place = "n", .want = "1", .got = "2"}};
}

// The same run, in which so many times as long is spent in the first operation of a subject.
RunRecord slowed(RunRecord run, std::uint64_t factor) {
  for (CaseResult& record : run.cases) record.subjects[kOwn].timings[0].total_nanoseconds *= factor;
  return run;
}

GateResult gated(const RunRecord& baseline, const RunRecord& current) {
  return compare_runs(baseline, current, nullptr, {});
}

auto is(Regression regression, const std::string& name, const std::string& what) {
  return AllOf(Field(&GateFinding::regression, regression), Field(&GateFinding::name, name),
               Field(&GateFinding::what, HasSubstr(what)));
}

TEST(Gate, ARunIsNotWorseThanItself) {
  const GateResult result = gated(a_run(), a_run());
  EXPECT_THAT(result.findings, IsEmpty());
  EXPECT_EQ(result.subjects, 2U);
  EXPECT_EQ(result.states, 2U);
  EXPECT_EQ(result.untimed, "");
  ASSERT_EQ(result.timings.size(), 3U) << "all, append, read of one subject";
  EXPECT_EQ(result.timings[1].op, "append");
  EXPECT_EQ(result.timings[1].cases, kCases);
  EXPECT_EQ(result.timings[1].factor, 1);
  EXPECT_THAT(gate_text(result, false), HasSubstr("no regression: 2 subjects, 2 states, 3 times"));
}

TEST(Gate, AFailureThatWasNotThereIsWorse) {
  RunRecord current = a_run();
  for (const std::size_t i : {4U, 9U}) fail(current.cases[i].subjects[kOwn], "append");
  fail(current.cases[5].subjects[kOwn], "read");
  EXPECT_THAT(gated(a_run(), current).findings,
              testing::IsSupersetOf({is(Regression::kFailure, "a.b@own",
                                        "case 4: op 3 append: n: want 1, got 2 (and "
                                        "alike in 1 more)"),
                                     is(Regression::kFailure, "a.b@own", "case 5: op 3 read")}));
}

TEST(Gate, AFailureThatWasThereIsKnown) {
  RunRecord baseline = a_run();
  fail(baseline.cases[4].subjects[kOwn], "append");
  const GateResult same = gated(baseline, baseline);
  EXPECT_THAT(same.findings, IsEmpty());
  EXPECT_EQ(same.known_failures, 1U);
  RunRecord current = baseline;
  fail(current.cases[6].subjects[kOwn], "append");
  EXPECT_THAT(gated(baseline, current).findings,
              Contains(is(Regression::kFailure, "a.b@own", "case 6")));
  current.header.seed = baseline.header.seed + 1;
  EXPECT_THAT(gated(baseline, current).findings,
              Not(Contains(is(Regression::kFailure, "a.b@own", ""))))
      << "in other cases it is that failure again";
}

TEST(Gate, WhoTakesNoPartIsMissed) {
  RunRecord current = a_run();
  for (CaseResult& record : current.cases) record.subjects.pop_back();
  EXPECT_THAT(gated(a_run(), current).findings,
              ElementsAre(is(Regression::kSubjectGone, "a.b@own", "it had 400 operations")));
}

// A cache that takes no part any more costs subjects, states and laws: one line says so.
TEST(Gate, ACacheThatTakesNoPartIsOneLine) {
  RunRecord baseline = a_run();
  RunRecord current = a_run();
  for (CaseResult record : a_run().cases) {
    record.kind = "a.c";
    record.labels = {"state " + std::to_string(record.index)};
    record.index += kCases;
    record.subjects = {timed("a.c@reference", 10'000), timed("a.c@own", 2'000)};
    baseline.cases.push_back(record);
    record.labels.clear();
    record.subjects.clear();
    current.cases.push_back(record);
  }
  const GateResult result = gated(baseline, current);
  EXPECT_EQ(result.findings.size(), 2U + kCases) << "each is in JSON, JUnit and Markdown";
  EXPECT_THAT(result.causes, ElementsAre(is(Regression::kSubjectGone, "a.c",
                                            "takes no part; it had 2 subjects, 40 states, 1 law")));
  const std::string text = gate_text(result, false);
  EXPECT_THAT(text, HasSubstr("42 regressions: 4 subjects, 42 states"));
  EXPECT_THAT(text, HasSubstr("; 1 cause shown, --markdown"));
  EXPECT_THAT(gate_markdown(result), HasSubstr("| state lost | a.c | never reached: state 7 |"));
  EXPECT_EQ(gate_json(result).at("regressions").as_array().size(), result.findings.size());
}

TEST(Gate, EveryRegressionIsExplained) {
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<Regression>>([](auto one) {
    EXPECT_TRUE(std::ranges::any_of(terms(), [&](const Term& term) {
      return same_name(term.name, enumerator_word(one.name)) &&
             term.sort == "regression that gate reports";
    })) << one.name;
  });
}

TEST(Gate, CausesAreGroupedBySubject) {
  RunRecord current = a_run();
  for (CaseResult& record : current.cases)
    for (TimingRecord& timing : record.subjects[kOwn].timings) timing.total_nanoseconds *= 2;
  const GateResult slower = gated(a_run(), current);
  EXPECT_EQ(slower.findings.size(), 3U);
  ASSERT_THAT(slower.causes, ElementsAre(is(Regression::kSlower, "a.b@own", "a case takes 2.00x")));
  EXPECT_THAT(slower.causes.front().what, HasSubstr("; append takes 2.00x; read takes 2.00x"));

  RunRecord shorter = a_run();
  shorter.cases.pop_back();
  EXPECT_THAT(gated(a_run(), shorter).causes,
              ElementsAre(is(Regression::kFewerOperations, "a.b@reference",
                             "390 operations, 400 before; 39 cases judged by agrees, 40 before"),
                          is(Regression::kFewerOperations, "a.b@own", "390 operations")));
}

TEST(Gate, AShorterRunIsOneLineForAllCaches) {
  RunRecord baseline = a_run();
  for (CaseResult record : a_run().cases) {
    record.index += kCases;
    record.subjects = {timed("a.c@reference", 10'000)};
    baseline.cases.push_back(record);
  }
  RunRecord current = baseline;
  std::erase_if(current.cases, [](const CaseResult& record) { return record.index % kCases > 29; });
  EXPECT_THAT(gated(baseline, current).causes,
              ElementsAre(is(Regression::kFewerCases, "the current run",
                             "60 cases, 80 before: less of 3 subjects")));
}

TEST(Gate, LessThatWasReachedIsWorse) {
  RunRecord current = a_run();
  current.cases.pop_back();
  current.cases[3].labels.clear();
  current.cases[7].subjects[kOwn].verdict.outcome = Outcome::kOutOfMemory;
  EXPECT_THAT(gated(a_run(), current).findings,
              testing::UnorderedElementsAre(
                  is(Regression::kStateLost, "a.b", "never reached: rare"),
                  is(Regression::kFewerOperations, "a.b@reference", "390 operations, 400 before"),
                  is(Regression::kFewerOperations, "a.b@own", "390 operations, 400 before"),
                  is(Regression::kFewerCases, "a.b@reference", "39 cases judged by agrees, 40"),
                  is(Regression::kFewerCases, "a.b@own", "38 cases judged by agrees, 40 before")));
  current.cases[3].labels = {"rare"};
  EXPECT_THAT(compare_runs(a_run(), current, nullptr, {.fewer = 0.1}).findings, IsEmpty());
}

TEST(Gate, TwiceTheTimeNamesSubjectOperationAndFactor) {
  const RunRecord current = slowed(a_run(), 2);
  const GateResult result = gated(a_run(), current);
  EXPECT_THAT(result.findings,
              Contains(is(Regression::kSlower, "a.b@own", "append takes 2.00x the time of the")));
  EXPECT_THAT(result.findings, Not(Contains(is(Regression::kSlower, "a.b@own", "read"))));
  EXPECT_THAT(compare_runs(a_run(), current, nullptr, {.slower = 1.1}).findings, IsEmpty());
  EXPECT_THAT(compare_runs(a_run(), current, nullptr, {.timings = false}).findings, IsEmpty());
  EXPECT_THAT(gate_markdown(result), HasSubstr("| slower | a.b@own | append takes 2.00x"));
}

// A slower machine is slower for the reference, too.
TEST(Gate, AnotherMachineIsNoRegression) {
  RunRecord current = a_run();
  for (CaseResult& record : current.cases)
    for (SubjectResult& subject : record.subjects)
      for (TimingRecord& timing : subject.timings) timing.total_nanoseconds *= 3;
  EXPECT_THAT(gated(a_run(), current).findings, IsEmpty());
}

TEST(Gate, WhatASecondRunOfTheBaselineShowsIsNoise) {
  RunRecord current = a_run();
  RunRecord again = a_run();
  for (std::size_t i = 0; i < kCases; ++i) {
    TimingRecord& now = current.cases[i].subjects[kOwn].timings[0];
    TimingRecord& other = again.cases[i].subjects[kOwn].timings[0];
    now.total_nanoseconds = now.total_nanoseconds * 12 / 10;
    other.total_nanoseconds = other.total_nanoseconds * 10 / 12;
  }
  EXPECT_THAT(gated(a_run(), current).findings,
              Contains(is(Regression::kSlower, "a.b@own", "append")));
  const GateResult result = compare_runs(a_run(), current, &again, {});
  EXPECT_THAT(result.findings, IsEmpty());
  EXPECT_NEAR(result.timings[1].noise, 1.2, 0.01);
}

TEST(Gate, TooFewCasesSayNothingOfTimes) {
  RunRecord baseline = a_run();
  baseline.cases.resize(5);
  const GateResult result = gated(baseline, slowed(baseline, 4));
  EXPECT_THAT(result.findings, IsEmpty());
  EXPECT_EQ(result.timings[1].probability, std::nullopt);
  EXPECT_THAT(gate_text(result, true), HasSubstr("too few cases to tell"));
}

// Of a call of some nanoseconds a good part is the reading of the clock.
TEST(Gate, CallsThatAreTooShortAreNotCompared) {
  RunRecord baseline = a_run();
  for (CaseResult& record : baseline.cases)
    for (SubjectResult& subject : record.subjects)
      for (TimingRecord& timing : subject.timings)
        timing.histogram = {{.bucket = 100, .count = timing.total_nanoseconds / 150}};
  const GateResult result = gated(baseline, slowed(baseline, 4));
  EXPECT_THAT(result.timings, IsEmpty());
  EXPECT_THAT(result.findings, IsEmpty());
  EXPECT_THAT(gate_text(result, false), HasSubstr("long enough to tell"));
}

TEST(Gate, TimesOfOtherCasesAreNotCompared) {
  RunRecord current = a_run();
  current.header.seed = 2;
  EXPECT_THAT(gate_text(gated(a_run(), current), false),
              HasSubstr("times were not compared: the runs have other cases"));
}

// Wrong answers may be fast, or slow.
TEST(Gate, TimesOfAFailedCaseDoNotCount) {
  RunRecord current = a_run();
  for (CaseResult& record : current.cases) fail(record.subjects[kOwn], "append");
  EXPECT_THAT(gated(a_run(), current).timings, IsEmpty());
}

}  // namespace
}  // namespace kvo::tools
