#include "cuda/positional/subjects.hpp"

#include "cuda/memory/device_subjects.hpp"
#include "cuda/positional/causal_device_cache.hpp"
#include "reference/positional/operations.hpp"

namespace kvo::cuda {

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

}  // namespace kvo::cuda
