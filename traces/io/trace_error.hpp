// traces/io/trace_error.hpp: what is wrong with an input or output file, as a value.
//
// Words    place   a file and a line in it; line 0 means the file as a whole.
// Errors   are faults of the environment: they end a command, they are never compared.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <boost/assert/source_location.hpp>
#include <boost/system/result.hpp>

namespace kvo::traces {

/// One fault in one file. Parts that are empty (line: zero) do not apply and are not printed.
struct TraceError {
  std::string file;
  std::uint64_t line = 0;  ///< counted from 1
  std::string field;       ///< column, JSON member or option, shortened by `excerpt`
  std::string value;       ///< what stood there, shortened by `excerpt`
  std::string message;     ///< what is wrong with it

  /// "FILE:LINE: FIELD: VALUE: what is wrong", at most 300 bytes of the file's name.
  [[nodiscard]] std::string text() const;

  friend bool operator==(const TraceError&, const TraceError&) = default;
};

/// A value, or why there is none.
template <class T>
using TraceResult = boost::system::result<T, TraceError>;

/// What `TraceResult::value()` does when there is none: throws std::runtime_error(error.text()).
[[noreturn]] void throw_exception_from_error(const TraceError& error,
                                             const boost::source_location& location);

/// Where a value was read.
struct Place {
  std::string_view file;
  std::uint64_t line = 0;
};

/// An error about `value` of `field` at `place`; both are shortened by `excerpt`.
[[nodiscard]] TraceError error_at(Place place, std::string_view field, std::string_view value,
                                  std::string_view message);

/// An error of a file in the system's words: "cannot read: Input/output error".
[[nodiscard]] TraceError system_error(std::string_view file, std::string_view doing, int code);

/// At most 60 bytes of `text` on one line: control characters and bytes beyond ASCII as \xNN, the
/// rest cut off and replaced by "...".
[[nodiscard]] std::string excerpt(std::string_view text);

}  // namespace kvo::traces
