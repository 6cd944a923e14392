// tools/commands/doctor.cpp: `kvoracle doctor`: engines that can be tested here by name.
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tools/adapters/adapter.hpp"
#include "tools/adapters/systems.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"

namespace kvo::tools {
namespace {

struct Examined {
  const System* system = nullptr;
  Greeting greeting;
  std::string why_not;  ///< empty: it can be tested
};

Examined examined(const System& system) {
  Examined found{.system = &system};
  try {
    found.greeting = greeting_of_adapter(command_of(system));
  } catch (const UsageError& error) {
    found.why_not = why_absent(error.what());
  }
  return found;
}

std::string caches_text(const Examined& found) {
  if (!found.why_not.empty()) return printable(found.why_not);
  std::string text;
  for (const GreetedKind& kind : found.greeting.kinds)
    text += (text.empty() ? "" : ", ") + printable(kind.kind);
  if (!found.greeting.conventions_of.empty())
    text += fmt::format("; not a known release: judged by the conventions of {}",
                        printable(found.greeting.conventions_of));
  return text;
}

boost::json::object json_of(const Examined& found) {
  boost::json::array kinds;
  for (const GreetedKind& kind : found.greeting.kinds) kinds.emplace_back(kind.kind);
  boost::json::object row{{"engine", found.system->name}, {"kinds", std::move(kinds)}};
  if (!found.why_not.empty())
    row["why_not"] = found.why_not;
  else
    row["release"] = found.greeting.version;
  if (!found.greeting.conventions_of.empty()) row["conventions_of"] = found.greeting.conventions_of;
  return row;
}

int run_doctor(bool as_json) {
  boost::json::array rows;
  Table table({column("engine"), column("release"), {.title = "caches", .wraps = true}});
  for (const System& system : systems()) {
    const Examined found = examined(system);
    rows.push_back(json_of(found));
    table.row({std::string(system.name), printable(found.greeting.version), caches_text(found)});
  }
  if (as_json) {
    print_out(boost::json::serialize(boost::json::object{{"engines", std::move(rows)}}) + "\n");
    return kExitConforms;
  }
  print_out(table.text(0, output_columns()));
  print_out("kvoracle check ENGINE tests one (docs/systems.md)\n");
  return kExitConforms;
}

}  // namespace

Run declare_doctor(CLI::App& app, const Contracts& /*contracts*/) {
  const auto as_json = std::make_shared<bool>(false);
  app.add_flag("--json", *as_json, "as JSON");
  return [as_json] { return run_doctor(*as_json); };
}

}  // namespace kvo::tools
