// cuda/provider/tensor_device_cache.hpp: `provider.tensor` on a device with streams.
#pragma once

#include <memory>
#include <span>

#include "cuda/decode/decode_graph.hpp"
#include "cuda/memory/staging.hpp"
#include "optimized/provider/tensor_control.hpp"

namespace kvo::cuda {

/// A buffer a layer and side, on the device or in host memory. The contract counts launches
/// (TensorBacked), so rows of a batch are not gathered in one; a DecodeGraph does that. Rows of the
/// host are uploaded on a stream of their own, K and V at once, and waited for.
class TensorDeviceCache : public optimized::TensorControl, public DecodeCache {
 public:
  /// Errors  as provider::MakeTensor says.
  static Result<std::unique_ptr<provider::TensorBacked>> make(
      const provider::TensorOptions& options, QuirkSet<provider::Quirk> quirks);
  /// The same of a class of that base.
  template <class Cache>
  static Result<std::unique_ptr<Cache>> make_as(const provider::TensorOptions& options,
                                                QuirkSet<provider::Quirk> quirks) {
    if (Status good = check(options, quirks); !good) return good.error();
    return std::make_unique<Cache>(options, quirks);
  }

  TensorDeviceCache(const provider::TensorOptions& options, QuirkSet<provider::Quirk> quirks)
      : TensorControl(options, quirks), staging_(device_) {}

  /// A graph that was captured over the cache returns kClosed from now on.
  void free() override;

  [[nodiscard]] const std::shared_ptr<Device>& device() const override { return device_; }
  [[nodiscard]] Result<DecodeStep> decode_step(std::span<const LayerRows> rows) override;
  [[nodiscard]] Status before_replay() override;

 protected:
  [[nodiscard]] virtual Status store(const Layer& layer, const Step& step, std::size_t side);

  std::shared_ptr<const char> life_;  ///< of the buffers, for graphs; null until one is captured

 private:
  [[nodiscard]] Status prepare() override { return staging_.reserve(0); }
  [[nodiscard]] Status promote(const Layer& from, const Layer& to, const Lanes& held) override;
  [[nodiscard]] Status store_both(const Layer& layer, const Step& step) override;
  [[nodiscard]] Status store_row(const Layer& layer, DevicePtr source, std::size_t side,
                                 const Lanes::Piece& lane) override;

  Staging staging_;
};

}  // namespace kvo::cuda
