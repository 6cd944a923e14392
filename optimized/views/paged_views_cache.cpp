#include "optimized/views/paged_views_cache.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "optimized/memory/convert.hpp"

namespace kvo::optimized {

using views::Appended;
using views::Cache;
using views::ContiguousRows;
using views::Device;
using views::Options;
using views::PackedView;
using views::View;

PagedViewsCache::PagedViewsCache(std::shared_ptr<const Options> options,
                                 std::shared_ptr<BlockStore> store)
    : options_(std::move(options)),
      store_(std::move(store)),
      is_on_gpu_(std::ranges::all_of(
          options_->devices,
          [](const views::Placement& one) { return one.device == Device::kGpu; })),
      row_bytes_(options_->token_bytes()),
      layers_(static_cast<std::size_t>(options_->num_layers)) {}

PagedViewsCache::~PagedViewsCache() {
  for (Layer& layer : layers_) give_back(layer, 0);
}

Result<Appended> PagedViewsCache::append(std::int64_t layer, const Tensor& k, const Tensor& v) {
  if (closed_) return fail(Code::kClosed);
  if (!has(layer)) return fail(Code::kOutOfRange, "layer");
  if (k.shape.size() != 2 || k.shape[1] != options_->kv_dim() || v.shape != k.shape)
    return fail(Code::kBadShape);
  Layer& to = at(layer);
  const std::int64_t n = k.shape[0];
  const std::int64_t start = seq_len_ + (options_->append_stacks ? to.pending : 0);
  const std::int64_t end = start + n;
  if (end > options_->max_seq_len) return fail(Code::kFull);

  const auto index = static_cast<std::size_t>(start / options_->block_size);
  const std::int64_t missing = options_->blocks_of(end) - std::ssize(to.table);
  const bool moves = n > 0 && index < to.table.size() && store_->is_shared(to.table[index]);
  const std::int64_t wanted = std::max<std::int64_t>(missing, 0) + (moves ? 1 : 0);
  if (wanted > 0) {
    if (wanted > store_->available()) return fail(Code::kExhausted);
    store_->prepare(wanted);
    make_room(to.table, static_cast<std::size_t>(wanted));
    make_room(to.shown, static_cast<std::size_t>(wanted));
  }
  appended_.reserve(static_cast<std::size_t>(n / options_->block_size + 2));

  // Nothing fails from here on.
  if (moves) unshare(layer, index, start % options_->block_size);
  if (missing > 0) take(layer, missing);
  give_back(to, end);
  store(to, start, k, v);
  to.pending = end - seq_len_;
  to.packed.forget(start);
  list_appended(to, start, end);
  return Appended{start, appended_};
}

void PagedViewsCache::take(std::int64_t layer, std::int64_t blocks) {
  Layer& to = at(layer);
  for (std::int64_t i = 0; i < blocks; ++i) {
    to.table.push_back(store_->take());
    to.shown.push_back(view_of(layer, to.shown.size(), to.table.back()));
  }
}

void PagedViewsCache::unshare(std::int64_t layer, std::size_t index, std::int64_t tokens) {
  Layer& of = at(layer);
  const BlockStore::Number shared = of.table[index];
  const BlockStore::Number own = store_->take();
  const std::size_t bytes = static_cast<std::size_t>(tokens) * row_bytes_;
  std::memcpy(store_->k(own), store_->k(shared), bytes);
  std::memcpy(store_->v(own), store_->v(shared), bytes);
  store_->release(shared);
  of.table[index] = own;
  of.shown[index] = view_of(layer, index, own);
}

View PagedViewsCache::view_of(std::int64_t layer, std::size_t index,
                              BlockStore::Number block) const {
  return {static_cast<std::int64_t>(index) * options_->block_size, options_->block_size,
          layer_device(layer), store_->k(block), store_->v(block)};
}

void PagedViewsCache::store(const Layer& layer, std::int64_t start, const Tensor& k,
                            const Tensor& v) const {
  const std::int64_t width = options_->kv_dim();
  const StorageFormat& storage = options_->storage;
  const auto dim = static_cast<std::size_t>(options_->head_dim);
  const auto put = [&](std::byte* to, std::span<const float> rows) {
    if (storage.type == StorageType::kF32) {
      std::memcpy(to, rows.data(), rows.size_bytes());
    } else {
      encode_rows(storage, dim, rows, to);
    }
  };
  auto index = static_cast<std::size_t>(start / options_->block_size);
  std::int64_t slot = start % options_->block_size;
  for (std::int64_t at = 0; at < k.shape[0]; ++index, slot = 0) {
    const std::int64_t rows = std::min(options_->block_size - slot, k.shape[0] - at);
    const std::size_t to = static_cast<std::size_t>(slot) * row_bytes_;
    const auto from = static_cast<std::size_t>(at * width);
    const auto cells = static_cast<std::size_t>(rows * width);
    put(store_->k(layer.table[index]) + to, k.floats().subspan(from, cells));
    put(store_->v(layer.table[index]) + to, v.floats().subspan(from, cells));
    at += rows;
  }
}

void PagedViewsCache::list_appended(const Layer& layer, std::int64_t start, std::int64_t end) {
  appended_.clear();
  const std::int64_t size = options_->block_size;
  std::int64_t at = start;
  if (options_->append_views_blocks) at -= at % size;
  if (start == end) return;
  for (auto index = static_cast<std::size_t>(at / size); at < end; ++index) {
    View view = layer.shown[index];
    const std::int64_t slot = at - view.start;
    view.k += static_cast<std::size_t>(slot) * row_bytes_;
    view.v += static_cast<std::size_t>(slot) * row_bytes_;
    view.length = std::min(size - slot, end - at);
    view.start = at;
    appended_.push_back(view);
    at += view.length;
  }
}

void PagedViewsCache::give_back(Layer& layer, std::int64_t tokens) {
  const auto needed = static_cast<std::size_t>(options_->blocks_of(tokens));
  while (layer.table.size() > needed) {
    store_->release(layer.table.back());
    layer.table.pop_back();
    layer.shown.pop_back();
  }
}

Status PagedViewsCache::commit(std::int64_t n) {
  if (closed_) return {};
  for (const Layer& layer : layers_)
    if (n < 0 || n > layer.pending) return fail(Code::kBadPosition, "n");
  seq_len_ += n;
  for (Layer& layer : layers_) {
    layer.pending = options_->commit_keeps_rest ? layer.pending - n : 0;
    give_back(layer, seq_len_ + layer.pending);
  }
  return {};
}

Result<std::optional<ContiguousRows>> PagedViewsCache::contiguous_kv(std::int64_t layer,
                                                                     std::int64_t kv_len,
                                                                     std::int64_t kv_dim) {
  if (closed_) return fail(Code::kClosed);
  if (!has(layer)) return fail(Code::kOutOfRange, "layer");
  if (kv_dim != options_->kv_dim()) return fail(Code::kBadShape, "kv_dim");
  const Layer& of = at(layer);
  if (kv_len < 0 || kv_len > seq_len_ + of.pending) return fail(Code::kOutOfRange, "kv_len");
  if (kv_len > options_->block_size) return std::nullopt;
  if (kv_len == 0) return ContiguousRows{};
  return ContiguousRows{of.shown.front().k, of.shown.front().v};
}

std::span<const View> PagedViewsCache::first(Layer& layer, std::int64_t tokens) const {
  const auto blocks = static_cast<std::size_t>(options_->blocks_of(tokens));
  if (blocks == 0) return {};
  if (layer.cut < layer.shown.size()) layer.shown[layer.cut].length = options_->block_size;
  layer.cut = blocks - 1;
  layer.shown[layer.cut].length = tokens - layer.shown[layer.cut].start;
  return std::span(layer.shown).first(blocks);
}

std::span<const View> PagedViewsCache::views(std::int64_t layer) {
  if (!has(layer)) return {};
  Layer& of = at(layer);
  return first(of, seq_len_ + (options_->views_committed_only ? 0 : of.pending));
}

std::span<const PackedView> PagedViewsCache::views_packed(std::int64_t layer) {
  if (!has(layer) || layer_device(layer).device == Device::kGpu) return {};
  const std::span<const View> shown = views(layer);
  return at(layer).packed.pack(*options_, shown);
}

void PagedViewsCache::truncate(std::int64_t tokens) {
  if (closed_) return;
  seq_len_ = std::min(seq_len_, std::max<std::int64_t>(tokens, 0));
  for (Layer& layer : layers_) {
    layer.pending = 0;
    give_back(layer, seq_len_);
  }
}

void PagedViewsCache::free() {
  truncate(0);
  closed_ = true;
  for (Layer& layer : layers_) layer.packed.clear();
}

Result<std::unique_ptr<Cache>> PagedViewsCache::fork(std::int64_t tokens) {
  if (closed_) return fail(Code::kClosed);
  if (tokens < 0 || tokens > seq_len_) return fail(Code::kBadPosition, "tokens");
  const std::int64_t rest = tokens % options_->block_size;
  const std::int64_t wanted = rest > 0 ? options_->num_layers : 0;
  if (wanted > store_->available()) return fail(Code::kExhausted);
  store_->prepare(wanted);
  auto made = std::make_unique<PagedViewsCache>(options_, store_);
  const auto blocks = static_cast<std::size_t>(options_->blocks_of(tokens));
  for (Layer& layer : made->layers_) {
    layer.table.reserve(blocks);
    layer.shown.reserve(blocks);
  }
  for (std::int64_t i = 0; i < options_->num_layers; ++i) {
    Layer& layer = made->at(i);
    for (std::size_t index = 0; index < blocks; ++index) {
      const BlockStore::Number block = at(i).table[index];
      store_->share(block);
      layer.table.push_back(block);
      layer.shown.push_back(made->view_of(i, index, block));
    }
    if (rest > 0) made->unshare(i, blocks - 1, rest);
  }
  made->seq_len_ = tokens;
  return made;
}

std::optional<std::string> PagedViewsCache::broken_invariant() const {
  for (const Layer& layer : layers_) {
    if (std::ssize(layer.table) != options_->blocks_of(seq_len_ + layer.pending) ||
        layer.shown.size() != layer.table.size())
      return "a table has not the blocks of its tokens";
    for (std::size_t i = 0; i < layer.table.size(); ++i) {
      if (!store_->is_held(layer.table[i])) return "a block is free and in a table";
      if (layer.shown[i].k != store_->k(layer.table[i])) return "a view shows another block";
    }
  }
  return std::nullopt;
}

namespace {

class PagedViewsPool final : public views::Pool {
 public:
  explicit PagedViewsPool(const Options& options)
      : options_(std::make_shared<const Options>(options)),
        store_(std::make_shared<BlockStore>(options)) {}
  [[nodiscard]] std::unique_ptr<Cache> make_cache() override {
    return std::make_unique<PagedViewsCache>(options_, store_);
  }
  [[nodiscard]] std::int64_t free_blocks() const override { return store_->available(); }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return store_->broken_invariant();
  }

 private:
  std::shared_ptr<const Options> options_;
  std::shared_ptr<BlockStore> store_;
};

}  // namespace

std::unique_ptr<views::Pool> make_paged_views(const Options& options) {
  return std::make_unique<PagedViewsPool>(options);
}

}  // namespace kvo::optimized
