#include "reference/contract/subject/probe.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace kvo {

double CallClock::measured() {
#if defined(__x86_64__)
  constexpr unsigned kPowerManagement = 0x80000007;
  constexpr unsigned kEven = 1U << 8U;  // of EDX: the counter runs at one rate and never stops
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(kPowerManagement, &a, &b, &c, &d) == 0 || (d & kEven) == 0) return 0;
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLongEnough{2};
  const auto begin = Clock::now();
  const std::uint64_t from = __rdtsc();
  auto end = begin;
  while (end - begin < kLongEnough) end = Clock::now();
  const std::uint64_t ticks = __rdtsc() - from;
  return std::chrono::duration<double, std::nano>(end - begin).count() / static_cast<double>(ticks);
#else
  return 0;
#endif
}

}  // namespace kvo
