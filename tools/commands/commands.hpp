// tools/commands/commands.hpp: the commands of `kvoracle`. One is a file command_NAME.cpp, its
// declaration here, and a line in the table of commands.cpp.
#pragma once

#include <functional>
#include <span>
#include <string_view>

namespace CLI {  // NOLINT: a name of theirs
class App;
}

namespace kvo {
class Contracts;
}

namespace kvo::tools {

/// Carries out a command whose options have been read. Returns the exit status.
using Run = std::function<int()>;

/// One command, or one command of a group.
struct Command {
  std::string_view name;
  std::string_view doc;  ///< one line for --help
  /// Declares the options on the command's own app; what it returns is run if the command was
  /// chosen. `contracts` must outlive that. From there UsageError, FileError and OutputFailed may
  /// be thrown; any other exception is a fault of the harness.
  Run (*declare)(CLI::App& app, const Contracts& contracts);
};

/// Every command of `kvoracle`, in the order of --help.
[[nodiscard]] std::span<const Command> commands();

/// Declares `group` as commands of `app`; runs the chosen one. Used for `kvoracle` itself and for
/// commands such as `trace info`.
[[nodiscard]] Run declare_group(CLI::App& app, std::span<const Command> group,
                                const Contracts& contracts);

/// The lists that `kvoracle list` can show.
[[nodiscard]] std::span<const std::string_view> list_names();

Run declare_adapter(CLI::App& app, const Contracts& contracts);
Run declare_bench(CLI::App& app, const Contracts& contracts);
Run declare_check(CLI::App& app, const Contracts& contracts);
Run declare_drift(CLI::App& app, const Contracts& contracts);
Run declare_doctor(CLI::App& app, const Contracts& contracts);
Run declare_completion(CLI::App& app, const Contracts& contracts);
Run declare_conform(CLI::App& app, const Contracts& contracts);
Run declare_explain(CLI::App& app, const Contracts& contracts);
Run declare_gate(CLI::App& app, const Contracts& contracts);
Run declare_help(CLI::App& app, const Contracts& contracts);
Run declare_diff(CLI::App& app, const Contracts& contracts);
Run declare_learn(CLI::App& app, const Contracts& contracts);
Run declare_list(CLI::App& app, const Contracts& contracts);
Run declare_mutants(CLI::App& app, const Contracts& contracts);
Run declare_run(CLI::App& app, const Contracts& contracts);
Run declare_shrink(CLI::App& app, const Contracts& contracts);
Run declare_probe(CLI::App& app, const Contracts& contracts);
Run declare_record(CLI::App& app, const Contracts& contracts);
Run declare_watch(CLI::App& app, const Contracts& contracts);
Run declare_why(CLI::App& app, const Contracts& contracts);
Run declare_trace(CLI::App& app, const Contracts& contracts);

}  // namespace kvo::tools
