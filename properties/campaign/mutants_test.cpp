// Every seeded fault is caught, and a script short enough to read shows it.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/campaign/kill.hpp"
#include "properties/contracts.hpp"

namespace kvo {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::uint64_t kCases = 8'000;
constexpr std::size_t kMedianScript = 6;
// Faults of a long life take seconds each to shrink: `kvoracle mutants` tries them.
constexpr std::size_t kShortScript = 50;

TEST(Mutants, TheCanaryIsCaught) {
  const auto caught =
      find_kill(contracts(), contracts().canary().subject, 1, kCases, Profile::kOriginal);
  ASSERT_TRUE(caught.has_value()) << "the harness misses " << contracts().canary().subject.name();
  EXPECT_TRUE(caught->result.repeats());
}

// GTEST_RANDOM_SEED, which in CI is the day, chooses a sixth of the mutants; without one all are
// tried.
bool is_tried(std::size_t index) {
  constexpr std::size_t kParts = 6;
  const auto seed = static_cast<std::size_t>(GTEST_FLAG_GET(random_seed));
  return seed == 0 || index % kParts == seed % kParts;
}
// To shrink takes three times as long as to catch: a twelfth of all is.
bool is_shrunk(std::size_t index) {
  constexpr std::size_t kParts = 12;
  return index % kParts == static_cast<std::size_t>(GTEST_FLAG_GET(random_seed)) % kParts;
}

TEST(Mutants, AreAllCaughtAndShortScriptsShowThem) {
  std::vector<std::size_t> lengths;
  std::size_t index = 0;
  // In both profiles, and all of them shrunk: `kvoracle mutants`.
  for (const Mutant& mutant : contracts().mutants()) {
    if (mutant.longest_script > kShortScript) continue;
    const bool tried = is_tried(index);
    const bool shrinks = is_shrunk(index++);
    if (!tried) continue;
    const auto caught = find_kill(contracts(), mutant.subject, 1, kCases,
                                  mutant.profile.value_or(Profile::kOriginal),
                                  shrinks ? ShrinkOptions() : ShrinkOptions{.attempts = 0});
    ASSERT_TRUE(caught.has_value()) << mutant.subject.name() << ": " << mutant.fault;
    if (!shrinks) continue;
    lengths.push_back(caught->result.shrunk->operations);
    EXPECT_LE(lengths.back(), mutant.longest_script) << mutant.subject.name();
    if (mutant.subject.inside) {
      EXPECT_THAT(caught->result.shrunk->inside,
                  AllOf(Contains(StartsWith("step ")), Contains(HasSubstr(": its op "))))
          << mutant.subject.name();
    }
  }
  ASSERT_GE(lengths.size(), 12U);
  std::ranges::sort(lengths);
  EXPECT_LE(lengths[lengths.size() / 2], kMedianScript);
}

TEST(Mutants, CopiesWithoutAFaultConform) {
  constexpr std::uint64_t kFewCases = 36;
  std::set<std::string> tried;
  for (const Mutant& mutant : contracts().mutants()) {
    if (!mutant.sound) continue;
    const Subject copy = mutant.sound();
    if (tried.insert(copy.name()).second)
      EXPECT_FALSE(find_kill(contracts(), copy, 1, kFewCases, Profile::kOriginal)) << copy.name();
  }
  EXPECT_GE(tried.size(), 40U);
}

}  // namespace
}  // namespace kvo
