#include "reference/subjects.hpp"

#include <utility>

#include "reference/positional/causal_cache.hpp"
#include "reference/positional/encoder_cache.hpp"
#include "reference/positional/operations.hpp"
#include "reference/positional/wrapper_cache.hpp"

namespace kvo::positional {

MakeCache reference_of(const CacheKind& kind) {
  if (&kind == &wrapper_kind()) return WrapperCache::make;
  if (&kind == &kind_of(MemberKind::kEncoder)) return EncoderCache::make;
  return CausalCache::make;
}

std::vector<Subject> references() {
  const auto reference = [](const CacheKind& kind, std::string doc) {
    return make_subject(kind, "reference", std::move(doc), reference_of(kind));
  };
  std::vector<Subject> all;
  for (const MemberKind member_kind :
       {MemberKind::kCausal, MemberKind::kSwa, MemberKind::kSwaMem, MemberKind::kChunked})
    all.push_back(reference(kind_of(member_kind), "cell by cell"));
  all.push_back(reference(kind_of(MemberKind::kEncoder), "the rows put last"));
  all.push_back(reference(wrapper_kind(), "its members, changed together"));
  return all;
}

}  // namespace kvo::positional
