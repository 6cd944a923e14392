// The devices that need no card do what every device must.
#include "reference/contract/device/device_suite.hpp"
#include "reference/contract/device/host_device.hpp"
#include "reference/contract/device/recorded_device.hpp"

namespace kvo {
namespace {

INSTANTIATE_TEST_SUITE_P(Host, DeviceSuite, testing::Values(OpenDevice(HostDevice::make)));

Result<std::shared_ptr<Device>> recorded_host() {
  return std::make_shared<RecordedDevice>(std::make_shared<HostDevice>());
}
INSTANTIATE_TEST_SUITE_P(Recorded, DeviceSuite, testing::Values(OpenDevice(recorded_host)));

}  // namespace
}  // namespace kvo
