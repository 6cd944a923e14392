#include "cuda/memory/device_subjects.hpp"

#include <utility>

namespace kvo::cuda {

Subject subject_over(std::function<Subject(std::shared_ptr<Device>)> over, OpenDevice open) {
  Subject subject = over(nullptr);
  subject.open = [over = std::move(over),
                  open = std::move(open)](const Setup& setup) -> Result<std::unique_ptr<Session>> {
    const auto device = open();
    if (!device) return device.error();
    return over(*device).open(setup);
  };
  return subject;
}

}  // namespace kvo::cuda
