// cuda/provider/contiguous_device_cache.hpp: `provider.contiguous` with its rows on a device.
#pragma once

#include <memory>
#include <vector>

#include "cuda/memory/staging.hpp"
#include "reference/provider/contiguous.hpp"

namespace kvo::cuda {

/// A buffer a layer and side in device memory. Rows of one lane are copied to their place; those of
/// several go through staging memory, and job append_rows puts all lanes in place at once. An
/// operation has taken effect when it returns.
class ContiguousDeviceCache final : public provider::Contiguous {
 public:
  /// Errors  as provider::MakeContiguous says; kNotSupported: rows that are not f32.
  static Result<std::unique_ptr<provider::Contiguous>> make(
      const std::shared_ptr<Device>& device, const provider::ContiguousOptions& options,
      QuirkSet<provider::Quirk> quirks);

  ContiguousDeviceCache(const std::shared_ptr<Device>& device,
                        const provider::ContiguousOptions& options,
                        QuirkSet<provider::Quirk> quirks)
      : device_(device),
        staging_(device),
        layers_(static_cast<std::size_t>(options.num_layers)),
        max_seq_len_(options.max_seq_len),
        quirks_(quirks) {}

  [[nodiscard]] std::int64_t num_layers() const override {
    return static_cast<std::int64_t>(layers_.size());
  }
  /// Errors beside those of the contract: kOutOfMemory; the device's own. Nothing has changed.
  [[nodiscard]] Status update(std::int64_t layer, const provider::Rows& rows) override;
  [[nodiscard]] Result<std::optional<provider::KvPair>> get(std::int64_t layer) override;
  [[nodiscard]] std::int64_t seq_len() const override;
  [[nodiscard]] Status reset() override;
  [[nodiscard]] Status truncate(std::int64_t n) override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 private:
  struct Layer {
    std::shared_ptr<DeviceStorage> k;  ///< [batch][max_seq_len][dim]; null until pinned
    std::shared_ptr<DeviceStorage> v;
    std::int64_t cursor = 0;
    std::int64_t batch = 0;
    std::int64_t dim = 0;
  };

  /// Makes the buffers of a layer, of `cells` each, and pins K's batch and dim.
  [[nodiscard]] Status pin(Layer& layer, const Tensor& k, std::int64_t cells) const;
  [[nodiscard]] Status check_v(const Layer& layer, const provider::Rows& rows) const;
  /// Copies rows behind the layer's cursor.
  [[nodiscard]] Status store(const Layer& layer, const provider::Rows& rows);
  /// The rows of every lane behind each other, in buffers of their own.
  [[nodiscard]] Result<provider::KvPair> compact(const Layer& layer) const;
  [[nodiscard]] Error size_error(const char* what) const {
    return fail(has(provider::Quirk::kOverflowAborts) ? Code::kPrecondition : Code::kOutOfRange,
                what);
  }
  [[nodiscard]] bool has(provider::Quirk quirk) const { return quirks_.has(quirk); }
  [[nodiscard]] bool has(std::int64_t layer) const { return layer >= 0 && layer < num_layers(); }

  std::shared_ptr<Device> device_;
  Staging staging_;
  std::vector<Layer> layers_;
  std::int64_t max_seq_len_;
  QuirkSet<provider::Quirk> quirks_;
};

}  // namespace kvo::cuda
