#include "properties/runner/parallel_ordered_map.hpp"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace kvo {
namespace {

std::vector<std::uint64_t> consumed_with(unsigned jobs, std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> seen;
  parallel_ordered_map<std::uint64_t>(
      first, count, jobs,
      [](std::uint64_t index) {
        // Even indices take longer, so that results are ready out of order.
        if (index % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
        return index * index;
      },
      [&](std::uint64_t index, std::uint64_t result) {
        EXPECT_EQ(result, index * index);
        seen.push_back(index);
        return true;
      });
  return seen;
}

TEST(InOrder, ConsumesByIndexWhateverTheNumberOfThreads) {
  std::vector<std::uint64_t> wanted;
  for (std::uint64_t i = 3; i < 100; ++i) wanted.push_back(i);
  for (const unsigned jobs : {1U, 2U, 5U}) EXPECT_EQ(consumed_with(jobs, 3, 100), wanted);
}

TEST(InOrder, StopsWhenTheConsumerHasEnough) {
  std::vector<std::uint64_t> seen;
  parallel_ordered_map<int>(
      0, ~std::uint64_t{0}, 3, [](std::uint64_t) { return 0; },
      [&](std::uint64_t index, int) {
        seen.push_back(index);
        return seen.size() < 7;
      });
  EXPECT_EQ(seen.size(), 7U);
}

TEST(InOrder, PassesOnWhatAProducerThrows) {
  EXPECT_THROW(parallel_ordered_map<int>(
                   0, 50, 2,
                   [](std::uint64_t index) -> int {
                     if (index == 20) throw std::runtime_error("twenty");
                     return 0;
                   },
                   [](std::uint64_t, int) { return true; }),
               std::runtime_error);
}

TEST(InOrder, DoesNothingWithoutWork) {
  EXPECT_TRUE(consumed_with(2, 5, 5).empty());
}

}  // namespace
}  // namespace kvo
