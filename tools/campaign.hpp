// tools/campaign.hpp: many cases, on several threads, into one summary and one run file.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "properties/runner/run_case.hpp"
#include "tools/run_file.hpp"
#include "tools/summary.hpp"

namespace kvo::tools {

struct CampaignOptions {
  unsigned jobs = 1;
  std::uint64_t cases = 0;  ///< no limit: kEndless
  double seconds = 0;       ///< stop after so long; 0 for no limit
  std::string output;       ///< run file; empty for none
  bool resume = false;      ///< go on with an existing run file
  std::string repro_folder = "kvoracle-failures";
  std::uint64_t shrink_attempts = 20'000;

  static constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();
};

/// Runs plan(0), plan(1), ... and adds the results up. Failing scripts are written to the repro
/// folder as operation logs, and their names into the run file.
/// Errors   the run file or a log could not be written, or another run's file was to be resumed.
///          What had been written stays.
[[nodiscard]] traces::TraceResult<Summary> run_campaign(
    const RunHeader& header, const CampaignOptions& options,
    const std::function<CasePlan(std::uint64_t)>& plan);

}  // namespace kvo::tools
