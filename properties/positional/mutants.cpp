#include "properties/positional/mutants.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "properties/positional/faults.hpp"
#include "properties/seeded/optimized/positional/causal_cache.hpp"
#include "properties/seeded/optimized/positional/encoder_cache.hpp"
#include "properties/seeded/optimized/positional/wrapper_cache.hpp"
#include "properties/seeded/reference/positional/causal_cache.hpp"
#include "properties/seeded/reference/positional/encoder_cache.hpp"
#include "properties/seeded/reference/positional/wrapper_cache.hpp"
#include "properties/seeding/faulty_subject.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/positional/operations.hpp"

namespace kvo::positional {
namespace {

/// A kind and who makes its seeded caches.
struct Row {
  const CacheKind* kind;
  MakeCache reference;
  MakeCache optimized;
};

const std::array<Row, 6>& rows() {
  const auto causal = [](MemberKind member_kind) {
    return Row{&kind_of(member_kind), CausalCache::make, optimized::PositionalCausalCache::make};
  };
  static const std::array<Row, 6> kRows{
      causal(MemberKind::kCausal),
      causal(MemberKind::kSwa),
      causal(MemberKind::kSwaMem),
      causal(MemberKind::kChunked),
      Row{&kind_of(MemberKind::kEncoder), EncoderCache::make,
          optimized::PositionalEncoderCache::make},
      Row{&wrapper_kind(), WrapperCache::make, optimized::PositionalWrapperCache::make},
  };
  return kRows;
}

const Row& row_of(std::string_view kind) {
  const auto found =
      std::ranges::find(rows(), kind, [](const Row& row) { return row.kind->name(); });
  KVO_CHECK(found != rows().end());
  return *found;
}

Mutant mutant_of(const seeding::Fault& fault) {
  const Row& row = row_of(fault.kind);
  const bool fast = fault.edits.front().file.starts_with("optimized/");
  Subject subject = make_subject(*row.kind, "mutant:" + std::string(fault.name),
                                 std::string(fault.fault), fast ? row.optimized : row.reference);
  return {.subject = seeding::with_fault(std::move(subject), fault),
          .fault = std::string(fault.fault),
          .origin = std::string(fault.origin),
          .profile = fault.profile,
          .longest_script = fault.longest_script};
}

}  // namespace

std::vector<Mutant> mutants() {
  std::vector<Mutant> made;
  for (const seeding::Fault& fault : faults()) made.push_back(mutant_of(fault));
  return made;
}

std::vector<Subject> sound_copies() {
  std::vector<Subject> made;
  for (const Row& row : rows()) {
    made.push_back(make_subject(*row.kind, "copy_of_reference", "no fault is on", row.reference));
    made.push_back(make_subject(*row.kind, "copy_of_optimized", "no fault is on", row.optimized));
  }
  return made;
}

}  // namespace kvo::positional
