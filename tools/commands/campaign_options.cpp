#include "tools/commands/campaign_options.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include "reference/contract/describe/utf8.hpp"
#include "tools/commands/conventions.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/commands/not_negative.hpp"
#include "tools/commands/program_name.hpp"
#include "tools/commands/usage.hpp"
#include "tools/commands/word_option.hpp"
#include "tools/reports/console.hpp"

namespace kvo::tools {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kMostJobs = 256;

// Where a name leads, whether or not a file is there.
fs::path place_of(fs::path path) {
  constexpr int kMostLinks = 40;
  std::error_code none;
  for (int links = 0; links < kMostLinks && fs::is_symlink(path, none); ++links)
    path = path.parent_path() / fs::read_symlink(path, none);
  return fs::weakly_canonical(fs::absolute(path, none), none);
}

bool is_same_file(const std::string& one, const std::string& other) {
  if (one.empty() || one == other) return one == other;
  std::error_code none;
  const fs::file_status status = fs::status(one, none);
  if (fs::exists(status) && !fs::is_regular_file(status)) return false;  // a pipe loses nothing
  return fs::equivalent(one, other, none) || place_of(one) == place_of(other);
}

}  // namespace

void declare_workers(CLI::App& app, unsigned& jobs, Limits& limits, bool all) {
  if (all) jobs = std::clamp(std::thread::hardware_concurrency(), 1U, kMostJobs);
  app.add_option("--jobs,-j", jobs, "worker processes; results do not depend on it")
      ->check(CLI::Range(1U, kMostJobs))
      ->default_str(all ? "one for each core" : std::to_string(jobs))
      ->group(kRunningGroup);
  declare_limits(app, limits);
}

void declare_limits(CLI::App& app, Limits& limits) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
  app.add_option_function<double>(
         "--operation-timeout",
         [&limits](double seconds) { limits.silence = std::chrono::duration<double>(seconds); },
         "that an operation may take before its subject is taken to hang; 0: any")
      ->type_name("SECONDS")
      ->check(not_negative())
      ->default_str(fmt::format("{}", limits.silence.count()))
      ->group(kRunningGroup);
  app.add_option_function<std::uint64_t>(
         "--case-memory", [&limits](std::uint64_t mib) { limits.memory_bytes = mib * kMiB; },
         "memory that a case may take; 0: any")
      ->type_name("MIB")
      ->check(not_negative())
      ->default_str(fmt::format("{}", limits.memory_bytes / kMiB))
      ->group(kRunningGroup);
  app.add_flag("!--no-isolation", limits.isolated,
               "run subjects in this very process: for debuggers, where a crash ends the command")
      ->group(kRunningGroup);
}

CLI::Option* add_output(CLI::App& app, const char* names, std::string& path, const char* doc) {
  return app.add_option(names, path, doc)->type_name("FILE")->group(kRunningGroup);
}

void declare_reports(CLI::App& app, std::string& json, std::string& junit) {
  add_output(app, "--json", json, "write the summary as JSON; - for standard output");
  add_output(app, "--junit", junit, "write the verdicts as JUnit XML; - for standard output");
}

void declare_schedules(CLI::App& app, std::uint64_t& schedules) {
  constexpr std::uint64_t kMostSchedules = 1'000'000;
  app.add_option("--schedules", schedules,
                 "in how many schedules of a simulated device each case is judged")
      ->check(CLI::Range(std::uint64_t{1}, kMostSchedules))
      ->capture_default_str();
}

void declare_campaign(CLI::App& app, CampaignArguments& arguments, bool all_workers) {
  app.add_option("--seed", arguments.seed, "the same seed gives the same cases")
      ->check(not_negative())
      ->capture_default_str();
  declare_profile(app, arguments.profile);
  declare_schedules(app, arguments.schedules);
  declare_conventions(app, arguments.conventions);
  declare_workers(app, arguments.campaign.jobs, arguments.campaign.limits, all_workers);
  add_output(app, "--output,-o", arguments.campaign.output,
             "run file: JSON Lines, appended case by case");
  app.add_flag("--resume", arguments.campaign.resume, "go on with the run file of a killed run")
      ->group(kRunningGroup);
  app.add_flag("--overwrite", arguments.campaign.overwrite, "replace a run file that is there")
      ->group(kRunningGroup);
  declare_reports(app, arguments.report.json, arguments.report.junit);
  add_output(app, "--repros", arguments.campaign.repro_folder, "folder for failing scripts")
      ->type_name("FOLDER")
      ->capture_default_str();
  app.add_option("--shrink-attempts", arguments.campaign.shrink_attempts,
                 "most scripts that are tried to make a failing one smaller; 0 leaves it as it is")
      ->check(not_negative())
      ->capture_default_str()
      ->group(kRunningGroup);
  app.add_option_function<double>(
         "--shrink-time",
         [&arguments](double seconds) {
           arguments.campaign.shrink_time = std::chrono::duration<double>(seconds);
         },
         "that the failing scripts of a case may take to be made smaller; 0: any")
      ->type_name("SECONDS")
      ->check(not_negative())
      ->default_str(fmt::format("{}", arguments.campaign.shrink_time.count()))
      ->group(kRunningGroup);
}

