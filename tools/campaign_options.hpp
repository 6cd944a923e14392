// tools/campaign_options.hpp: the options that every command with many cases has.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "properties/laws.hpp"
#include "reference/contract/subject.hpp"
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

/// The law of that name.
/// Throws UsageError for an unknown one.
[[nodiscard]] const Law& law_named(const std::string& name);

}  // namespace kvo::tools
