// cuda/snapshot/row_block.hpp: rows in device memory that a cache and its snapshots share.
//
// The token axis of a block is the slowest one, [token][B][H][D], so that any range of tokens is
// one piece of memory: it is shared without being moved, and copied at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "reference/contract/device/device.hpp"
#include "reference/snapshot/slots_change.hpp"

namespace kvo::cuda {

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

}  // namespace kvo::cuda
