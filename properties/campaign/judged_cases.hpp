// properties/campaign/judged_cases.hpp: how much of random cases an oracle judges, for tests.
#pragma once

#include <cstdint>

#include <gtest/gtest.h>

#include "properties/campaign/contracts.hpp"
#include "properties/campaign/random_case.hpp"

namespace kvo {

/// So many cases of `seed`, of so many operations each, on the reference of a kind of `contracts`:
/// the oracle must have no words about any answer. Returns  what it judged and skipped in all of
/// them.
/// Requires  the kind has a generator and an oracle.
[[nodiscard]] inline OracleCounts judged_in_random_cases(const Contracts& contracts,
                                                         const CacheKind& kind, Profile profile,
                                                         std::uint64_t seed, std::uint64_t cases,
                                                         int operations) {
  OracleCounts sum;
  for (std::uint64_t index = 0; index < cases; ++index) {
    const GeneratedCase made =
        contracts.generator_of(kind)->make({case_seed(seed, index), profile});
    const auto session = contracts.reference_of(kind).open(made.setup).value();
    const auto oracle = contracts.oracle_of(kind)(kind, made.setup);
    Probe probe;
    Labels labels;
    for (int i = 0; i < operations; ++i) {
      const Op op = made.ops->next().value();
      const Observation seen = session->apply(op, probe);
      const auto words = oracle->check(op, seen);
      EXPECT_EQ(words, std::nullopt) << kind.name() << " case " << index << " op " << i;
      if (words) return sum;
      made.ops->observe(op, seen, labels);
    }
    sum.judged += oracle->counts().judged;
    sum.skipped += oracle->counts().skipped;
  }
  return sum;
}

}  // namespace kvo
