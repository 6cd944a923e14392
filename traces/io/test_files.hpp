// traces/io/test_files.hpp: what the tests of this folder share.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "traces/formats/formats.hpp"
#include "traces/formats/reader.hpp"
#include "traces/io/text_source.hpp"
#include "traces/io/trace_error.hpp"

namespace kvo::traces::test {

/// A folder of its own for the running test, empty at first and removed at the end.
class TempFolder {
 public:
  TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();

  /// The path of `name` in the folder.
  [[nodiscard]] std::string path(std::string_view name) const;

  /// Writes a file and returns its path.
  [[nodiscard]] std::string write(std::string_view name, std::string_view content) const;

  /// How many files there are.
  [[nodiscard]] std::size_t files() const;

 private:
  std::string folder_;
};

/// All of a file.
[[nodiscard]] std::string content_of(const std::string& path);

/// `text` as one gzip member.
[[nodiscard]] std::string gzipped(std::string_view text);

/// The requests of a trace called "t" with this content; a failure of the test if it has an error.
[[nodiscard]] std::vector<Request> requests_in(std::string_view content,
                                               std::string_view format = {});

/// The first error of such a trace as text; "no error" without one.
[[nodiscard]] std::string error_in(std::string_view content, std::string_view format = {});

/// What `counter` says of requests.
template <class Counter>
[[nodiscard]] auto result_of(Counter counter, const std::vector<Request>& requests) {
  for (const Request& request : requests) counter.add(request);
  return counter.result();
}

/// The error of a result as text; "no error" without one.
template <class T>
[[nodiscard]] std::string error_text(const TraceResult<T>& result) {
  return result ? "no error" : result.error().text();
}

}  // namespace kvo::traces::test
