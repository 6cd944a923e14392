#include "tools/commands/commands.hpp"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/commands/usage.hpp"

namespace kvo::tools {
namespace {

constexpr std::array kCommands{
    Command{"run", "replay a request trace on every cache against its reference", declare_run},
    Command{"check", "random cases against the laws", declare_check},
    Command{"conform", "replay recorded logs", declare_conform},
    Command{"mutants", "kill matrix of the seeded faults", declare_mutants},
    Command{"shrink", "the smallest script of a log that a subject fails", declare_shrink},
    Command{"record", "what a cache answers to random operations, as a log", declare_record},
    Command{"why", "for which reasons a prompt was not reused, token by token", declare_why},
    Command{"learn", "in what a cache lawfully differs: its conventions", declare_learn},
    Command{"diff", "where two caches part, or caches of several engines", declare_diff},
    Command{"bench", "how fast caches are, beside their reference and memcpy", declare_bench},
    Command{"gate", "whether a run is worse than an earlier one: for CI", declare_gate},
    Command{"list", "contracts, caches, operations, subjects, laws and trace formats",
            declare_list},
    Command{"explain", "what a rule, law, state, column or error code means", declare_explain},
    Command{"trace", "figures of a request trace, or a made-up one", declare_trace},
    Command{"probe", "a model whose tokens show what the KV cache of an engine held",
            declare_probe},
    Command{"adapter", "caches of this program, or of yours, over the protocol of adapters",
            declare_adapter},
    Command{"watch", "what running engines announce of their caches, followed and judged",
            declare_watch},
    Command{"drift", "in what releases of an engine differ, and since when", declare_drift},
    Command{"doctor", "which engines can be tested here by name", declare_doctor},
    Command{"help", "the options of a command", declare_help},
    Command{"completion", "a script with which a shell completes command lines",
            declare_completion},
};

}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

Run declare_group(CLI::App& app, std::span<const Command> group, const Contracts& contracts) {
  app.require_subcommand(0, 1);
  std::vector<std::pair<CLI::App*, Run>> declared;
  std::vector<std::string_view> names;
  for (const Command& command : group) {
    CLI::App* own = app.add_subcommand(std::string(command.name), std::string(command.doc));
    own->group("Commands");
    own->fallthrough();  // what concerns all commands (--color) may stand behind one, too
    declared.emplace_back(own, command.declare(*own, contracts));
    names.push_back(command.name);
  }
  return [declared, names]() -> int {
    for (const auto& [own, run] : declared)
      if (own->parsed()) return run();
    throw UsageError(fmt::format("no command given; there are: {}", fmt::join(names, ", ")));
  };
}

}  // namespace kvo::tools
