#include "cuda/views/subjects.hpp"

#include "cuda/memory/device_subjects.hpp"
#include "cuda/views/paged_device_cache.hpp"
#include "reference/views/operations.hpp"

namespace kvo::cuda {

std::vector<Subject> views_subjects(const std::string& variant, const OpenDevice& open) {
  const auto paged = [variant](const std::shared_ptr<Device>& device) {
    return views::make_subject(
        variant, "blocks in device memory, mirrored for views",
        [device](const views::Options& options) { return make_paged_views(device, options); });
  };
  return {subject_over(paged, open)};
}

}  // namespace kvo::cuda
