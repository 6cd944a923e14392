// Faults of caches must show in texts: these are generations over seeded caches of other contracts.
#include "properties/seeding/mutants.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>

#include "properties/contract_parts.hpp"
#include "properties/seeded/generation/faults.hpp"
#include "properties/seeded/reference/provider/contiguous_cache.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/generation/operations.hpp"
#include "reference/provider/contiguous.hpp"
#include "reference/subjects.hpp"

namespace kvo::generation {
namespace {

/// Which cache is inside of which generation.
struct Inside {
  std::string_view kind;   ///< "generation.speculative"
  std::string_view cache;  ///< "provider.contiguous@mutant:appends_behind_cut"
};

constexpr std::array kInside{
    Inside{"generation.speculative", "provider.contiguous@mutant:rollback_keeps_one"},
    Inside{"generation.speculative", "provider.contiguous@mutant:rollback_to_nothing"},
    Inside{"generation.speculative", "provider.contiguous@mutant:rollback_forgotten"},
    Inside{"generation.contiguous", "provider.contiguous@mutant:reissued_with_content"},
    Inside{"generation.contiguous", "provider.contiguous@mutant:shown_before_written"},
    Inside{"generation.contiguous", "provider.contiguous@mutant:step_overwrites_first"},
    Inside{"generation.contiguous", "provider.contiguous@mutant:newest_unseen"},
    Inside{"generation.contiguous", "provider.contiguous@mutant:mask_without_prefix"},
    Inside{"generation.contiguous", "provider.contiguous@mutant:first_masked"},
    Inside{"generation.contiguous", "provider.contiguous@mutant:exactly_full_refused"},
    Inside{"generation.speculative", "provider.contiguous@mutant:appends_behind_cut"},
    Inside{"generation.speculative", "positional.causal@mutant:rollback_keeps_one"},
    Inside{"generation.contiguous", "positional.causal@mutant:mask_starts_at_batch"},
    Inside{"generation.paged", "provider.paged@mutant:page_looked_up_once"},
    Inside{"generation.paged", "provider.paged@mutant:values_of_first_layer"},
    Inside{"generation.paged", "provider.paged@mutant:runs_start_over"},
};

std::vector<Mutant> faulty_caches() {
  return seeding::mutants_of(
      kFaults, [](std::string_view /*room*/, const std::string& variant, const std::string& doc) {
        return std::vector{provider::make_contiguous_subject(
            variant, doc, provider::seeded::ContiguousCache::make)};
      });
}

std::vector<Mutant> mutants_of_caches() {
  std::vector<Mutant> all;
  for (auto* more : {provider::mutants, snapshot::mutants, positional::mutants, faulty_caches}) {
    std::vector<Mutant> made = more();
    std::move(made.begin(), made.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace

std::vector<Mutant> mutants() {
  const std::vector<Subject> outers = references();
  const std::vector<Mutant> caches = mutants_of_caches();
  std::vector<Mutant> made;
  for (const Inside& row : kInside) {
    const auto outer =
        std::ranges::find(outers, row.kind, [](const Subject& one) { return one.kind->name(); });
    const auto cache =
        std::ranges::find(caches, row.cache, [](const Mutant& one) { return one.subject.name(); });
    KVO_CHECK(outer != outers.end() && cache != caches.end());
    made.push_back({.subject = over_cache(*outer, cache->subject),
                    .fault = cache->fault,
                    .origin = cache->origin});
  }
  return made;
}

}  // namespace kvo::generation
