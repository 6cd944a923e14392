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

/// How the command line says that a server is reached.
struct ConnectionArguments {
  std::string url;
  std::vector<std::string> headers;
  std::string key_file;
  std::string ca_file;
  double timeout = 60;
};
/// Declares --header --api-key-file --ca-file --timeout. Returns  these options.
std::vector<CLI::Option*> declare_connection(CLI::App& app, ConnectionArguments& arguments);
/// Throws UsageError: the URL or a header. FileError: no key in the file.
[[nodiscard]] HttpOptions connection_of(const ConnectionArguments& arguments);

/// What the command line says about an engine.
struct EngineArguments : ConnectionArguments {
  std::string json;
  std::string junit;
  ProbeOptions options;
};

/// Declares --at-once --model --stream --retries --sent-at-most --window --past-window, and those
/// of the connection. Returns  these options.
std::vector<CLI::Option*> declare_engine(CLI::App& app, EngineArguments& arguments);

/// The options, checked.
/// Throws as connection_of.
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
