#include "reference/views/paged_cache.hpp"

#include <algorithm>
#include <utility>

#include "reference/contract/values/mark.hpp"

namespace kvo::views {

std::shared_ptr<Block> Blocks::take() {
  if (unused_.empty()) make_one();
  Block* block = unused_.back().release();
  unused_.pop_back();
  return {block, [self = shared_from_this()](Block* left) { self->put_back(left); }};
}

void Blocks::make_one() {
  const std::vector<std::byte> side(static_cast<std::size_t>(options_.block_size) *
                                    options_.token_bytes());
  auto block = std::make_unique<Block>(Block{side, side});
  // All of them can be without an owner: to put one back never allocates.
  unused_.reserve(static_cast<std::size_t>(made_ + 1));
  ++made_;
  put_back(block.release());
}

void Blocks::put_back(Block* block) {
  constexpr std::byte kNobodys{0xfe};
  std::ranges::fill(block->k, kNobodys);
  std::ranges::fill(block->v, kNobodys);
  unused_.emplace_back(block);
}

Result<Appended> PagedCache::append(std::int64_t layer, const Tensor& k, const Tensor& v) {
  if (closed_) return fail(Code::kClosed);
  if (!has(layer)) return fail(Code::kOutOfRange, "layer");
  if (k.shape.size() != 2 || k.shape[1] != options_.kv_dim()) return fail(Code::kBadShape, "k");
  if (v.shape != k.shape) return fail(Code::kBadShape, "v");
  Layer& to = layers_[static_cast<std::size_t>(layer)];
  const std::int64_t n = k.shape[0];
  const std::int64_t start = seq_len_ + (options_.append_stacks ? to.pending : 0);
  const std::int64_t end = start + n;
  if (end > options_.max_seq_len) return fail(Code::kFull);

  const auto first = static_cast<std::size_t>(start / options_.block_size);
  const auto needed = static_cast<std::size_t>(options_.blocks_of(end));
  const bool copies = n > 0 && first < to.table.size() && to.table[first].use_count() > 1;
  const std::size_t missing = needed - std::min(needed, to.table.size()) + (copies ? 1 : 0);
  if (static_cast<std::int64_t>(missing) > blocks_->free()) return fail(Code::kExhausted);

  Table table = to.table;
  table.resize(std::min(needed, table.size()));
  if (copies) table[first] = copy_of(*table[first]);
  if (copies && start % options_.block_size != 0)
    KVO_MARK("views.paged", "written into a shared block");
  while (table.size() < needed) table.push_back(blocks_->take());
  // Behind the last token there is none to show in its block.
  const bool whole = options_.append_views_blocks && n > 0;
  const std::int64_t from = whole ? start - start % options_.block_size : start;
  std::vector<View> shown = views_of(layer, table, from, end);
  write(table, start, k, v);
  to.table = std::move(table);
  to.pending = end - seq_len_;
  shown_ = std::move(shown);
  return Appended{start, shown_};
}

std::shared_ptr<Block> PagedCache::copy_of(const Block& block) const {
  std::shared_ptr<Block> copy = blocks_->take();
  *copy = block;
  return copy;
}

void PagedCache::write(const Table& table, std::int64_t position, const Tensor& k,
                       const Tensor& v) const {
  const auto width = static_cast<std::size_t>(options_.kv_dim());
  for (std::int64_t i = 0; i < k.shape[0]; ++i) {
    const std::int64_t token = position + i;
    Block& block = *table[static_cast<std::size_t>(token / options_.block_size)];
    const auto slot = static_cast<std::size_t>(token % options_.block_size);
    const std::size_t from = static_cast<std::size_t>(i) * width;
    const std::size_t to = slot * options_.token_bytes();
    const std::int64_t dim = options_.head_dim;
    store_rows(options_.storage, dim, k.floats().subspan(from, width), &block.k[to]);
    store_rows(options_.storage, dim, v.floats().subspan(from, width), &block.v[to]);
  }
}

Status PagedCache::commit(std::int64_t n) {
  if (closed_) return {};
  const std::int64_t most = std::ranges::min(layers_, {}, &Layer::pending).pending;
  if (n < 0 || n > most) return fail(Code::kBadPosition, "n");
  seq_len_ += n;
  for (Layer& layer : layers_) {
    layer.pending = options_.commit_keeps_rest ? layer.pending - n : 0;
    give_back(layer);
  }
  return {};
}

void PagedCache::give_back(Layer& layer) const {
  layer.table.resize(static_cast<std::size_t>(options_.blocks_of(seq_len_ + layer.pending)));
}

Result<std::optional<ContiguousRows>> PagedCache::contiguous_kv(std::int64_t layer,
                                                                std::int64_t kv_len,
                                                                std::int64_t kv_dim) {
  if (closed_) return fail(Code::kClosed);
  if (!has(layer)) return fail(Code::kOutOfRange, "layer");
  if (kv_dim != options_.kv_dim()) return fail(Code::kBadShape, "kv_dim");
  const Layer& of = layers_[static_cast<std::size_t>(layer)];
  if (kv_len < 0 || kv_len > seq_len_ + of.pending) return fail(Code::kOutOfRange, "kv_len");
  if (kv_len > options_.block_size) return std::nullopt;
  if (kv_len == 0) return ContiguousRows{};
  const Block& block = *of.table.front();
  return ContiguousRows{block.k.data(), block.v.data()};
}

std::vector<View> PagedCache::views_of(std::int64_t layer, const Table& table, std::int64_t begin,
                                       std::int64_t end) const {
  std::vector<View> found;
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t index = at / options_.block_size;
    const std::int64_t next = std::min(end, (index + 1) * options_.block_size);
    const Block& block = *table[static_cast<std::size_t>(index)];
    const auto slot = static_cast<std::size_t>(at % options_.block_size);
    const std::size_t byte = slot * options_.token_bytes();
    found.push_back({at, next - at, layer_device(layer), &block.k[byte], &block.v[byte]});
    at = next;
  }
  return found;
}

