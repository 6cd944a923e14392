#include "reference/subjects.hpp"

#include "reference/block_pool/stack_pool.hpp"
#include "reference/layered/vector_cache.hpp"
#include "reference/positional/causal_cache.hpp"
#include "reference/positional/encoder_cache.hpp"
#include "reference/positional/wrapper_cache.hpp"
#include "reference/provider/context.hpp"
#include "reference/provider/contiguous_cache.hpp"
#include "reference/provider/device_cache.hpp"
#include "reference/provider/host_device.hpp"
#include "reference/provider/paged_cache.hpp"
#include "reference/provider/tensor_cache.hpp"
#include "reference/provider/tracing_cache.hpp"

namespace kvo::reference {
namespace {

Subject positional_causal(positional::Flavour flavour) {
  return positional::make_subject(positional::kind_of(flavour), "reference",
                                  "cell by cell, each change computed aside",
                                  positional::CausalCache::make);
}

}  // namespace

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> kSubjects{
      layered::make_subject("reference", "std::vector a layer", layered::VectorCache::make),
      block_pool::make_subject("reference", "std::vector of cells", block_pool::StackPool::make),
      provider::make_contiguous_subject("reference", "a zeroed K and V buffer a layer",
                                        provider::ContiguousCache::make),
      provider::make_paged_subject("reference", "position by position, channel by channel",
                                   block_pool::StackPool::make, provider::PagedCache::make),
      provider::make_device_subject("reference", "call by call, over host memory",
                                    provider::DeviceCache::make, provider::HostDevice::make),
      provider::make_tensor_subject("reference", "a plain buffer a layer, over host memory",
                                    provider::TensorCache::make, provider::HostDevice::make),
      provider::make_tracing_subject("reference", "a log beside the real cache",
                                     provider::TracingCache::make,
                                     provider::TracingCache::make_real),
      provider::make_context_subject("reference", "the last one stored",
                                     provider::CacheContext::make),
      positional_causal(positional::Flavour::kCausal),
      positional_causal(positional::Flavour::kSwa),
      positional_causal(positional::Flavour::kSwaMem),
      positional_causal(positional::Flavour::kChunked),
      positional::make_subject(positional::kind_of(positional::Flavour::kEncoder), "reference",
                               "the rows put last", positional::EncoderCache::make),
      positional::make_subject(positional::wrapper_kind(), "reference",
                               "its members' changes, carried out together",
                               positional::WrapperCache::make),
  };
  return kSubjects;
}

}  // namespace kvo::reference
