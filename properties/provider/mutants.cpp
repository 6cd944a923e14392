#include "properties/seeding/mutants.hpp"

#include <string>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/seeded/optimized/block_pool/arena_pool.hpp"
#include "properties/seeded/optimized/provider/contiguous_arena_cache.hpp"
#include "properties/seeded/optimized/provider/paged_arena_cache.hpp"
#include "properties/seeded/provider/faults.hpp"
#include "properties/seeded/reference/block_pool/stack_pool.hpp"
#include "properties/seeded/reference/provider/contiguous_cache.hpp"
#include "properties/seeded/reference/provider/device_cache.hpp"
#include "properties/seeded/reference/provider/paged_cache.hpp"
#include "properties/seeded/reference/provider/tensor_cache.hpp"
#include "reference/contract/device/host_device.hpp"
#include "reference/provider/contiguous.hpp"
#include "reference/provider/device_operations.hpp"
#include "reference/provider/paged.hpp"
#include "reference/provider/tensor.hpp"

namespace kvo::provider {
namespace {

std::vector<Subject> copies(std::string_view room, const std::string& variant,
                            const std::string& doc) {
  namespace fast = optimized::seeded;
  if (room == "optimized")
    return {make_contiguous_subject(variant, doc, fast::ContiguousArenaCache::make),
            make_paged_subject(variant, doc, fast::ArenaPool::make, fast::PagedArenaCache::make)};
  return {make_contiguous_subject(variant, doc, seeded::ContiguousCache::make),
          make_paged_subject(variant, doc, block_pool::seeded::StackPool::make,
                             seeded::PagedCache::make),
          make_tensor_subject(variant, doc, seeded::TensorCache::make, HostDevice::make),
          make_device_subject(variant, doc, seeded::DeviceCache::make, HostDevice::make)};
}

}  // namespace

std::vector<Mutant> mutants() {
  return seeding::mutants_of(kFaults, copies);
}

}  // namespace kvo::provider
