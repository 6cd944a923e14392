#include "reference/mlx_lm/make.hpp"

#include <memory>

#include "reference/mlx_lm/arrays_cache.hpp"
#include "reference/mlx_lm/batch_caches.hpp"
#include "reference/mlx_lm/plain_caches.hpp"
#include "reference/mlx_lm/prompt_lru.hpp"
#include "reference/mlx_lm/quantized_cache.hpp"
#include "reference/mlx_lm/rotating_cache.hpp"

namespace kvo::mlx_lm {

Result<CachePtr> make_reference(const Options& options, QuirkSet<Quirk> quirks) {
  const std::string& kind = options.kind;
  const std::int64_t step = options.step;
  const auto made = [](auto cache) { return CachePtr(std::move(cache)); };
  if (kind == "kv") return made(std::make_unique<KvCache>(step, quirks));
  if (kind == "concatenate") return made(std::make_unique<ConcatenateCache>(quirks));
  if (kind == "rotating")
    return made(std::make_unique<RotatingCache>(
        step, quirks, RotatingState{.keep = options.keep, .max_size = options.max_size}));
  if (kind == "chunked")
    return made(std::make_unique<ChunkedCache>(step, quirks,
                                               ChunkedState{.chunk_size = options.chunk_size}));
  if (kind == "quantized")
    return made(std::make_unique<QuantizedCache>(
        step, quirks, QuantizedState{.group_size = options.group_size, .bits = options.bits}));
  if (kind == "batch-kv")
    return made(std::make_unique<BatchKvCache>(
        step, quirks, BatchKvState{.rows = Rows::padded(options.left_padding)}));
  if (kind == "batch-rotating")
    return made(std::make_unique<BatchRotatingCache>(
        step, quirks,
        BatchRotatingState{.rows = Rows::padded(options.left_padding),
                           .max_size = options.max_size}));
  if (kind == "arrays") {
    ArraysState state{std::make_shared<std::vector<Array>>(static_cast<std::size_t>(options.size))};
    if (!options.left_padding.empty())
      state.left_padding = std::make_shared<Ints>(options.left_padding);
    return made(std::make_unique<ArraysCache>(quirks, std::move(state)));
  }
  return fail(Code::kPrecondition, "kind");
}

std::unique_ptr<PromptStore> make_prompt_lru(std::int64_t max_entries,
                                             std::optional<std::int64_t> max_bytes,
                                             QuirkSet<Quirk> quirks) {
  return std::make_unique<PromptLru>(max_entries, max_bytes, quirks);
}

}  // namespace kvo::mlx_lm
