// cuda/views/paged_device_cache.hpp: `views.paged` with its rows on a device.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "cuda/memory/staging.hpp"
#include "cuda/views/device_block_store.hpp"
#include "reference/views/cache.hpp"

namespace kvo::cuda {

/// An append uploads its rows and the numbers of their blocks; jobs make halves of them where they
/// are kept as such, copy a block that a fork holds too, and put the rows in place. What changed is
/// then copied to the mirrors that views show. Packed views are made on the device. An operation
/// has taken effect when it returns.
class PagedDeviceViews final : public views::Cache {
 public:
  PagedDeviceViews(std::shared_ptr<const views::Options> options,
                   std::shared_ptr<DeviceBlockStore> store);
  PagedDeviceViews(const PagedDeviceViews&) = delete;
  PagedDeviceViews& operator=(const PagedDeviceViews&) = delete;
  ~PagedDeviceViews() override;

  /// Errors beside those of the contract: kOutOfMemory, nothing has changed; the device's own, then
  /// rows at the positions of the append may have.
  [[nodiscard]] Result<views::Appended> append(std::int64_t layer, const Tensor& k,
                                               const Tensor& v) override;
  [[nodiscard]] Status commit(std::int64_t n) override;
  [[nodiscard]] Result<std::optional<views::ContiguousRows>> contiguous_kv(
      std::int64_t layer, std::int64_t kv_len, std::int64_t kv_dim) override;
  [[nodiscard]] std::span<const views::View> views(std::int64_t layer) override;
  /// Throws as demand() does.
  [[nodiscard]] std::span<const views::PackedView> views_packed(std::int64_t layer) override;
  [[nodiscard]] views::Placement layer_device(std::int64_t layer) const override {
    return options_->devices[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] bool is_on_gpu() const override;
  [[nodiscard]] std::int64_t max_seq_len() const override { return options_->max_seq_len; }
  [[nodiscard]] std::int64_t seq_len() const override { return seq_len_; }
  void truncate(std::int64_t tokens) override;
  void free() override;
  [[nodiscard]] Result<std::unique_ptr<views::Cache>> fork(std::int64_t tokens) override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 private:
  using Number = DeviceBlockStore::Number;
  using Table = std::vector<Number>;
  struct Layer {
    Table table = {};  ///< blocks in order of positions
    std::int64_t pending = 0;
  };
  /// What an append does on the device. The numbers are uploaded: the block to copy, the one that
  /// becomes its copy, and then the blocks of the positions from `first_block` on.
  struct Plan {
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::int64_t first_block = 0;  ///< index in the table
    bool copies = false;           ///< the first block is a copy
    std::vector<Number> numbers = {};
  };

  /// Whether rows are kept in less than f32.
  [[nodiscard]] bool narrow() const { return options_->storage.type != StorageType::kF32; }
  [[nodiscard]] bool has(std::int64_t layer) const {
    return !closed_ && layer >= 0 && layer < options_->num_layers;
  }
  [[nodiscard]] Layer& at(std::int64_t layer) { return layers_[static_cast<std::size_t>(layer)]; }
  /// Room on the device for that many numbers of blocks.
  [[nodiscard]] Status make_numbers(std::size_t count);
  [[nodiscard]] Status store(const Plan& plan, const std::array<const Tensor*, 2>& rows);
  /// Queues one side's rows on their way to their blocks.
  [[nodiscard]] Status store_side(std::size_t side, const Plan& plan, const Tensor& rows);
  /// Queues the copy of a block's tokens [begin, end) to its mirror.
  [[nodiscard]] Status show(Number block, std::int64_t begin, std::int64_t end);
  [[nodiscard]] std::vector<views::View> views_of(std::int64_t layer, const Table& table,
                                                  std::int64_t begin, std::int64_t end) const;
  [[nodiscard]] Status pack(std::size_t side, const Table& table, std::span<const views::View> of);
  /// Gives back the blocks behind `tokens`.
  void give_back(Layer& layer, std::int64_t tokens);

  std::shared_ptr<const views::Options> options_;
  std::shared_ptr<DeviceBlockStore> store_;
  std::shared_ptr<kvo::Device> device_;
  Staging staging_;
  std::shared_ptr<DeviceStorage> numbers_;  ///< of blocks, for jobs; null until there are some
  std::size_t most_numbers_ = 0;
  std::int64_t row_bytes_;
  std::int64_t seq_len_ = 0;
  bool closed_ = false;
  std::vector<Layer> layers_;
  std::vector<views::View> shown_ = {};  ///< by the last call
  std::vector<views::PackedView> packed_ = {};
  std::array<std::vector<float>, 2> packed_cells_ = {};
};

/// The pool of such caches. Throws as demand() does.
[[nodiscard]] Result<std::unique_ptr<views::Pool>> make_paged_views(
    const std::shared_ptr<kvo::Device>& device, const views::Options& options);

}  // namespace kvo::cuda
