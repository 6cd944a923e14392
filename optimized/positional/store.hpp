// optimized/positional/store.hpp: where a causal cache keeps its rows and its mask.
//
// Which cell is whose, what a token sees and which keys move is decided without them; here is what
// is done in memory. A call is that of an operation, so that a virtual one costs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "optimized/positional/cells.hpp"
#include "optimized/positional/rows.hpp"
#include "reference/positional/cache.hpp"

namespace kvo::optimized {

/// A sequence that a batch names.
struct BatchSequence {
  std::int64_t name = 0;
  SequenceCells* cells = nullptr;  ///< null: owns nothing
  std::int32_t low = positional::kMaxPosition;
  std::size_t tokens = 0;
  std::uint64_t version = 0;  ///< of its cells when the pass began
  std::optional<std::int64_t> last_row = std::nullopt;
};

/// What the last start_forward left (OK-5).
struct PositionalPass {
  std::vector<std::int32_t> positions;
  std::vector<std::uint32_t> sequence_of;  ///< index into sequences, for each token
  std::vector<BatchSequence> sequences;
  std::vector<std::int32_t> targets;  ///< the cell of each token; none of a reserve pass
  CellRange range;
  bool reserve = false;
  std::vector<std::int64_t> except;       ///< the list given last
  std::vector<std::int64_t> mask_except;  ///< the list that the mask was built with
};

/// Consecutive cells whose keys move together (OK-65).
struct KeyGroup {
  std::span<const HeldCell> moved;  ///< by cell: the first and the last bound the group
  std::int32_t offset = 0;          ///< of those
  bool all_converted = false;       ///< the others are stored anew, moved by 0
};

/// Memory of a causal cache. Errors are those of the memory: kOutOfMemory and what a device says;
/// then nothing has changed. std::bad_alloc may be thrown instead, but where noexcept forbids it.
class PositionalStore {
 public:
  /// What init decided.
  struct Plan {
    LayerRows::Plan rows = {};
    DType mask_dtype = DType::kF32;
    std::int32_t window = positional::kMaxPosition;
    std::int32_t chunk = 0;  ///< 0: none
  };

  PositionalStore() = default;
  PositionalStore(const PositionalStore&) = delete;
  PositionalStore& operator=(const PositionalStore&) = delete;
  virtual ~PositionalStore() = default;

  /// Whether it can store rows so. Errors  kNotSupported, with the type.
  [[nodiscard]] virtual Status check(const StorageFormat& /*storage*/) const { return {}; }
  /// Called once, before all others but check.
  virtual void open(const Plan& plan) noexcept = 0;

  // ---- Rows of the current layer, 0 at first ----
  virtual void set_layer(std::int64_t layer) noexcept = 0;
  /// Of its rows; null: it has no storage.
  [[nodiscard]] const LayerRows::Form* form() const { return form_; }
  /// Storage for a layer without: zeroes (OK-4, OK-43).
  [[nodiscard]] virtual Status make_rows(const LayerRows::Form& form) = 0;
  /// Stores row i of k and v in cell pass.targets[i] (OK-44). The layer has storage; the pass is
  /// the one whose mask was shown last.
  [[nodiscard]] virtual Status put(const PositionalPass& pass, const positional::Rows& k,
                                   const positional::Rows& v) = 0;
  /// The rows of a range, and the mask (OK-47). The layer has storage.
  [[nodiscard]] virtual Result<positional::Shown> show(const CellRange& range) = 0;

  // ---- Keys that move, in two steps ----
  /// Has the shift function move the keys of a group, layers in ascending order (OK-65). Nobody
  /// sees it before commit_keys. Errors  of the shift function; what came before it stays prepared.
  [[nodiscard]] virtual Status prepare_keys(const KeyGroup& group) = 0;
  /// Sees to all that commit_keys needs.
  [[nodiscard]] virtual Status reserve_keys() = 0;
  virtual void commit_keys() noexcept = 0;
  /// Drops what was prepared.
  virtual void cancel_keys() noexcept = 0;

  // ---- The mask ----
  /// Makes room for the mask of a pass; the one shown stays.
  [[nodiscard]] virtual Status reserve_mask(const PositionalPass& pass) = 0;
  /// Shows the mask that room was made for last (OK-30 to OK-41). `ahead` has one flag a token, or
  /// none at all.
  virtual void show_mask(PositionalPass& pass, std::span<const char> ahead) noexcept = 0;
  /// Cells have changed since the pass began, and the mask shown tells of it (OK-41).
  virtual void forget_mask() noexcept = 0;

 protected:
  const LayerRows::Form* form_ = nullptr;
};

}  // namespace kvo::optimized
