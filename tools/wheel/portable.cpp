// What the command needs of glibc 2.29 and later, and of libraries that Debian ships as shared
// objects alone. Only the program of the wheel has it; tools/wheel/link leaves those shared objects
// out.
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include <fmt/format-inl.h>  // defines what libfmt.so holds
#include <hwy/targets.h>
#include <signal.h>  // NOLINT: of POSIX
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

template auto fmt::detail::dragonbox::to_decimal(float value) noexcept
    -> fmt::detail::dragonbox::decimal_fp<float>;
template auto fmt::detail::dragonbox::to_decimal(double value) noexcept
    -> fmt::detail::dragonbox::decimal_fp<double>;
template fmt::detail::locale_ref::locale_ref(const std::locale& locale);
template auto fmt::detail::thousands_sep_impl(fmt::detail::locale_ref)
    -> fmt::detail::thousands_sep_result<char>;
template auto fmt::detail::decimal_point_impl(fmt::detail::locale_ref) -> char;

namespace hwy {

// Highway's SSE4, AVX2 and AVX3 are the levels of the x86-64 psABI beside AES. The levels above
// AVX3 are not compiled (optimized/memory/convert.cpp).
std::int64_t SupportedTargets() {
  std::int64_t targets = HWY_SCALAR;
  if (!__builtin_cpu_supports("x86-64-v2") || !__builtin_cpu_supports("aes") ||
      !__builtin_cpu_supports("pclmul"))
    return targets;
  targets |= HWY_SSE4;
  if (__builtin_cpu_supports("x86-64-v3")) targets |= HWY_AVX2;
  if (__builtin_cpu_supports("x86-64-v4")) targets |= HWY_AVX3;
  return targets;
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy

extern "C" {

// Atomic counting of shared pointers may be left out while a program has one thread (glibc 2.32).
// Never here.
char __libc_single_threaded = 0;

pid_t gettid() noexcept {  // glibc 2.30
  return static_cast<pid_t>(syscall(SYS_gettid));
}

int close_range(unsigned first, unsigned last, int flags) noexcept {  // glibc 2.34, Linux 5.9
  if (syscall(SYS_close_range, first, last, flags) == 0) return 0;
  if (errno != ENOSYS) return -1;
  const auto open_at_most = static_cast<unsigned>(sysconf(_SC_OPEN_MAX));
  for (unsigned number = first; number <= last && number < open_at_most; ++number)
    close(static_cast<int>(number));
  return 0;
}

std::uint32_t arc4random() noexcept {  // glibc 2.36
  std::uint32_t drawn = 0;
  while (getrandom(&drawn, sizeof drawn, 0) != static_cast<ssize_t>(sizeof drawn))
    if (errno != EINTR) std::abort();
  return drawn;
}

const char* sigabbrev_np(int signal) noexcept {  // glibc 2.32
  switch (signal) {
#define KVO_NAME(name) \
  case SIG##name:      \
    return #name;
    KVO_NAME(ABRT)
    KVO_NAME(ALRM)
    KVO_NAME(BUS)
    KVO_NAME(FPE)
    KVO_NAME(HUP)
    KVO_NAME(ILL)
    KVO_NAME(INT)
    KVO_NAME(KILL)
    KVO_NAME(PIPE)
    KVO_NAME(QUIT)
    KVO_NAME(SEGV)
    KVO_NAME(SYS)
    KVO_NAME(TERM)
    KVO_NAME(TRAP)
    KVO_NAME(USR1)
    KVO_NAME(USR2)
    KVO_NAME(XCPU)
    KVO_NAME(XFSZ)
#undef KVO_NAME
    default:
      return nullptr;
  }
}

}  // extern "C"
