// optimized/views/paged_views_cache.hpp: `views.paged`: which blocks a cache holds and what it
// shows.
//
// Rows are in the memory of a worker, `Rows`: HostViewRows (here), or cuda::DeviceViewRows. A cache
// has its own. It has
//   Store                 a BlockStore, shared by the caches of a pool; Rows(options, store)
//   put                   stores the rows of an append
//   copy                  copies the first tokens of blocks to others
//   Packed, pack          what it keeps of a layer's packed views, and these views
// Errors of put and copy are kOutOfMemory and those of a device; pack throws them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "optimized/views/block_store.hpp"
#include "optimized/views/packed_mirror.hpp"
#include "reference/views/cache.hpp"

namespace kvo::optimized {

/// Rows that an append stores.
struct AppendedRows {
  std::span<const BlockStore::Number> table;  ///< blocks of the layer up to the last row
  std::size_t first = 0;                      ///< index in it of the first row's block
  std::int64_t slot = 0;                      ///< of the first row in its block
  const Tensor& k;
  const Tensor& v;
  std::optional<BlockStore::Number> copied =
      std::nullopt;  ///< its block becomes a copy of this one
};

/// Rows in host memory, which views show in place.
class HostViewRows {
 public:
  using Store = BlockStore;
  using Packed = PackedMirror;

  HostViewRows(const views::Options& options, std::shared_ptr<Store> store)
      : options_(options), store_(std::move(store)), row_bytes_(options.token_bytes()) {}

  [[nodiscard]] Status put(const AppendedRows& of) const;
  /// `pairs`: a block, and the block that becomes its copy, one pair after the other.
  [[nodiscard]] Status copy(std::span<const Store::Number> pairs, std::int64_t tokens) const;
  [[nodiscard]] std::span<const views::PackedView> pack(Packed& packed,
                                                        std::span<const Store::Number> /*table*/,
                                                        std::span<const views::View> shown) const {
    return packed.pack(options_, shown);
  }

 private:
  void copy_block(Store::Number from, Store::Number to, std::int64_t tokens) const;

  const views::Options& options_;
  std::shared_ptr<Store> store_;
  std::size_t row_bytes_;
};

/// Views are listed when blocks are taken and released: a query returns at once. A fork shares
/// whole blocks with the cache that it was made of.
template <class Rows>
class PagedViewsCache final : public views::Cache {
 public:
  using Store = typename Rows::Store;
  using Number = BlockStore::Number;
  using View = views::View;

  PagedViewsCache(std::shared_ptr<const views::Options> options, std::shared_ptr<Store> store)
      : options_(std::move(options)),
        store_(std::move(store)),
        rows_(*options_, store_),
        is_on_gpu_(std::ranges::all_of(
            options_->devices,
            [](const views::Placement& one) { return one.device == views::Device::kGpu; })),
        row_bytes_(options_->token_bytes()),
        layers_(static_cast<std::size_t>(options_->num_layers)) {}
  PagedViewsCache(const PagedViewsCache&) = delete;
  PagedViewsCache& operator=(const PagedViewsCache&) = delete;
  ~PagedViewsCache() override {
    for (Layer& layer : layers_) give_back(layer, 0);
  }

  [[nodiscard]] Result<views::Appended> append(std::int64_t layer, const Tensor& k,
                                               const Tensor& v) override {
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
    const auto needed = static_cast<std::size_t>(options_->blocks_of(end));
    const std::size_t held = to.table.size();
    const bool moves = n > 0 && index < held && store_->is_shared(to.table[index]);
    const std::size_t wanted = needed - std::min(needed, held) + (moves ? 1 : 0);
    if (wanted > 0) {
      if (static_cast<std::int64_t>(wanted) > store_->available()) return fail(Code::kExhausted);
      store_->prepare(static_cast<std::int64_t>(wanted));
      make_room(to.table, wanted);
      make_room(to.shown, wanted);
    }
    appended_.reserve(static_cast<std::size_t>(n / options_->block_size + 2));

    // Only the memory of rows fails from here on.
    const auto shared = moves ? std::optional(to.table[index]) : std::nullopt;
    Untaken untaken{*this, layer, held, index, shared};
    if (moves) replace(layer, index, store_->take());
    while (to.table.size() < needed) add(layer, store_->take());
    if (n > 0) {
      const Status stored = rows_.put({.table = std::span(to.table).first(needed),
                                       .first = index,
                                       .slot = start % options_->block_size,
                                       .k = k,
                                       .v = v,
                                       .copied = shared});
      if (!stored) return stored.error();
    }
    untaken.armed = false;
    if (moves) store_->release(*shared);
    drop(to, needed);
    to.pending = end - seq_len_;
    to.packed.forget(start);
    list_appended(to, start, end);
    return views::Appended{start, appended_};
  }

