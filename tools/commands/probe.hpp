// tools/commands/probe.hpp: what all commands share that ask an engine that serves the probe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "tools/probe/check.hpp"
#include "tools/probe/probe_report.hpp"

namespace kvo::tools {

/// What the command line says about an engine.
struct EngineArguments {
  std::string url;
  std::vector<std::string> headers;
  std::string key_file;
  double timeout = 60;
  std::string json;
  std::string junit;
  ProbeOptions options;
};

/// Declares --at-once --model --header --api-key-file --ca-file --stream --timeout --retries
/// --sent-at-most --window --past-window. Returns  these options.
std::vector<CLI::Option*> declare_engine(CLI::App& app, EngineArguments& arguments);

/// The options, checked.
/// Throws UsageError: the URL or a header. FileError: no key in the file.
[[nodiscard]] const ProbeOptions& engine_options(EngineArguments& arguments);

/// The command that repeats a run, without --header, which may hold a key, and the options of
/// `without`.
[[nodiscard]] std::string repeat_probe(const CLI::App& app, std::uint64_t seed,
                                       std::vector<std::string_view> without = {});

/// Prints the verdict and writes JSON and JUnit; empty names: none. Returns the exit status.
[[nodiscard]] int end_of_probe(const ProbeReport& report, const std::vector<PlanResult>& plans,
                               const ProbeRepeat& repeat, const std::string& json,
                               const std::string& junit);

}  // namespace kvo::tools
