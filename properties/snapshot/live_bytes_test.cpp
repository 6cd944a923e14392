// Law: the rows that caches and snapshots hold are given back to the last byte. Random scripts, and
// at their end everything is freed and closed.
#include <cstdint>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "optimized/subjects.hpp"
#include "properties/contract_parts.hpp"
#include "properties/contracts.hpp"
#include "reference/snapshot/operations.hpp"

namespace kvo::snapshot {
namespace {

constexpr std::uint64_t kCases = 400;
constexpr int kMostOperations = 120;

// Carries out a script. Returns whether pairs were numbered, which nothing closes.
bool run(Session& session, GeneratedCase& drawn) {
  Probe probe;
  bool numbered = false;
  for (int i = 0; i < kMostOperations; ++i) {
    const std::optional<Op> op = drawn.ops->next();
    if (!op) break;
    (void)session.apply(*op, probe);
    const auto* update = op->as<Update>();
    numbered = numbered || (update != nullptr && update->keep.value_or(false));
  }
  return numbered;
}

TEST(LiveBytes, GoBackToZeroWhenAllIsFreedAndClosed) {
  for (const Generator& generator : rows_generators()) {
    const auto live = std::make_shared<optimized::LiveBytes>();
    std::uint64_t held = 0;
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
      SCOPED_TRACE(generator.kind->name() + ", seed " + std::to_string(seed));
      const Profile profile = seed % 2 == 0 ? Profile::kDocumented : Profile::kOriginal;
      GeneratedCase drawn = contracts().generator_of(*generator.kind)->make({seed, profile});
      for (const Subject& subject :
           make_subjects("optimized", "", optimized::snapshot_caches(live))) {
        if (subject.kind != generator.kind) continue;
        std::unique_ptr<Session> session = subject.open(drawn.setup).value();
        const bool has_pairs = run(*session, drawn);
        const auto snapshots = std::ssize(dynamic_cast<ShownCase&>(*session).snapshots());
        held += live->now() > 0 ? 1 : 0;
        Probe probe;
        (void)session->apply(Op::of(Free{}), probe);
        for (std::int64_t number = 1; number <= snapshots; ++number)
          (void)session->apply(Op::of(Close{number}), probe);
        if (!has_pairs && profile == Profile::kDocumented) {
          ASSERT_EQ(live->now(), 0);
        }
        session.reset();
        ASSERT_EQ(live->now(), 0);
      }
    }
    EXPECT_GT(held, kCases / 2) << "or there was nothing to give back";
  }
}

}  // namespace
}  // namespace kvo::snapshot
