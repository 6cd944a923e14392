// tools/commands/trace.cpp: `kvoracle trace info` and `kvoracle trace generate`.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "properties/campaign/contracts.hpp"
#include "reference/contract/describe/json.hpp"
#include "tools/commands/campaign_options.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/not_negative.hpp"
#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/result_file.hpp"
#include "tools/reports/trace_findings.hpp"
#include "traces/figures/generate.hpp"
#include "traces/figures/statistics.hpp"
#include "traces/figures/validate.hpp"
#include "traces/formats/formats.hpp"
#include "traces/formats/mooncake.hpp"
#include "traces/formats/sample.hpp"
#include "traces/io/kept_input.hpp"
#include "traces/io/output_file.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;
using traces::Severity;

// ---- info ----

struct InfoOptions {
  std::string file;
  std::string format;
  std::int64_t block_size = 512;
  std::vector<std::uint64_t> capacities{1000, 10000, 50000};
  std::string json;
};

struct Figures {
  traces::TraceStatistics statistics;
  traces::Validation validation;
};

traces::TextSource open_file_or_sample(const std::string& file) {
  if (file.empty())
    return traces::TextSource::in_memory(std::string(traces::kSampleName), traces::sample_trace());
  return must(traces::TextSource::open(file));
}

Figures measure(const InfoOptions& options) {
  const auto reader = must(traces::open_trace(open_file_or_sample(options.file), options.format));
  traces::StatisticsCounter counter(options.capacities);
  traces::Validator validator({.block_size = options.block_size});
  Progress progress("requests");
  while (const auto request = must(reader->next())) {
    counter.add(*request);
    validator.add(*request);
    progress.advance();
  }
  Figures figures{counter.result(), validator.result()};
  figures.statistics.skipped = reader->skipped();
  return figures;
}

json::object figures_json(const std::string& name, const Figures& figures) {
  json::object all{{"trace", name}};
  const json::object counted = write_json(figures.statistics).as_object();
  all.insert(counted.begin(), counted.end());
  all["prefix_hit_share"] = figures.statistics.prefix_hit_share();
  json::array findings;
  for (const traces::Finding& finding : figures.validation.findings)
    findings.push_back(
        {{"line", finding.line},
         {"severity", severity(finding.kind) == Severity::kError ? "error" : "warning"},
         {"kind", traces::name(finding.kind)},
         {"message", finding.message}});
  all["errors"] = figures.validation.errors();
  all["warnings"] = figures.validation.warnings();
  all["findings"] = std::move(findings);
  return all;
}

int run_info(const InfoOptions& options) {
  check_outputs({{"--json", options.json}}, {options.file});
  const std::string name =
      options.file.empty() ? std::string(traces::kSampleName) : traces::shown_name(options.file);
  const Figures figures = measure(options);
  if (options.json != kStandardOutput)
    print_out(fmt::format("{:<20}{}\n{}{:<20}{}\n", "trace", printable(name),
                          traces::text(figures.statistics), "validation",
                          findings_text(figures.validation)));
  if (!options.json.empty()) write_result(options.json, "trace_info", figures_json(name, figures));
  print_findings(name, figures.validation);
  return figures.validation.errors() == 0 ? kExitConforms : kExitDiffers;
}

Run declare_info(CLI::App& app, const Contracts& /*contracts*/) {
  const auto options = std::make_shared<InfoOptions>();
  app.add_option("file", options->file,
                 "trace, plain or gzip; -: standard input; none: the embedded sample")
      ->type_name("FILE");
  app.add_option("--format", options->format, "of the trace; default: by its content")
      ->type_name("FORMAT");
  app.add_option("--block-size", options->block_size, "tokens a block that ids stand for")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->type_name("TOKENS")
      ->capture_default_str();
  app.add_option("--capacity", options->capacities,
                 "sizes of flat LRU caches to count hits of, in blocks; may be given repeatedly")
      ->delimiter(',')
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40U))
      ->allow_extra_args(false)
      ->type_name("BLOCKS")
      ->default_str("1000,10000,50000");
  app.add_option("--json", options->json, "write the figures as JSON; - for standard output")
      ->type_name("FILE");
  return [options] { return run_info(*options); };
}

// ---- generate ----

struct GenerateCommandOptions {
  traces::GenerateOptions trace;
  std::string output{kStandardOutput};
};

int run_generate(const GenerateCommandOptions& options) {
  check_outputs({{"--output", options.output}}, {});
  if (const auto checked = traces::check(options.trace); !checked) {
    const traces::TraceError& error = checked.error();
    std::string option = error.field;
    std::ranges::replace(option, '_', '-');
    throw UsageError(fmt::format("--{} {}: {}", option, error.value, error.message));
  }
  std::optional<traces::OutputFile> file;
  if (options.output != kStandardOutput)
    file.emplace(must(traces::OutputFile::open(options.output)));
  must(traces::generate_each(options.trace,
                             [&](const traces::Request& request) -> traces::TraceResult<void> {
                               const std::string line = traces::to_mooncake_line(request) + "\n";
                               if (file) return file->write(line);
                               print_out(line);
                               return {};
                             }));
  if (file) must(file->commit());
  return kExitConforms;
}

Run declare_generate(CLI::App& app, const Contracts& /*contracts*/) {
  const auto options = std::make_shared<GenerateCommandOptions>();
  traces::GenerateOptions& trace = options->trace;
  const auto add = [&app](const char* name, auto& value, const char* doc) {
    app.add_option(name, value, doc)->capture_default_str()->type_name("N")->check(not_negative());
  };
  add("--seed", trace.seed, "everything random follows from it");
  add("--requests", trace.requests, "how many requests");
  app.get_option("--requests")->check(positive());
  add("--requests-per-second", trace.requests_per_second, "arrivals, on average");
  add("--mean-turn-tokens", trace.mean_turn_tokens, "new tokens of a prompt");
  add("--mean-output-tokens", trace.mean_output_tokens, "tokens of an answer");
  add("--continued-percent", trace.continued_percent, "requests that go on with a conversation");
  add("--system-prompts", trace.system_prompts, "shared beginnings of conversations");
  add("--mean-system-tokens", trace.mean_system_tokens, "tokens of a shared beginning");
  add("--max-input-tokens", trace.max_input_tokens, "tokens at which a conversation ends");
  add("--block-size", trace.block_size, "tokens a block");
  app.add_option("-o,--output", options->output, "file to write; - for standard output")
      ->type_name("FILE")
      ->capture_default_str();
  return [options] { return run_generate(*options); };
}

constexpr std::array kTraceCommands{
    Command{"info", "figures and faults of a trace", declare_info},
    Command{"generate", "a made-up trace in Mooncake's format, the same for the same options",
            declare_generate},
};

}  // namespace

Run declare_trace(CLI::App& app, const Contracts& contracts) {
  return declare_group(app, kTraceCommands, contracts);
}

}  // namespace kvo::tools