  [[nodiscard]] Status commit(std::int64_t n) override {
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

  [[nodiscard]] Result<std::optional<views::ContiguousRows>> contiguous_kv(
      std::int64_t layer, std::int64_t kv_len, std::int64_t kv_dim) override {
    if (closed_) return fail(Code::kClosed);
    if (!has(layer)) return fail(Code::kOutOfRange, "layer");
    if (kv_dim != options_->kv_dim()) return fail(Code::kBadShape, "kv_dim");
    const Layer& of = at(layer);
    if (kv_len < 0 || kv_len > seq_len_ + of.pending) return fail(Code::kOutOfRange, "kv_len");
    if (kv_len > options_->block_size) return std::nullopt;
    if (kv_len == 0) return views::ContiguousRows{};
    return views::ContiguousRows{of.shown.front().k, of.shown.front().v};
  }
  [[nodiscard]] std::span<const View> views(std::int64_t layer) override {
    if (!has(layer)) return {};
    Layer& of = at(layer);
    return first(of, seq_len_ + (options_->views_committed_only ? 0 : of.pending));
  }
  [[nodiscard]] std::span<const views::PackedView> views_packed(std::int64_t layer) override {
    if (!has(layer) || layer_device(layer).device == views::Device::kGpu) return {};
    return rows_.pack(at(layer).packed, at(layer).table, views(layer));
  }
  [[nodiscard]] views::Placement layer_device(std::int64_t layer) const override {
    return options_->devices[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] bool is_on_gpu() const override { return is_on_gpu_; }
  [[nodiscard]] std::int64_t max_seq_len() const override { return options_->max_seq_len; }
  [[nodiscard]] std::int64_t seq_len() const override { return seq_len_; }

  void truncate(std::int64_t tokens) override {
    if (closed_) return;
    seq_len_ = std::min(seq_len_, std::max<std::int64_t>(tokens, 0));
    for (Layer& layer : layers_) {
      layer.pending = 0;
      give_back(layer, seq_len_);
    }
  }
  void free() override {
    truncate(0);
    closed_ = true;
    for (Layer& layer : layers_) layer.packed.clear();
  }

  [[nodiscard]] Result<std::unique_ptr<views::Cache>> fork(std::int64_t tokens) override {
    if (closed_) return fail(Code::kClosed);
    if (tokens < 0 || tokens > seq_len_) return fail(Code::kBadPosition, "tokens");
    const std::int64_t rest = tokens % options_->block_size;
    const std::int64_t wanted = rest > 0 ? options_->num_layers : 0;
    if (wanted > store_->available()) return fail(Code::kExhausted);
    store_->prepare(wanted);
    auto made = std::make_unique<PagedViewsCache>(options_, store_);
    const auto blocks = static_cast<std::size_t>(options_->blocks_of(tokens));
    std::vector<Number> copies;  // a block, and its copy
    copies.reserve(static_cast<std::size_t>(2 * wanted));
    for (Layer& layer : made->layers_) {
      layer.table.reserve(blocks);
      layer.shown.reserve(blocks);
    }
    for (std::int64_t i = 0; i < options_->num_layers; ++i) {
      for (std::size_t index = 0; index < blocks; ++index) {
        const bool cut = rest > 0 && index + 1 == blocks;
        const Number block = at(i).table[index];
        const Number own = cut ? store_->take() : block;
        if (cut)
          copies.insert(copies.end(), {block, own});
        else
          store_->share(block);
        made->add(i, own);
      }
    }
    made->seq_len_ = tokens;
    if (const Status copied = rows_.copy(copies, rest); !copied) return copied.error();
    return made;
  }

  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
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

 private:
  struct Layer {
    std::vector<Number> table = {};  ///< blocks in order of positions
    std::vector<View> shown = {};    ///< a view a block; all but `cut` are whole
    std::size_t cut = 0;             ///< the last one when views were shown
    std::int64_t pending = 0;
    typename Rows::Packed packed = {};
  };

  /// Releases the blocks that a failed append took.
  struct Untaken {
    PagedViewsCache& cache;
    std::int64_t layer;
    std::size_t held;  ///< blocks of the layer before
    std::size_t index;
    std::optional<Number> shared;  ///< the block at `index` before, if it is another one now
    bool armed = true;

    ~Untaken() {
      if (!armed) return;
      Layer& of = cache.at(layer);
      cache.drop(of, held);
      if (!shared) return;
      cache.store_->release(of.table[index]);
      cache.replace(layer, index, *shared);
    }
  };

  [[nodiscard]] bool has(std::int64_t layer) const {
    return !closed_ && layer >= 0 && layer < options_->num_layers;
  }
  Layer& at(std::int64_t layer) { return layers_[static_cast<std::size_t>(layer)]; }

  [[nodiscard]] View view_of(std::int64_t layer, std::size_t index, Number block) const {
    return {static_cast<std::int64_t>(index) * options_->block_size, options_->block_size,
            layer_device(layer), store_->k(block), store_->v(block)};
  }
  void add(std::int64_t layer, Number block) {
    Layer& to = at(layer);
    to.table.push_back(block);
    to.shown.push_back(view_of(layer, to.shown.size(), block));
  }
  void replace(std::int64_t layer, std::size_t index, Number block) {
    at(layer).table[index] = block;
    at(layer).shown[index] = view_of(layer, index, block);
  }
  /// Releases the blocks after the first so many.
  void drop(Layer& layer, std::size_t blocks) {
    while (layer.table.size() > blocks) {
      store_->release(layer.table.back());
      layer.table.pop_back();
      layer.shown.pop_back();
    }
  }
  void give_back(Layer& layer, std::int64_t tokens) {
    drop(layer, static_cast<std::size_t>(options_->blocks_of(tokens)));
  }

  /// Which views an append of [start, end) returns.
  void list_appended(const Layer& layer, std::int64_t start, std::int64_t end) {
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

  /// The views of the first `tokens`: the last one is cut, and the one cut before is whole again.
  [[nodiscard]] std::span<const View> first(Layer& layer, std::int64_t tokens) const {
    const auto blocks = static_cast<std::size_t>(options_->blocks_of(tokens));
    if (blocks == 0) return {};
    if (layer.cut < layer.shown.size()) layer.shown[layer.cut].length = options_->block_size;
    layer.cut = blocks - 1;
    layer.shown[layer.cut].length = tokens - layer.shown[layer.cut].start;
    return std::span(layer.shown).first(blocks);
  }

  std::shared_ptr<const views::Options> options_;
  std::shared_ptr<Store> store_;
  Rows rows_;
  bool is_on_gpu_;
  std::size_t row_bytes_;
  std::int64_t seq_len_ = 0;
  bool closed_ = false;
  std::vector<Layer> layers_;
  std::vector<View> appended_ = {};
};

/// The pool of such caches.
template <class Rows>
class PagedViewsPool final : public views::Pool {
 public:
  PagedViewsPool(const views::Options& options, std::shared_ptr<typename Rows::Store> store)
      : options_(std::make_shared<const views::Options>(options)), store_(std::move(store)) {}
  [[nodiscard]] std::unique_ptr<views::Cache> make_cache() override {
    return std::make_unique<PagedViewsCache<Rows>>(options_, store_);
  }
  [[nodiscard]] std::int64_t free_blocks() const override { return store_->available(); }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return store_->broken_invariant();
  }

 private:
  std::shared_ptr<const views::Options> options_;
  std::shared_ptr<typename Rows::Store> store_;
};

/// A pool in host memory.
[[nodiscard]] std::unique_ptr<views::Pool> make_paged_views(const views::Options& options);

}  // namespace kvo::optimized
