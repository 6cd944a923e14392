// cuda/snapshot/device_slots.hpp: the slots of a cache in device memory, changed in place where
// nobody else looks at them, and copied before they are changed where somebody does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cuda/memory/staging.hpp"
#include "reference/contract/device/device.hpp"
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
  RowBlock(std::shared_ptr<Device> device, const snapshot::RowForm& form, std::int64_t capacity,
           std::shared_ptr<DeviceStorage> cells)
      : device_(std::move(device)), form_(form), capacity_(capacity), cells_(std::move(cells)) {}

  [[nodiscard]] const std::shared_ptr<Device>& device() const { return device_; }
  [[nodiscard]] const snapshot::RowForm& form() const { return form_; }
  [[nodiscard]] std::int64_t capacity() const { return capacity_; }
  [[nodiscard]] DevicePtr row(std::int64_t at) const { return cells_->ptr() + at * form_.bytes(); }

  /// Rows from here on are zeros, and only `writer` looks at them and may write them.
  std::int64_t used = 0;
  const void* writer = nullptr;  ///< the slots that were written last; may be gone

 private:
  std::shared_ptr<Device> device_;
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
  snapshot::RowForm form = {};  ///< that of the block

  /// Rows [from, to) of these, bounds as in MR-A2.
  [[nodiscard]] RowRange part(std::int64_t from, std::int64_t to) const;
  /// Shape and type of [B, H, count, D], and no elements.
  [[nodiscard]] snapshot::Array array() const;
};

/// The rows of a snapshot.
class KeptRows {
 public:
  explicit KeptRows(RowRange rows) : rows_(std::move(rows)) {}
  [[nodiscard]] const RowRange& rows() const { return rows_; }
  void drop() { rows_ = {}; }

 private:
  RowRange rows_;
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
    return RowRange{block_, begin_, size_, form()}.part(begin, end);
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

/// The store of a cache on a device; optimized/snapshot/row_caches.hpp says what its members do.
/// Rows are f32, f16 or bf16.
class DeviceSides {
 public:
  using Memory = std::shared_ptr<Device>;
  using RowRange = cuda::RowRange;
  using KeptRows = cuda::KeptRows;
  static constexpr bool kInPlace = false;

  DeviceSides(const StorageFormat& storage, const Memory& device, std::int64_t most)
      : k(device, most), v(device, most), storage_(storage), device_(device), staging_(device) {}

  /// Errors  kNotSupported: a format that jobs do not convert.
  [[nodiscard]] static Status stores(const StorageFormat& format);
  [[nodiscard]] static bool encodes() { return true; }
  /// Errors  as snapshot::as_stored; kNotSupported: elements that jobs do not convert.
  [[nodiscard]] Result<snapshot::Pair> encoded(const snapshot::Array& k_rows,
                                               const snapshot::Array& v_rows,
                                               QuirkSet<snapshot::Quirk> quirks) const;
  [[nodiscard]] bool exists() const { return k.exists(); }
  [[nodiscard]] snapshot::SidesChange change() const { return {k.change(), v.change()}; }

  /// Errors  kOutOfMemory: nothing has changed; the device's own: what was to be overwritten may be
  /// lost.
  [[nodiscard]] Result<snapshot::Pair> apply(const snapshot::SidesChange& change, std::int64_t end);
  /// Errors  as apply.
  [[nodiscard]] Status put_shared(const snapshot::SidesChange& change, std::int64_t from,
                                  const RowRange& k_rows, const RowRange& v_rows);
  /// Throws ErrorThrown when the device fails.
  [[nodiscard]] snapshot::Pair read(std::int64_t end) const {
    return look(k.range(0, end), v.range(0, end));
  }
  /// Throws ErrorThrown when the device fails.
  [[nodiscard]] static snapshot::Pair look(const RowRange& k_rows, const RowRange& v_rows);
  /// Errors  kOutOfMemory; the device's own.
  [[nodiscard]] Result<RowRange> joined(const RowRange& first, const RowRange& second,
                                        const snapshot::RowForm& form) const;
  /// Rows after these are no copies that cost anything.
  void forget_from(std::int64_t /*at*/) {}
  void clear() noexcept {
    k.clear();
    v.clear();
  }

  DeviceSlots k;
  DeviceSlots v;

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
  [[nodiscard]] DeviceSlots& side(std::size_t which) { return which == 0 ? k : v; }
  [[nodiscard]] Status prepare(Work& work);
  [[nodiscard]] Status queue(const Work& work);
  [[nodiscard]] Status put(std::size_t which, const Work& work);
  void become(Work& work) noexcept;

  StorageFormat storage_;
  std::shared_ptr<Device> device_;
  Staging staging_;
};

}  // namespace kvo::cuda
