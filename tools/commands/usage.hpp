// tools/commands/usage.hpp: faults of whoever called the command, and of the files that were named.
// Both end the command with kExitUsage and one line.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "traces/io/trace_error.hpp"

namespace kvo::tools {

/// What was asked for makes no sense; the line is followed by a pointer to --help.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file that cannot be read or written.
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The value. Throws FileError for a fault of a file.
template <class T>
T must(traces::TraceResult<T> result) {
  if (!result) throw FileError(result.error().text());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Locks the open file or folder `path` against other processes of this command.
/// Errors   another process has the lock, or there are no locks there.
[[nodiscard]] traces::TraceResult<void> lock_or_refuse(int descriptor, const std::string& path);

/// Changed, added, left out and swapped neighbouring letters that lead from one word to the other.
[[nodiscard]] std::size_t edit_distance(std::string_view from, std::string_view to);

/// The known word that `word` was probably meant to be, or nothing.
[[nodiscard]] std::string_view closest_word(std::string_view word,
                                            std::span<const std::string> known);

/// "; did you mean 'provider'?", or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string> known);

/// "unknown contract 'provder'; did you mean 'provider'?" Without a word that is close: "unknown
/// contract 'x'. There are: layered, provider". Of many known words the first ones are shown, and
/// the command that lists all. `others` are only suggested.
[[nodiscard]] UsageError unknown_word(std::string_view what, std::string_view word,
                                      std::span<const std::string> known,
                                      std::span<const std::string> others = {});

}  // namespace kvo::tools
