#include "traces/io/standard_input.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace kvo::traces {
namespace {

TraceError failure(std::string_view doing) {
  return error_at({shown_name(std::string(kStandardInput))}, {}, {},
                  fmt::format("{}: {}", doing, std::strerror(errno)));
}

// Again after a signal.
template <class Call>
ssize_t persistently(const Call& call) {
  ssize_t got = call();
  while (got < 0 && errno == EINTR) got = call();
  return got;
}

// The file that it was copied to. It has no name and goes with the last process that has it open.
TraceResult<int> copy_all() {
  const int kept = memfd_create("standard input", MFD_CLOEXEC);
  if (kept < 0) return failure("cannot keep it");
  std::array<char, 65'536> part;  // NOLINT: written by read
  std::size_t total = 0;
  while (true) {
    const ssize_t got = persistently([&] { return read(STDIN_FILENO, part.data(), part.size()); });
    if (got < 0) return failure("cannot read");
    if (got == 0) return kept;
    total += static_cast<std::size_t>(got);
    if (total > kMostStandardInput)
      return error_at({shown_name(std::string(kStandardInput))}, {}, {},
                      fmt::format("longer than {} bytes; name a file", kMostStandardInput));
    std::span<const char> rest(part.data(), static_cast<std::size_t>(got));
    while (!rest.empty()) {
      const ssize_t put = persistently([&] { return write(kept, rest.data(), rest.size()); });
      if (put <= 0) return failure("cannot keep it");
      rest = rest.subspan(static_cast<std::size_t>(put));
    }
  }
}

const TraceResult<int>& kept_file() {
  static const TraceResult<int> kKept = copy_all();
  return kKept;
}

// A position of its own: forked processes share that of the file.
class KeptBytes final : public ByteSource {
 public:
  explicit KeptBytes(int file) : file_(file) {}

  TraceResult<std::size_t> read(std::span<char> out) override {
    const ssize_t got = persistently([&] { return pread(file_, out.data(), out.size(), at_); });
    if (got < 0) return failure("cannot read");
    at_ += got;
    return static_cast<std::size_t>(got);
  }

 private:
  int file_;
  off_t at_ = 0;
};

}  // namespace

std::string shown_name(const std::string& path) {
  return path == kStandardInput ? "standard input" : path;
}

TraceResult<void> keep_standard_input() {
  if (!kept_file()) return kept_file().error();
  return {};
}

TraceResult<std::unique_ptr<ByteSource>> open_standard_input() {
  if (!kept_file()) return kept_file().error();
  return std::unique_ptr<ByteSource>(std::make_unique<KeptBytes>(*kept_file()));
}

}  // namespace kvo::traces
