#include "reference/positional/config.hpp"

#include "reference/positional/operations.hpp"

namespace kvo::positional {

std::optional<Flavour> flavour_of(const CacheKind& kind) {
  for (const Flavour flavour :
       {Flavour::kCausal, Flavour::kSwa, Flavour::kSwaMem, Flavour::kChunked, Flavour::kEncoder})
    if (&kind == &kind_of(flavour)) return flavour;
  return std::nullopt;
}

std::vector<CacheConfig> members_of(const CacheKind& kind, const Setup& setup) {
  if (const auto flavour = flavour_of(kind)) {
    CacheConfig only = setup.config_as<CacheConfig>();
    only.cache = flavour;
    return {only};
  }
  std::vector<CacheConfig> members = setup.config_as<WrapperConfig>().caches;
  for (CacheConfig& member : members) member.cache = member.cache.value_or(Flavour::kCausal);
  return members;
}

BackendConfig backend_of(const CacheKind& kind, const Setup& setup) {
  const auto backend = flavour_of(kind) ? setup.config_as<CacheConfig>().backend
                                        : setup.config_as<WrapperConfig>().backend;
  return backend.value_or(BackendConfig());
}

MemberSetup member_setup(const CacheConfig& config) {
  MemberSetup member{.flavour = config.cache.value_or(Flavour::kCausal),
                     .window = config.window.value_or(0),
                     .memory = config.memory.value_or(0),
                     .chunk = config.chunk.value_or(0)};
  if (config.shift && config.shift->has_value()) member.shift = make_shift(**config.shift);
  return member;
}

}  // namespace kvo::positional
