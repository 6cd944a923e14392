// cuda/standin/calls.hpp: how a function of the runtime becomes a call of the card that lives.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "cuda/standin/card.hpp"

namespace kvo::cuda {

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