std::string given_options(const CLI::App& app, const std::vector<std::string_view>& without) {
  std::string words;
  std::string options;
  for (const CLI::Option* option : app.get_options()) {
    const bool decides =
        option->get_group() != kExtentGroup && option->get_group() != kRunningGroup;
    if (option->count() == 0 || !decides || option->check_name("--seed")) continue;
    if (std::ranges::find(without, option->get_name()) != without.end()) continue;
    for (const std::string& value : option->results()) {
      if (option->get_positional())
        words += " " + shell_word(value);
      else if (option->get_items_expected_max() == 0)
        options += " " + option->get_name();
      else
        options += " " + option->get_name() + " " + shell_word(value);
    }
  }
  return words + options;
}

std::string repeat_command(const CLI::App& app, std::uint64_t seed, std::uint64_t index) {
  return fmt::format("{} {}{} --seed {} --case {}", program_name(), app.get_name(),
                     given_options(app), seed, index);
}

void check_files(const CampaignArguments& arguments, const std::vector<std::string>& inputs) {
  if (arguments.campaign.output == kStandardOutput)
    throw UsageError("--output -: a run file cannot be standard output");
  if (arguments.campaign.resume && arguments.campaign.output.empty())
    throw UsageError("--resume needs the run file: --output");
  check_outputs({{"--output", arguments.campaign.output},
                 {"--json", arguments.report.json},
                 {"--junit", arguments.report.junit},
                 {"--repros", arguments.campaign.repro_folder}},
                inputs);
}

void check_outputs(std::initializer_list<Output> outputs, const std::vector<std::string>& inputs) {
  for (const Output& output : outputs) {
    if (output.path.empty()) continue;
    if (valid_utf8(output.path) != output.path)
      throw UsageError(fmt::format("{} {}: must be valid UTF-8", output.option, output.path));
    for (const std::string& input : inputs)
      if (!input.empty() && output.path != kStandardOutput && is_same_file(input, output.path))
        throw UsageError(fmt::format("{} {}: is read, too: it would be overwritten", output.option,
                                     output.path));
    for (const Output& other : outputs)
      if (&other < &output && is_same_file(other.path, output.path))
        throw UsageError(fmt::format("{} and {} name the same file", other.option, output.option));
  }
}

void check_reports(const std::string& json, const std::string& junit,
                   const std::vector<std::string>& inputs) {
  check_outputs({{"--json", json}, {"--junit", junit}}, inputs);
}

int end_of_campaign(const Campaign& campaign, const std::string& run_file, int status) {
  if (!campaign.fault.empty()) {
    print_error(campaign.fault);
    return kExitUsage;
  }
  if (!campaign.interrupted) return status;
  print_error(fmt::format("interrupted after {} cases{}", campaign.summary.cases(),
                          run_file.empty() ? "" : "; --resume goes on"));
  return kExitInterrupted;
}

std::vector<const Law*> choose_laws(const Contracts& contracts,
                                    const std::vector<std::string>& words) {
  const auto meant_by = [&](const std::string& word) {
    std::vector<const Law*> meant;
    for (const Law* law : contracts.laws())
      if (fnmatch(word.c_str(), std::string(law->name()).c_str(), 0) == 0) meant.push_back(law);
    if (meant.empty()) (void)law_named(contracts, word);  // throws
    return meant;
  };
  const auto excludes = [](const std::string& word) { return word.starts_with('!'); };
  std::vector<const Law*> chosen;
  if (std::ranges::all_of(words, excludes)) chosen = contracts.laws();
  for (const std::string& word : words)
    if (!excludes(word))
      for (const Law* law : meant_by(word))
        if (std::ranges::find(chosen, law) == chosen.end()) chosen.push_back(law);
  for (const std::string& word : words)
    if (excludes(word))
      for (const Law* law : meant_by(word.substr(1))) std::erase(chosen, law);
  if (chosen.empty())
    throw UsageError(fmt::format("--law {}: no law is left", fmt::join(words, " ")));
  return chosen;
}

const Law& law_named(const Contracts& contracts, const std::string& name) {
  if (const Law* law = contracts.find_law(name)) return *law;
  std::vector<std::string> known;
  for (const Law* law : contracts.laws()) known.emplace_back(law->name());
  throw unknown_word("law", name, known);
}

}  // namespace kvo::tools
