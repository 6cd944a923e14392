// reference/dynamic/static_attention.hpp: keys and values of one layer in buffers of fixed size.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "reference/dynamic/attention.hpp"

namespace kvo::dynamic {

/// HF-30 to HF-36: slots are written in turn, and update returns the buffers.
class StaticAttention : public Attention {
 public:
  StaticAttention(QuirkSet<Quirk> quirks, std::int64_t slots)
      : Attention(quirks), slots_(slots), shown_(std::make_shared<std::int64_t>(0)) {}
  [[nodiscard]] std::unique_ptr<Attention> clone() const override {
    return std::make_unique<StaticAttention>(*this);
  }

  Result<KeysValues> update(const Tensor& k, const Tensor& v, Writes& writes) override;
  [[nodiscard]] std::int64_t length() const override { return count_; }
  [[nodiscard]] std::shared_ptr<const std::int64_t> shown_length() const override;
  [[nodiscard]] MaskSizes mask_sizes(std::int64_t query_length) const override;
  [[nodiscard]] std::int64_t max_length() const override { return slots_; }
  Status crop(std::int64_t tokens_to_remove) override;
  Status reorder(std::span<const std::int64_t> beams) override;
  Status repeat(std::int64_t repeats) override;
  Status select(std::span<const std::int64_t> indices) override;
  void reset(Writes& writes) override;
  Status initialize(std::int64_t batch, std::int64_t heads, std::int64_t dim) override;
  [[nodiscard]] LayerState state() const override { return {initialized(), k_, v_}; }
  [[nodiscard]] bool is_static() const override { return true; }
  [[nodiscard]] std::optional<std::int64_t> recorded_batch() const override { return batch_; }
  [[nodiscard]] std::optional<std::int64_t> stored_batch() const override;

 protected:
  [[nodiscard]] bool initialized() const { return k_ != nullptr; }
  Status initialize_for(const Tensor& k, const Tensor& v);
  /// Writes tokens to the slots of one buffer, from `begin` on.
  /// Errors  kBadShape; kFull: beyond the last slot.
  [[nodiscard]] static Status write(const std::shared_ptr<Tensor>& buffer, const Tensor& tokens,
                                    std::int64_t begin, Writes& writes);

  std::int64_t slots_;
  std::int64_t count_ = 0;
  std::shared_ptr<Tensor> k_;  ///< [batch, head, slots_, dim]
  std::shared_ptr<Tensor> v_;

 private:
  std::shared_ptr<std::int64_t> shown_;  ///< count_, as callers hold it (HF-32)
  std::optional<std::int64_t> batch_;    ///< of the first update
};

/// HF-37 to HF-41: a full buffer moves to the left.
class StaticSlidingAttention final : public StaticAttention {
 public:
  StaticSlidingAttention(QuirkSet<Quirk> quirks, std::int64_t window, std::int64_t max_cache_len)
      : StaticAttention(quirks, std::min(window, max_cache_len)), short_(max_cache_len < window) {}
  [[nodiscard]] std::unique_ptr<Attention> clone() const override {
    return std::make_unique<StaticSlidingAttention>(*this);
  }

  Result<KeysValues> update(const Tensor& k, const Tensor& v, Writes& writes) override;
  [[nodiscard]] std::shared_ptr<const std::int64_t> shown_length() const override {
    return Attention::shown_length();
  }
  [[nodiscard]] MaskSizes mask_sizes(std::int64_t query_length) const override;
  void reset(Writes& writes) override;
  [[nodiscard]] bool is_sliding() const override { return true; }

 private:
  /// The tokens in the shape of a buffer, where they have it or by kRowsBroadcast.
  [[nodiscard]] Result<Tensor> fit(const Tensor& tokens, const Shape& shape) const;
  /// Both buffers, with one token more at the end and without the first (HF-37a).
  Result<KeysValues> roll(const Tensor& k, const Tensor& v, Writes& writes);
  /// What a buffer holds and what comes, all of it (HF-37b, HF-37d).
  [[nodiscard]] Result<Tensor> joined(const Tensor& buffer, std::int64_t before,
                                      const Tensor& tokens) const;

  bool short_;                 ///< the window does not fit into the buffers
  std::int64_t position_ = 0;  ///< slot of the next token while the buffers fill
};

}  // namespace kvo::dynamic
