// properties/provider/rows.hpp: rows and poked values for scripts of contract provider.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/storage.hpp"
#include "reference/contract/describe/describe.hpp"
#include "reference/contract/values/tags.hpp"
#include "reference/contract/values/tensor.hpp"

namespace kvo::provider {

/// How the caches of a case store rows.
struct CaseStorage {
  StorageFormat format = {};
  bool wide = false;      ///< rows are longer than a group
  bool odd_rows = false;  ///< rows are what narrow types find hard
  [[nodiscard]] bool is_narrow() const { return format.type != StorageType::kF32; }
};
/// f32 for most cases.
[[nodiscard]] CaseStorage draw_case_storage(Draw& draw, Scale scale);

/// A case whose config tells how rows are stored, and whose script is a Script of (terms, storage).
template <class Config, class Script>
[[nodiscard]] GeneratedCase stored_case(const CaseTerms& terms) {
  Draw draw = storage_draw(terms.seed);
  const CaseStorage storage = draw_case_storage(draw, terms.scale);
  Setup setup{.profile = terms.profile};
  if (storage.is_narrow()) {
    Config config;
    set_storage(draw, config.rows, storage.format);
    setup.config = Record::of(std::move(config));
  }
  return {.setup = std::move(setup), .ops = std::make_unique<Script>(terms, storage)};
}

/// K and V of one update.
struct RowPair {
  Nullable<Tensor> k;
  Nullable<Tensor> v;
};

/// Draws the rows of updates.
class RowDraw {
 public:
  RowDraw(Draw& draw, std::uint64_t seed, bool odd_rows)
      : draw_(draw), odd_values_(seed), odd_rows_(odd_rows) {
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
  bool odd_rows_;
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
