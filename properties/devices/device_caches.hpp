// properties/devices/device_caches.hpp: the caches over a device, on devices that draw schedules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "properties/runner/lockstep.hpp"
#include "reference/contract/device/simulated/simulated_device.hpp"
#include "reference/contract/device/simulated/watched_subject.hpp"

namespace kvo::devices {

/// A cache of cuda/ as a subject over devices.
struct DeviceCaches {
  std::string name;  ///< of its kind, for the tests
  std::function<Subject(OpenDevice)> over;
  bool launches = true;  ///< jobs, and not copies alone
  /// What finds no memory on the device answers kOutOfMemory, and may be tried again. The contract
  /// of others has answers of its own, which scripts reach by making allocations fail.
  bool retried = true;
  bool gives_back = true;  ///< all memory at the end of a session, also of a cache nobody closed
  friend std::ostream& operator<<(std::ostream& out, const DeviceCaches& caches) {
    return out << caches.name;
  }
};
[[nodiscard]] std::vector<DeviceCaches> device_caches();

/// What comes of a random script of the subject beside the reference of its kind. Allocations are
/// those of the host.
[[nodiscard]] Verdict play(const Subject& subject, std::uint64_t seed, Profile profile,
                           Allocations allocations = Allocations::kSucceed);

/// The simulated device of a schedule.
[[nodiscard]] std::shared_ptr<SimulatedDevice> simulated(std::uint64_t seed);
/// The same, watched.
[[nodiscard]] Result<WatchedDevice> open_schedule(std::uint64_t seed);

/// The first of some schedules that shows a fault, and what it shows.
struct Kill {
  std::uint64_t schedule = 0;
  std::string verdict = {};
  friend bool operator==(const Kill&, const Kill&) = default;
};
/// Looks in the schedules 0 to 199 for one in which `shown_in(seed)` returns a text that is not
/// empty. Expects that there is one, twice the same.
void expect_kill(const std::string& fault,
                 const std::function<std::string(std::uint64_t seed)>& shown_in);

/// Opens the device of a schedule.
using OpenScheduled = std::function<Result<WatchedDevice>(std::uint64_t seed)>;

/// Plays random scripts, in both profiles, on a device of each of `schedules` seeds, beside the
/// reference of the kind: expects the same observations and no report. What is wrong fails the
/// GoogleTest test that calls it. Allocations are those of the host.
void expect_agreement(const DeviceCaches& caches, const OpenScheduled& open,
                      std::uint64_t schedules, Allocations allocations = Allocations::kSucceed);

/// The same where an alloc of the device fails: the operation must answer kOutOfMemory, and when it
/// is tried again what the reference does. Returns how often one failed.
[[nodiscard]] std::int64_t expect_agreement_without_memory(const DeviceCaches& caches,
                                                           const OpenScheduled& open,
                                                           std::uint64_t seeds);

/// Plays a random script on a subject whose device fails: each operation must answer, if only with
/// an error, and no invariant may be broken. Returns how many answered the error that is expected,
/// among them that the subject could not be opened.
[[nodiscard]] std::int64_t expect_answers(const Subject& subject, std::uint64_t seed,
                                          const Error& expected);

}  // namespace kvo::devices
