// properties/provider/rows.hpp: rows and poked values for scripts of contract provider.
#pragma once

#include <cstdint>

#include "properties/campaign/generator.hpp"
#include "reference/contract/describe/describe.hpp"
#include "reference/contract/values/tags.hpp"
#include "reference/contract/values/tensor.hpp"

namespace kvo::provider {

/// K and V of one update.
struct RowPair {
  Nullable<Tensor> k;
  Nullable<Tensor> v;
};

/// Draws the rows of updates.
class RowDraw {
 public:
  RowDraw(Draw& draw, std::uint64_t seed) : draw_(draw), odd_values_(seed) {
    poison_percent_ = draw.one_of<std::uint64_t>({0, 5, 30});
    fault_percent_ = draw.one_of<std::uint64_t>({0, 5, 15});
  }

  /// Rows of `shape`, [batch, position, dim]; now and then spoilt: null, of another rank or size.
  [[nodiscard]] RowPair rows(Shape shape);
  /// The same, never spoilt.
  [[nodiscard]] RowPair sound_rows(const Shape& shape);
  /// What a caller might write through a result.
  [[nodiscard]] float cell();

 private:
  void spoil_k(Shape& shape);
  void spoil_v(Shape& shape);
  void poison(Tensor& tensor);

  Draw& draw_;
  Tagger tagger_;
  OddValues odd_values_;
  std::uint64_t poison_percent_;
  std::uint64_t fault_percent_;
  std::uint32_t nans_ = 0;
};

/// Cells that were poisoned and then cut off must never show again, not even once rows lie there.
class Poison {
 public:
  /// Positions [from, to) hold poison.
  void put(std::int64_t from, std::int64_t to);
  void cut(std::int64_t n);
  /// True if rows in [from, to) replace poison that had been cut off.
  [[nodiscard]] bool overwritten(std::int64_t from, std::int64_t to);

 private:
  std::int64_t begin_ = 0;  // [begin_, end_) is poisoned
  std::int64_t end_ = 0;
  bool dead_ = false;
};

}  // namespace kvo::provider
