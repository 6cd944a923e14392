#include "cuda/subjects.hpp"

#include <memory>
#include <utility>

#include "cuda/block_pool/device_pool.hpp"
#include "cuda/layered/vector_device_cache.hpp"
#include "cuda/positional/device_store.hpp"
#include "cuda/provider/contiguous_device_cache.hpp"
#include "cuda/provider/kv_device_cache.hpp"
#include "cuda/provider/paged_device_cache.hpp"
#include "cuda/provider/tensor_device_cache.hpp"
#include "cuda/snapshot/device_slots.hpp"
#include "cuda/views/device_rows.hpp"
#include "optimized/snapshot/row_caches.hpp"
#include "reference/layered/operations.hpp"
#include "reference/positional/operations.hpp"
#include "reference/provider/contiguous.hpp"
#include "reference/provider/device_operations.hpp"
#include "reference/provider/paged.hpp"
#include "reference/provider/tensor.hpp"
#include "reference/snapshot/operations.hpp"
#include "reference/views/operations.hpp"

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

std::vector<Subject> positional_subjects(const std::string& variant, const OpenDevice& open) {
  using positional::MemberKind;
  std::vector<Subject> all;
  for (const MemberKind member_kind :
       {MemberKind::kCausal, MemberKind::kSwa, MemberKind::kSwaMem, MemberKind::kChunked}) {
    const auto over = [variant, member_kind](const std::shared_ptr<Device>& device) {
      return positional::make_subject(positional::kind_of(member_kind), variant,
                                      "rows, masks and shifts in device memory",
                                      [device](const positional::CacheOptions& options) {
                                        return make_causal_device_cache(device, options);
                                      });
    };
    all.push_back(subject_over(over, open));
  }
  return all;
}

std::vector<Subject> snapshot_subjects(const std::string& variant, const OpenDevice& open) {
  // A recurrent state has no rows, and stays on the host: of the kinds the first two.
  constexpr std::size_t kKinds = 2;
  const auto of_kind = [variant](std::size_t kind) {
    return [variant, kind](const std::shared_ptr<Device>& device) {
      return snapshot::make_subjects(variant, "rows on a device, shared with snapshots",
                                     optimized::caches_over<DeviceSides>(device))[kind];
    };
  };
  std::vector<Subject> all;
  for (std::size_t kind = 0; kind < kKinds; ++kind)
    all.push_back(subject_over(of_kind(kind), open));
  return all;
}

std::vector<Subject> views_subjects(const std::string& variant, const OpenDevice& open) {
  const auto paged = [variant](const std::shared_ptr<Device>& device) {
    return views::make_subject(
        variant, "blocks in device memory, mirrored for views",
        [device](const views::Options& options) { return make_paged_views(device, options); });
  };
  return {subject_over(paged, open)};
}

}  // namespace kvo::cuda
