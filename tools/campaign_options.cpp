#include "tools/campaign_options.hpp"

#include <map>

#include "tools/crash_guard.hpp"
#include "tools/not_negative.hpp"
#include "tools/usage.hpp"

namespace kvo::tools {

namespace {

CLI::CheckedTransformer profiles() {
  static const std::map<std::string, Profile> kProfiles{{"original", Profile::kOriginal},
                                                        {"documented", Profile::kDocumented}};
  CLI::CheckedTransformer transformer(kProfiles);
  transformer.description("original|documented");
  return transformer;
}

constexpr const char* kProfileDoc =
    "original: what the followed system does; documented: what it promises";

}  // namespace

void declare_profile(CLI::App& app, Profile& profile) {
  app.add_option("--profile", profile, kProfileDoc)->transform(profiles())->default_str("original");
}

void declare_profile(CLI::App& app, std::optional<Profile>& profile) {
  app.add_option("--profile", profile, kProfileDoc)
      ->transform(profiles())
      ->default_str("that of the log, else original");
}

void declare_campaign(CLI::App& app, CampaignArguments& arguments) {
  constexpr unsigned kMostJobs = 256;
  arguments.case_timeout =
      std::chrono::duration_cast<std::chrono::duration<double>>(kDefaultCaseTimeout).count();
  app.add_option("--seed", arguments.seed, "the same seed gives the same cases")
      ->check(not_negative())
      ->capture_default_str();
  app.add_option("--jobs,-j", arguments.campaign.jobs, "threads; results do not depend on it")
      ->check(CLI::Range(1U, kMostJobs))
      ->capture_default_str();
  app.add_option("--output,-o", arguments.campaign.output,
                 "run file: JSON Lines, appended case by case");
  app.add_flag("--resume", arguments.campaign.resume, "go on with the run file of a killed run");
  app.add_option("--json", arguments.report.json,
                 "write the summary as JSON; - for standard output");
  app.add_option("--repros", arguments.campaign.repro_folder, "folder for failing scripts")
      ->capture_default_str();
  app.add_option("--case-timeout", arguments.case_timeout,
                 "seconds after which a case hangs (exit status 3); 0: never")
      ->check(not_negative())
      ->capture_default_str();
  declare_profile(app, arguments.profile);
}

const Law& law_named(const Contracts& contracts, const std::string& name) {
  if (const Law* law = contracts.find_law(name)) return *law;
  std::vector<std::string> known;
  for (const Law* law : contracts.laws()) known.emplace_back(law->name());
  throw unknown_word("law", name, known);
}

}  // namespace kvo::tools
