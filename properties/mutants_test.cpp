// Every seeded fault is caught, by a script short enough to read.
#include "properties/mutants/mutants.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "properties/hunt.hpp"

namespace kvo {
namespace {

constexpr std::uint64_t kCases = 5'000;
constexpr std::size_t kLongestScript = 8;
constexpr std::size_t kMedianScript = 6;

TEST(Mutants, TheCanaryIsCaught) {
  const auto caught = hunt(canary().subject, 1, kCases, Profile::kOriginal);
  ASSERT_TRUE(caught.has_value()) << "the harness misses " << canary().subject.name();
  EXPECT_TRUE(caught->repro.verdict.failed());
}

TEST(Mutants, AreAllCaughtByShortScripts) {
  std::vector<std::size_t> lengths;
  for (const Mutant& mutant : mutants()) {
    const auto caught = hunt(mutant.subject, 1, kCases, Profile::kOriginal);
    ASSERT_TRUE(caught.has_value()) << mutant.subject.name() << ": " << mutant.fault;
    lengths.push_back(caught->repro.script.steps.size());
    EXPECT_LE(lengths.back(), kLongestScript) << mutant.subject.name();
  }
  ASSERT_GE(lengths.size(), 12U);
  std::ranges::sort(lengths);
  EXPECT_LE(lengths[lengths.size() / 2], kMedianScript);
}

}  // namespace
}  // namespace kvo
