#include "reference/subjects.hpp"

#include <memory>

#include "reference/groups/blocks_cache.hpp"
#include "reference/groups/operations.hpp"
#include "reference/groups/plan_cache.hpp"

namespace kvo::groups {

std::vector<Subject> references() {
  return {make_blocks_subject("reference", "by the rules", Manager::make),
          make_plan_subject("reference", "by the rules",
                            [](auto quirks) { return std::make_unique<PlanReference>(quirks); })};
}

}  // namespace kvo::groups
