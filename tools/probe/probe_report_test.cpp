// What probe check says about its findings.
#include "tools/probe/probe_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvo::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const ProbeRepeat kRepeat{"kvoracle probe check URL --requests 9", "kvoracle probe check URL"};

const WrongAnswer kWrong{
    .request = 7,
    .plan = "a, b, a",
    .plan_number = 2,
    .token = 12,
    .want = 528,
    .got = 532,
    .cause = Cause::kMemory,
    .fault = "foreign row",
    .also = {"foreign block"},
    .evidence =
        "is the one that a row of request 3 at position 48 would give (foreign row; prefix reuse)"};

ProbeReport fine_report() {
  ProbeReport report{.requests = 9, .tokens = 144, .telling = 8, .cells = 200, .cells_read = 100};
  report.faults = {{"stale tail", 5, 0}, {"moved rows", 0, 0}};
  return report;
}

TEST(ProbeReportText, SaysWhatTheRunCouldNotShow) {
  EXPECT_EQ(probe_report_text(fine_report(), kRepeat),
            "no wrong token in 9 requests, 144 tokens; 50 % of all (layer, head, row) cells read; "
            "a fault of reuse would change 8 requests\n"
            "no request could show: moved rows\n");
}

TEST(ProbeReportText, NamesTheCulpritAndEndsWithTheCommandThatRepeatsTheRun) {
  ProbeReport report = fine_report();
  report.wrong_requests = report.memory = 1;
  report.wrong = {kWrong};
  report.shrunk = {{0, {1, 300}, 2}, {0, {1, 301}, 2}};
  report.control_wrong = 3;
  const std::string text = probe_report_text(report, kRepeat);
  EXPECT_THAT(text,
              HasSubstr("wrong tokens in 1 of 9 requests (memory 1, arithmetic 0, neither 0)"));
  EXPECT_THAT(text, HasSubstr("control: 3 requests wrong without sharing\n"));
  EXPECT_THAT(text,
              HasSubstr("memory fault: request 7, token 12 is the one that a row of request 3 "
                        "at position 48 would give (foreign row; prefix reuse); want 528, got "
                        "532; plan 2: a, b, a; also: foreign block\n"));
  EXPECT_THAT(text, HasSubstr("shrunk to 2 requests in 1 wave, each sent at once; "));
  EXPECT_THAT(text, HasSubstr("\nplan 2 alone: kvoracle probe check URL --plan-number 2\n"));
  EXPECT_TRUE(text.ends_with("\nrepeat with: kvoracle probe check URL --requests 9\n"));
}

TEST(ProbeReportText, IsRepeatedWhereNothingWasProved) {
  ProbeReport report = fine_report();
  report.telling = 0;
  EXPECT_THAT(probe_report_text(report, kRepeat), HasSubstr("repeat with: "));
  report = fine_report();
  report.failed_requests = 2;
  report.failure = "request 3: status 500";
  EXPECT_THAT(probe_report_text(report, kRepeat),
              HasSubstr("no answer to 2 requests: request 3: status 500\nrepeat with: "));
}

TEST(ProbeSuites, HaveATestForEachKindOfPlansAndEachFault) {
  const std::vector<PlanResult> plans{
      {.number = 0, .kind = "alone", .requests = 4},
      {.number = 1, .kind = "chat", .requests = 3, .failed_requests = 1, .failure = "request 5: x"},
      {.number = 2, .kind = "a, b, a", .requests = 3, .wrong_requests = 1, .wrong = kWrong},
  };
  const auto suites = probe_suites(fine_report(), plans, kRepeat);
  ASSERT_EQ(suites.size(), 2U);
  const auto states = [](const JunitSuite& suite) {
    std::vector<JunitTest::State> all;
    for (const JunitTest& test : suite.tests) all.push_back(test.state);
    return all;
  };
  using State = JunitTest::State;
  EXPECT_THAT(states(suites[0]), ElementsAre(State::kPassed, State::kError, State::kFailed));
  EXPECT_THAT(states(suites[1]), ElementsAre(State::kPassed, State::kSkipped));
  EXPECT_THAT(suites[0].tests[2].message, HasSubstr("request 7, token 12 is the one"));
  EXPECT_THAT(suites[0].tests[2].details,
              testing::Contains("repeat with: kvoracle probe check URL --plan-number 2"));
}

TEST(ProbeCase, IsAPlan) {
  const PlanResult plan{.number = 2,
                        .kind = "a, b, a",
                        .requests = 3,
                        .tokens = 48,
                        .shown = {"stale tail"},
                        .wrong = kWrong};
  const CaseResult wrong = probe_case(plan, 5, 1, kRepeat);
  EXPECT_EQ(wrong.index, 5U);
  EXPECT_EQ(wrong.name, "seed1-plan2");
  EXPECT_EQ(wrong.law, "a, b, a");
  EXPECT_THAT(wrong.labels, ElementsAre("stale tail"));
  const SubjectResult& engine = wrong.subjects.at(0);
  EXPECT_EQ(engine.subject, "probe@engine");
  EXPECT_EQ(engine.evidence.compared, 48U);
  EXPECT_EQ(engine.verdict.text(), "op 7 request: foreign row: token[12]: want 528, got 532");
  EXPECT_EQ(engine.verdict.symptom(), "mismatch request foreign row: token");
  EXPECT_EQ(engine.repeat, "kvoracle probe check URL --plan-number 2");
  const CaseResult silent =
      probe_case({.kind = "chat", .failed_requests = 1, .failure = "request 0: x"}, 0, 1, kRepeat);
  EXPECT_EQ(silent.subjects.at(0).verdict.outcome, Outcome::kBroken);
  const CaseResult right = probe_case({.kind = "chat", .tokens = 16}, 0, 1, kRepeat);
  EXPECT_EQ(right.subjects.at(0).verdict.outcome, Outcome::kAgrees);
  EXPECT_FALSE(right.subjects.at(0).repeat);
}

TEST(ProbePlansText, HasATableOfFaultsAndOneOfCells) {
  ProbeReport report = fine_report();
  report.coverage = {{0, 0, 1, 15, 30, 20}, {0, 0, 16, 63, 50, 20}, {0, 1, 1, 15, 30, 3}};
  EXPECT_EQ(probe_plans_text(report),
            "9 requests, 144 tokens: 50 % of all (layer, head, row) cells are read\n\n"
            "fault               requests that would show it\n"
            "any fault of reuse                            8\n"
            "stale tail                                    5\n"
            "moved rows                                    0\n\n"
            "layer  head  rows 1-15  rows 16-63\n"
            "    0     0       67 %        40 %\n"
            "    0     1       10 %\n");
}

}  // namespace
}  // namespace kvo::tools
