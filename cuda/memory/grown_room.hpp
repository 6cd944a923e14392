// cuda/memory/grown_room.hpp: device memory that is used again and again, for more and more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "cuda/memory/staging.hpp"

namespace kvo::cuda {

/// What is in it stays until what room was made for begins.
class GrownRoom {
 public:
  /// Makes room for `bytes`. Requires bytes >= 0.
  /// Errors  kOutOfMemory; the device's own. Nothing has changed.
  [[nodiscard]] Status reserve(const std::shared_ptr<Device>& device, std::int64_t bytes) {
    if (bytes <= std::max(bytes_, larger_bytes_)) return {};
    const std::int64_t cells = (std::max(bytes, bytes_ + bytes_ / 2) - 1) / kCellBytes + 1;
    auto made = make_cells(device, cells);
    if (!made) return made.error();
    larger_ = std::move(*made);
    larger_bytes_ = cells * kCellBytes;
    return {};
  }
  /// Nothing queued may use what was in it.
  void begin() noexcept {
    if (!larger_) return;
    room_ = std::exchange(larger_, nullptr);
    bytes_ = std::exchange(larger_bytes_, 0);
  }
  /// Requires room for a byte or more.
  [[nodiscard]] DevicePtr ptr() const { return room_->ptr(); }

 private:
  std::shared_ptr<DeviceStorage> room_;
  std::int64_t bytes_ = 0;
  std::shared_ptr<DeviceStorage> larger_;  ///< takes its place
  std::int64_t larger_bytes_ = 0;
};

}  // namespace kvo::cuda
