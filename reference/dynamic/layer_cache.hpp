// reference/dynamic/layer_cache.hpp: the references: one list of layers, and a pair of lists.
//
// An operation changes a copy of the lists. The copy replaces them at the end; after an error only
// where a quirk says that the error leaves them changed (HF-1).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "reference/dynamic/layers.hpp"

namespace kvo::dynamic {

/// What both references do: an operation on all of their lists, one after the other.
class ListsCache : public Cache {
 public:
  Result<KeysValues> update(std::optional<Side> side, std::int64_t layer, const Tensor* k,
                            const Tensor* v) override;
  [[nodiscard]] Result<std::shared_ptr<const std::int64_t>> length(
      std::int64_t layer) const override;
  [[nodiscard]] Result<MaskSizes> get_mask_sizes(std::int64_t query_length,
                                                 std::int64_t layer) const override;
  [[nodiscard]] Result<std::int64_t> get_max_length(
      std::optional<std::int64_t> layer) const override {
    return lists_.front().max_length(layer);
  }
  [[nodiscard]] Result<LayerState> state(std::optional<Side> side,
                                         std::int64_t layer) const override;
  [[nodiscard]] std::int64_t num_layers() const override { return lists_.front().count(); }
  Status crop(std::int64_t tokens_to_remove) override;
  Status reorder_cache(std::span<const std::int64_t> beam_idx) override;
  Status batch_repeat_interleave(std::int64_t repeats) override;
  Status batch_select_indices(std::span<const std::int64_t> indices) override;
  void reset() override;
  void activate_past_recording() override;
  Status early_initialization(std::int64_t batch_size, std::int64_t num_heads,
                              std::int64_t head_dim) override;

 protected:
  ListsCache(std::vector<Layers> lists, QuirkSet<Quirk> quirks)
      : quirks_(quirks), lists_(std::move(lists)) {}

  /// Which list an operation is about.
  /// Errors  kNotSupported, kPrecondition: the cache has no such side.
  [[nodiscard]] virtual Result<std::size_t> list_of(std::optional<Side> side) const = 0;
  /// Whether crops and changes of the batch are offered (HF-65).
  [[nodiscard]] virtual Status takes_changes() const { return {}; }
  /// Carries out change(lists, writes). After an error the lists are as before, unless `leaves`.
  template <class Change>
  auto carry_out(Quirk leaves, Change change);
  /// The same, list by list: change(list).
  template <class Change>
  Status carry_out_on_each(Change change);

  QuirkSet<Quirk> quirks_;
  std::vector<Layers> lists_;  ///< the cache's own; or self and cross
};

/// HF-1 to HF-64.
class LayerCache final : public ListsCache {
 public:
  explicit LayerCache(const CacheOptions& options)
      : ListsCache({Layers(options.self, options.quirks)}, options.quirks) {}

  [[nodiscard]] Result<Properties> props() const override { return lists_.front().properties(); }
  Status layer_offload(std::int64_t layer) override { return moved(layer); }
  Status layer_prefetch(std::int64_t layer) override { return moved(layer); }
  Result<Rows> update_conv_state(std::int64_t layer, const Tensor& state,
                                 std::optional<std::int64_t> conv_kernel_size) override;
  [[nodiscard]] Result<Rows> get_conv_state(std::int64_t layer) const override;
  Result<Rows> update_recurrent_state(std::int64_t layer, const Tensor& state) override;
  [[nodiscard]] Result<Rows> get_recurrent_state(std::int64_t layer) const override;
  [[nodiscard]] Result<bool> has_previous_state(std::optional<std::int64_t> layer) const override {
    return lists_.front().has_previous(layer);
  }

 private:
  [[nodiscard]] Result<std::size_t> list_of(std::optional<Side> side) const override;
  [[nodiscard]] Status moved(std::int64_t layer) const;
};

/// HF-65: a cache of the decoder, and one of its attention to the encoder.
class PairCache final : public ListsCache {
 public:
  explicit PairCache(const CacheOptions& options);

  [[nodiscard]] Result<Properties> props() const override;
  Status crop(std::int64_t tokens_to_remove) override;
  void activate_past_recording() override;
  Status early_initialization(std::int64_t batch_size, std::int64_t num_heads,
                              std::int64_t head_dim) override;
  [[nodiscard]] Result<std::vector<Flag>> is_updated() const override {
    return std::vector<Flag>(cross_layers_);
  }

 private:
  [[nodiscard]] Result<std::size_t> list_of(std::optional<Side> side) const override;
  [[nodiscard]] Status takes_changes() const override;

  bool dynamic_;              ///< both caches are
  std::size_t cross_layers_;  ///< that there were when the pair was made
};

/// The references: a list of layers, or a pair of lists.
[[nodiscard]] std::unique_ptr<Cache> make_layer_cache(const CacheOptions& options);

}  // namespace kvo::dynamic
