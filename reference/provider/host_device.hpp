// reference/provider/host_device.hpp: host memory behind the interface of a device.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "reference/provider/contract_device_memory.hpp"

namespace kvo::provider {

/// Zeroed buffers in host memory with addresses of their own, and the kernels as plain loops.
class HostDevice final : public DeviceMemory {
 public:
  /// A fresh device; for make_device_subject and its like.
  static Result<std::shared_ptr<DeviceMemory>> make() { return std::make_shared<HostDevice>(); }

  [[nodiscard]] Result<DevicePtr> alloc(std::int64_t bytes) override;
  [[nodiscard]] Status free(DevicePtr ptr) override;
  [[nodiscard]] Status to_device(DevicePtr dst, std::span<const std::byte> src) override;
  [[nodiscard]] Status to_host(std::span<std::byte> dst, DevicePtr src) override;
  [[nodiscard]] Status copy(DevicePtr dst, DevicePtr src, std::int64_t bytes) override;
  [[nodiscard]] Status offset_memcpy(const OffsetCopy& copy) override;
  [[nodiscard]] Status increment_counter(DevicePtr counter, std::int32_t delta) override;
  [[nodiscard]] Status to_half(DevicePtr dst, DevicePtr src, std::int64_t count) override;
  [[nodiscard]] Status to_float(DevicePtr dst, DevicePtr src, std::int64_t count) override;

  /// Buffers that were allocated and not given back.
  [[nodiscard]] std::size_t live() const { return buffers_.size(); }

 private:
  /// The bytes at `ptr`, or nothing unless all of them lie inside one buffer.
  [[nodiscard]] std::optional<std::byte*> at(DevicePtr ptr, std::int64_t bytes);

  std::map<std::uint64_t, std::vector<std::byte>> buffers_;  ///< by address
  std::uint64_t next_address_ = std::uint64_t{1} << 36U;
};

}  // namespace kvo::provider
