// reference/contract/values/tensor.hpp: dense row-major tensors, and views whose lifetime can be
// observed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/container/small_vector.hpp>

#include "reference/contract/values/tensor_bytes.hpp"

namespace kvo {

enum class DType : std::uint8_t { kF32, kF16, kBF16, kI32, kF8E4M3, kF8E5M2, kU32, kBool };

/// Bytes of one element: 4, 2, 2, 4, 1, 1, 4, 1.
[[nodiscard]] std::size_t dtype_bytes(DType dtype);
/// Whether elements are numbers without a fraction: i32, u32, and bool, which is 0 or 1.
[[nodiscard]] bool is_whole(DType dtype);
/// "f32", "f16", "bf16", "i32", "f8_e4m3", "f8_e5m2", "u32", "bool": as written in logs.
[[nodiscard]] std::string_view dtype_name(DType dtype);
[[nodiscard]] std::optional<DType> dtype_of_name(std::string_view name);

/// Sizes of the axes, outermost first.
using Shape = boost::container::small_vector<std::int64_t, 4>;

/// Product of the sizes; nothing if a size is negative or the product leaves 63 bits.
[[nodiscard]] std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape);

/// A dense tensor, row-major: the last axis varies fastest. A copy owns its bytes.
struct Tensor {  // NOLINT(bugprone-exception-escape): small_vector moves without throwing
  Shape shape = {0};
  DType dtype = DType::kF32;
  TensorBytes bytes = {};  ///< [elements * dtype_bytes(dtype)]

  [[nodiscard]] std::int64_t elements() const {
    return static_cast<std::int64_t>(bytes.size() / dtype_bytes(dtype));
  }
  /// The elements of an f32 tensor, flat.
  [[nodiscard]] std::span<const float> floats() const;
  [[nodiscard]] std::span<float> floats();
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

/// A zeroed tensor. The shape must have an element count.
[[nodiscard]] Tensor make_tensor(Shape shape, DType dtype = DType::kF32);
/// An f32 tensor with a copy of `values`.
[[nodiscard]] Tensor tensor_of(Shape shape, std::span<const float> values);

/// Memory behind a view, on the host or a device. Views keep it alive; a cache that gives memory
/// back marks it released, so that a view on it reads as dangling instead of touching dead cells.
class Storage {
 public:
  Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  virtual ~Storage() = default;

  /// Copies out.size() f32 cells from `offset` on.
  virtual void read(std::int64_t offset, std::span<float> out) const = 0;
  /// Overwrites one cell: what a caller does who writes through a view.
  virtual void write(std::int64_t offset, float value) = 0;

  bool released = false;
};

/// Zeroed cells in host memory.
class HostStorage final : public Storage {
 public:
  explicit HostStorage(std::size_t count) : cells(count) {}
  explicit HostStorage(std::vector<float> values) : cells(std::move(values)) {}
  void read(std::int64_t offset, std::span<float> out) const override;
  void write(std::int64_t offset, float value) override;

  std::vector<float> cells;
};

/// What a cache's query returns: a shape over f32 cells that it may still own.
struct TensorView {
  Shape shape = {0};
  std::shared_ptr<Storage> storage = nullptr;
  std::int64_t offset = 0;  ///< first cell, in elements

  [[nodiscard]] bool dangling() const { return !storage || storage->released; }
};

/// A copy of what a view shows now; it must not dangle.
[[nodiscard]] Tensor materialize(const TensorView& view);

}  // namespace kvo
