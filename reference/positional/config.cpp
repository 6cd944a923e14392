#include "reference/positional/config.hpp"

#include "reference/positional/operations.hpp"

namespace kvo::positional {

std::optional<MemberKind> member_kind_of(const CacheKind& kind) {
  for (const MemberKind member_kind : {MemberKind::kCausal, MemberKind::kSwa, MemberKind::kSwaMem,
                                       MemberKind::kChunked, MemberKind::kEncoder})
    if (&kind == &kind_of(member_kind)) return member_kind;
  return std::nullopt;
}

std::vector<CacheConfig> members_of(const CacheKind& kind, const Setup& setup) {
  if (const auto member_kind = member_kind_of(kind)) {
    CacheConfig only = setup.config_as<CacheConfig>();
    only.cache = member_kind;
    return {only};
  }
  std::vector<CacheConfig> members = setup.config_as<WrapperConfig>().caches;
  for (CacheConfig& member : members) member.cache = member.cache.value_or(MemberKind::kCausal);
  return members;
}

BackendConfig backend_of(const CacheKind& kind, const Setup& setup) {
  const auto backend = member_kind_of(kind) ? setup.config_as<CacheConfig>().backend
                                            : setup.config_as<WrapperConfig>().backend;
  return backend.value_or(BackendConfig());
}

MemberOptions member_options(const CacheConfig& config) {
  MemberOptions member{.kind = config.cache.value_or(MemberKind::kCausal),
                       .window = config.window.value_or(0),
                       .memory = config.memory.value_or(0),
                       .chunk = config.chunk.value_or(0)};
  if (config.shift && config.shift->has_value()) {
    member.shift = make_shift(**config.shift);
    member.begin_shift = make_begin_shift(**config.shift);
  }
  return member;
}

}  // namespace kvo::positional
