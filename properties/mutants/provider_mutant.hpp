// properties/mutants/provider_mutant.hpp: how mutants of provider.contiguous and provider.paged are
// made.
#pragma once

#include <memory>
#include <string>

#include "properties/mutants/mutants.hpp"
#include "reference/block_pool/stack_pool.hpp"
#include "reference/provider/contiguous_cache.hpp"
#include "reference/provider/paged_cache.hpp"

namespace kvo::provider {

/// A mutant whose caches are `Faulty`, a ContiguousCache with one method done wrong.
template <class Faulty>
Mutant contiguous_mutant(const std::string& name, std::string_view fault, std::string_view origin) {
  const auto make = [](std::int64_t num_layers, std::int64_t max_seq_len,
                       Profile profile) -> Result<std::unique_ptr<Contiguous>> {
    const auto sound = ContiguousCache::make(num_layers, max_seq_len, profile);
    if (!sound) return sound.error();
    return std::make_unique<Faulty>(num_layers, max_seq_len, profile);
  };
  return {.subject = make_contiguous_subject("mutant:" + name, std::string(fault), make),
          .fault = fault,
          .origin = origin};
}

/// A mutant whose caches are `Faulty`, a PagedCache with one method done wrong, over sound pools.
template <class Faulty>
Mutant paged_mutant(const std::string& name, std::string_view fault, std::string_view origin) {
  const auto make = [](const PagedSetup& setup, Profile profile) -> Result<std::unique_ptr<Paged>> {
    const auto sound = PagedCache::make(setup, profile);
    if (!sound) return sound.error();
    return std::make_unique<Faulty>(setup, profile);
  };
  return {.subject = make_paged_subject("mutant:" + name, std::string(fault),
                                        block_pool::StackPool::make, make),
          .fault = fault,
          .origin = origin};
}

/// Rows [a][b][dim] whose cells are taken for [b][a][dim], put in the order of their shape.
[[nodiscard]] inline Tensor swapped_axes(const Tensor& rows) {
  Tensor swapped = rows;
  const auto width = static_cast<std::size_t>(rows.shape[2]);
  const auto outer = static_cast<std::size_t>(rows.shape[0]);
  const auto inner = static_cast<std::size_t>(rows.shape[1]);
  for (std::size_t a = 0; a < outer; ++a)
    for (std::size_t b = 0; b < inner; ++b)
      for (std::size_t d = 0; d < width; ++d)
        swapped.floats()[(a * inner + b) * width + d] = rows.floats()[(b * outer + a) * width + d];
  return swapped;
}

}  // namespace kvo::provider
