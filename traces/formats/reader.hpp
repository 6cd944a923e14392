// traces/formats/reader.hpp: what every trace format looks like from outside.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <boost/describe/class.hpp>

#include "traces/formats/request.hpp"
#include "traces/io/trace_error.hpp"

namespace kvo::traces {

/// Rows that were read and are no requests to replay.
struct Skipped {
  std::uint64_t failed = 0;  ///< the service gave no answer

  friend bool operator==(const Skipped&, const Skipped&) = default;
};

BOOST_DESCRIBE_STRUCT(Skipped, (), (failed))

/// Requests of one trace in the order of the file, in memory for one request at a time.
class Reader {
 public:
  virtual ~Reader() = default;

  /// The next request; nothing at the end of the trace.
  /// Errors   the file's (see TextSource); a field that is missing or holds what it must not.
  ///          The first error ends the reading: a later call gives it again.
  [[nodiscard]] TraceResult<std::optional<Request>> next();

  /// What has been passed over so far.
  [[nodiscard]] const Skipped& skipped() const { return skipped_; }

 protected:
  /// next() without the memory for errors.
  [[nodiscard]] virtual TraceResult<std::optional<Request>> read_next() = 0;

  /// Counts one row that next() passes over.
  void count_failed() { ++skipped_.failed; }

 private:
  Skipped skipped_;
  std::optional<TraceError> failure_;
};

/// All requests that are left in `reader`.
/// Errors   as Reader::next
[[nodiscard]] TraceResult<std::vector<Request>> read_all(Reader& reader);

}  // namespace kvo::traces
