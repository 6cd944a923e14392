#include "optimized/positional/subjects.hpp"

#include "optimized/positional/causal_cache.hpp"
#include "optimized/positional/encoder_cache.hpp"
#include "optimized/positional/wrapper_cache.hpp"
#include "reference/positional/operations.hpp"

namespace kvo::optimized {

std::vector<Subject> positional_subjects() {
  using positional::MemberKind;
  std::vector<Subject> all;
  for (const MemberKind member_kind :
       {MemberKind::kCausal, MemberKind::kSwa, MemberKind::kSwaMem, MemberKind::kChunked})
    all.push_back(positional::make_subject(positional::kind_of(member_kind), "optimized",
                                           "each sequence's cells sorted; masks changed, not built",
                                           PositionalCausalCache::make));
  all.push_back(positional::make_subject(positional::kind_of(MemberKind::kEncoder), "optimized",
                                         "rows stored in the order that they are shown in",
                                         PositionalEncoderCache::make));
  all.push_back(positional::make_subject(positional::wrapper_kind(), "optimized",
                                         "members that prepare, and then all carry out",
                                         PositionalWrapperCache::make));
  return all;
}

}  // namespace kvo::optimized
