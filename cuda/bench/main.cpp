// Kernels on the card of this machine against its own copy, as a table. Status 77: there is none.
#include <cstdio>

#include "cuda/bench/device_bench.hpp"
#include "cuda/device/open.hpp"

int main() {
  constexpr int kSkipped = 77;
  const auto device = kvo::cuda::open_device();
  if (!device) {
    std::fprintf(stderr, "skipped: %s\n", device.error().text().c_str());
    return kSkipped;
  }
  const auto result = kvo::cuda::measure(**device, {});
  if (!result) {
    std::fprintf(stderr, "device_bench: %s\n", result.error().text().c_str());
    return 1;
  }
  std::printf("%s\n\n%s", kvo::cuda::card_name().value().c_str(),
              kvo::cuda::table_of(*result).c_str());
  return 0;
}
