// tools/testing/captured.hpp: what a process writes, in memory. For tests only.
#pragma once

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include <sys/mman.h>
#include <unistd.h>

namespace kvo::tools {

/// A file in memory that processes write to. It never blocks them, as a pipe would.
class Captured {
 public:
  Captured() : file_(memfd_create("captured", MFD_CLOEXEC)) {
    if (file_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  }
  ~Captured() { (void)close(file_); }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  [[nodiscard]] int file() const { return file_; }
  /// All that was written since clear().
  [[nodiscard]] std::string text() const {
    std::string all(static_cast<std::size_t>(lseek(file_, 0, SEEK_END)), '\0');
    const ssize_t got = pread(file_, all.data(), all.size(), 0);
    all.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return all;
  }
  void clear() const {
    (void)!ftruncate(file_, 0);
    (void)lseek(file_, 0, SEEK_SET);
  }

 private:
  int file_;
};

}  // namespace kvo::tools
