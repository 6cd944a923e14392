// reference/mlx_lm/make.hpp: what makes the references.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "reference/mlx_lm/cache.hpp"
#include "reference/mlx_lm/prompt_store.hpp"

namespace kvo::mlx_lm {

/// A reference of options.kind. Errors  kPrecondition: no such kind.
[[nodiscard]] Result<CachePtr> make_reference(const Options& options, QuirkSet<Quirk> quirks);
[[nodiscard]] std::unique_ptr<PromptStore> make_prompt_lru(std::int64_t max_entries,
                                                           std::optional<std::int64_t> max_bytes,
                                                           QuirkSet<Quirk> quirks);

}  // namespace kvo::mlx_lm
