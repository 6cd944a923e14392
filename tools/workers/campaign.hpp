// tools/workers/campaign.hpp: many cases, in several processes, into one summary and one run file.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "properties/runner/run_case.hpp"
#include "tools/reports/run_file.hpp"
#include "tools/reports/summary.hpp"
#include "tools/workers/process.hpp"

namespace kvo::tools {

struct CampaignOptions {
  unsigned jobs = 1;
  std::uint64_t cases = 0;  ///< no limit: kEndless
  double seconds = 0;       ///< stop after so long; 0 for no limit
  std::string output;       ///< run file; empty for none
  bool resume = false;      ///< go on with an existing run file
  bool overwrite = false;   ///< replace it
  std::string repro_folder = "kvoracle-failures";
  std::uint64_t shrink_attempts = 20'000;
  std::chrono::duration<double> shrink_time{5};  ///< of the failing scripts of a case; 0: any
  bool timings = true;                           ///< are in the run file
  Limits limits = {};                            ///< of a process
  /// Says the first failure, of a summary that has no other; null: it is said at the end alone.
  std::function<std::vector<std::string>(const Summary&)> first_failure = nullptr;

  static constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();
};

/// What was found, whatever ended it.
struct Campaign {
  Summary summary = {};
  bool interrupted = false;  ///< somebody asked this process to end
  std::string fault = {};    ///< why nothing more could be written; empty: all was
};

/// Runs plan(0), plan(1), ... in processes of their own and adds the results up. This process
/// writes failing scripts to the repro folder as operation logs, and their names into the run file.
/// A subject that ends its process, or is silent for too long, gets that as its verdict. `seen`
/// gets each case in order, those of a resumed file included; it may throw FileError. Throws
/// FileError: the run file cannot be opened, or is another run's. It stays as it was. Requires this
/// process has one thread, after catch_interruption.
[[nodiscard]] Campaign run_campaign(const RunHeader& header, const CampaignOptions& options,
                                    const std::function<CasePlan(std::uint64_t)>& plan,
                                    const std::function<void(const CaseResult&)>& seen = nullptr);

}  // namespace kvo::tools
