// reference/generation/model.hpp: what turns tokens and a cache into logits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "reference/contract/values/result.hpp"
#include "reference/contract/values/tensor.hpp"
#include "reference/generation/options.hpp"
#include "reference/provider/cache.hpp"

namespace kvo::generation {

/// A model. Its only state is in the cache that it is given.
class Model {
 public:
  virtual ~Model() = default;
  /// Adds the tokens to the cache and returns their logits, [1, tokens, vocab].
  /// Errors  other:model; those of the cache.
  [[nodiscard]] virtual Result<Tensor> forward(std::span<const std::int64_t> ids,
                                               provider::Provider& cache) = 0;
};

/// The model of a config: script, rows and hash by section 15 of the rules; attention is ours.
/// Errors  kPrecondition: a size that no model has.
[[nodiscard]] Result<std::unique_ptr<Model>> make_model(const ModelConfig& config);

/// A cell as a whole number; what is none, or too large, counts as a number of its own.
[[nodiscard]] std::int64_t whole(float cell);

}  // namespace kvo::generation
