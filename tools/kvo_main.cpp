// tools/kvo_main.cpp: reads the command line, runs one command, and turns every way to fail into an
// exit status and one line.
#include "tools/kvo_main.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cuda/device/open.hpp"
#include "properties/contracts.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/program_name.hpp"
#include "tools/commands/text.hpp"
#include "tools/commands/usage.hpp"
#include "tools/commands/word_option.hpp"
#include "tools/reports/console.hpp"
#include "tools/reports/result_file.hpp"
#include "tools/workers/crash_guard.hpp"
#include "tools/workers/process.hpp"

namespace kvo::tools {
namespace {

constexpr const char* kDoc = "Checks key-value caches against their contracts, and measures them.";
constexpr const char* kFooter =
    "Exit status: 0 all conform, 1 a mismatch, 2 bad usage or an unreadable file,\n"
    "3 a subject crashed or hung, 4 a fault of the harness itself.";

/// The innermost command that was given.
const CLI::App& chosen(const CLI::App& app) {
  const std::vector<CLI::App*> commands = app.get_subcommands();
  return commands.empty() ? app : chosen(*commands.front());
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// What is wrong with the words `left` that nothing took behind a command.
std::string leftover_text(const CLI::App& app, const std::vector<std::string>& left) {
  if (left.empty()) return "unexpected argument";
  const std::string& word = left.front();
  if (word.starts_with("-"))
    return fmt::format("unknown option '{}'{}", word, did_you_mean(word, option_names(app)));
  const std::vector<std::string> names = command_names(app);
  if (names.empty()) return fmt::format("unexpected argument '{}'", word);
  return unknown_word("command", word, names).what();
}

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::ranges::replace(text, '\n', ' ');
  return text;
}

int usage_fault(const CLI::App& app, const std::string& what) {
  print_error(one_line(what));
  print_note(fmt::format("Try '{} --help'.", full_name(app)));
  return kExitUsage;
}

int run_command_line(int argc, const char* const* argv, const Contracts& contracts) {
  CLI::App app(kDoc, std::string(program_name()));
  app.footer(kFooter);
  app.set_version_flag("--version", "kvoracle " KVO_VERSION, "show the version");
  app.formatter(help_formatter());
  app.set_help_flag("-h,--help", "show this help");
  static const std::map<std::string, ColourMode> kColours{
      {"auto", ColourMode::kAuto}, {"always", ColourMode::kAlways}, {"never", ColourMode::kNever}};
  add_word_option<ColourMode>(app, "--color", kColours, set_colour_mode,
                              "auto: on a terminal, unless NO_COLOR is set")
      ->default_str("auto");
  const Run run = declare_group(app, commands(), contracts);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    print_out(help_text(chosen(app)));
    return kExitConforms;
  } catch (const CLI::CallForVersion& version) {
    print_out(fmt::format("{}\n", version.what()));
    return kExitConforms;
  } catch (const CLI::ExtrasError&) {
    return usage_fault(chosen(app), leftover_text(chosen(app), app.remaining(true)));
  } catch (const CLI::ParseError& error) {
    return usage_fault(chosen(app), error.what());
  }
  try {
    return run();
  } catch (const UsageError& error) {
    return usage_fault(chosen(app), error.what());
  } catch (const FileError& error) {
    print_error(one_line(error.what()));
    return kExitUsage;
  } catch (const Interrupted& interruption) {
    print_error(interruption.what());
    return kExitInterrupted;
  } catch (const std::bad_alloc&) {
    std::string words;
    for (int i = 1; i < argc; ++i) words += " " + shell_word(argv[i]);
    print_error("there is not the memory that is asked for:" + words);
    return kExitUsage;
  }
}

int harness_fault(const char* what) {
  print_error(fmt::format("fault of the harness: {}", what));
  return kExitHarness;
}

int output_fault(const OutputFailed& error) {
  // The reader of a pipe went away: it has what it wanted, but no verdict was reached.
  if (!error.reader_is_gone()) print_error(error.what());
  return kExitUsage;
}

/// The command line, and every exception that must not be one's last words.
int guarded(int argc, char** argv, std::vector<Subject> subjects, std::vector<ContractRow> more) {
  try {
    std::vector<ContractRow> rows = contract_rows();
    for (ContractRow& row : more) row.guest = true;
    rows.insert(rows.end(), more.begin(), more.end());
    const Contracts contracts(std::move(rows), std::move(subjects), cuda::open_device);
    return run_command_line(argc, argv, contracts);
  } catch (const OutputFailed& error) {
    return output_fault(error);
  } catch (const InvalidName& error) {
    print_error(error.what());
    return kExitUsage;
  } catch (const std::bad_alloc&) {
    return harness_fault("out of memory");
  } catch (const std::system_error& error) {
    print_error(error.what());  // no process or pipe left: the environment's
    return kExitUsage;
  } catch (const std::exception& error) {
    return harness_fault(error.what());
  }
}

/// A closed standard stream would be given to the next file that is opened: its place is taken by
/// one that can neither be read nor written with success.
void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) == -1 && errno == EBADF)
      (void)open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/// Takes as much stack as is usual, if that is allowed. False: it is too little to work with.
bool has_stack() {
  constexpr rlim_t kKiB = 1024;
  constexpr rlim_t kUsual = 8192 * kKiB;
  constexpr rlim_t kLeast = 256 * kKiB;
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0) return true;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(kUsual, limit.rlim_max));
  (void)setrlimit(RLIMIT_STACK, &limit);
  if (limit.rlim_cur >= kLeast) return true;
  print_error(fmt::format("the stack may have {} KiB, and needs {} KiB (ulimit -s)",
                          limit.rlim_cur / kKiB, kLeast / kKiB));
  return false;
}

/// A handler, because ignoring would be inherited by the programs that adapters start.
extern "C" void kvo_on_closed_pipe(int /*number*/) {}

}  // namespace
}  // namespace kvo::tools

int kvo::main(int argc, char** argv, std::vector<Subject> subjects,
              std::vector<ContractRow> contracts) {
  tools::occupy_closed_streams();
  (void)std::signal(SIGPIPE, tools::kvo_on_closed_pipe);
  (void)std::signal(SIGXFSZ, SIG_IGN);  // a write behind the limit then fails, and says so
  tools::install_crash_guard();
  if (argc > 0)
    if (auto last = std::filesystem::path(argv[0]).filename().string(); !last.empty())
      tools::program_name() = std::move(last);
  if (!tools::has_stack()) return tools::kExitUsage;
  tools::set_command_words(argc, argv);
  const int status = tools::guarded(argc, argv, std::move(subjects), std::move(contracts));
  try {
    tools::finish_output();
  } catch (const tools::OutputFailed& error) {
    if (error.reader_is_gone()) return status;
    // A status from the same failure has already been explained.
    return status == tools::kExitUsage ? status : tools::output_fault(error);
  }
  return status;
}
