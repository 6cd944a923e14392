// reference/contract/device/simulated/report.hpp: what a simulated device has to say about its
// users.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "reference/contract/device/simulated/history.hpp"

namespace kvo {

/// A fault of those who use a device. It may do no harm in the order that was drawn.
struct DeviceReport {
  enum class Kind : std::uint8_t {
    kUnwritten,     ///< a read of what nobody wrote
    kRace,          ///< two pieces of work, or two threads of one, and nothing orders them
    kOutOfBounds,   ///< an access outside of every buffer
    kMisaligned,    ///< an address that is no multiple of the size of the access
    kUseAfterFree,  ///< an access to a buffer that was freed, or freeing one that is in use
    kOverlap,       ///< a copy onto itself
    kHostTouched,   ///< host memory of a copy was changed or lost before the host had waited
  };
  Kind kind = Kind::kRace;
  WorkId work = 0;        ///< the work that did it; 0: the host
  WorkId other = 0;       ///< of a race, or of a free: the other one
  std::int64_t buf = -1;  ///< buffers in order of their allocs; -1: none
  std::int64_t off = 0;   ///< bytes from its beginning, or of the host memory
  std::string text = {};  ///< for people

  friend bool operator==(const DeviceReport&, const DeviceReport&) = default;
};

/// "race", "use after free".
[[nodiscard]] std::string_view report_name(DeviceReport::Kind kind);

/// Keeps the first report of each kind about the same work, up to a number.
class ReportList {
 public:
  /// How many are kept.
  static constexpr std::size_t kMost = 1000;

  void add(DeviceReport report);
  /// Whether another report of that kind about that work would be dropped.
  [[nodiscard]] bool knows(DeviceReport::Kind kind, WorkId work, WorkId other) const {
    return reports_.size() >= kMost || known_.contains({kind, work, other});
  }
  [[nodiscard]] const std::vector<DeviceReport>& all() const { return reports_; }

 private:
  std::vector<DeviceReport> reports_;
  std::set<std::tuple<DeviceReport::Kind, WorkId, WorkId>> known_;
};

}  // namespace kvo
