// tools/commands/campaign_options.hpp: the options that every command with many cases has.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "properties/campaign/contracts.hpp"
#include "reference/contract/subject/subject.hpp"
#include "tools/commands/word_option.hpp"
#include "tools/reports/verdict_report.hpp"
#include "tools/workers/campaign.hpp"

namespace kvo::tools {

/// What the command line says about a campaign.
struct CampaignArguments {
  CampaignOptions campaign;
  ReportOptions report;
  std::uint64_t seed = 1;
  Profile profile = Profile::kOriginal;
  std::uint64_t schedules = 1;
  std::vector<std::string> conventions = {};  ///< files
};

/// Declares --seed --jobs --profile --schedules --conventions --output --resume --json --repros and
/// what a case may use. `all_workers`: by default there is a worker for each core.
void declare_campaign(CLI::App& app, CampaignArguments& arguments, bool all_workers = false);

/// Options of these groups do not change what a case is.
inline constexpr const char* kExtentGroup = "How much";
inline constexpr const char* kRunningGroup = "How it runs, and where results go";

/// Declares --jobs and what a process may use; the default is `jobs`, or with `all` one for each
/// core.
void declare_workers(CLI::App& app, unsigned& jobs, Limits& limits, bool all = false);
/// Declares what a process may use.
void declare_limits(CLI::App& app, Limits& limits);

/// What was given of the arguments and options that decide what a case is, but for --seed and those
/// named in `without`: as words of a shell, each after a space.
[[nodiscard]] std::string given_options(const CLI::App& app,
                                        const std::vector<std::string_view>& without = {});
/// The command that runs case `index` of a campaign alone: what was given of the options that
/// decide what a case is, the seed, and the index.
[[nodiscard]] std::string repeat_command(const CLI::App& app, std::uint64_t seed,
                                         std::uint64_t index);

/// A file or folder that is written, by the option that names it; empty: none is.
struct Output {
  std::string_view option;
  const std::string& path;
};
/// Refuses names that are not UTF-8, and two names of one file: of two outputs, or of an output and
/// an input. `inputs` are names of files; those that are empty are none.
/// Throws UsageError.
void check_outputs(std::initializer_list<Output> outputs, const std::vector<std::string>& inputs);
/// The same for both reports.
void check_reports(const std::string& json, const std::string& junit,
                   const std::vector<std::string>& inputs);
/// The same for all that a campaign writes. Refuses --resume without a run file, too.
void check_files(const CampaignArguments& arguments, const std::vector<std::string>& inputs);

/// Says what ended a campaign early; `run_file` may be empty. Returns the exit status: `status` if
/// nothing did.
[[nodiscard]] int end_of_campaign(const Campaign& campaign, const std::string& run_file,
                                  int status);

/// Declares --schedules.
void declare_schedules(CLI::App& app, std::uint64_t& schedules);
/// Declares --profile; `otherwise` is what holds without it. Chosen: Profile, or optional of it.
template <class Chosen>
void declare_profile(CLI::App& app, Chosen& profile, const std::string& otherwise = "original") {
  add_word_option<Profile>(
      app, "--profile", {{"original", Profile::kOriginal}, {"documented", Profile::kDocumented}},
      [&profile](Profile chosen) { profile = chosen; },
      "original: what the followed system does; documented: what it promises")
      ->default_str(otherwise);
}

/// Declares an option for a file that is written.
CLI::Option* add_output(CLI::App& app, const char* names, std::string& path, const char* doc);
/// Declares --json and --junit.
void declare_reports(CLI::App& app, std::string& json, std::string& junit);

/// The laws that words mean, which may have wild cards as in fnmatch(3). A word that begins with
/// '!' excludes laws from those of the other words; without other words, from all laws. No word:
/// all. Throws UsageError for a word that means no law, and where no law is left.
[[nodiscard]] std::vector<const Law*> choose_laws(const Contracts& contracts,
                                                  const std::vector<std::string>& words);
/// The law of that name.
/// Throws UsageError for an unknown one.
[[nodiscard]] const Law& law_named(const Contracts& contracts, const std::string& name);

}  // namespace kvo::tools
