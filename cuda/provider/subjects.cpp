#include "cuda/provider/subjects.hpp"

#include "cuda/block_pool/device_pool.hpp"
#include "cuda/memory/device_subjects.hpp"
#include "cuda/provider/contiguous_device_cache.hpp"
#include "cuda/provider/kv_device_cache.hpp"
#include "cuda/provider/paged_device_cache.hpp"
#include "cuda/provider/tensor_device_cache.hpp"
#include "reference/provider/contiguous_operations.hpp"
#include "reference/provider/device_operations.hpp"
#include "reference/provider/paged_operations.hpp"
#include "reference/provider/tensor_operations.hpp"

namespace kvo::cuda {

std::vector<Subject> provider_subjects(const std::string& variant, const OpenDevice& open) {
  const auto contiguous = [variant](const std::shared_ptr<Device>& device) {
    return provider::make_contiguous_subject(
        variant, "a buffer a layer and side in device memory",
        [device](const provider::ContiguousOptions& options, QuirkSet<provider::Quirk> quirks) {
          return ContiguousDeviceCache::make(device, options, quirks);
        });
  };
  const auto paged = [variant](const std::shared_ptr<Device>& device) {
    return provider::make_paged_subject(
        variant, "blocks in device memory, by a table in device memory",
        [device](const block_pool::Geometry& geometry, QuirkSet<block_pool::Quirk> quirks) {
          return DevicePool::make(device, geometry, quirks);
        },
        PagedDeviceCache::make);
  };
  return {subject_over(contiguous, open), subject_over(paged, open),
          provider::make_device_subject(variant, "uploads on a stream of their own",
                                        KvDeviceCache::make, open),
          provider::make_tensor_subject(
              variant, "decode steps that are launches alone, uploads on a stream of their own",
              TensorDeviceCache::make, open)};
}

}  // namespace kvo::cuda
