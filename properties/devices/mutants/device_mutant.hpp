// properties/devices/mutants/device_mutant.hpp: faults of device work.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reference/contract/device/device.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo::devices {

/// A cache, or the device below it, with one thing done wrong. It may show in few schedules, and as
/// a difference or as a report.
struct DeviceMutant {
  std::string name;    ///< "increments_on_a_second_stream"
  std::string fault;   ///< what it does wrong, in one sentence
  std::string origin;  ///< the real bug it follows: number in the corpus, and its class
  std::function<Subject(OpenDevice)> over;  ///< its variant is "mutant:<name>"
};

/// Those of provider.contiguous, device and tensor.
[[nodiscard]] std::vector<DeviceMutant> provider_device_mutants();

}  // namespace kvo::devices
