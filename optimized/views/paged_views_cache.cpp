#include "optimized/views/paged_views_cache.hpp"

#include <cstring>

#include "optimized/memory/convert.hpp"

namespace kvo::optimized {

Status HostViewRows::put(const AppendedRows& of) const {
  if (of.copied) copy_block(*of.copied, of.table[of.first], of.slot);
  const std::int64_t width = options_.kv_dim();
  const StorageFormat& storage = options_.storage;
  const auto dim = static_cast<std::size_t>(options_.head_dim);
  const auto put = [&](std::byte* to, std::span<const float> rows) {
    if (storage.type == StorageType::kF32) {
      std::memcpy(to, rows.data(), rows.size_bytes());
    } else {
      encode_rows(storage, dim, rows, to);
    }
  };
  const std::int64_t count = of.k.shape[0];
  std::int64_t slot = of.slot;
  std::size_t index = of.first;
  for (std::int64_t at = 0; at < count; ++index, slot = 0) {
    const std::int64_t rows = std::min(options_.block_size - slot, count - at);
    const std::size_t to = static_cast<std::size_t>(slot) * row_bytes_;
    const auto from = static_cast<std::size_t>(at * width);
    const auto cells = static_cast<std::size_t>(rows * width);
    put(store_->k(of.table[index]) + to, of.k.floats().subspan(from, cells));
    put(store_->v(of.table[index]) + to, of.v.floats().subspan(from, cells));
    at += rows;
  }
  return {};
}

Status HostViewRows::copy(std::span<const Store::Number> pairs, std::int64_t tokens) const {
  for (std::size_t i = 0; i < pairs.size(); i += 2) copy_block(pairs[i], pairs[i + 1], tokens);
  return {};
}

void HostViewRows::copy_block(Store::Number from, Store::Number to, std::int64_t tokens) const {
  const std::size_t bytes = static_cast<std::size_t>(tokens) * row_bytes_;
  std::memcpy(store_->k(to), store_->k(from), bytes);
  std::memcpy(store_->v(to), store_->v(from), bytes);
}

std::unique_ptr<views::Pool> make_paged_views(const views::Options& options) {
  return std::make_unique<PagedViewsPool<HostViewRows>>(options,
                                                        std::make_shared<BlockStore>(options));
}

}  // namespace kvo::optimized
