// reference/provider/contract_device_memory.hpp: device memory as the caches see it.
//
// A cache that keeps rows on a device allocates, copies and launches kernels through DeviceMemory
// only and never dereferences an address. Errors leave the device as it was.
//
// Words    counter   an int32 in device memory that kernels read their position from.
// Order    calls take effect in the order in which they were made, as on one stream.
// Source   rules ZF-42 to ZF-52 (allocator), ZF-47 and ZF-67 (kernels).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "reference/contract/result.hpp"
#include "reference/contract/tensor.hpp"

namespace kvo::provider {

/// An address in device memory, in bytes; 0 is null.
struct DevicePtr {
  std::uint64_t address = 0;

  explicit operator bool() const { return address != 0; }
  friend bool operator==(const DevicePtr&, const DevicePtr&) = default;
  friend DevicePtr operator+(DevicePtr base, std::int64_t bytes) {
    return {base.address + static_cast<std::uint64_t>(bytes)};
  }
};
static_assert(sizeof(DevicePtr) == 8, "pointer arrays on a device hold 8 bytes each");

/// What kernel offset_memcpy gets: one row for a buffer of [max_seq_len][dim] cells.
struct OffsetCopy {
  DevicePtr dst = {};            ///< the buffer's first cell
  DevicePtr src = {};            ///< dim f32 cells
  DevicePtr counter = {};        ///< the position to write at
  std::int64_t dim = 0;          ///< cells of a row
  std::int64_t max_seq_len = 0;  ///< positions
  bool to_half = false;          ///< the buffer holds fp16 cells
};

/// An allocator of device memory and the kernels that caches need. Sizes are bytes unless said.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  /// Zeroed memory: what the recordings show of cells that nobody wrote (ZF-62).
  /// Errors  whatever the device says, for instance other:alloc_failed.
  [[nodiscard]] virtual Result<DevicePtr> alloc(std::int64_t bytes) = 0;
  /// Gives back what alloc returned.
  [[nodiscard]] virtual Status free(DevicePtr ptr) = 0;

  /// Copies to the device, from the device, and on the device.
  /// Errors  other:bad_pointer: the device side is not inside live memory; and the device's own.
  [[nodiscard]] virtual Status to_device(DevicePtr dst, std::span<const std::byte> src) = 0;
  [[nodiscard]] virtual Status to_host(std::span<std::byte> dst, DevicePtr src) = 0;
  [[nodiscard]] virtual Status copy(DevicePtr dst, DevicePtr src, std::int64_t bytes) = 0;

  // Kernels. Errors: kNotSupported "kernels" without a kernel library (nothing is written),
  // other:bad_pointer, and the device's own.

  /// Writes the row at position *counter; nothing when that is max_seq_len or more (ZF-47).
  /// Errors  other:bad_pointer: the counter is negative.
  [[nodiscard]] virtual Status offset_memcpy(const OffsetCopy& copy) = 0;
  /// *counter += delta.
  [[nodiscard]] virtual Status increment_counter(DevicePtr counter, std::int32_t delta) = 0;
  /// fp16 cells from f32 cells: nearest, ties to even (ZF-67); `count` in cells.
  [[nodiscard]] virtual Status to_half(DevicePtr dst, DevicePtr src, std::int64_t count) = 0;
  /// f32 cells from fp16 cells, exactly; `count` in cells.
  [[nodiscard]] virtual Status to_float(DevicePtr dst, DevicePtr src, std::int64_t count) = 0;
};

/// Makes the device of one case.
/// Errors  kNotSupported: there is none on this machine.
using MakeDeviceMemory = std::function<Result<std::shared_ptr<DeviceMemory>>()>;

/// Device memory that frees itself, and what lies behind views on f32 cells of it.
class DeviceStorage final : public Storage {
 public:
  /// Allocates count * cell_bytes bytes; counts are not negative.
  /// Errors  kPrecondition: the product overflows; and those of DeviceMemory::alloc.
  static Result<std::shared_ptr<DeviceStorage>> make(std::shared_ptr<DeviceMemory> memory,
                                                     std::int64_t count, std::int64_t cell_bytes);
  explicit DeviceStorage(std::shared_ptr<DeviceMemory> memory) : memory_(std::move(memory)) {}
  ~DeviceStorage() override { release(); }

  /// Gives the memory back; views on it dangle from now on. Errors of the free are dropped.
  void release();
  [[nodiscard]] DevicePtr ptr() const { return ptr_; }

  /// Broken invariants when the device fails: a view cannot answer an error.
  void read(std::int64_t offset, std::span<float> out) const override;
  void write(std::int64_t offset, float value) override;

 private:
  std::shared_ptr<DeviceMemory> memory_;
  DevicePtr ptr_;
};

}  // namespace kvo::provider
