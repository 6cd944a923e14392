#include "properties/seeding/mutants.hpp"

#include <memory>
#include <string>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/seeded/groups/faults.hpp"
#include "properties/seeded/optimized/groups/blocks_cache.hpp"
#include "properties/seeded/reference/groups/blocks_cache.hpp"
#include "properties/seeded/reference/groups/plan_cache.hpp"
#include "reference/groups/operations.hpp"

namespace kvo::groups {
namespace {

std::vector<Subject> copies_of_caches(std::string_view room, const std::string& variant,
                                      const std::string& doc) {
  if (room == "optimized")
    return {make_blocks_subject(variant, doc, optimized::seeded::make_groups_cache)};
  return {make_blocks_subject(variant, doc, seeded::Manager::make),
          make_plan_subject(variant, doc, [](auto quirks) {
            return std::make_unique<seeded::PlanReference>(quirks);
          })};
}

}  // namespace

std::vector<Mutant> mutants() {
  return seeding::mutants_of(kFaults, copies_of_caches);
}

}  // namespace kvo::groups
