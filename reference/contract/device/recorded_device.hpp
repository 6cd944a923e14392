// reference/contract/device/recorded_device.hpp: a device whose calls are written down and made to
// fail.
//
// The harness wraps the device of a case in it: a cache sees a plain Device. Streams, events,
// graphs, fills, kernels that logs have no name for, and synchronize are passed on and not written
// down.
// Source   provider.md, section 16 (calls, inject).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "reference/contract/device/calls.hpp"
#include "reference/contract/device/device.hpp"

namespace kvo {

/// Failures to come: the n-th such call from now fails, 0 is none.
struct Faults {
  std::int64_t alloc = 0;
  std::int64_t free = 0;
  std::int64_t memcpy = 0;
  std::int64_t kernel = 0;
  std::int64_t next_allocs = 0;  ///< so many allocs from now all fail
};

/// Writes calls down, numbers buffers, and makes calls fail; everything else the device below does.
class RecordedDevice final : public ForwardingDevice {
 public:
  enum class Recording : std::uint8_t { kOn, kOff };
  /// With kOff calls are made to fail, but not written down.
  explicit RecordedDevice(std::shared_ptr<Device> device, Recording recording = Recording::kOn)
      : ForwardingDevice(std::move(device)), recording_(recording == Recording::kOn) {}

  /// Forgets the calls so far.
  void begin() { calls_.clear(); }
  [[nodiscard]] const std::vector<DeviceCall>& calls() const { return calls_; }
  void set_faults(const Faults& faults) { faults_ = faults; }
  [[nodiscard]] const Faults& faults() const { return faults_; }
  /// Without kernels they all fail with kNotSupported, and no call is recorded (ZF-47).
  void set_kernels(bool available) { kernels_ = available; }
  [[nodiscard]] bool kernels() const { return kernels_; }
  /// The device below: reading it is not recorded and does not fail.
  [[nodiscard]] Device& below() { return *below_; }

  [[nodiscard]] ShownPtr shown(DevicePtr ptr) const;
  /// The numbers of the live buffers, ascending.
  [[nodiscard]] std::vector<std::int64_t> live_buffers() const;

  /// Restores settings and buffer numbers, and frees what was allocated, unless committed.
  class Transaction {
   public:
    explicit Transaction(RecordedDevice& device)
        : device_(device),
          faults_(device.faults_),
          next_(device.next_),
          kernels_(device.kernels_) {}
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;
    void commit() { committed_ = true; }

   private:
    RecordedDevice& device_;
    Faults faults_;
    std::int64_t next_;
    bool kernels_;
    bool committed_ = false;
  };

  /// A tensor's cells on the device for the time of one call and of what it queued on the default
  /// stream; not recorded, and shown by name.
  class Source {
   public:
    /// Empty: no address.
    Source() = default;
    /// Throws ErrorThrown with an error of the device below.
    Source(RecordedDevice& device, ShownPtr::Where name, std::span<const std::byte> cells);
    ~Source() { release(); }
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;
    [[nodiscard]] DevicePtr ptr() const { return ptr_; }

   private:
    void release();

    RecordedDevice* device_ = nullptr;
    DevicePtr ptr_ = {};
  };

  [[nodiscard]] Result<DevicePtr> alloc(std::int64_t bytes) override;
  [[nodiscard]] Status free(DevicePtr ptr) override;
  [[nodiscard]] Status queue(const Work& work, Stream stream) override;

 private:
  struct Live {
    DevicePtr base;
    std::int64_t size = 0;  ///< bytes
    ShownPtr shown;
  };
  void note(DeviceCall call, const Status& done);
  void keep(const Live& live);

  /// How logs show the work; nothing for a kernel that they have no name for.
  [[nodiscard]] std::optional<DeviceCall> call_of(const Work& work) const;

  bool recording_;
  std::vector<Live> live_;
  std::vector<DeviceCall> calls_;
  Faults faults_;
  std::int64_t next_ = 0;  ///< the number of the next buffer
  bool kernels_ = true;
};

}  // namespace kvo
