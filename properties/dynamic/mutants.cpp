#include "properties/seeding/mutants.hpp"

#include <string>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/seeded/dynamic/faults.hpp"
#include "properties/seeded/reference/dynamic/layer_cache.hpp"
#include "reference/dynamic/operations.hpp"

namespace kvo::dynamic {
namespace {

std::vector<Subject> copies(std::string_view /*room*/, const std::string& variant,
                            const std::string& doc) {
  std::vector<Subject> all;
  for (const Form form : kForms)
    all.push_back(make_subject(kind_of(form), variant, doc, seeded::make_layer_cache));
  return all;
}

}  // namespace

std::vector<Mutant> mutants() {
  return seeding::mutants_of(kFaults, copies);
}

}  // namespace kvo::dynamic
