// optimized/memory/pages.hpp: memory that grows without being copied.
#pragma once

#include <cstddef>
#include <initializer_list>

namespace kvo::optimized {

/// Bytes of a page, as far as asking ahead for pages goes.
inline constexpr std::size_t kPageBytes = 4096;

/// Addresses of its own. A page takes memory, and is 0, when it is first touched.
class Pages {
 public:
  /// As many bytes as the first of these sizes that can be had, rounded up to pages. Throws
  /// std::bad_alloc.
  Pages(std::initializer_list<std::size_t> bytes);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  [[nodiscard]] std::byte* data() const { return begin_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }

  /// Takes all pages of another range, which is not larger: nothing is copied, and that range is
  /// empty then. Throws std::bad_alloc; then the other range is as it was, and this one empty.
  void take(Pages& from);
  /// Asks for the memory of the pages from one offset to another at once, which costs half of what
  /// it does page by page. A system that cannot changes nothing.
  void touch(std::size_t from, std::size_t to) noexcept;

 private:
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Bytes of addresses that something that grows may take in advance: `wanted`, less where the
/// system limits them (RLIMIT_AS) or counts them as memory, and 0 where this process holds so many
/// that others might go short.
[[nodiscard]] std::size_t spare_addresses(std::size_t wanted);

/// Throws std::bad_alloc where operator new would for so many bytes: what is mapped must not get by
/// whom a program lets limit or fail its allocations.
void ask_allocator(std::size_t bytes);

}  // namespace kvo::optimized
