#include "properties/mutants/device_mutant.hpp"

namespace kvo {
namespace {

class Faulty final : public provider::FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;
  [[nodiscard]] Status append(std::int64_t layer, std::span<const float> k,
                              std::span<const float> v, std::int64_t pos) override {
    const bool refused = !has(layer) || pos != length_ || pos >= max_seq_len_ ||
                         std::ssize(k) != width_ || std::ssize(v) != width_ || closed_;
    if (refused) return DeviceCache::append(layer, k, v, pos);
    const Layer& to = layers_[static_cast<std::size_t>(layer)];
    const auto offset = pos * setup_.head_dim * static_cast<std::int64_t>(sizeof(float));
    if (const Status done = memory_->to_device(to.k + offset, std::as_bytes(k)); !done) return done;
    if (const Status done = memory_->to_device(to.v + offset, std::as_bytes(v)); !done) return done;
    advance(layer);
    return {};
  }
};

}  // namespace

Mutant device_heads_forgotten() {
  return provider::device_mutant<Faulty>("heads_forgotten", "rows are put at position * head_dim",
                                         "F09");
}

}  // namespace kvo
