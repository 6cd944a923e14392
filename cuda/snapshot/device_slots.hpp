// cuda/snapshot/device_slots.hpp: the slots of a cache in device memory, changed in place where
// nobody else looks at them, and copied before they are changed where somebody does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cuda/memory/staging.hpp"
#include "reference/contract/device/device.hpp"
#include "reference/contract/values/thrown.hpp"
#include "reference/snapshot/cache.hpp"
#include "reference/snapshot/slots_change.hpp"

namespace kvo::cuda {

// Rows in device memory that a cache and its snapshots share.
//
// The token axis of a block is the slowest one, [token][B][H][D], so that any range of tokens is
// one piece of memory: it is shared without being moved, and copied at once.

/// Room for rows. It is shared by those who look at rows of it; who holds it alone may change any
/// of them.
class RowBlock {
 public:
  /// `capacity` rows of zeros. Errors  kOutOfMemory; the device's own.
  [[nodiscard]] static Result<std::shared_ptr<RowBlock>> make(const std::shared_ptr<Device>& device,
                                                              const snapshot::RowForm& form,
                                                              std::int64_t capacity);
  RowBlock(const snapshot::RowForm& form, std::int64_t capacity,
           std::shared_ptr<DeviceStorage> cells)
      : form_(form), capacity_(capacity), cells_(std::move(cells)) {}

  [[nodiscard]] const snapshot::RowForm& form() const { return form_; }
  [[nodiscard]] std::int64_t capacity() const { return capacity_; }
  [[nodiscard]] DevicePtr row(std::int64_t at) const { return cells_->ptr() + at * form_.bytes(); }

  /// Rows from here on are zeros, and only `writer` looks at them and may write them.
  std::int64_t used = 0;
  const void* writer = nullptr;  ///< the slots that were written last; may be gone

 private:
  snapshot::RowForm form_;
  std::int64_t capacity_;
  std::shared_ptr<DeviceStorage> cells_;
};
using RowBlockPtr = std::shared_ptr<RowBlock>;

/// Some rows of a block.
struct RowRange {
  RowBlockPtr block;
  std::int64_t begin = 0;
  std::int64_t count = 0;

  /// Rows [from, to) of these, bounds as in MR-A2.
  [[nodiscard]] RowRange part(std::int64_t from, std::int64_t to) const;
  /// Shape and type of [B, H, count, D], and no elements.
  [[nodiscard]] snapshot::Array form() const;
};

/// Rows on their way back to the host.
class ReadBack {
 public:
  /// Throws std::bad_alloc.
  ReadBack(const snapshot::RowForm& form, std::int64_t count);
  /// Queues the copy of the rows, which begin there, on the default stream. The read-back must live
  /// until the host has waited for it. Errors  the device's own.
  [[nodiscard]] Status queue(Device& device, DevicePtr from) const;
  /// [B, H, count, D], when the host has waited.
  [[nodiscard]] snapshot::Array array() const;

 private:
  snapshot::RowForm form_;
  std::int64_t count_;
  std::shared_ptr<std::vector<std::byte>> bytes_;
};

/// Both sides as they are on the device. Errors  the device's own.
[[nodiscard]] Result<snapshot::Pair> read_rows(Device& device, const RowRange& k,
                                               const RowRange& v);

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

/// What a read-back brought. Throws what demand() throws where it failed.
[[nodiscard]] inline snapshot::Pair demanded(Result<snapshot::Pair> read) {
  if (!read) demand(read.error());
  return std::move(*read);
}

/// A snapshot of rows. `Issuer` sets the kinds apart (MR-5). It is taken in the same time whatever
/// it holds: the rows stay where they are, on the device, and are read back when they are looked
/// at.
template <class Issuer>
class RowsSnapshot final : public snapshot::Snapshot {
 public:
  /// Where in the sequence its rows stand, and what a ring needs.
  struct Place {
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::optional<std::int64_t> idx = std::nullopt;
    std::int64_t window = 0;
  };

  RowsSnapshot(const Place& place, std::shared_ptr<Device> device, RowRange k, RowRange v,
               QuirkSet<snapshot::Quirk> quirks)
      : place_(place),
        device_(std::move(device)),
        k_(std::move(k)),
        v_(std::move(v)),
        quirks_(quirks) {}

  /// Throws ErrorThrown when the device fails.
  [[nodiscard]] snapshot::Content content() const override {
    snapshot::Pair shown = demanded(read_rows(*device_, k_, v_));
    return {.from = place_.from,
            .to = place_.to,
            .idx = place_.idx,
            .first = std::move(shown.k),
            .second = std::move(shown.v)};
  }
  [[nodiscard]] bool closed() const override { return closed_; }
  [[nodiscard]] Status close() override {
    if (closed_) return snapshot::closed_error(quirks_);
    closed_ = true;
    k_ = v_ = {};
    return {};
  }
  /// Closed, but its content can still be looked at (MR-28, profile original).
  void close_and_keep() { closed_ = true; }
  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] const RowRange& k() const { return k_; }
  [[nodiscard]] const RowRange& v() const { return v_; }

 private:
  Place place_;
  std::shared_ptr<Device> device_;
  RowRange k_;
  RowRange v_;
  QuirkSet<snapshot::Quirk> quirks_;
  bool closed_ = false;
};

}  // namespace kvo::cuda
