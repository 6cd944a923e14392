// A cache of your own with every command of kvoracle: two vectors a layer, and a fault that shows
// only when a cleared cache is filled again. `example_own_cache check layered.vector@own` finds it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reference/layered/cache.hpp"
#include "tools/kvo_main.hpp"

namespace {

using kvo::Result;
using kvo::Status;

class OwnCache final : public kvo::layered::Cache {
 public:
  explicit OwnCache(const kvo::layered::Geometry& geometry)
      : geometry_(geometry), k_(geometry.num_layers), v_(geometry.num_layers) {}

  [[nodiscard]] kvo::layered::Geometry geometry() const override { return geometry_; }
  Status append(const kvo::layered::Append& op) override {
    if (op.layer >= k_.size()) return kvo::fail(kvo::Code::kPrecondition, "layer");
    std::ranges::copy(op.k.floats(), std::back_inserter(k_[op.layer]));
    std::ranges::copy(op.v.floats(), std::back_inserter(v_[op.layer]));
    return {};
  }
  Status advance() override {
    ++len_;
    return {};
  }
  [[nodiscard]] Result<std::span<const std::byte>> k(const kvo::layered::Keys& op) const override {
    return side(k_, op.layer);
  }
  [[nodiscard]] Result<std::span<const std::byte>> v(
      const kvo::layered::Values& op) const override {
    return side(v_, op.layer);
  }
  [[nodiscard]] std::uint64_t len() const override { return len_; }
  [[nodiscard]] Result<std::uint64_t> entry_size() const override {
    return geometry_.num_kv_heads * geometry_.head_dim;
  }
  void clear() override {
    for (auto& layer : k_) layer.clear();  // and not v_
    len_ = 0;
  }
  [[nodiscard]] std::unique_ptr<Cache> clone() const override {
    return std::make_unique<OwnCache>(*this);
  }

 private:
  using Layers = std::vector<std::vector<float>>;
  static Result<std::span<const std::byte>> side(const Layers& layers, std::uint64_t layer) {
    if (layer >= layers.size()) return kvo::fail(kvo::Code::kPrecondition, "layer");
    return std::as_bytes(std::span(layers[layer]));
  }

  kvo::layered::Geometry geometry_;
  Layers k_;
  Layers v_;
  std::uint64_t len_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  kvo::Subject own = kvo::layered::make_subject(
      "own", "two vectors a layer",
      [](const kvo::layered::Geometry& geometry, std::optional<std::uint64_t> /*max_seq_len*/,
         const kvo::layered::Behaviour& behaviour) -> Result<std::unique_ptr<kvo::layered::Cache>> {
        if (behaviour.storage.type != kvo::StorageType::kF32)
          return kvo::fail(kvo::Code::kNotSupported, "storage: f32 alone");
        return std::make_unique<OwnCache>(geometry);
      });
  // An append that fails between K and V leaves a row of K. Without this line the law
  // failed_allocation_changes_nothing reports it.
  own.survives_failed_allocation = false;
  // Random cases are then drawn with rows of f32 where this cache is checked alone.
  own.refuses = [](const kvo::Setup& setup) {
    const auto storage = setup.config_as<kvo::layered::Config>().rows.storage;
    return storage.value_or(kvo::StorageType::kF32) != kvo::StorageType::kF32;
  };
  return kvo::main(argc, argv, {own});
}
