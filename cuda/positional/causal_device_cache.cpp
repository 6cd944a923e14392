#include "cuda/positional/causal_device_cache.hpp"

#include "cuda/positional/device_store.hpp"
#include "optimized/positional/causal_cache.hpp"

namespace kvo::cuda {

Result<std::unique_ptr<positional::Cache>> make_causal_device_cache(
    const std::shared_ptr<Device>& device, const positional::CacheOptions& options) {
  if (options.members.size() != 1) return fail(Code::kPrecondition, "members: not one");
  const positional::MemberOptions& member = options.members.front();
  if (member.shift && !member.begin_shift)
    return fail(Code::kNotSupported, "shift: it does not tell what it does");
  return optimized::PositionalCausalCache::make_over(
      options, std::make_unique<PositionalDeviceStore>(device, member.begin_shift));
}

}  // namespace kvo::cuda
