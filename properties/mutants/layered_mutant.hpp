// properties/mutants/layered_mutant.hpp: how mutants of layered.vector are made.
#pragma once

#include <memory>
#include <string>

#include "properties/mutants/mutants.hpp"
#include "reference/layered/vector_cache.hpp"

namespace kvo::layered {

/// A mutant whose caches are `Faulty`, a VectorCache with one method done wrong.
template <class Faulty>
Mutant mutant_of(const std::string& name, std::string_view fault, std::string_view origin) {
  const auto make = [](const Geometry& geometry, std::optional<std::uint64_t> max_seq_len,
                       Mode mode) -> Result<std::unique_ptr<Cache>> {
    auto sound = VectorCache::make(geometry, max_seq_len, mode);
    if (!sound) return sound.error();
    return std::make_unique<Faulty>(static_cast<VectorCache&&>(**sound));
  };
  return {.subject = make_subject("mutant:" + name, std::string(fault), make),
          .fault = fault,
          .origin = origin};
}

/// Base of the faulty caches: takes over a sound one, and is copied by clone.
template <class Faulty>
class FaultyCache : public VectorCache {
 public:
  explicit FaultyCache(VectorCache&& sound) : VectorCache(std::move(sound)) {}
  [[nodiscard]] std::unique_ptr<Cache> clone() const override {
    return std::make_unique<Faulty>(static_cast<const Faulty&>(*this));
  }
};

}  // namespace kvo::layered
