#include "optimized/memory/pages.hpp"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <new>
#include <utility>

#include <sys/mman.h>
#include <sys/resource.h>

#include "optimized/memory/poison.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo::optimized {
namespace {

/// Addresses that all of these ranges may take together: half of what 47 bits name.
constexpr std::size_t kMostAddresses = std::size_t{1} << 46U;
/// Of limited addresses one range takes no more than this part in advance.
constexpr std::size_t kLeastParts = 4096;

std::atomic<std::size_t> taken_addresses = 0;  // NOLINT: what it counts is global

// The kernel then counts each mapped page that can be written, whether or not it is touched.
bool counts_untouched_pages() {
  static const bool kCounts = [] {
    char mode = '0';
    std::ifstream("/proc/sys/vm/overcommit_memory") >> mode;
    return mode == '2';
  }();
  return kCounts;
}

std::size_t in_pages(std::size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

std::size_t spare_addresses(std::size_t wanted) {
  if (counts_untouched_pages()) return 0;
  if (taken_addresses.load(std::memory_order_relaxed) + wanted >= kMostAddresses) return 0;
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0) return 0;
  return limit.rlim_cur == RLIM_INFINITY ? wanted : std::min(wanted, limit.rlim_cur / kLeastParts);
}

void ask_allocator(std::size_t bytes) {
  ::operator delete(::operator new(bytes));
}

Pages::Pages(std::initializer_list<std::size_t> bytes) {
  for (const std::size_t size : bytes) {
    if (size > kMostAddresses) continue;
    const std::size_t whole = in_pages(size);
    void* const at = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) continue;
    begin_ = static_cast<std::byte*>(at);
    bytes_ = whole;
    taken_addresses += bytes_;
    return;
  }
  throw std::bad_alloc();
}

Pages::~Pages() {
  if (bytes_ == 0) return;
  unpoison(begin_, bytes_);
  (void)::munmap(begin_, bytes_);
  taken_addresses -= bytes_;
}

void Pages::take(Pages& from) {
  KVO_CHECK(from.bytes_ <= bytes_);
  unpoison(from.begin_, from.bytes_);
  const std::size_t bytes = from.bytes_;
  // What lies behind them stays: new pages.
  void* const at = ::mremap(from.begin_, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, begin_);
  if (at != MAP_FAILED) {
    taken_addresses -= std::exchange(from.bytes_, 0);
    return;
  }
  // The kernel may have given up the addresses, and others may have them by now: they stay alone.
  taken_addresses -= std::exchange(bytes_, 0);
  throw std::bad_alloc();
}

void Pages::touch([[maybe_unused]] std::size_t from, [[maybe_unused]] std::size_t to) noexcept {
#ifdef MADV_POPULATE_WRITE
  const std::size_t begin = from / kPageBytes * kPageBytes;
  const std::size_t end = std::min((to + kPageBytes - 1) / kPageBytes * kPageBytes, bytes_);
  if (begin < end) (void)::madvise(begin_ + begin, end - begin, MADV_POPULATE_WRITE);
#endif
}

}  // namespace kvo::optimized
