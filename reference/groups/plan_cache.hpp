// reference/groups/plan_cache.hpp: the reference of kind `groups.plan`.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/groups/plan.hpp"

namespace kvo::groups {

class PlanReference : public Plan {
 public:
  explicit PlanReference(QuirkSet<PlanQuirk> quirks) : quirks_(quirks) {}

  [[nodiscard]] Result<std::vector<PlannedGroup>> group(const std::vector<Layer>& layers,
                                                        bool hybrid) const override;
  [[nodiscard]] Result<SizesReturns> sizes(const std::vector<Group>& groups, bool caching,
                                           std::optional<std::int64_t> unit) const override;
  [[nodiscard]] std::int64_t position(std::int64_t tokens, std::int64_t block, bool drop,
                                      std::int64_t lookahead) const override;
  [[nodiscard]] Ids boundaries(std::int64_t prompt, std::int64_t block, bool drop) const override;

 private:
  QuirkSet<PlanQuirk> quirks_;
};

}  // namespace kvo::groups
