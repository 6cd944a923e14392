#include "properties/seeding/mutants.hpp"

#include <string>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/seeded/events/faults.hpp"
#include "properties/seeded/reference/events/make.hpp"
#include "reference/events/operations.hpp"

namespace kvo::events {
namespace {

std::vector<Subject> copies(std::string_view /*room*/, const std::string& variant,
                            const std::string& doc) {
  std::vector<Subject> all;
  for (const Form form : kForms)
    all.push_back(make_subject(form, variant, doc, seeded::make_reference));
  return all;
}

}  // namespace

std::vector<Mutant> mutants() {
  return seeding::mutants_of(kFaults, copies);
}

}  // namespace kvo::events
