// tools/probe/trace_plans.hpp: the requests of a trace as texts of the probe.
//
// A block of the trace has the same tokens wherever its id occurs, so two prompts share exactly
// what the trace says. Everything else occurs once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/probe/tables.hpp"
#include "tools/probe/plans.hpp"
#include "traces/formats/request.hpp"

namespace kvo::tools {

struct TraceLimits {
  std::int64_t scale = 0;      ///< divides lengths; 0: the least power of two that skips no request
  std::size_t longest = 4096;  ///< tokens of a prompt; longer ones are skipped
  std::size_t tokens = 256;    ///< of an answer; longer ones are cut
  std::size_t at_once = 4;     ///< requests that an engine serves at a time
};

/// The requests in order of arrival, `at_once` of them in flight.
class TracePlans : public PlanSource {
 public:
  /// Requires  `tables` outlives the plans; limits as those of draw_plan.
  TracePlans(const probe::Tables& tables, std::vector<traces::Request> requests,
             const TraceLimits& limits, std::uint64_t seed);

  [[nodiscard]] std::optional<ProbePlan> next() override;
  [[nodiscard]] std::vector<std::string> skipped() const override;
  /// What divides lengths.
  [[nodiscard]] std::int64_t scale() const { return limits_.scale; }

 private:
  [[nodiscard]] std::size_t length(const traces::Request& request) const;
  [[nodiscard]] ProbeRequest request(const traces::Request& request) const;

  TextDrawer drawer_;
  std::vector<traces::Request> requests_;
  TraceLimits limits_;
  std::uint64_t seed_;
  std::size_t block_ = 1;  // tokens of a block of the trace
  std::size_t plans_ = 0;
  std::size_t sent_ = 0;  // requests, with those that were skipped
  std::uint64_t too_long_ = 0;
  std::uint64_t empty_ = 0;
};

}  // namespace kvo::tools
