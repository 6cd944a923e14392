#include "properties/seeding/mutants.hpp"

#include <string>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/seeded/optimized/views/paged_views_cache.hpp"
#include "properties/seeded/reference/views/paged_cache.hpp"
#include "properties/seeded/views/faults.hpp"
#include "reference/views/operations.hpp"

namespace kvo::views {

namespace {

std::vector<Subject> copies(std::string_view room, const std::string& variant,
                            const std::string& doc) {
  return {
      make_subject(variant, doc,
                   room == "optimized" ? optimized::seeded::make_paged_views : seeded::make_paged)};
}

}  // namespace

std::vector<Mutant> mutants() {
  return seeding::mutants_of(kFaults, copies);
}

}  // namespace kvo::views
