#include "properties/seeding/mutants.hpp"

#include <string>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/seeded/mlx_lm/faults.hpp"
#include "properties/seeded/reference/mlx_lm/make.hpp"
#include "reference/mlx_lm/operations.hpp"

namespace kvo::mlx_lm {

namespace {

std::vector<Subject> copies_of_caches(std::string_view /*room*/, const std::string& variant,
                                      const std::string& doc) {
  return make_subjects(variant, doc, seeded::make_reference, seeded::make_prompt_lru);
}

}  // namespace

std::vector<Mutant> mutants() {
  return seeding::mutants_of(kFaults, copies_of_caches);
}

}  // namespace kvo::mlx_lm
