// How the figures of cases become those of a run.
#include "tools/summary.hpp"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
