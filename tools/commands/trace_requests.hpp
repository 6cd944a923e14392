// tools/commands/trace_requests.hpp: a request trace named on the command line.
#pragma once

#include <string>
#include <vector>

#include "properties/campaign/contracts.hpp"
#include "properties/replay/replay.hpp"
#include "traces/formats/request.hpp"

namespace CLI {  // NOLINT: a name of theirs
class App;
}

namespace kvo::tools {

struct TraceArguments {
  std::string trace;   ///< a file; "-": standard input; empty: the embedded sample
  std::string format;  ///< empty: by its content
  bool strict = false;
};

/// Declares the file and --format.
void declare_trace_file(CLI::App& app, TraceArguments& arguments, const std::string& doc);

/// What is replayed: the file, or "sample".
[[nodiscard]] std::string trace_name(const TraceArguments& arguments);

/// Throws UsageError where the name is that of a cache: other commands take caches there.
void check_trace_name(const Contracts& contracts, const std::string& trace);

/// All requests, as they stand in the file; a note for a trace with errors.
/// Throws FileError: no readable trace, no request, a request of more than 2^28 tokens; with
/// `strict` a trace with errors.
[[nodiscard]] std::vector<traces::Request> read_requests(const TraceArguments& arguments);

/// "lengths divided by 16", or "by 16 to 256" when kinds differ. Requires a kind.
[[nodiscard]] std::string scales_text(const replay::Replay& replay);

}  // namespace kvo::tools
