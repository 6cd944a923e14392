// How the figures of cases become those of a run.
#include "tools/reports/summary.hpp"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/reports/brief_report.hpp"
#include "tools/reports/failure_text.hpp"

namespace kvo::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

CaseResult one_case(const std::string& kind, std::int64_t asked, std::int64_t found,
                    std::int64_t bytes) {
  CaseResult record{.index = 0, .name = "case", .kind = kind, .law = "agreement"};
  record.figures = {{"asked", asked, Fold::kSum, std::nullopt},
                    {"found", found, Fold::kSum, "asked"},
                    {"bytes", bytes, Fold::kMost, std::nullopt}};
  return record;
}

TEST(Summary, FiguresAreSummedOrTheMostIsKept) {
  Summary summary;
  summary.add(one_case("a.b", 30, 10, 700));
  summary.add(one_case("a.b", 10, 20, 500));
  summary.add(one_case("a.c", 0, 0, -3));
  const auto figures = summary.figures();
  EXPECT_THAT(figures,
              ElementsAre(Field(&FigureSummary::value, 40), Field(&FigureSummary::value, 30),
                          Field(&FigureSummary::value, 700), Field(&FigureSummary::value, 0),
                          Field(&FigureSummary::value, 0), Field(&FigureSummary::value, -3)));
  ASSERT_EQ(figures.size(), 6U);
  EXPECT_EQ(figures[0].kind, "a.b");
  EXPECT_EQ(figures[0].figure, "asked");
  EXPECT_EQ(figures[0].share, std::nullopt);
  EXPECT_EQ(figures[1].share, 0.75);
  EXPECT_EQ(figures[4].share, std::nullopt) << "of nothing there is no share";
}

TEST(Summary, CasesThatTellNothingHaveNoFigures) {
  Summary summary;
  summary.add({.index = 0, .name = "case", .kind = "a.b", .law = "agreement"});
  EXPECT_THAT(summary.figures(), IsEmpty());
}

CaseResult failing_case(const std::string& law, std::uint64_t operations,
                        const std::string& field = "n") {
  CaseResult record{.index = 0, .name = law, .kind = "a.b", .law = law, .operations = 30};
  const Verdict verdict{.outcome = Outcome::kMismatch,
                        .op = "get",
                        .difference = {.place = field, .want = "1", .got = "2"}};
  record.subjects.push_back(
      {.subject = "a.b@own",
       .verdict = verdict,
       .shrunk = Shrunk{.law = law, .operations = operations, .verdict = verdict}});
  return record;
}

TEST(Summary, OfFailuresOfOneCauseTheSmallestScriptIsStored) {
  Summary summary;
  summary.add(failing_case("agrees", 9));
  summary.add(failing_case("agrees", 3));
  summary.add(failing_case("agrees", 5));
  ASSERT_EQ(summary.failures().size(), 1U);
  EXPECT_EQ(summary.failures().front().result.shrunk->operations, 3U);
  EXPECT_EQ(summary.failures().front().cases, 3U);
  summary.add(failing_case("a_b_a", 2));
  summary.add(failing_case("agrees", 2, "free_blocks"));
  EXPECT_EQ(summary.failures().size(), 3U) << "another law, another field";
}

TEST(Failure, SaysTheLawTheConfigAndTheOperationFirst) {
  const CaseResult found = failing_case("a_b_a", 2);
  SubjectResult result = found.subjects.front();
  result.shrunk->law = "agrees";
  result.shrunk->config = R"({"window":2})";
  result.shrunk->script = {{.mark = "+", .text = "added"},
                           {.mark = ">", .op_index = 1, .text = "x"}};
  const auto lines = failure_text({"case7", found.law, 30}, result, "its sentence");
  EXPECT_THAT(lines, ElementsAre("law: agrees: its sentence",
                                 R"(config, where it is not the default: {"window":2})",
                                 "found in case7 of 30 operations, by law a_b_a: op 0, get: n: "
                                 "want 1, got 2",
                                 "shrunk to 2 operations: op 0, get: n: want 1, got 2",
                                 "+        added", ">  op 1  x"));
}

TEST(Brief, OneLineSaysPassOrFailAndSlowerOperationsAreListed) {
  Summary summary;
  summary.add(one_case("a.b", 0, 0, 0));
  EXPECT_THAT(verdict_line(summary, summary.subjects(false)), testing::StartsWith("PASS: "));
  summary.add(failing_case("agrees", 9));
  EXPECT_THAT(verdict_line(summary, summary.subjects(false)),
              testing::AllOf(testing::StartsWith("FAIL: 1 cache, 1 subject, 2 cases"),
                             testing::HasSubstr("1 case fails")));
  const auto slower = [](float ratio, std::optional<float> low, std::uint64_t median) {
    return slower_text(slower_operations({{.subject = "a.b@own",
                                           .timings = {{.op = "append",
                                                        .median_nanoseconds = median,
                                                        .ratio_to_reference = ratio,
                                                        .ratio_low = low}}}}));
  };
  EXPECT_EQ(slower(2, 1.5F, 500), "slower than the reference: a.b@own append 2.00x");
  EXPECT_EQ(slower(2, 0.9F, 500), "") << "its interval reaches below 1";
  EXPECT_EQ(slower(2, 1.5F, 30), "") << "too short for the clock";
  EXPECT_EQ(slower(1.1F, std::nullopt, 500), "") << "too few cases for so little";
}

CaseResult timed_case(std::uint64_t reference, std::uint64_t own) {
  CaseResult record{.index = 0, .name = "case", .kind = "a.b", .law = "agreement"};
  for (const auto& [name, nanoseconds] :
       {std::pair{"a.b@reference", reference}, {"a.b@own", own}}) {
    SubjectResult subject{.subject = name};
    subject.timings = {{.op = "append", .total_nanoseconds = nanoseconds}};
    record.subjects.push_back(std::move(subject));
  }
  return record;
}

// One preemption is longer than all that is measured.
TEST(Summary, OneCaseThatWasPreemptedDoesNotDecideARatio) {
  Summary summary;
  for (std::uint64_t i = 0; i < 20; ++i) summary.add(timed_case(1'000 + i, 2'000 + 2 * i));
  summary.add(timed_case(1'000, 10'000'000));
  const auto subjects = summary.subjects(false);
  ASSERT_EQ(subjects.size(), 2U);
  constexpr float kStep = 0.02F;  // to which ratios are kept
  ASSERT_TRUE(subjects[1].time_ratio);
  EXPECT_NEAR(*subjects[1].time_ratio, 2, kStep);
  ASSERT_EQ(subjects[1].timings.size(), 1U);
  ASSERT_TRUE(subjects[1].timings[0].ratio_to_reference);
  EXPECT_NEAR(*subjects[1].timings[0].ratio_to_reference, 2, kStep);
}

}  // namespace
}  // namespace kvo::tools
