// optimized/views/paged_views_cache.hpp: `views.paged`, fast on a CPU.
#pragma once

#include <memory>
#include <vector>

#include "optimized/views/block_store.hpp"
#include "optimized/views/packed_mirror.hpp"
#include "reference/views/cache.hpp"

namespace kvo::optimized {

/// Views are listed when blocks come and go, not when they are asked for: a query answers at once.
/// A fork holds whole blocks together with the cache that it was made of.
class PagedViewsCache final : public views::Cache {
 public:
  PagedViewsCache(std::shared_ptr<const views::Options> options, std::shared_ptr<BlockStore> store);
  PagedViewsCache(const PagedViewsCache&) = delete;
  PagedViewsCache& operator=(const PagedViewsCache&) = delete;
  ~PagedViewsCache() override;

  [[nodiscard]] Result<views::Appended> append(std::int64_t layer, const Tensor& k,
                                               const Tensor& v) override;
  [[nodiscard]] Status commit(std::int64_t n) override;
  [[nodiscard]] Result<std::optional<views::ContiguousRows>> contiguous_kv(
      std::int64_t layer, std::int64_t kv_len, std::int64_t kv_dim) override;
  [[nodiscard]] std::span<const views::View> views(std::int64_t layer) override;
  [[nodiscard]] std::span<const views::PackedView> views_packed(std::int64_t layer) override;
  [[nodiscard]] views::Placement layer_device(std::int64_t layer) const override {
    return options_->devices[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] bool is_on_gpu() const override { return is_on_gpu_; }
  [[nodiscard]] std::int64_t max_seq_len() const override { return options_->max_seq_len; }
  [[nodiscard]] std::int64_t seq_len() const override { return seq_len_; }
  void truncate(std::int64_t tokens) override;
  void free() override;
  [[nodiscard]] Result<std::unique_ptr<views::Cache>> fork(std::int64_t tokens) override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 private:
  struct Layer {
    std::vector<BlockStore::Number> table = {};  ///< blocks in order of positions
    std::vector<views::View> shown = {};         ///< a view a block; all but `cut` are whole
    std::size_t cut = 0;                         ///< what was the last one when views were shown
    std::int64_t pending = 0;
    PackedMirror packed = {};
  };

  [[nodiscard]] bool has(std::int64_t layer) const {
    return !closed_ && layer >= 0 && layer < options_->num_layers;
  }
  Layer& at(std::int64_t layer) { return layers_[static_cast<std::size_t>(layer)]; }
  /// Which views an append of [start, end) returns.
  void list_appended(const Layer& layer, std::int64_t start, std::int64_t end);
  [[nodiscard]] views::View view_of(std::int64_t layer, std::size_t index,
                                    BlockStore::Number block) const;
  void take(std::int64_t layer, std::int64_t blocks);
  /// A block of its own in the place of one that others hold, too.
  void unshare(std::int64_t layer, std::size_t index, std::int64_t tokens);
  void store(const Layer& layer, std::int64_t start, const Tensor& k, const Tensor& v) const;
  /// Gives back the blocks behind `tokens`.
  void give_back(Layer& layer, std::int64_t tokens);
  /// The views of the first `tokens`: the last one is cut, and the one that was is whole again.
  [[nodiscard]] std::span<const views::View> first(Layer& layer, std::int64_t tokens) const;

  std::shared_ptr<const views::Options> options_;
  std::shared_ptr<BlockStore> store_;
  bool is_on_gpu_;
  std::size_t row_bytes_;
  std::int64_t seq_len_ = 0;
  bool closed_ = false;
  std::vector<Layer> layers_;
  std::vector<views::View> appended_ = {};
};

/// The pool of such caches.
[[nodiscard]] std::unique_ptr<views::Pool> make_paged_views(const views::Options& options);

}  // namespace kvo::optimized
