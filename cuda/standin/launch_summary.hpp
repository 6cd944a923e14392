// cuda/standin/launch_summary.hpp: what a test program has executed on the stand-in, in its output.
#pragma once

#include <iostream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "cuda/standin/card.hpp"

namespace kvo::cuda {

/// Prints, behind all tests, a line a kernel and one that begins with "stand-in:".
class LaunchSummary final : public testing::Environment {
 public:
  explicit LaunchSummary(std::string what) : what_(std::move(what)) {}
  void TearDown() override {
    const LaunchCounts& counts = launch_counts();
    std::int64_t launches = 0;
    for (const auto& [kernel, count] : counts.kernels) {
      std::cout << "  " << count << " launches of " << kernel << "\n";
      launches += count;
    }
    std::cout << "stand-in: " << what_ << ": " << launches << " launches of "
              << counts.kernels.size() << " kernels, " << counts.threads << " threads, "
              << counts.replays << " replays, " << counts.cards << " schedules\n";
  }

 private:
  std::string what_;
};

}  // namespace kvo::cuda
