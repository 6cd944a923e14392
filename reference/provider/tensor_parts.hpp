// reference/provider/tensor_parts.hpp: layers of tensor caches, and which updates they take.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "reference/provider/tensor.hpp"

namespace kvo::provider {

/// What caches of `provider.tensor` have in common. They derive from it.
class TensorParts {
 protected:
  static constexpr std::int64_t kFloat = 4;  ///< bytes of a cell
  static constexpr std::int64_t kHalf = 2;
  static constexpr std::array<std::size_t, 2> kSides{0, 1};  ///< K, V

  using Buffers = std::array<std::shared_ptr<DeviceStorage>, 2>;  ///< both or none
  struct Layer {
    bool pinned = false;
    bool gpu = false;   ///< the buffers are on the device
    bool half = false;  ///< and hold fp16
    std::int64_t batch = 0;
    std::int64_t dim = 0;
    std::int64_t length = 0;  ///< positions
    std::int64_t cells = 0;   ///< of each buffer
    Buffers buffers = {};
    [[nodiscard]] DevicePtr at(std::size_t side, std::int64_t cell) const {
      return buffers[side]->ptr() + cell * (half ? kHalf : kFloat);
    }
  };
  /// The cells of K or V, on the device or, where that is null, on the host.
  struct Source {
    DevicePtr device = {};
    std::span<const float> host = {};
    std::int64_t cells = 0;
  };

  /// Two buffers; none when there is no memory for both. `old` are released before: the host may
  /// lack memory, which must change nothing, only until then.
  [[nodiscard]] static Buffers allocate(const std::shared_ptr<Device>& memory, std::int64_t cells,
                                        std::int64_t cell_bytes, Buffers* old = nullptr) {
    Buffers made;
    for (auto& buffer : made) buffer = std::make_shared<DeviceStorage>(memory);
    if (old != nullptr) release(*old);
    for (const auto& buffer : made)
      if (!buffer->allocate(cells, cell_bytes)) return {};
    return made;
  }
  static void release(Buffers& buffers) {
    for (const auto& buffer : buffers)
      if (buffer) buffer->release();
    buffers = {};
  }
  /// Nothing when it leaves 63 bits.
  [[nodiscard]] static std::optional<std::int64_t> product(
      std::initializer_list<std::int64_t> factors) {
    std::int64_t result = 1;
    for (const std::int64_t factor : factors)
      if (__builtin_mul_overflow(result, factor, &result)) return std::nullopt;
    return result;
  }
  [[nodiscard]] static Error outside() {
    return fail(Code::kPrecondition, "cells outside of a buffer");
  }
  /// Errors  as MakeTensor says.
  [[nodiscard]] static Status check(const TensorOptions& options, QuirkSet<Quirk> quirks) {
    const bool unchecked = quirks.has(Quirk::kTensorSizesUnchecked);
    if (options.num_layers < 0)
      return fail(unchecked ? Code::kPrecondition : Code::kOutOfRange, "num_layers");
    if (options.max_seq_len < 0 && !unchecked) return fail(Code::kOutOfRange, "max_seq_len");
    return {};
  }
  /// Whether a layer takes these rows: the order of checks of ZF-54, then ZF-59 in a cache that
  /// stores fp16 on the device (`half`).
  [[nodiscard]] static Status check(const Rows& rows, const Layer& to, std::int64_t max_seq_len,
                                    bool half, QuirkSet<Quirk> quirks) {
    if (Status good = check_k(rows, quirks); !good) return good;
    const Shape& shape = rows.k->shape;
    if (to.pinned && !quirks.has(Quirk::kLaterShapesUnchecked)) {
      if (shape[0] != to.batch) return fail(Code::kBadShape, "batch");
      if (shape[2] != to.dim) return fail(Code::kBadShape, "dim");
    }
    std::int64_t end = 0;
    if (__builtin_add_overflow(to.length, shape[1], &end) || end > max_seq_len)
      return fail(Code::kFull);
    if (Status good = check_v(rows, quirks, Quirk::kTensorVIgnored); !good) return good;
    if (!half || quirks.has(Quirk::kCpuSourceFailsLate)) return {};
    const bool promotes = to.pinned && !to.gpu && rows.k_device;
    const bool stores_half =
        to.gpu ? to.half : rows.k_device && !(promotes && quirks.has(Quirk::kPromotionToFp32));
    const bool from_device = rows.k_device && rows.v_device;
    return stores_half && !from_device ? fail(Code::kNotSupported, "cpu_source") : Status();
  }
  [[nodiscard]] static std::array<Source, 2> sources_of(const Rows& rows) {
    const auto source = [](const Tensor& tensor, DevicePtr device) -> Source {
      return {device, device ? std::span<const float>() : tensor.floats(), tensor.elements()};
    };
    return {source(*rows.k, rows.k_device), source(*rows.v, rows.v_device)};
  }
};

}  // namespace kvo::provider
