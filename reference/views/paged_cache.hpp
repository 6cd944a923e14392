// reference/views/paged_cache.hpp: the reference of `views.paged`.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "reference/views/cache.hpp"

namespace kvo::views {

/// Rows of block_size positions of one layer, as they are stored: [position][head].
struct Block {
  std::vector<std::byte> k;
  std::vector<std::byte> v;
};

/// The blocks of a pool. One that goes back keeps its memory for the next owner, and loses its
/// rows: who looks through an earlier view in spite of MK-24 sees the same in every run.
class Blocks : public std::enable_shared_from_this<Blocks> {
 public:
  explicit Blocks(Options options) : options_(std::move(options)) {}

  [[nodiscard]] std::int64_t free() const {
    return options_.blocks - (made_ - std::ssize(unused_));
  }
  /// A block that goes back with its last owner. Requires  free() > 0.
  [[nodiscard]] std::shared_ptr<Block> take();

 private:
  void make_one();
  void put_back(Block* block);

  Options options_;
  std::int64_t made_ = 0;                            ///< blocks that have memory
  std::vector<std::unique_ptr<Block>> unused_ = {};  ///< of these, those without an owner
};

/// The blocks of a layer in order of positions. A block goes back with the last table that names
/// it.
using Table = std::vector<std::shared_ptr<Block>>;

/// The shortest cache that keeps the contract: it copies row by row and lists views anew each time.
class PagedCache : public Cache {
 public:
  PagedCache(const Options& options, std::shared_ptr<Blocks> blocks)
      : options_(options),
        blocks_(std::move(blocks)),
        layers_(static_cast<std::size_t>(options.num_layers)) {}

  [[nodiscard]] Result<Appended> append(std::int64_t layer, const Tensor& k,
                                        const Tensor& v) override;
  [[nodiscard]] Status commit(std::int64_t n) override;
  [[nodiscard]] Result<std::optional<ContiguousRows>> contiguous_kv(std::int64_t layer,
                                                                    std::int64_t kv_len,
                                                                    std::int64_t kv_dim) override;
  [[nodiscard]] std::span<const View> views(std::int64_t layer) override;
  [[nodiscard]] std::span<const PackedView> views_packed(std::int64_t layer) override;
  [[nodiscard]] Placement layer_device(std::int64_t layer) const override {
    return options_.devices[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] bool is_on_gpu() const override;
  [[nodiscard]] std::int64_t max_seq_len() const override { return options_.max_seq_len; }
  [[nodiscard]] std::int64_t seq_len() const override { return seq_len_; }
  void truncate(std::int64_t tokens) override;
  void free() override;
  [[nodiscard]] Result<std::unique_ptr<Cache>> fork(std::int64_t tokens) override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 private:
  struct Layer {
    Table table = {};
    std::int64_t pending = 0;
  };

  [[nodiscard]] bool has(std::int64_t layer) const {
    return layer >= 0 && layer < options_.num_layers;
  }
  [[nodiscard]] std::shared_ptr<Block> copy_of(const Block& block) const;
  void write(const Table& table, std::int64_t position, const Tensor& k, const Tensor& v) const;
  /// The tokens [begin, end) of a layer, cut where blocks end.
  [[nodiscard]] std::vector<View> views_of(std::int64_t layer, const Table& table,
                                           std::int64_t begin, std::int64_t end) const;
  /// Gives back what a layer holds no tokens in.
  void give_back(Layer& layer) const;

  Options options_;
  std::shared_ptr<Blocks> blocks_;
  std::vector<Layer> layers_;
  std::int64_t seq_len_ = 0;
  bool closed_ = false;
  std::vector<View> shown_ = {};  ///< by the last call
  std::vector<PackedView> packed_ = {};
  std::vector<std::vector<float>> packed_cells_ = {};
};

/// The pool of such caches.
[[nodiscard]] std::unique_ptr<Pool> make_paged(const Options& options);

}  // namespace kvo::views
