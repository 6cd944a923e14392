#include "reference/subjects.hpp"

#include "reference/block_pool/stack_pool.hpp"
#include "reference/contract/device/host_device.hpp"
#include "reference/provider/context.hpp"
#include "reference/provider/context_cache.hpp"
#include "reference/provider/contiguous.hpp"
#include "reference/provider/contiguous_cache.hpp"
#include "reference/provider/device_cache.hpp"
#include "reference/provider/device_operations.hpp"
#include "reference/provider/paged.hpp"
#include "reference/provider/paged_cache.hpp"
#include "reference/provider/tensor.hpp"
#include "reference/provider/tensor_cache.hpp"
#include "reference/provider/tracing_cache.hpp"

namespace kvo::provider {

std::vector<Subject> references() {
  return {
      make_contiguous_subject("reference", "a zeroed K and V buffer a layer",
                              ContiguousCache::make),
      make_paged_subject("reference", "position by position, channel by channel",
                         block_pool::StackPool::make, PagedCache::make),
      make_device_subject("reference", "call by call, over host memory", DeviceCache::make,
                          HostDevice::make),
      make_tensor_subject("reference", "a plain buffer a layer, over host memory",
                          TensorCache::make, HostDevice::make),
      make_tracing_subject("reference", "a log beside the real cache", TracingCache::make,
                           TracingCache::make_real),
      make_context_subject("reference", "the last one stored", CacheContext::make),
  };
}

}  // namespace kvo::provider
