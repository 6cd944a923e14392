// properties/mutants/block_pool_mutant.hpp: how mutants of block_pool.stack are made.
#pragma once

#include <memory>
#include <string>

#include "properties/mutants/mutants.hpp"
#include "reference/block_pool/stack_pool.hpp"

namespace kvo::block_pool {

/// A mutant whose pools are `Faulty`, a StackPool with one method done wrong.
template <class Faulty>
Mutant mutant_of(const std::string& name, std::string_view fault, std::string_view origin) {
  const auto make = [](const Geometry& geometry,
                       Profile profile) -> Result<std::unique_ptr<BlockPool>> {
    const auto sizes = sizes_of(geometry, profile);
    if (!sizes) return sizes.error();
    return std::make_unique<Faulty>(geometry, *sizes, profile);
  };
  return {.subject = make_subject("mutant:" + name, std::string(fault), make),
          .fault = fault,
          .origin = origin};
}

}  // namespace kvo::block_pool
