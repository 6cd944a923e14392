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

#include <cuda_runtime_api.h>

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

// How a function of the runtime becomes a call of the card that lives.

/// What cudaGetLastError will answer, unless it is success. Returns the code.
cudaError_t remember(cudaError_t code);
/// Forgets it.
cudaError_t take_last_error();

/// Handles of the runtime are the numbers of the simulated device; nobody follows them.
template <class Handle>
[[nodiscard]] Handle handle_of(std::uint64_t number) {
  return reinterpret_cast<Handle>(number);  // NOLINT(performance-no-int-to-ptr)
}
template <class Handle>
[[nodiscard]] std::uint64_t number_of(Handle handle) {
  return reinterpret_cast<std::uint64_t>(handle);
}

/// An access outside of memory has other words where the host waits than where it is queued.
enum class During : std::uint8_t { kQueue, kWait };
[[nodiscard]] cudaError_t code_of(const Status& done, During during);

/// Calls `call` with the device of the card; the error of a machine without one otherwise.
template <class Call>
cudaError_t on_card(const Call& call, During during = During::kQueue) {
  Card* const card = Card::current();
  if (card == nullptr) return remember(cudaErrorNoDevice);
  return remember(code_of(call(card->device()), during));
}

/// The same for what makes something, whose handle is `make`'s.
template <class Handle, class Make>
cudaError_t make_on_card(Handle* made, const Make& make) {
  return on_card([&](SimulatedDevice& device) -> Status {
    const auto result = make(device);
    if (!result) return result.error();
    *made = handle_of<Handle>(result->id);
    return {};
  });
}

}  // namespace kvo::cuda
