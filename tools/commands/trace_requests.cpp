#include "tools/commands/trace_requests.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tools/commands/selection.hpp"
#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/trace_findings.hpp"
#include "traces/figures/validate.hpp"
#include "traces/formats/formats.hpp"
#include "traces/formats/sample.hpp"
#include "traces/io/kept_input.hpp"

namespace kvo::tools {

void declare_trace_file(CLI::App& app, TraceArguments& arguments, const std::string& doc) {
  app.add_option("trace", arguments.trace, doc)->type_name("FILE");
  app.add_option("--format", arguments.format, "of the trace; default: by its content")
      ->type_name("FORMAT");
}

std::string trace_name(const TraceArguments& arguments) {
  return arguments.trace.empty() ? "sample" : traces::shown_name(arguments.trace);
}

void check_trace_name(const Contracts& contracts, const std::string& trace) {
  std::error_code unreadable;
  if (!std::filesystem::exists(trace, unreadable) && means_references(contracts, {trace}))
    throw UsageError(fmt::format("there is no trace '{0}'; caches are chosen by --subject {0}",
                                 printable(trace)));
}

std::vector<traces::Request> read_requests(const TraceArguments& arguments) {
  auto source =
      arguments.trace.empty()
          ? traces::TextSource::in_memory(std::string(traces::kSampleName), traces::sample_trace())
          : must(traces::TextSource::open(arguments.trace));
  const auto reader = must(traces::open_trace(std::move(source), arguments.format));
  std::vector<traces::Request> requests = must(traces::read_all(*reader));
  if (requests.empty()) throw FileError(trace_name(arguments) + ": there is no request to replay");
  constexpr std::int64_t kMostTokens = std::int64_t{1} << 28U;
  for (const traces::Request& request : requests)
    if (const auto most = std::max(request.input_tokens, request.output_tokens); most > kMostTokens)
      throw FileError(fmt::format("{}: request {}: {} tokens: at most {} can be replayed",
                                  trace_name(arguments), &request - requests.data() + 1, most,
                                  kMostTokens));
  traces::Validator validator;
  for (const traces::Request& request : requests) validator.add(request);
  if (const std::string line = errors_line(arguments.trace, validator.result()); !line.empty()) {
    if (arguments.strict) throw FileError(line);
    print_note(line);
  }
  return requests;
}

std::string scales_text(const replay::Replay& replay) {
  const auto [least, most] =
      std::ranges::minmax_element(replay.kinds(), {}, &replay::ReplayedKind::scale);
  return least->scale == most->scale
             ? fmt::format("lengths divided by {}", least->scale)
             : fmt::format("lengths divided by {} to {}", least->scale, most->scale);
}

}  // namespace kvo::tools
