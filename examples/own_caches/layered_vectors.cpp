// Two vectors a layer. Every refusal is `precondition`. Sizes and orders of calls that no engine
// has are accepted.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "examples/own_caches/own_caches.hpp"
#include "reference/layered/cache.hpp"

namespace kvo::layered {
namespace {

enum Fault {
  kNone,
  kLastElementWrongAtEight,
  kClearLeavesValues,
  kClearLeavesLength,
  kCopyIsShared,
  kSixteenthTokenLost,
  kLayersSwappedFromThree,
  kOldestLostAtTwelve,
  kCopiesKeysAlone,
  kAdvanceAfterCopyCountsTwice,
  kKeyRepeatsItsFirstHead,
};

struct Rows {
  std::vector<float> k;
  std::vector<float> v;
};

class Vectors final : public layered::Cache {
 public:
  Vectors(const layered::Geometry& geometry, int fault)
      : geometry_(geometry),
        fault_(fault),
        layers_(std::make_shared<std::vector<Rows>>(geometry.num_layers)) {}

  [[nodiscard]] layered::Geometry geometry() const override { return geometry_; }
  [[nodiscard]] Status append(const layered::Append& op) override {
    const std::size_t entry = geometry_.num_kv_heads * geometry_.head_dim;
    if (op.k.floats().size() != entry || op.v.floats().size() != entry)
      return fail(Code::kPrecondition, "size");
    if (op.layer >= layers_->size()) return fail(Code::kPrecondition, "layer");
    Rows& rows = (*layers_)[op.layer];
    const std::size_t held = entry == 0 ? 0 : rows.k.size() / entry;
    if (fault_ == kSixteenthTokenLost && held == 15) return {};
    rows.k.insert(rows.k.end(), op.k.floats().begin(), op.k.floats().end());
    rows.v.insert(rows.v.end(), op.v.floats().begin(), op.v.floats().end());
    if (entry == 0) return {};
    if (fault_ == kLastElementWrongAtEight && held == 7) rows.k.back() = 5;
    if (fault_ == kKeyRepeatsItsFirstHead && geometry_.num_kv_heads > 1)
      std::ranges::copy(op.k.floats().first(geometry_.head_dim),
                        rows.k.end() - static_cast<std::ptrdiff_t>(geometry_.head_dim));
    if (fault_ == kOldestLostAtTwelve && held == 11)
      rows.k.erase(rows.k.begin(), rows.k.begin() + static_cast<std::ptrdiff_t>(entry));
    return {};
  }
  [[nodiscard]] Status advance() override {
    ++len_;
    if (fault_ == kAdvanceAfterCopyCountsTwice && is_copy_) ++len_;
    return {};
  }
  [[nodiscard]] Result<std::span<const std::byte>> k(const layered::Keys& op) const override {
    if (op.layer >= layers_->size()) return fail(Code::kPrecondition, "layer");
    const bool swaps = fault_ == kLayersSwappedFromThree && layers_->size() > 2 && op.layer > 0;
    return std::as_bytes(std::span((*layers_)[swaps ? layers_->size() - op.layer : op.layer].k));
  }
  [[nodiscard]] Result<std::span<const std::byte>> v(const layered::Values& op) const override {
    if (op.layer >= layers_->size()) return fail(Code::kPrecondition, "layer");
    return std::as_bytes(std::span((*layers_)[op.layer].v));
  }
  [[nodiscard]] std::uint64_t len() const override { return len_; }
  [[nodiscard]] Result<std::uint64_t> entry_size() const override {
    return geometry_.num_kv_heads * geometry_.head_dim;
  }
  void clear() override {
    for (Rows& rows : *layers_) {
      rows.k.clear();
      if (fault_ != kClearLeavesValues) rows.v.clear();
    }
    if (fault_ != kClearLeavesLength) len_ = 0;
  }
  [[nodiscard]] std::unique_ptr<Cache> clone() const override {
    auto copy = std::make_unique<Vectors>(*this);
    copy->is_copy_ = true;
    if (fault_ == kCopyIsShared) return copy;
    copy->layers_ = std::make_shared<std::vector<Rows>>(*layers_);
    if (fault_ == kCopiesKeysAlone)
      for (Rows& rows : *copy->layers_) std::ranges::fill(rows.v, 0.0F);
    return copy;
  }

 private:
  layered::Geometry geometry_;
  int fault_;
  std::shared_ptr<std::vector<Rows>> layers_;
  std::uint64_t len_ = 0;
  bool is_copy_ = false;
};

Subject make_own(std::string variant, int fault) {
  Subject made = layered::make_subject(
      std::move(variant), "two vectors a layer",
      [fault](const layered::Geometry& geometry, std::optional<std::uint64_t> /*most*/,
              const layered::Behaviour& behaviour) -> Result<std::unique_ptr<layered::Cache>> {
        if (behaviour.storage.type != StorageType::kF32) return fail(Code::kNotSupported);
        return std::make_unique<Vectors>(geometry, fault);
      });
  made.survives_failed_allocation = false;
  made.refuses = [](const Setup& setup) {
    const auto storage = setup.config_as<layered::Config>().rows.storage;
    return storage.value_or(StorageType::kF32) != StorageType::kF32;
  };
  return made;
}

}  // namespace
}  // namespace kvo::layered

namespace own {

Cache layered_vectors() {
  return {{"last_element_wrong_at_eight", "clear_leaves_values", "clear_leaves_length",
           "copy_is_shared", "sixteenth_token_lost", "layers_swapped_from_three",
           "oldest_lost_at_twelve", "copies_keys_alone", "advance_after_copy_counts_twice",
           "key_repeats_its_first_head"},
          kvo::layered::make_own};
}

}  // namespace own
