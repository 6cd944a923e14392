// What a build without nvcc answers.
#include "cuda/device/open.hpp"

namespace kvo::cuda {
namespace {

constexpr const char* kNoDevice = "no CUDA device: built without CUDA";

}  // namespace

Result<std::shared_ptr<Device>> open_device() {
  return fail(Code::kNotSupported, kNoDevice);
}

Result<std::string> card_name() {
  return fail(Code::kNotSupported, kNoDevice);
}

}  // namespace kvo::cuda
