// traces/io/byte_source.hpp: bytes from a file, a pipe or memory, unpacked if they are gzip.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "traces/io/trace_error.hpp"

namespace kvo::traces {

/// A sequence of bytes that is read once, from its beginning to its end.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Fills `out` from its beginning. Returns the number of bytes, 0 only at the end.
  /// Requires `out` not empty.
  /// Errors   the system refuses to read; the packed data are damaged, end too early or are
  ///          followed by something else. The line of the error is 0.
  [[nodiscard]] virtual TraceResult<std::size_t> read(std::span<char> out) = 0;
};

/// Opens a plain or gzip file or a pipe; the first two bytes decide, not the name. "-" is standard
/// input (kept_input.hpp).
/// Errors   no such file, a directory, no permission: each in the system's words.
[[nodiscard]] TraceResult<std::unique_ptr<ByteSource>> open_bytes(const std::string& path);

/// The bytes of `memory`, which must outlive the source, unpacked if they are gzip. `name` takes
/// the place of the file's name in errors.
[[nodiscard]] std::unique_ptr<ByteSource> bytes_in_memory(std::string name,
                                                          std::string_view memory);

}  // namespace kvo::traces
