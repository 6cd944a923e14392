// tools/campaign_options.hpp: the options that every command with many cases has.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "properties/campaign/contracts.hpp"
#include "reference/contract/subject/subject.hpp"
#include "tools/campaign.hpp"
#include "tools/verdict_report.hpp"

namespace kvo::tools {

/// What the command line says about a campaign.
struct CampaignArguments {
  CampaignOptions campaign;
  ReportOptions report;
  std::uint64_t seed = 1;
  Profile profile = Profile::kOriginal;
  double case_timeout = 0;  ///< seconds; set to the default by declare
};

/// Declares --seed --jobs --profile --output --resume --json --repros --case-timeout.
void declare_campaign(CLI::App& app, CampaignArguments& arguments);

/// Declares --profile.
void declare_profile(CLI::App& app, Profile& profile);
/// The same where a log may say it.
void declare_profile(CLI::App& app, std::optional<Profile>& profile);

/// The law of that name.
/// Throws UsageError for an unknown one.
[[nodiscard]] const Law& law_named(const Contracts& contracts, const std::string& name);

}  // namespace kvo::tools
