// reference/views/paged_cache.hpp: the reference of `views.paged`.
#pragma once

#include <memory>
#include <vector>

#include "reference/views/cache.hpp"

namespace kvo::views {

/// One block less in the pool, for as long as it lives.
class Taken {
 public:
  explicit Taken(std::shared_ptr<std::int64_t> free) : free_(std::move(free)) { --*free_; }
  Taken(const Taken& other) : Taken(other.free_) {}
  Taken& operator=(const Taken&) = delete;
  ~Taken() { ++*free_; }

 private:
  std::shared_ptr<std::int64_t> free_;
};

/// Rows of block_size positions of one layer, and what counts them. A copy counts as another one.
struct Block {  // NOLINT(bugprone-exception-escape): as Tensor
  Tensor k;
  Tensor v;
  Taken taken;
};

/// The blocks of a layer in order of positions. A block goes back with the last table that names
/// it.
using Table = std::vector<std::shared_ptr<Block>>;

/// The shortest cache that keeps the contract: it copies row by row and lists views anew each time.
class PagedCache : public Cache {
 public:
  PagedCache(const Options& options, std::shared_ptr<std::int64_t> free)
      : options_(options),
        free_(std::move(free)),
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
  [[nodiscard]] std::shared_ptr<Block> new_block() const;
  void write(const Table& table, std::int64_t position, const Tensor& k, const Tensor& v) const;
  /// The tokens [begin, end) of a layer, cut where blocks end.
  [[nodiscard]] std::vector<View> views_of(std::int64_t layer, const Table& table,
                                           std::int64_t begin, std::int64_t end) const;
  /// Gives back what a layer holds no tokens in.
  void give_back(Layer& layer) const;

  Options options_;
  std::shared_ptr<std::int64_t> free_;  ///< blocks of the pool
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
