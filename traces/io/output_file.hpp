// traces/io/output_file.hpp: a file that appears whole or not at all.
//
// Written beside its place under a temporary name and renamed when complete. What exists and is no
// regular file (a device, a pipe) is written to directly, for there is nothing to rename.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "traces/io/trace_error.hpp"

namespace kvo::traces {

/// A file being written. Destroyed without commit(), it leaves what stood at its path before.
class OutputFile {
 public:
  /// Begins a file at `path`, through symbolic links.
  /// Errors   a directory, no such folder, no permission: each in the system's words
  [[nodiscard]] static TraceResult<OutputFile> open(const std::string& path);

  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  /// Adds `text` at the end.
  /// Errors   the system's: no space left, a file too large. commit() then gives the same error.
  [[nodiscard]] TraceResult<void> write(std::string_view text);

  /// Puts the file in its place. Nothing may be written afterwards.
  /// Errors   as write, for bytes that were still on their way; no permission to rename
  [[nodiscard]] TraceResult<void> commit();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
  };

  OutputFile(std::string name, std::string target, std::string temporary, std::FILE* file);
  TraceError fail(std::string_view doing, int code);

  std::string name_;       // as the caller said it, for messages
  std::string target_;     // with symbolic links followed
  std::string temporary_;  // empty: written to directly
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::optional<TraceError> failure_;
};

}  // namespace kvo::traces
