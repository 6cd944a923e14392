// tools/commands/adapter.cpp: `kvoracle adapter new` and `kvoracle adapter serve`.
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "tools/adapters/project.hpp"
#include "tools/adapters/serve.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/selection.hpp"
#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/json_file.hpp"

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

struct NewArguments {
  std::string language;
  std::string kind;
  std::string directory;
};

int run_new(const Contracts& contracts, const NewArguments& arguments) {
  const std::size_t dot = std::min(arguments.kind.find('.'), arguments.kind.size());
  const CacheKind* kind =
      contracts.find_kind(arguments.kind.substr(0, dot),
                          arguments.kind.substr(std::min(dot + 1, arguments.kind.size())));
  if (kind == nullptr) {
    std::vector<std::string> known;
    for (const CacheKind* one : contracts.kinds()) known.push_back(one->name());
    throw unknown_word("kind of cache", arguments.kind, known);
  }
  namespace files = std::filesystem;
  const files::path directory(arguments.directory);
  std::error_code failure;
  if (files::exists(directory, failure) && !files::is_empty(directory, failure))
    throw UsageError(fmt::format("{}: is there and not empty", printable(arguments.directory)));
  for (const ProjectFile& file : adapter_project(arguments.language, *kind)) {
    const files::path path = directory / file.path;
    files::create_directories(path.parent_path(), failure);
    if (failure)
      throw FileError(fmt::format("{}: {}", path.parent_path().string(), failure.message()));
    write_text_file(path.string(), file.text);
  }
  print_out(fmt::format("{}: an adapter of {} in {}; README.md there says how to run it\n",
                        printable(arguments.directory), kind->name(), arguments.language));
  return kExitConforms;
}

Run declare_new(CLI::App& app, const Contracts& contracts) {
  const auto arguments = std::make_shared<NewArguments>();
  const auto languages = project_languages();
  app.add_option("--language,-l", arguments->language, "in which it is written")
      ->check(CLI::IsMember(std::vector<std::string>(languages.begin(), languages.end())))
      ->required();
  app.add_option("--contract,-c", arguments->kind, "kind of cache, as prefix.blocks")
      ->type_name("KIND")
      ->required();
  app.add_option("directory", arguments->directory, "of the project; new or empty")
      ->type_name("DIR")
      ->required();
  return [&contracts, arguments] { return run_new(contracts, *arguments); };
}

constexpr std::array kAdapterCommands{
    Command{"new", "writes a project with a cache in another language", declare_new},
    Command{"serve", "answers requests on standard input with caches of this program",
            declare_serve},
};

}  // namespace

Run declare_adapter(CLI::App& app, const Contracts& contracts) {
  return declare_group(app, kAdapterCommands, contracts);
}

}  // namespace kvo::tools
