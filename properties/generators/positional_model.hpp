// properties/generators/positional_model.hpp: what a random script knows of a causal member's
// cells.
//
// A guess good enough to draw sensible operations and to name states: it follows the calls that
// succeeded and judges nobody.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "reference/positional/contract.hpp"

namespace kvo::positional {

/// What a start_forward did that is worth a name.
struct PassEffects {
  bool reused_evicted = false;  ///< a new token lies where one was evicted
  bool window_exceeded = false;
  bool chunk_crossed = false;
  bool range_rounded = false;
};

/// The cells of one causal member.
class CellModel {
 public:
  explicit CellModel(MemberSetup member) : member_(std::move(member)) {}

  /// OK-10 to OK-15.
  void init(const Init& init, std::int64_t cache_padding);
  /// Whether a batch finds cells (OK-18 to OK-22).
  [[nodiscard]] bool fits(const StartForward& pass) const;
  PassEffects started(const StartForward& pass);
  /// The evictions of a start_forward that failed (OK-22).
  void failed(const StartForward& pass) { evict(pass); }
  /// Whether a cell is shared afterwards (OK-51).
  bool copy_prefix(const CopyPrefix& copy, bool keeps_own);
  void removed(const Remove& remove);

  /// Whether a cell that stays as it is lies between cells that a removal moves (OK-65).
  [[nodiscard]] bool keeps_between(const Remove& remove) const;
  /// The positions of a sequence, ascending.
  [[nodiscard]] std::vector<std::int32_t> positions(std::int64_t sequence) const;
  /// The smallest position from which on the cells of a sequence are its own; kMaxPosition if the
  /// last one is shared, 0 if none is.
  [[nodiscard]] std::int32_t unshared_from(std::int64_t sequence) const;
  [[nodiscard]] bool bounded() const { return member_.memory != kMaxPosition; }

 private:
  struct Cell {
    std::int32_t position = 0;
    std::set<std::int64_t> owners = {};
    bool evicted = false;
  };

  void evict(const StartForward& pass);
  [[nodiscard]] bool outside(const Cell& cell, std::int32_t position) const;
  [[nodiscard]] bool rounded(const StartForward& pass) const;

  MemberSetup member_;
  std::int64_t padding_ = 1;
  std::vector<Cell> cells_;
};

}  // namespace kvo::positional
