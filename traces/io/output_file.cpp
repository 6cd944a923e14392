#include "traces/io/output_file.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace kvo::traces {

namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 100;

/// Creates a file that nobody else has, or gives nullptr and errno; `path` becomes its name. What a
/// killed process has left, even one of the same number, is not in the way.
std::FILE* create_beside(const std::string& target, std::string& path) {
  std::FILE* file = nullptr;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    path = fmt::format("{}.partial-{}-{}", target, ::getpid(), attempt);
    file = std::fopen(path.c_str(), "wbx");
    if (file != nullptr || errno != EEXIST) break;
  }
  return file;
}

}  // namespace

OutputFile::OutputFile(std::string name, std::string target, std::string temporary, std::FILE* file)
    : name_(std::move(name)),
      target_(std::move(target)),
      temporary_(std::move(temporary)),
      file_(file) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : name_(std::move(other.name_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      file_(std::move(other.file_)),
      failure_(std::move(other.failure_)) {}

OutputFile::~OutputFile() {
  file_.reset();
  if (!temporary_.empty()) (void)std::remove(temporary_.c_str());
}

TraceResult<OutputFile> OutputFile::open(const std::string& path) {
  std::error_code error;
  std::string target = path;
  if (const auto real = fs::canonical(path, error); !error) target = real.string();
  const auto status = fs::status(target, error);
  if (fs::is_directory(status)) return system_error(path, "cannot write", EISDIR);

  const bool direct = fs::exists(status) && !fs::is_regular_file(status);
  std::string temporary;
  errno = 0;
  std::FILE* file = direct ? std::fopen(target.c_str(), "wb") : create_beside(target, temporary);
  if (file == nullptr) return system_error(path, "cannot write", errno);
  return OutputFile(path, std::move(target), std::move(temporary), file);
}

TraceResult<void> OutputFile::write(std::string_view text) {
  if (failure_) return *failure_;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) {
    return fail("cannot write", errno);
  }
  return {};
}

TraceResult<void> OutputFile::commit() {
  if (failure_) return *failure_;
  errno = 0;
  // fclose() writes what is still buffered: only here a full disk may show.
  if (std::fclose(file_.release()) != 0) return fail("cannot write", errno);
  if (temporary_.empty()) return {};
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) return fail("cannot write", errno);
  temporary_.clear();
  return {};
}

TraceError OutputFile::fail(std::string_view doing, int code) {
  failure_ = system_error(name_, doing, code);
  return *failure_;
}

}  // namespace kvo::traces
