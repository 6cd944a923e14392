// Faults of caches must show in texts: these are generations over seeded caches of other contracts.
#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>

#include "properties/generation/contract.hpp"
#include "properties/positional/contract.hpp"
#include "properties/provider/contract.hpp"
#include "properties/snapshot/contract.hpp"
#include "reference/contract/values/check.hpp"
#include "reference/generation/subjects.hpp"

namespace kvo::generation {
namespace {

/// Which cache is inside of which generation.
struct Inside {
  std::string_view kind;   ///< "generation.speculative"
  std::string_view cache;  ///< "provider.contiguous@mutant:appends_behind_cut"
};

constexpr std::array kInside{
    Inside{"generation.speculative", "provider.contiguous@mutant:appends_behind_cut"},
};

std::vector<Mutant> mutants_of_caches() {
  std::vector<Mutant> all;
  for (auto* more : {provider::mutants, snapshot::mutants, positional::mutants}) {
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
