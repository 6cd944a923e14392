// reference/snapshot/slots_change.hpp: what the rules make of the slots of a cache, as numbers.
//
// For caches that keep slots in place of values: which slots stay, how many zeros come behind them,
// where rows are put. Whose the memory is, and how it is changed, is theirs. The reference caches
// do not use it: a shared helper would be a shared bug.
//
// Words    side   keys or values: an array [B, H, n, D] of n slots.
// Source   rules MR-A2 to MR-A6, MR-10, MR-21, MR-22.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "reference/contract/values/result.hpp"
#include "reference/snapshot/arrays.hpp"
#include "reference/snapshot/quirks.hpp"

namespace kvo::snapshot {

/// What all rows of a side agree in. A row is what one token has: [B, H, D] elements.
struct RowForm {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t dim = 0;  ///< of codes, bytes
  DType type = DType::kF32;
  std::optional<Codes> codes = std::nullopt;

  /// Of an array of four axes.
  [[nodiscard]] static RowForm of(const Array& rows);
  [[nodiscard]] std::int64_t elements() const { return batch * heads * dim; }
  [[nodiscard]] std::int64_t bytes() const {
    return elements() * static_cast<std::int64_t>(dtype_bytes(type));
  }
  /// But for the type.
  [[nodiscard]] bool same_shape(const RowForm& other) const {
    return batch == other.batch && heads == other.heads && dim == other.dim && codes == other.codes;
  }
  friend bool operator==(const RowForm&, const RowForm&) = default;
};

/// Whether rows may be added to those of a cache (MR-A6); the forms are null while there are none.
/// Errors  kBadShape; with kMisfitIsSilent kPrecondition: no arrays of four axes.
[[nodiscard]] Status rows_fit(const Pair& rows, const RowForm* k, const RowForm* v,
                              QuirkSet<Quirk> quirks);

/// What is to become of the slots of a side. It starts as they are; the calls follow one another as
/// the rules say it of arrays (MR-A2 to MR-A5). Bounds are clamped. Of arrays that are given only
/// shape and type are looked at.
class SlotsChange {
 public:
  /// Some of the slots that were.
  struct Part {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    [[nodiscard]] std::int64_t size() const { return end - begin; }
  };

  /// No slots, of no form.
  SlotsChange() = default;
  SlotsChange(const RowForm& form, std::int64_t size)
      : form_(form), size_(size), parts_{Part{0, size}, Part{}} {}

  [[nodiscard]] bool exists() const { return form_.has_value(); }
  [[nodiscard]] std::int64_t size() const { return size_; }

  /// No slots, but the shape and type of `like` (MR-10, MR-22).
  void start(const Array& like);
  /// Adds `count` zero slots, in the wider type. Returns  false: fewer than none, or rows of
  /// another shape, and nothing is added.
  bool extend(const Array& like, std::int64_t count);
  /// Slots [begin, end) stay.
  void keep(std::int64_t begin, std::int64_t end);
  /// Slots from `at` on go in front of those before it.
  void rotate(std::int64_t at);
  /// Puts rows into slots [begin, end): the last thing that is done. `rows` is borrowed until the
  /// change is applied. Returns  false: they do not fit, and nothing is put (MR-A3).
  bool put(std::int64_t begin, std::int64_t end, const Array& rows);
  /// Slots up to `end` will be shown.
  void show(std::int64_t end);
  /// What slots from `at` on hold is not needed any more.
  void forget_from(std::int64_t at) { needed_ = std::max(at, std::int64_t{0}); }

  // What came of it.
  [[nodiscard]] const RowForm& form() const { return *form_; }
  /// The slots that stay, one part behind the other; zeros behind them.
  [[nodiscard]] const std::array<Part, 2>& parts() const { return parts_; }
  [[nodiscard]] std::int64_t kept() const { return parts_[0].size() + parts_[1].size(); }
  [[nodiscard]] bool puts() const { return rows_ != nullptr && put_end_ > put_begin_; }
  [[nodiscard]] std::int64_t put_begin() const { return put_begin_; }
  [[nodiscard]] std::int64_t put_end() const { return put_end_; }
  /// What is put; null: nothing.
  [[nodiscard]] const Array* rows() const { return rows_; }
  [[nodiscard]] std::int64_t shown() const { return shown_; }
  [[nodiscard]] std::int64_t needed() const { return needed_; }

 private:
  std::optional<RowForm> form_;
  std::int64_t size_ = 0;
  std::array<Part, 2> parts_ = {};
  std::int64_t put_begin_ = 0;
  std::int64_t put_end_ = 0;
  const Array* rows_ = nullptr;
  std::int64_t shown_ = 0;
  std::int64_t needed_ = std::numeric_limits<std::int64_t>::max();  ///< of the slots that were
};

/// Both sides.
struct SidesChange {
  SlotsChange k;
  SlotsChange v;
};

/// Rows behind token `offset` of a cache of all tokens (MR-10). Rows that do not fit are lost.
void append_rows(SidesChange& sides, std::int64_t offset, const Array& k, const Array& v);

/// Where a ring stands.
struct RingPlace {
  std::int64_t window = 0;
  std::int64_t offset = 0;
  std::int64_t idx = 0;   ///< slot that is written next
  std::int64_t seen = 0;  ///< slots that attention sees; what an update sets
};

/// A chunk of rows into a ring (MR-21), and at most one row (MR-22). Rows that do not fit are lost.
void write_chunk(SidesChange& sides, RingPlace& place, const Array& k, const Array& v,
                 QuirkSet<Quirk> quirks);
void write_single(SidesChange& sides, RingPlace& place, const Array& k, const Array& v,
                  QuirkSet<Quirk> quirks);

}  // namespace kvo::snapshot
