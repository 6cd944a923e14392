// cuda/snapshot/device_slots.hpp: the slots of a cache in device memory, changed in place where
// nobody else looks at them, and copied before they are changed where somebody does.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "cuda/memory/staging.hpp"
#include "cuda/snapshot/row_block.hpp"

namespace kvo::cuda {

/// Whether elements are of a type that jobs convert: f32, f16, bf16. Errors  kNotSupported.
[[nodiscard]] Status holdable(const snapshot::Array& k, const snapshot::Array& v);

/// Whether rows can be stored so: as f32, f16, bf16. Errors  kNotSupported.
[[nodiscard]] Status device_stores(const StorageFormat& format);

/// The slots of one side, keys or values.
class DeviceSlots {
 public:
  /// Of which at most `most` are wanted for long.
  DeviceSlots(std::shared_ptr<Device> device, std::int64_t most)
      : device_(std::move(device)), most_(most) {}

  [[nodiscard]] bool exists() const { return block_ != nullptr; }
  /// Requires exists().
  [[nodiscard]] const snapshot::RowForm& form() const { return block_->form(); }
  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Slots [begin, end), bounds as in MR-A2, to look at for the time of one call. Requires
  /// exists().
  [[nodiscard]] RowRange range(std::int64_t begin, std::int64_t end) const {
    return RowRange{block_, begin_, size_}.part(begin, end);
  }
  /// The same for who keeps them: they will not change.
  [[nodiscard]] RowRange shared(std::int64_t begin, std::int64_t end);
  /// Whether slots from `at` on are these very rows.
  [[nodiscard]] bool holds(const RowRange& rows, std::int64_t at) const;

  [[nodiscard]] snapshot::SlotsChange change() const {
    return exists() ? snapshot::SlotsChange(form(), size_) : snapshot::SlotsChange();
  }
  /// The block that a change needs; null: it can be made in place.
  /// Errors  kOutOfMemory; the device's own.
  [[nodiscard]] Result<RowBlockPtr> room_for(const snapshot::SlotsChange& change) const;
  /// Queues on the default stream what a change makes of the slots, but for the rows that it puts.
  /// `room` is that for the change. Errors  the device's own.
  [[nodiscard]] Status move(const snapshot::SlotsChange& change, const RowBlockPtr& room);
  /// Where a slot will be.
  [[nodiscard]] DevicePtr slot(const snapshot::SlotsChange& change, const RowBlockPtr& room,
                               std::int64_t at) const;
  /// The change is made.
  void become(const snapshot::SlotsChange& change, RowBlockPtr room) noexcept;

  /// Takes the place of everything by some rows, shared.
  void replace(const RowRange& rows) noexcept;
  void clear() noexcept;

 private:
  [[nodiscard]] Status clear_tail(const snapshot::SlotsChange& change);
  [[nodiscard]] Status copy_part(const snapshot::SlotsChange::Part& part, RowBlock& room,
                                 std::int64_t at) const;

  std::shared_ptr<Device> device_;
  std::int64_t most_;
  RowBlockPtr block_ = nullptr;
  std::int64_t begin_ = 0;  ///< row of slot 0
  std::int64_t size_ = 0;
};

/// Both sides of a cache, which change together or not at all.
class DeviceSides {
 public:
  explicit DeviceSides(const std::shared_ptr<Device>& device,
                       std::int64_t most = std::numeric_limits<std::int64_t>::max())
      : device_(device), staging_(device), k_(device, most), v_(device, most) {}

  [[nodiscard]] const std::shared_ptr<Device>& device() const { return device_; }
  [[nodiscard]] DeviceSlots& k() { return k_; }
  [[nodiscard]] DeviceSlots& v() { return v_; }
  [[nodiscard]] bool exists() const { return k_.exists(); }
  [[nodiscard]] const snapshot::RowForm* k_form() const { return exists() ? &k_.form() : nullptr; }
  [[nodiscard]] const snapshot::RowForm* v_form() const { return exists() ? &v_.form() : nullptr; }
  [[nodiscard]] std::int64_t size() const { return k_.size(); }
  [[nodiscard]] snapshot::SidesChange change() const { return {k_.change(), v_.change()}; }

  /// Makes a change with rows of the host, and reads slots [0, end) of what came of it back, bounds
  /// as in MR-A2. Errors  kOutOfMemory: nothing has changed; the device's own: what was to be
  /// overwritten may be lost.
  [[nodiscard]] Result<snapshot::Pair> apply(const snapshot::SidesChange& change, std::int64_t end);
  /// Makes a change whose rows are these, on the device. Errors  as above.
  [[nodiscard]] Status apply(const snapshot::SidesChange& change, const RowRange& k,
                             const RowRange& v);
  /// Slots [0, end) as they are on the device. Errors  the device's own.
  [[nodiscard]] Result<snapshot::Pair> read(std::int64_t end) const;
  void clear() noexcept {
    k_.clear();
    v_.clear();
  }

 private:
  /// Rows that a side is given: bytes of the host in the order of [B, H, S, D], or of the device.
  struct Source {
    Tensor packed;  ///< of rows that do not lie so
    std::span<const std::byte> bytes;
    const RowRange* rows = nullptr;
  };
  /// What an apply works on.
  struct Work {
    std::array<const snapshot::SlotsChange*, 2> changes;
    std::array<RowBlockPtr, 2> rooms = {};
    std::array<Source, 2> sources = {};
  };
  [[nodiscard]] DeviceSlots& side(std::size_t which) { return which == 0 ? k_ : v_; }
  [[nodiscard]] Status prepare(Work& work);
  [[nodiscard]] Status queue(std::size_t which, const Work& work);
  [[nodiscard]] Status put(std::size_t which, const Work& work);
  void become(Work& work) noexcept;

  std::shared_ptr<Device> device_;
  Staging staging_;
  DeviceSlots k_;
  DeviceSlots v_;
};

}  // namespace kvo::cuda
