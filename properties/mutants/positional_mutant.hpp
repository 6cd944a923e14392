// properties/mutants/positional_mutant.hpp: what the mutants of contract `positional` share.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "properties/mutants/mutants.hpp"
#include "reference/positional/causal_cache.hpp"
#include "reference/positional/wrapper_cache.hpp"

namespace kvo::positional {

/// A mutant of one flavour whose caches are `Faulty`, a CausalCache with one rule done wrong.
template <class Faulty>
Mutant causal_mutant(Flavour flavour, const std::string& name, std::string_view fault,
                     std::string_view origin) {
  const auto make = [](const CacheSetup& setup) -> Result<std::unique_ptr<Cache>> {
    const auto sound = CausalCache::make(setup);
    if (!sound) return sound.error();
    return std::make_unique<Faulty>(setup, setup.members.front());
  };
  return {.subject = make_subject(kind_of(flavour), "mutant:" + name, std::string(fault), make),
          .fault = fault,
          .origin = origin};
}

/// A mutant of the wrapper whose caches are `Faulty`, a WrapperCache with one rule done wrong.
template <class Faulty>
Mutant wrapper_mutant(const std::string& name, std::string_view fault, std::string_view origin) {
  const auto make = [](const CacheSetup& setup) -> Result<std::unique_ptr<Cache>> {
    const auto sound = WrapperCache::make(setup);
    if (!sound) return sound.error();
    return std::make_unique<Faulty>(setup);
  };
  return {.subject = make_subject(wrapper_kind(), "mutant:" + name, std::string(fault), make),
          .fault = fault,
          .origin = origin};
}

}  // namespace kvo::positional
