#include "reference/views/cache.hpp"

#include <array>

namespace kvo::views {

Status check(const Options& options) {
  constexpr std::int64_t kMostLayers = 1 << 16;
  constexpr std::int64_t kMostElements = std::int64_t{1} << 31U;
  const std::array sizes{options.block_size, options.num_kv_heads, options.head_dim};
  const auto elements = element_count(sizes);
  if (options.num_layers < 1 || options.num_layers > kMostLayers)
    return fail(Code::kOutOfRange, "num_layers");
  if (!elements || *elements < 1 || *elements > kMostElements)
    return fail(Code::kOutOfRange, "block_size, num_kv_heads, head_dim");
  if (options.max_seq_len < 0) return fail(Code::kOutOfRange, "max_seq_len");
  if (options.blocks < 0) return fail(Code::kOutOfRange, "blocks");
  if (static_cast<std::int64_t>(options.devices.size()) != options.num_layers)
    return fail(Code::kOutOfRange, "devices");
  return check(options.storage);
}

}  // namespace kvo::views
