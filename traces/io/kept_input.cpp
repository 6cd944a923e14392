#include "traces/io/kept_input.hpp"

#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <span>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace kvo::traces {
namespace {

// Again after a signal.
template <class Call>
ssize_t persistently(const Call& call) {
  ssize_t got = call();
  while (got < 0 && errno == EINTR) got = call();
  return got;
}

// Into a file without a name, which goes with the last process that has it open.
TraceResult<int> copy_all(const std::string& name, int from) {
  const int kept = memfd_create("input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (kept < 0) return system_error(name, "cannot keep it", errno);
  std::array<char, 65'536> part;  // NOLINT: written by read
  std::size_t total = 0;
  while (true) {
    const ssize_t got = persistently([&] { return read(from, part.data(), part.size()); });
    if (got < 0) return system_error(name, "cannot read", errno);
    if (got == 0) {
      // Whoever has it open as well cannot change it.
      (void)fcntl(kept, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
      return kept;
    }
    total += static_cast<std::size_t>(got);
    if (total > kMostKept)
      return error_at({name}, {}, {}, fmt::format("longer than {} bytes; name a file", kMostKept));
    std::span<const char> rest(part.data(), static_cast<std::size_t>(got));
    while (!rest.empty()) {
      const ssize_t put = persistently([&] { return write(kept, rest.data(), rest.size()); });
      if (put <= 0) return system_error(name, "cannot keep it", errno);
      rest = rest.subspan(static_cast<std::size_t>(put));
    }
  }
}

TraceResult<int> copy_of(const std::string& path) {
  if (path == kStandardInput) return copy_all(shown_name(path), STDIN_FILENO);
  const int from = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) return system_error(path, "cannot open", errno);
  auto kept = copy_all(path, from);
  (void)close(from);
  return kept;
}

// By path: the file that it was copied to.
std::map<std::string, TraceResult<int>>& all_kept() {
  static std::map<std::string, TraceResult<int>> all;
  return all;
}

bool is_read_once(const std::string& path) {
  std::error_code none;
  const auto type = std::filesystem::status(path, none).type();
  return path == kStandardInput || type == std::filesystem::file_type::fifo ||
         type == std::filesystem::file_type::character ||
         type == std::filesystem::file_type::socket;
}

// A position of its own: forked processes share that of the file.
class KeptBytes final : public ByteSource {
 public:
  KeptBytes(std::string name, int file) : name_(std::move(name)), file_(file) {}

  TraceResult<std::size_t> read(std::span<char> out) override {
    const ssize_t got = persistently([&] { return pread(file_, out.data(), out.size(), at_); });
    if (got < 0) return system_error(name_, "cannot read", errno);
    at_ += got;
    return static_cast<std::size_t>(got);
  }

 private:
  std::string name_;
  int file_;
  off_t at_ = 0;
};

}  // namespace

std::string shown_name(const std::string& path) {
  return path == kStandardInput ? "standard input" : path;
}

TraceResult<void> keep_input(const std::string& path) {
  if (!is_read_once(path)) return {};
  auto known = all_kept().find(path);
  if (known == all_kept().end()) known = all_kept().emplace(path, copy_of(path)).first;
  if (!known->second) return known->second.error();
  return {};
}

std::vector<int> kept_files() {
  std::vector<int> files;
  for (const auto& [path, file] : all_kept())
    if (file) files.push_back(*file);
  return files;
}

std::optional<TraceResult<std::unique_ptr<ByteSource>>> open_kept(const std::string& path) {
  const auto known = all_kept().find(path);
  if (known == all_kept().end()) return std::nullopt;
  if (!known->second) return known->second.error();
  return std::unique_ptr<ByteSource>(std::make_unique<KeptBytes>(shown_name(path), *known->second));
}

}  // namespace kvo::traces
