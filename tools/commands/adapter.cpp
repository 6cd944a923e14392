// tools/commands/adapter.cpp: `kvoracle adapter serve`.
#include <array>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "tools/adapters/serve.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/selection.hpp"

namespace kvo::tools {
namespace {

Run declare_serve(CLI::App& app, const Contracts& contracts) {
  const auto names = std::make_shared<std::vector<std::string>>();
  app.add_option("subjects", *names, "caches of this program, one of a kind")
      ->type_name("SUBJECT")
      ->required();
  return [&contracts, names]() -> int {
    std::vector<const Subject*> subjects;
    for (const std::string& name : *names) subjects.push_back(&subject_named(contracts, name));
    std::ios::sync_with_stdio(false);
    serve_subjects(subjects, std::cin, STDOUT_FILENO);
    return kExitConforms;
  };
}

constexpr std::array kAdapterCommands{
    Command{"serve", "answers requests on standard input with caches of this program",
            declare_serve},
};

}  // namespace

Run declare_adapter(CLI::App& app, const Contracts& contracts) {
  return declare_group(app, kAdapterCommands, contracts);
}

}  // namespace kvo::tools
