// reference/dynamic/attention.hpp: keys and values of one layer that grow, with or without a
// window.
//
// Methods do what the followed system does, in its order. So an error may leave a layer changed;
// the caches work on copies of layers, and decide what becomes of them (layer_cache.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "reference/dynamic/cache.hpp"
#include "reference/dynamic/tensors.hpp"

namespace kvo::dynamic {

/// What an operation writes into memory that callers look at, once nothing can fail any more.
class Writes {
 public:
  void add(std::shared_ptr<Tensor> to, Tensor content) {
    tensors_.emplace_back(std::move(to), std::move(content));
  }
  void add(std::shared_ptr<std::int64_t> to, std::int64_t value) {
    numbers_.emplace_back(std::move(to), value);
  }
  void carry_out() noexcept {
    for (auto& [to, content] : tensors_) *to = std::move(content);
    for (auto& [to, value] : numbers_) *to = value;
  }

 private:
  std::vector<std::pair<std::shared_ptr<Tensor>, Tensor>> tensors_;
  std::vector<std::pair<std::shared_ptr<std::int64_t>, std::int64_t>> numbers_;
};

/// Changes the rows of a tensor: of one of keys and values, as of the other.
using RowChange = Result<Tensor> (*)(const Tensor& tensor, std::span<const std::int64_t> rows);

/// The attention part of a layer. What copies share, they change by Writes only.
class Attention {
 public:
  explicit Attention(QuirkSet<Quirk> quirks) : quirks_(quirks) {}
  virtual ~Attention() = default;
  [[nodiscard]] virtual std::unique_ptr<Attention> clone() const = 0;

  /// Errors  kBadShape, kFull.
  virtual Result<KeysValues> update(const Tensor& k, const Tensor& v, Writes& writes) = 0;
  [[nodiscard]] virtual std::int64_t length() const = 0;
  /// The length as callers get it.
  [[nodiscard]] virtual std::shared_ptr<const std::int64_t> shown_length() const {
    return std::make_shared<const std::int64_t>(length());
  }
  [[nodiscard]] virtual MaskSizes mask_sizes(std::int64_t query_length) const {
    return {length() + query_length, 0};
  }
  [[nodiscard]] virtual std::int64_t max_length() const { return -1; }
  /// Errors  kNotSupported, kOther.
  virtual Status crop(std::int64_t tokens_to_remove) = 0;
  /// Errors  kOutOfRange.
  virtual Status reorder(std::span<const std::int64_t> beams) = 0;
  /// Errors  kOutOfRange, kNotSupported.
  virtual Status repeat(std::int64_t repeats) = 0;
  /// Errors  kOutOfRange, kNotSupported.
  virtual Status select(std::span<const std::int64_t> indices) = 0;
  virtual void reset(Writes& writes) = 0;
  virtual void record_past() {}
  /// Errors  kPrecondition: too large.
  virtual Status initialize(std::int64_t batch, std::int64_t heads, std::int64_t dim) = 0;

  [[nodiscard]] virtual LayerState state() const = 0;
  [[nodiscard]] virtual bool is_static() const { return false; }
  [[nodiscard]] virtual bool is_sliding() const { return false; }
  [[nodiscard]] virtual bool is_croppable() const { return !is_static(); }
  /// The batch size that the layer recorded, and the one that it stores.
  [[nodiscard]] virtual std::optional<std::int64_t> recorded_batch() const { return std::nullopt; }
  [[nodiscard]] virtual std::optional<std::int64_t> stored_batch() const = 0;

 protected:
  Attention(const Attention&) = default;
  Attention& operator=(const Attention&) = default;
  Attention(Attention&&) = default;
  Attention& operator=(Attention&&) = default;

  [[nodiscard]] bool has(Quirk quirk) const { return quirks_.has(quirk); }
  [[nodiscard]] QuirkSet<Quirk> quirks() const { return quirks_; }

 private:
  QuirkSet<Quirk> quirks_;
};

/// HF-10 to HF-19: K and V grow by concatenation.
class DynamicAttention : public Attention {
 public:
  using Attention::Attention;
  [[nodiscard]] std::unique_ptr<Attention> clone() const override {
    return std::make_unique<DynamicAttention>(*this);
  }

