// properties/cells/history.hpp: the histories of the kinds of contract `cells`. The file of each
// says what it judges.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "properties/runner/oracle.hpp"
#include "reference/cells/meta_operations.hpp"
#include "reference/cells/operations.hpp"
#include "reference/cells/recurrent_operations.hpp"

namespace kvo::cells {

[[nodiscard]] std::unique_ptr<Oracle> kv_history(const KvOptions& options);

[[nodiscard]] std::unique_ptr<Oracle> meta_history(std::int64_t size, QuirkSet<Quirk> quirks);

[[nodiscard]] std::unique_ptr<Oracle> recurrent_history(const RecurrentConfig& config,
                                                        QuirkSet<Quirk> quirks);

/// The extremes of sequences, from the positions of their cells (LC-4).
class ExtremesOfCells {
 public:
  /// A cell of a sequence.
  void add(std::int64_t seq, std::int64_t pos) {
    Extremes& its = all_.try_emplace(seq, Extremes{pos, pos}).first->second;
    its = {std::min(its.min, pos), std::max(its.max, pos)};
  }
  [[nodiscard]] Extremes of(std::int64_t seq) const {
    const auto its = all_.find(seq);
    return its == all_.end() ? Extremes() : its->second;
  }
  /// Words where others are shown.
  [[nodiscard]] Oracle::Words wrong(const std::vector<ShownSequence>& shown) const {
    if (all_.size() != shown.size()) return "not the sequences that have cells are shown";
    for (const auto& [seq, extremes] : shown)
      if (!all_.contains(seq) || of(seq) != extremes)
        return "extremes of sequence " + std::to_string(seq) + " are not those of its cells";
    return std::nullopt;
  }

 private:
  std::map<std::int64_t, Extremes> all_;
};

/// Words unless each row of a batch is in one of its ubatches.
template <class Ubatch>
[[nodiscard]] Oracle::Words wrong_rows(const std::vector<Ubatch>& ubatches, std::size_t batch) {
  std::vector<std::int32_t> rows;
  for (const Ubatch& ubatch : ubatches)
    rows.insert(rows.end(), ubatch.rows.begin(), ubatch.rows.end());
  std::ranges::sort(rows);
  for (std::size_t i = 0; i < std::max(rows.size(), batch); ++i)
    if (i >= rows.size() || !std::cmp_equal(rows[i], i))
      return "not every token of the batch is in one ubatch";
  return std::nullopt;
}

}  // namespace kvo::cells
