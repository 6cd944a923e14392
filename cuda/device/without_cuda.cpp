// What a build without nvcc answers.
#include "cuda/device/open.hpp"

namespace kvo::cuda {

Result<std::shared_ptr<Device>> open_device() {
  return fail(Code::kNotSupported, "built without CUDA");
}

Result<std::string> card_name() {
  return fail(Code::kNotSupported, "built without CUDA");
}

}  // namespace kvo::cuda
