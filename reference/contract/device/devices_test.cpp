// The devices that need no card do what every device must.
#include "reference/contract/device/device_suite.hpp"
#include "reference/contract/device/host_device.hpp"
#include "reference/contract/device/recorded_device.hpp"
#include "reference/contract/device/simulated/simulated_device.hpp"

namespace kvo {
namespace {

INSTANTIATE_TEST_SUITE_P(Host, DeviceSuite, testing::Values(OpenDevice(HostDevice::make)));

Result<std::shared_ptr<Device>> recorded_host() {
  return std::make_shared<RecordedDevice>(std::make_shared<HostDevice>());
}
INSTANTIATE_TEST_SUITE_P(Recorded, DeviceSuite, testing::Values(OpenDevice(recorded_host)));

Result<std::shared_ptr<Device>> simulated(std::uint64_t seed) {
  return std::make_shared<SimulatedDevice>(SimulatedOptions{.schedule = Schedule(seed)});
}
INSTANTIATE_TEST_SUITE_P(Simulated, DeviceSuite, testing::ValuesIn([] {
                           std::vector<OpenDevice> devices;
                           for (std::uint64_t seed = 0; seed < 5; ++seed)
                             devices.emplace_back([seed] { return simulated(seed); });
                           return devices;
                         }()));

}  // namespace
}  // namespace kvo
