#include "properties/seeding/mutants.hpp"

#include <string>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/seeded/optimized/positional/causal_cache.hpp"
#include "properties/seeded/optimized/positional/encoder_cache.hpp"
#include "properties/seeded/optimized/positional/wrapper_cache.hpp"
#include "properties/seeded/positional/faults.hpp"
#include "properties/seeded/reference/positional/causal_cache.hpp"
#include "properties/seeded/reference/positional/encoder_cache.hpp"
#include "properties/seeded/reference/positional/wrapper_cache.hpp"
#include "reference/positional/operations.hpp"

namespace kvo::positional {
namespace {

// One of each kind.
std::vector<Subject> copies(std::string_view room, const std::string& variant,
                            const std::string& doc) {
  const auto all = [&](const MakeCache& causal, const MakeCache& encoder,
                       const MakeCache& wrapper) {
    std::vector<Subject> subjects;
    for (const MemberKind kind :
         {MemberKind::kCausal, MemberKind::kSwa, MemberKind::kSwaMem, MemberKind::kChunked})
      subjects.push_back(make_subject(kind_of(kind), variant, doc, causal));
    subjects.push_back(make_subject(kind_of(MemberKind::kEncoder), variant, doc, encoder));
    subjects.push_back(make_subject(wrapper_kind(), variant, doc, wrapper));
    return subjects;
  };
  if (room == "optimized")
    return all(optimized::PositionalCausalCache::make, optimized::PositionalEncoderCache::make,
               optimized::PositionalWrapperCache::make);
  return all(CausalCache::make, EncoderCache::make, WrapperCache::make);
}

}  // namespace

std::vector<Mutant> mutants() {
  return seeding::mutants_of(kFaults, copies);
}

}  // namespace kvo::positional
