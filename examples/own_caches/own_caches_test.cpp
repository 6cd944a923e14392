// A sound cache that differs from its contract is green under the conventions that are learned of
// it. Its faults are not learned, and are found.
// The two seeds are made from the date.
#include "examples/own_caches/own_caches.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "properties/campaign/learn.hpp"
#include "properties/campaign/random_case.hpp"
#include "properties/contracts.hpp"
#include "traces/log/conventions_file.hpp"

namespace own {
namespace {

using kvo::contracts;
using kvo::Profile;
using kvo::Subject;

constexpr std::size_t kMostShown = 150;  // characters of a difference

std::uint64_t seed_of_today() {
  const auto today = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  return static_cast<std::uint64_t>(today.time_since_epoch().count());
}

kvo::Learned learned_of(const Subject& subject, std::uint64_t cases) {
  const kvo::SurveyTerms terms{.profile = Profile::kDocumented, .seed = 5, .cases = cases};
  return learned_from(survey_of(contracts(), subject, terms));
}

const kvo::Learned& learned_of_sound(std::size_t cache) {
  static std::vector<std::optional<kvo::Learned>> all(caches().size());
  if (!all[cache]) all[cache] = learned_of(caches()[cache].make("own", 0), 400);
  return *all[cache];
}

/// What the law of comparison says of a subject in random cases.
struct Judged {
  std::uint64_t operations = 0;  ///< up to the first failure, or all
  std::uint64_t compared = 0;
  std::uint64_t ended = 0;
  std::uint64_t cases = 0;
  std::uint64_t failing_case = 0;
  std::optional<kvo::Verdict> failure = std::nullopt;
};
Judged judged(const Subject& subject, std::uint64_t seed, std::uint64_t cases,
              kvo::Scale most = kvo::Scale::kLong) {
  Judged found;
  const kvo::Law& law = *contracts().find_law("agrees_with_reference");
  for (std::uint64_t index = 0; index < cases && !found.failure; ++index) {
    const kvo::CasePlan plan =
        random_case(contracts(), law, {&subject}, seed, index, Profile::kDocumented,
                    std::min(scale_of(law, index), most));
    const kvo::CaseResult result = run_case(plan, {.attempts = 0});
    for (const kvo::SubjectResult& one : result.subjects) {
      if (one.subject != subject.name()) continue;
      ++found.cases;
      found.operations += one.verdict.failed() ? one.verdict.op_index + 1 : result.operations;
      found.compared += one.evidence.compared;
      found.ended += one.verdict.outcome == kvo::Outcome::kEnded ? 1 : 0;
      if (!one.verdict.failed()) continue;
      found.failure = one.verdict;
      found.failing_case = index;
    }
  }
  return found;
}

class OwnCaches : public testing::TestWithParam<std::size_t> {};

TEST_P(OwnCaches, AreGreenUnderTheirConventions) {
  Subject subject = caches()[GetParam()].make("own", 0);
  const kvo::Learned& learned = learned_of_sound(GetParam());
  for (const kvo::SurveyedRefusal& undecided : learned.undecided)
    ADD_FAILURE() << undecided.operation << " " << undecided.wanted << " " << undecided.because;
  EXPECT_TRUE(judged(subject, 7, 100).failure.has_value());
  subject.conventions = learned.conventions();
  const std::uint64_t first = seed_of_today();
  for (std::uint64_t seed = first; seed < first + 2; ++seed) {
    const Judged green = judged(subject, seed, 100);
    fmt::print("{}: seed {}, {} cases, {} operations compared, {} cases ended\n", subject.name(),
               seed, green.cases, green.compared, green.ended);
    EXPECT_FALSE(green.failure.has_value())
        << "seed " << seed << ", case " << green.failing_case << ", op " << green.failure->op_index
        << " " << green.failure->op << ": " << green.failure->text();
    EXPECT_LE(green.ended, green.cases / 20);
  }
}

// A row of another cache may be the same with an error's text or without.
bool is_among(const kvo::RefusalConvention& row, const kvo::Conventions& lawful) {
  return std::ranges::any_of(lawful.refusals, [&](const kvo::RefusalConvention& other) {
    return other.operation == row.operation && other.wanted == row.wanted &&
           other.given == row.given &&
           (other.because == row.because || other.because.empty() || row.because.empty());
  });
}

// Operations are counted over all cases, up to the first that differs.
TEST_P(OwnCaches, FaultsAreNotLearnedAndAreFoundSoon) {
  const Cache cache = caches()[GetParam()];
  const kvo::Conventions lawful = learned_of_sound(GetParam()).conventions();
  std::vector<std::uint64_t> operations;
  for (std::size_t fault = 1; fault <= cache.faults.size(); ++fault) {
    Subject faulty = cache.make("own", static_cast<int>(fault));
    const kvo::Conventions learned = learned_of(faulty, 40).conventions();
    for (const kvo::RefusalConvention& row : learned.refusals)
      EXPECT_TRUE(is_among(row, lawful))
          << cache.faults[fault - 1] << ": " << kvo::traces::convention_text(row);
    for (const std::string& name : learned.named)
      EXPECT_TRUE(lawful.has(name)) << cache.faults[fault - 1] << ": " << name;
    EXPECT_TRUE(learned.without.empty()) << cache.faults[fault - 1];
    faulty.conventions = lawful;
    const Judged found = judged(faulty, 7, 400, kvo::Scale::kLarge);
    EXPECT_TRUE(found.failure.has_value()) << cache.faults[fault - 1];
    fmt::print("{} {}: {} operations: {}\n", faulty.kind->name(), cache.faults[fault - 1],
               found.operations,
               found.failure ? found.failure->text().substr(0, kMostShown) : "not found");
    operations.push_back(found.operations);
  }
  std::ranges::sort(operations);
  const std::uint64_t median = operations[operations.size() / 2];
  fmt::print("{}: {} faults, median of operations {}\n", cache.make("own", 0).kind->name(),
             operations.size(), median);
  EXPECT_LE(median, 2'000U);
}

INSTANTIATE_TEST_SUITE_P(Each, OwnCaches, testing::Range<std::size_t>(0, 4), [](const auto& info) {
  std::string name = caches()[info.param].make("own", 0).kind->name();
  std::ranges::replace(name, '.', '_');
  return name;
});

}  // namespace
}  // namespace own
