// cuda/memory/staging.hpp: rows of the caller on their way into device memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "reference/contract/device/device.hpp"
#include "reference/contract/values/numeric.hpp"

namespace kvo::cuda {

/// What a cache whose contract knows no device answers: kOutOfMemory for memory that the device
/// has not, and any other error as it is.
[[nodiscard]] Error error_of_device(const Error& error);

/// kNotSupported: "storage: kQ8 on a device". `what` has the type: a storage or a dtype.
[[nodiscard]] Error not_on_device(StorageType type, std::string_view what = "storage");

/// Of a cache that stores rows in f32 alone.
/// Errors  kOutOfRange: as check() says of the format; kNotSupported: another type.
[[nodiscard]] Status store_f32_only(const StorageFormat& storage);

/// Bytes of an f32 or i32 cell.
inline constexpr std::int64_t kCellBytes = sizeof(float);

/// Zeroed device memory of `count` cells, f32 or i32 unless they have other sizes. Requires count
/// >= 0. Errors  kOutOfMemory; the device's own.
[[nodiscard]] Result<std::shared_ptr<DeviceStorage>> make_cells(
    const std::shared_ptr<Device>& device, std::int64_t count,
    std::int64_t cell_bytes = kCellBytes);

/// Cells in host memory: `lanes` runs of `run` cells, each `stride` cells behind the one before.
struct HostLanes {
  const float* first = nullptr;
  std::int64_t lanes = 0;
  std::int64_t run = 0;
  std::int64_t stride = 0;
};

/// Two rooms in device memory, for K and for V, and the stream that fills them: the rows of V are
/// under way while the default stream puts those of K in place. One operation of a cache at a time
/// uses it, from reserve() to the end of carry_out().
class Staging {
 public:
  explicit Staging(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Sees to rooms of `bytes` each, stream and events. Requires that nothing is queued.
  /// Errors  kOutOfMemory; the device's own. What is there already stays.
  [[nodiscard]] Status reserve(std::int64_t bytes);
  /// A multiple of 16, so that rows are moved in the widest unit. Requires side 0 or 1.
  [[nodiscard]] DevicePtr room(std::size_t side) const;

  /// Uploads that are queued from now on wait for what the default stream has been given, which may
  /// use the cells that they overwrite. Requires reserve(). Errors  the device's own.
  [[nodiscard]] Status after_work();
  /// Queues the copy of cells, lane behind lane, to `to`; what the default stream is given from now
  /// on waits for it. The host cells must live until carry_out() returns. Requires
  /// reserve().
  /// Errors  the device's own.
  [[nodiscard]] Status upload(std::size_t side, DevicePtr to, const HostLanes& from);
  /// The same of `bytes` in one piece.
  [[nodiscard]] Status upload(std::size_t side, DevicePtr to, std::span<const std::byte> from);

  /// Calls queue(), which answers a Status, and waits for all that it queued, whatever it answers
  /// or throws: the caller takes its rows back. Errors  those of queue(), else of the device.
  template <class Queue>
  [[nodiscard]] Status carry_out(const Queue& queue) {
    Wait end(*this);
    const Status queued = queue();
    const Status done = end.wait();
    return queued ? done : Status(error_of_device(queued.error()));
  }

 private:
  /// Waits in any case, once.
  class Wait {
   public:
    explicit Wait(Staging& staging) : staging_(&staging) {}
    ~Wait() {
      if (staging_ != nullptr) (void)staging_->synchronize();
    }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    [[nodiscard]] Status wait() { return std::exchange(staging_, nullptr)->synchronize(); }

   private:
    Staging* staging_;
  };
  [[nodiscard]] Status synchronize();
  [[nodiscard]] Status make_queue();
  [[nodiscard]] Status order(std::size_t side);

  std::shared_ptr<Device> device_;
  std::shared_ptr<DeviceStorage> rooms_;  ///< both; null until there is one
  std::int64_t room_bytes_ = 0;
  Stream uploads_;                ///< the default stream until there is one
  std::array<Event, 2> arrived_;  ///< [side]; 0 until there is one
  Event worked_;                  ///< of the default stream; 0 until there is one
};

}  // namespace kvo::cuda
