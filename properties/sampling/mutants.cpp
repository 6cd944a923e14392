#include "properties/seeding/mutants.hpp"

#include <memory>
#include <string>

#include "properties/contract_parts.hpp"
#include "properties/seeded/optimized/sampling/selecting_sampler.hpp"
#include "properties/seeded/reference/sampling/pipeline.hpp"
#include "properties/seeded/sampling/faults.hpp"
#include "reference/sampling/operations.hpp"

namespace kvo::sampling {
namespace {

std::unique_ptr<Sampler> make_selecting_copy(QuirkSet<Quirk> quirks) {
  return std::make_unique<optimized::seeded::SelectingSampler>(quirks);
}

std::vector<Subject> copies(std::string_view room, const std::string& variant,
                            const std::string& doc) {
  return {make_subject(variant, doc,
                       room == "optimized" ? make_selecting_copy : seeded::make_pipeline)};
}

}  // namespace

std::vector<Mutant> mutants() {
  return seeding::mutants_of(kFaults, copies);
}

}  // namespace kvo::sampling
