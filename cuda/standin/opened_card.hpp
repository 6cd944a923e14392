// cuda/standin/opened_card.hpp: a CudaDevice together with the card under it.
#pragma once

#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "cuda/device/cuda_device.hpp"
#include "cuda/standin/card.hpp"
#include "reference/contract/device/simulated/watched_subject.hpp"

namespace kvo::cuda {

struct OpenedCard {
  explicit OpenedCard(CardOptions options = {}) : card(std::move(options)) {}

  /// Errors  those of CudaDevice::open.
  static Result<std::shared_ptr<OpenedCard>> open(CardOptions options = {}) {
    auto made = std::make_shared<OpenedCard>(std::move(options));
    auto device = CudaDevice::open();
    if (!device) return device.error();
    made->device = *device;
    return made;
  }
  /// The device, which keeps the card.
  static std::shared_ptr<Device> device_of(const std::shared_ptr<OpenedCard>& opened) {
    return {opened, opened->device.get()};
  }
  [[nodiscard]] const std::vector<DeviceReport>& reports() { return card.device().reports(); }

  Card card;
  std::shared_ptr<CudaDevice> device;  ///< goes before the card
};

/// A card that works by a schedule. Fresh memory of it holds poison, and reads of that are
/// reported: alloc must zero it.
inline CardOptions of_schedule(std::uint64_t seed) {
  return {
      .device = {.schedule = Schedule(seed), .fresh = {.poison = true, .report_unwritten = true}}};
}
/// The device of such a card, watched.
inline Result<WatchedDevice> open_card(std::uint64_t seed) {
  const auto opened = OpenedCard::open(of_schedule(seed));
  if (!opened) return opened.error();
  return watched(OpenedCard::device_of(*opened), *opened);
}

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
