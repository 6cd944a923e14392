#include "cuda/snapshot/subjects.hpp"

#include <memory>

#include "cuda/memory/device_subjects.hpp"
#include "cuda/snapshot/kv_device_cache.hpp"
#include "cuda/snapshot/ring_device_cache.hpp"
#include "reference/snapshot/operations.hpp"

namespace kvo::cuda {

std::vector<Subject> snapshot_subjects(const std::string& variant, const OpenDevice& open) {
  // A recurrent state has no rows, and stays on the host: of the kinds the first two.
  constexpr std::size_t kKinds = 2;
  const auto of_kind = [variant](std::size_t kind) {
    return [variant, kind](const std::shared_ptr<Device>& device) {
      using Quirks = QuirkSet<snapshot::Quirk>;
      const snapshot::MakeCaches make{
          .kv =
              [device](const StorageFormat& storage, Quirks quirks) {
                return std::make_unique<SnapshotKvDeviceCache>(device, storage, quirks);
              },
          .rotating =
              [device](std::int64_t window, const StorageFormat& storage, Quirks quirks) {
                return std::make_unique<SnapshotRingDeviceCache>(device, window, storage, quirks);
              },
          .recurrent = nullptr,
          .stores = device_stores};
      return snapshot::make_subjects(variant, "rows on a device, shared with snapshots",
                                     make)[kind];
    };
  };
  std::vector<Subject> all;
  for (std::size_t kind = 0; kind < kKinds; ++kind)
    all.push_back(subject_over(of_kind(kind), open));
  return all;
}

}  // namespace kvo::cuda
