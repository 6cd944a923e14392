// cuda/standin/card.hpp: a card for programs that are linked with the stand-in for the CUDA
// runtime.
//
// standin/runtime.cpp has the functions of the runtime that CudaDevice and nvcc's objects call.
// They work on the Card that lives, or answer as on a machine without one. A launch runs the host
// version of its kernel's body for every thread of the grid that was asked for, on a
// SimulatedDevice.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "reference/contract/device/simulated/simulated_device.hpp"

namespace kvo::cuda {

struct CardOptions {
  SimulatedOptions device = {};
  int major = 9;  ///< of its compute capability
  int minor = 0;
  /// The kernels are compiled for another architecture.
  bool no_kernel_image = false;
};

/// The one card while it lives. Requires that no other does.
class Card {
 public:
  explicit Card(CardOptions options = {});
  ~Card();
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  /// Null: the machine has no card.
  static Card* current();

  [[nodiscard]] SimulatedDevice& device() { return device_; }
  [[nodiscard]] const CardOptions& options() const { return options_; }

  /// How often each graph is held: as captured and as instantiated.
  std::map<std::uint64_t, int> graph_holders;

 private:
  CardOptions options_;
  SimulatedDevice device_;
};

/// What was launched since the program began, on all cards.
struct LaunchCounts {
  std::int64_t cards = 0;  ///< each has a schedule
  std::int64_t threads = 0;
  std::int64_t replays = 0;
  std::map<std::string, std::int64_t> kernels = {};  ///< launches; a captured one counts once
};
[[nodiscard]] LaunchCounts& launch_counts();

}  // namespace kvo::cuda
