// optimized/positional/rows.hpp: the K and V rows of one layer of a pool of cells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "optimized/positional/cells.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/strided_view.hpp"

namespace kvo::optimized {

/// Frees what calloc gave.
struct FreeBytes {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
using ZeroedBytes = std::unique_ptr<std::byte, FreeBytes>;

/// Zeroes whose pages cost nothing until they are written. Throws std::bad_alloc, also for more
/// than 4 GiB.
[[nodiscard]] ZeroedBytes make_zeroed(std::size_t bytes);

/// One row for each cell, zero until it is put (OK-4, OK-43). Rows of q8 and q4 are kept as codes
/// and scales, and shown from buffers into which they are decoded anew.
class LayerRows {
 public:
  /// What all rows of a layer agree in (OK-50).
  struct Form {
    std::int64_t heads = 0;
    std::int64_t k_dim = 0;
    std::int64_t v_dim = 0;
    friend bool operator==(const Form&, const Form&) = default;
  };
  /// How a cache stores rows; the cell axis of V is the fastest with `permuted_v` (OK-48).
  struct Plan {
    std::int64_t cells = 0;
    StorageFormat storage = {};
    bool permuted_v = false;
    /// What rows are shown in.
    [[nodiscard]] DType dtype() const { return dtype_of(storage.type); }
  };

  /// Throws std::bad_alloc.
  LayerRows(const Plan& plan, const Form& form);

  [[nodiscard]] const Form& form() const { return form_; }
  /// Stores row i of k and v in cell targets[i] (OK-44).
  void put(std::span<const std::int32_t> targets, std::span<const float> k,
           std::span<const float> v);
  /// Stores one row in every cell.
  void put_all(std::span<const float> k, std::span<const float> v);
  /// [cell][head][dim] of a range.
  [[nodiscard]] StridedView k(const CellRange& range);
  /// As k, or [head][dim][cell].
  [[nodiscard]] StridedView v(const CellRange& range);

  [[nodiscard]] std::size_t key_bytes() const { return key_bytes_; }
  [[nodiscard]] std::byte* key(std::int64_t cell) {
    return k_.get() + static_cast<std::size_t>(cell) * key_bytes_;
  }
  /// Keys of consecutive cells, widened.
  void load_keys(std::int64_t first, std::span<float> to) const;
  /// Keys as cells hold them, [cells, key_bytes] (OK-46).
  void encode_keys(std::span<const float> keys, std::byte* to) const;

 private:
  /// Whether V is kept with the cells of a column side by side. Codes are not: they share a scale.
  [[nodiscard]] bool has_columns() const;
  /// Codes of a range, decoded to [cell][head][dim].
  StridedView decoded(const CellRange& range, std::int64_t dim, const std::byte* from,
                      std::vector<float>& to) const;

  Plan plan_;
  Form form_;
  std::size_t key_bytes_ = 0;  ///< of one row
  ZeroedBytes k_;
  ZeroedBytes v_;
  std::vector<float> shown_k_ = {};  ///< what k and v show of codes
  std::vector<float> shown_v_ = {};
};

}  // namespace kvo::optimized
