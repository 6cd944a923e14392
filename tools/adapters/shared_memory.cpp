#include "tools/adapters/shared_memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace kvo::tools {
namespace {

[[noreturn]] void memory_fault(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes)
    : bytes_(bytes),
      own_(0),
      others_(bytes / 2),
      file_(memfd_create("kvoracle tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(bytes_)) != 0) memory_fault("memfd_create");
  map();
  // An adapter that makes the file shorter would make a read here crash.
  (void)fcntl(file_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

SharedMemory::SharedMemory(int file, std::size_t bytes)
    : bytes_(bytes), own_(bytes / 2), others_(0), file_(dup(file)) {
  map();
}

void SharedMemory::map() {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED) memory_fault("mmap");  // NOLINT: a macro of the system
  memory_ = static_cast<std::byte*>(memory);
}

SharedMemory::~SharedMemory() {
  (void)munmap(memory_, bytes_);
  (void)close(file_);
}

std::optional<std::size_t> SharedMemory::put(std::span<const std::byte> bytes) {
  constexpr std::size_t kAsText = 256;  // text is as fast
  constexpr std::size_t kAligned = 64;
  const std::size_t half = bytes_ / 2;
  if (bytes.size() < kAsText || bytes.size() > half - used_) return std::nullopt;
  const std::size_t offset = own_ + used_;
  std::memcpy(memory_ + offset, bytes.data(), bytes.size());
  used_ = std::min((used_ + bytes.size() + kAligned - 1) / kAligned * kAligned, half);
  return offset;
}

std::span<const std::byte> SharedMemory::at(std::size_t offset, std::size_t bytes) const {
  const std::size_t half = bytes_ / 2;
  if (offset < others_ || offset > others_ + half || bytes > others_ + half - offset) return {};
  return {memory_ + offset, bytes};
}

}  // namespace kvo::tools