std::span<const View> PagedCache::views(std::int64_t layer) {
  if (closed_ || !has(layer)) return {};
  const Layer& of = layers_[static_cast<std::size_t>(layer)];
  const std::int64_t pending = options_.views_committed_only ? 0 : of.pending;
  shown_ = views_of(layer, of.table, 0, seq_len_ + pending);
  return shown_;
}

std::span<const PackedView> PagedCache::views_packed(std::int64_t layer) {
  packed_.clear();
  packed_cells_.clear();
  if (closed_ || !has(layer) || layer_device(layer).device == Device::kGpu) return {};
  const std::int64_t heads = options_.num_kv_heads;
  const std::int64_t dim = options_.head_dim;
  for (const View& view : views(layer)) {
    const std::int64_t stride =
        options_.packed_stride == PackedStride::kLength ? view.length : options_.block_size;
    const auto packed = [&](const std::byte* rows) {
      std::vector<float> cells(static_cast<std::size_t>(heads * stride * dim));
      const auto size = static_cast<std::size_t>(dim);
      for (std::int64_t i = 0; i < view.length * heads; ++i) {
        const auto to = static_cast<std::size_t>((i % heads * stride + i / heads) * dim);
        decode(options_.storage, rows, std::span(cells).subspan(to, size));
        rows += stored_bytes(options_.storage, size);
      }
      packed_cells_.push_back(std::move(cells));
      return std::span<const float>(packed_cells_.back());
    };
    const auto k = packed(view.k);
    const auto v = packed(view.v);
    packed_.push_back({view.start, view.length, options_.block_size, dim, heads, k, v});
  }
  return packed_;
}

bool PagedCache::is_on_gpu() const {
  return std::ranges::all_of(options_.devices,
                             [](const Placement& one) { return one.device == Device::kGpu; });
}

void PagedCache::truncate(std::int64_t tokens) {
  if (closed_) return;
  seq_len_ = std::min(seq_len_, std::max<std::int64_t>(tokens, 0));
  for (Layer& layer : layers_) {
    layer.pending = 0;
    give_back(layer);
  }
}

void PagedCache::free() {
  if (closed_) KVO_MARK("views.paged", "freed twice");
  truncate(0);
  closed_ = true;
}

Result<std::unique_ptr<Cache>> PagedCache::fork(std::int64_t tokens) {
  if (closed_) return fail(Code::kClosed);
  if (tokens < 0 || tokens > seq_len_) return fail(Code::kBadPosition, "tokens");
  const bool cut = tokens % options_.block_size != 0;
  if (cut && options_.num_layers > blocks_->free()) return fail(Code::kExhausted);
  auto made = std::make_unique<PagedCache>(options_, blocks_);
  made->seq_len_ = tokens;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Table& table = made->layers_[i].table;
    table = layers_[i].table;
    table.resize(static_cast<std::size_t>(options_.blocks_of(tokens)));
    if (cut) table.back() = copy_of(*table.back());
  }
  return made;
}

std::optional<std::string> PagedCache::broken_invariant() const {
  for (const Layer& layer : layers_)
    if (std::ssize(layer.table) != options_.blocks_of(seq_len_ + layer.pending))
      return "a table has not the blocks of its tokens";
  if (blocks_->free() < 0) return "more blocks are taken than there are";
  return std::nullopt;
}

namespace {

class PagedPool final : public Pool {
 public:
  explicit PagedPool(const Options& options)
      : options_(options), blocks_(std::make_shared<Blocks>(options)) {}
  [[nodiscard]] std::unique_ptr<Cache> make_cache() override {
    return std::make_unique<PagedCache>(options_, blocks_);
  }
  [[nodiscard]] std::int64_t free_blocks() const override { return blocks_->free(); }

 private:
  Options options_;
  std::shared_ptr<Blocks> blocks_;
};

}  // namespace

std::unique_ptr<Pool> make_paged(const Options& options) {
  return std::make_unique<PagedPool>(options);
}

}  // namespace kvo::views
