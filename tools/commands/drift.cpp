// tools/commands/drift.cpp: `kvoracle drift`: in what releases of an engine differ. The Python
// library installs and bisects them; this hands it the command line.
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "tools/adapters/systems.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/not_negative.hpp"
#include "tools/commands/usage.hpp"

namespace kvo::tools {
namespace {

struct DriftArguments {
  std::string system;
  std::string from;
  std::string to;
  std::uint64_t cases = 400;
  std::uint64_t seed = 1;
};

int run_drift(const DriftArguments& arguments) {
  const std::string python = python_of_systems();
  std::vector<std::string> words{"sh",
                                 "-c",
                                 python + " -m kvoracle.systems.drift \"$@\"",
                                 "drift",
                                 arguments.system,
                                 "--from",
                                 arguments.from,
                                 "--cases",
                                 std::to_string(arguments.cases),
                                 "--seed",
                                 std::to_string(arguments.seed),
                                 "--program",
                                 path_of_program()};
  if (!arguments.to.empty()) words.insert(words.end(), {"--to", arguments.to});
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv("/bin/sh", pointers.data());
  throw UsageError(fmt::format("/bin/sh: {}", std::strerror(errno)));
}

}  // namespace

Run declare_drift(CLI::App& app, const Contracts& /*contracts*/) {
  const auto arguments = std::make_shared<DriftArguments>();
  app.add_option("system", arguments->system, "engine, as vllm")->type_name("ENGINE")->required();
  app.add_option("--from", arguments->from, "the earlier release")
      ->type_name("RELEASE")
      ->required();
  app.add_option("--to", arguments->to, "the later release; default: the one that is followed")
      ->type_name("RELEASE");
  app.add_option("--cases", arguments->cases, "random cases of each pair of releases")
      ->check(positive());
  app.add_option("--seed", arguments->seed, "of the cases");
  return [arguments] { return run_drift(*arguments); };
}

}  // namespace kvo::tools
