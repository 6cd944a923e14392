#include "properties/provider/schedules.hpp"

#include <gtest/gtest.h>

#include "properties/contracts.hpp"
#include "properties/runner/lockstep.hpp"
#include "reference/provider/device_cache.hpp"
#include "reference/provider/device_operations.hpp"
#include "reference/provider/tensor_cache.hpp"
#include "reference/provider/tensor_operations.hpp"

namespace kvo::provider {
namespace {

constexpr std::uint64_t kOperations = 60;

Subject device_over(OpenDevice open) {
  return make_device_subject("scheduled", "", DeviceCache::make, std::move(open));
}
Subject tensor_over(OpenDevice open) {
  return make_tensor_subject("scheduled", "", TensorCache::make, std::move(open));
}

void play(const CacheKind& kind, const Subject& subject, std::uint64_t seed, Profile profile) {
  GeneratedCase made = contracts().generator_of(kind)->make(seed, profile);
  const std::vector<const Subject*> subjects{&subject};
  Lockstep lockstep(&contracts().reference_of(kind), subjects, made.setup);
  Labels labels;
  for (std::uint64_t i = 0; i < kOperations && lockstep.worthwhile(); ++i) {
    const auto op = made.ops->next();
    if (!op) break;
    const Observation& seen = lockstep.step(*op);
    made.ops->saw(*op, seen, labels);
  }
  const Verdict& verdict = lockstep.participants().front().verdict;
  EXPECT_EQ(verdict.outcome, Outcome::kAgrees)
      << subject.name() << ", schedule " << seed << ": " << verdict.text();
}

}  // namespace

void expect_schedules_to_agree(const OpenScheduled& open, std::uint64_t schedules) {
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    const OpenWatched opened = [&](const Setup&) { return open(seed); };
    for (const auto& over : {device_over, tensor_over}) {
      const Subject subject = watched_subject(over, opened);
      const CacheKind* const kind =
          contracts().find_kind(subject.kind->contract, subject.kind->cache);
      for (const Profile profile : {Profile::kOriginal, Profile::kDocumented})
        play(*kind, subject, seed, profile);
    }
  }
}

}  // namespace kvo::provider
