// tools/commands/probe.hpp: what all commands share that ask an engine that serves the probe.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tools/probe/check.hpp"

namespace kvo::tools {

/// What the command line says about an engine.
struct EngineArguments {
  std::string url;
  std::vector<std::string> headers;
  std::string key_file;
  double timeout = 60;
  std::string json;
  ProbeOptions options;
};

/// Declares --at-once --model --header --api-key-file --ca-file --stream --timeout --retries
/// --sent-at-most --window --past-window. Returns  these options.
std::vector<CLI::Option*> declare_engine(CLI::App& app, EngineArguments& arguments);

/// The options, checked.
/// Throws UsageError: the URL or a header. FileError: no key in the file.
[[nodiscard]] const ProbeOptions& engine_options(EngineArguments& arguments);

/// Prints the verdict and writes the JSON. Returns the exit status.
[[nodiscard]] int end_of_probe(const ProbeReport& report, const std::string& json);

}  // namespace kvo::tools
