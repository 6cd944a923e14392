#include "cuda/layered/subjects.hpp"

#include "cuda/layered/vector_device_cache.hpp"
#include "cuda/memory/device_subjects.hpp"
#include "reference/layered/cache.hpp"

namespace kvo::cuda {

std::vector<Subject> layered_subjects(const std::string& variant, const OpenDevice& open) {
  const auto vector = [variant](const std::shared_ptr<Device>& device) {
    return layered::make_subject(
        variant, "K and V of a layer grow in device memory",
        [device](const layered::Geometry& geometry, std::optional<std::uint64_t> max_seq_len,
                 const layered::Behaviour& behaviour) {
          return VectorDeviceCache::make(device, geometry, max_seq_len, behaviour);
        });
  };
  return {subject_over(vector, open)};
}

}  // namespace kvo::cuda
