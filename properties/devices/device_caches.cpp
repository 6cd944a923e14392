#include "properties/devices/device_caches.hpp"

#include <gtest/gtest.h>

#include "cuda/subjects.hpp"
#include "properties/contracts.hpp"
#include "properties/runner/lockstep.hpp"

namespace kvo::devices {
namespace {

constexpr std::uint64_t kOperations = 60;

struct Case {
  explicit Case(const Subject& subject, std::uint64_t seed, Profile profile)
      : kind(*contracts().find_kind(subject.kind->contract, subject.kind->cache)),
        reference(contracts().reference_of(kind)),
        made(contracts().generator_of(kind)->make({seed, profile})) {}

  const CacheKind& kind;
  const Subject& reference;
  GeneratedCase made;
  Labels labels = {};
};

// Draws operations and carries each out on the reference; `step(op, want, probe)` does so on a
// subject. Ends where the script does, the reference has no memory, or `step` returns false.
template <class Step>
void each_operation(Case& played, Session& reference, const Step& step) {
  Probe probe;
  for (std::uint64_t i = 0; i < kOperations; ++i) {
    const auto op = played.made.ops->next();
    if (!op) return;
    const Observation want = reference.apply(*op, probe);
    if (want.failed_with(Code::kOutOfMemory) || !step(*op, want, probe)) return;
    played.made.ops->observe(*op, want, played.labels);
  }
}

// An operation that finds no memory on the device is tried again. Returns how many there were.
std::int64_t play_without_memory(const Subject& subject, std::uint64_t seed, Profile profile) {
  Case played(subject, seed, profile);
  const auto reference = played.reference.open(played.made.setup);
  const auto session = subject.open(played.made.setup);
  std::int64_t failures = 0;
  if (!reference || !session) {
    ADD_FAILURE() << subject.name() << " cannot be opened";
    return failures;
  }
  each_operation(played, **reference, [&](const Op& op, const Observation& want, Probe& probe) {
    Observation got = (*session)->apply(op, probe);
    if (got.unsupported) return false;
    if (got.failed_with(Code::kOutOfMemory)) {
      ++failures;
      got = (*session)->apply(op, probe);
    }
    const auto difference = observation_difference(want, got);
    EXPECT_FALSE(difference) << subject.name() << ", seed " << seed << ": " << op.kind().name;
    EXPECT_EQ((*session)->broken_invariant(), std::nullopt);
    return !difference;
  });
  return failures;
}

}  // namespace

std::shared_ptr<SimulatedDevice> simulated(std::uint64_t seed) {
  return std::make_shared<SimulatedDevice>(SimulatedOptions{.schedule = Schedule(seed)});
}

Result<WatchedDevice> open_schedule(std::uint64_t seed) {
  const auto device = simulated(seed);
  return watched(device, device);
}

void expect_kill(const std::string& fault,
                 const std::function<std::string(std::uint64_t seed)>& shown_in) {
  const auto first_kill = [&]() -> std::optional<Kill> {
    constexpr std::uint64_t kSchedules = 200;
    for (std::uint64_t seed = 0; seed < kSchedules; ++seed)
      if (std::string shown = shown_in(seed); !shown.empty()) return Kill{seed, std::move(shown)};
    return std::nullopt;
  };
  const auto kill = first_kill();
  ASSERT_TRUE(kill) << fault;
  testing::Test::RecordProperty("schedule", std::to_string(kill->schedule));
  testing::Test::RecordProperty("verdict", kill->verdict);
  EXPECT_EQ(first_kill(), kill);
}

Verdict play(const Subject& subject, std::uint64_t seed, Profile profile, Allocations allocations) {
  Case played(subject, seed, profile);
  const std::vector<const Subject*> subjects{&subject};
  Lockstep lockstep(&played.reference, subjects, played.made.setup, {.allocations = allocations});
  for (std::uint64_t i = 0; i < kOperations && lockstep.worthwhile(); ++i) {
    const auto op = played.made.ops->next();
    if (!op) break;
    const Observation& seen = lockstep.step(*op);
    played.made.ops->observe(*op, seen, played.labels);
  }
  return lockstep.participants().front().verdict;
}

std::vector<DeviceCaches> device_caches() {
  std::vector<DeviceCaches> all;
  for (const auto& subjects :
       {cuda::provider_subjects, cuda::layered_subjects, cuda::snapshot_subjects,
        cuda::views_subjects, cuda::positional_subjects}) {
    const std::size_t count = subjects("scheduled", nullptr).size();
    for (std::size_t i = 0; i < count; ++i) {
      const auto over = [subjects, i](const OpenDevice& open) {
        return subjects("scheduled", open)[i];
      };
      const Subject named = over(nullptr);
      const std::string name =
          std::string(named.kind->contract) + "_" + std::string(named.kind->cache);
      const bool closed = name == "provider_device";
      all.push_back({.name = name,
                     .over = over,
                     .launches = name != "layered_vector",
                     .retried = !closed && name != "provider_tensor",
                     .gives_back = !closed});
    }
  }
  return all;
}

std::int64_t expect_answers(const Subject& subject, std::uint64_t seed, const Error& expected) {
  Case played(subject, seed, seed % 2 == 0 ? Profile::kOriginal : Profile::kDocumented);
  const auto reference = played.reference.open(played.made.setup);
  const auto session = subject.open(played.made.setup);
  if (!reference) {
    ADD_FAILURE() << played.reference.name() << " cannot be opened";
    return 0;
  }
  if (!session) {
    EXPECT_EQ(session.error(), expected) << subject.name() << ", seed " << seed;
    return 1;
  }
  std::int64_t errors = 0;
  each_operation(played, **reference, [&](const Op& op, const Observation&, Probe& probe) {
    const Observation got = (*session)->apply(op, probe);
    EXPECT_FALSE(got.failed_with(Code::kThrew)) << subject.name() << ", seed " << seed << ", "
                                                << op.kind().name << ": " << got.error->text();
    EXPECT_EQ((*session)->broken_invariant(), std::nullopt) << subject.name() << ", seed " << seed;
    if (got.error == expected) ++errors;
    return true;
  });
  return errors;
}

void expect_agreement(const DeviceCaches& caches, const OpenScheduled& open,
                      std::uint64_t schedules, Allocations allocations) {
  std::uint64_t judged = 0;
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    const Subject subject = watched_subject(caches.over, [&](const Setup&) { return open(seed); });
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
      const Verdict verdict = play(subject, seed, profile, allocations);
      EXPECT_FALSE(verdict.failed())
          << subject.name() << ", schedule " << seed << ": " << verdict.text();
      if (verdict.outcome == Outcome::kAgrees) ++judged;
    }
  }
  // Out of memory as the reference, or rows of a type that devices do not store: such a case says
  // nothing.
  EXPECT_GT(judged, schedules) << caches.name << ": of two cases a schedule";
}

std::int64_t expect_agreement_without_memory(const DeviceCaches& caches, const OpenScheduled& open,
                                             std::uint64_t seeds) {
  std::int64_t failures = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Subject subject = watched_subject(caches.over, [&](const Setup&) { return open(seed); });
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented})
      failures += play_without_memory(subject, seed, profile);
  }
  return failures;
}

}  // namespace kvo::devices
