// cuda/standin/opened_card.hpp: a CudaDevice together with the card under it.
#pragma once

#include <memory>

#include "cuda/device/cuda_device.hpp"
#include "cuda/standin/card.hpp"

namespace kvo::cuda {

struct OpenedCard {
  explicit OpenedCard(CardOptions options = {}) : card(std::move(options)) {}

  /// Errors  those of CudaDevice::open.
  static Result<std::shared_ptr<OpenedCard>> open(CardOptions options = {}) {
    auto made = std::make_shared<OpenedCard>(std::move(options));
    auto device = CudaDevice::open();
    if (!device) return device.error();
    made->device = *device;
    return made;
  }
  /// The device, which keeps the card.
  static std::shared_ptr<Device> device_of(const std::shared_ptr<OpenedCard>& opened) {
    return {opened, opened->device.get()};
  }
  [[nodiscard]] const std::vector<DeviceReport>& reports() { return card.device().reports(); }

  Card card;
  std::shared_ptr<CudaDevice> device;  ///< goes before the card
};

}  // namespace kvo::cuda