  Result<KeysValues> update(const Tensor& k, const Tensor& v, Writes& writes) override;
  [[nodiscard]] std::int64_t length() const override;
  Status crop(std::int64_t tokens_to_remove) override;
  Status reorder(std::span<const std::int64_t> beams) override;
  Status repeat(std::int64_t repeats) override;
  Status select(std::span<const std::int64_t> indices) override;
  void reset(Writes& writes) override;
  Status initialize(std::int64_t batch, std::int64_t heads, std::int64_t dim) override;
  [[nodiscard]] LayerState state() const override { return {initialized(), k_, v_}; }
  [[nodiscard]] std::optional<std::int64_t> stored_batch() const override;

 protected:
  [[nodiscard]] bool initialized() const { return k_ != nullptr; }
  /// Whether K is a tensor of tokens, 0 of them included, and not the empty one.
  [[nodiscard]] static bool has_tokens(const Rows& rows) {
    return rows != nullptr && rows->shape.size() == 4;
  }
  [[nodiscard]] static std::int64_t tokens_of(const Rows& rows) {
    return size_of(*rows, kTokenAxis);
  }
  /// Whether a change of the batch concerns the layer (HF-14 to HF-17).
  [[nodiscard]] virtual bool takes_batch() const {
    return has(Quirk::kEmptySkipsBatch) ? length() > 0 : has_tokens(k_);
  }
  void make_empty();

  Rows k_;
  Rows v_;
};

/// HF-20 to HF-26: only the last W - 1 tokens stay, unless the past is recorded.
class SlidingAttention final : public DynamicAttention {
 public:
  SlidingAttention(QuirkSet<Quirk> quirks, std::int64_t window)
      : DynamicAttention(quirks), window_(window) {}
  [[nodiscard]] std::unique_ptr<Attention> clone() const override {
    return std::make_unique<SlidingAttention>(*this);
  }

  Result<KeysValues> update(const Tensor& k, const Tensor& v, Writes& writes) override;
  [[nodiscard]] std::int64_t length() const override { return count_; }
  [[nodiscard]] MaskSizes mask_sizes(std::int64_t query_length) const override;
  [[nodiscard]] std::int64_t max_length() const override { return window_; }
  Status crop(std::int64_t tokens_to_remove) override;
  void reset(Writes& writes) override;
  void record_past() override { recording_ = true; }
  [[nodiscard]] bool is_sliding() const override { return true; }
  [[nodiscard]] bool is_croppable() const override {
    return has(Quirk::kAlwaysCroppable) || recording_ || count_ < window_;
  }

 private:
  /// The last tokens: all of them where `tokens` is 0, by kWindowOneKeepsAll.
  [[nodiscard]] Tensor last(const Tensor& all, std::int64_t tokens) const;
  Status crop_window(std::int64_t tokens_to_remove);

  std::int64_t window_;
  std::int64_t count_ = 0;  ///< of all tokens ever, without those that were cropped
  bool recording_ = false;
};

// ---- What several layers do ----

[[nodiscard]] inline Rows shared(Tensor tensor) {
  return std::make_shared<const Tensor>(std::move(tensor));
}
/// Takes over what `made` is; its error otherwise.
inline Status assign(Rows& to, Result<Tensor> made) {
  if (!made) return std::move(made).error();
  to = shared(*std::move(made));
  return {};
}
/// HF-13, HF-23, HF-53: v4 took a positive number for the tokens that stay.
[[nodiscard]] inline Error positive_crop() {
  return fail(Code::kNotSupported, "tokens_to_remove: a positive number");
}
[[nodiscard]] inline Error too_many_indices() {
  return fail_other("too many indices for tensor of dimension 1");
}
/// K, then V.
inline Status change_rows(Rows& k, Rows& v, RowChange change, std::span<const std::int64_t> rows) {
  if (Status done = assign(k, change(*k, rows)); !done) return done;
  return assign(v, change(*v, rows));
}
inline Status repeat_both(Rows& k, Rows& v, std::int64_t repeats) {
  if (Status done = assign(k, repeat_rows(*k, repeats)); !done) return done;
  return assign(v, repeat_rows(*v, repeats));
}

}  // namespace kvo::dynamic
