// reference/contract/device/simulated/watched_subject.hpp: subjects over devices that report.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "reference/contract/device/device.hpp"
#include "reference/contract/device/simulated/report.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo {

/// A device, and what it has to say about its users so far.
struct WatchedDevice {
  std::shared_ptr<Device> device;
  std::function<const std::vector<DeviceReport>&()> reports;
  /// What it drew of its schedule; null: it does not tell.
  std::function<const std::vector<std::uint32_t>&()> choices = nullptr;
};
/// A device whose reports are those of `source`, which it holds.
template <class Source>
[[nodiscard]] WatchedDevice watched(std::shared_ptr<Device> device,
                                    const std::shared_ptr<Source>& source) {
  return {std::move(device),
          [source]() -> const std::vector<DeviceReport>& { return source->reports(); }};
}

/// Errors  as of OpenDevice.
using OpenWatched = std::function<Result<WatchedDevice>(const Setup&)>;

/// Opens a simulated device with the setup's schedule.
[[nodiscard]] Result<WatchedDevice> open_simulated(const Setup& setup);

/// The subject that `over` makes of a way to open devices, over watched ones: the first report of
/// any of them is a broken invariant of its session. Reports about work that is queued come when it
/// is carried out.
[[nodiscard]] Subject watched_subject(const std::function<Subject(OpenDevice)>& over,
                                      OpenWatched open);

}  // namespace kvo
