// reference/positional/visible_rows.hpp: what a get shows of a pass, whatever cells its rows are
// in.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "reference/contract/subject/conventions.hpp"
#include "reference/positional/operations.hpp"

namespace kvo::positional {

/// Of each token of a batch, the rows that it sees: [row][mask value, elements of K, elements of V]
/// in an order that does not depend on cells.
struct VisibleRows {
  static constexpr std::array<std::string_view, 2> kAxes{"visible row", "element"};
  std::vector<Tensor> tokens;
};
KVO_DESCRIBE(VisibleRows, (tokens, "what each token sees"))

/// Follows a script and knows of which layers get shows only what does not depend on cells. The
/// others show what earlier owners of their cells left behind, or rows that a sequence got after
/// the range of the pass was chosen.
class WrittenLayers {
 public:
  /// `op` has succeeded, or is a removal.
  void follow(const Op& op);
  /// Whether the layer chosen was put by every pass so far, this one included, and the mask is as
  /// the pass began.
  [[nodiscard]] bool complete() const {
    if (masked_anew_) return false;
    const auto puts = puts_.find(layer_);
    return (puts != puts_.end() ? puts->second : 0) == passes_;
  }

 private:
  std::int64_t layer_ = 0;
  std::int64_t passes_ = 0;
  bool reserve_ = false;
  bool owners_changed_ = false;                // since the pass began
  bool masked_anew_ = false;                   // and then a mask was made of the new owners
  std::set<std::int64_t> put_now_;             // layers, in this pass
  std::map<std::int64_t, std::int64_t> puts_;  // passes that put a layer
};

/// A get as the VisibleRows of the last `tokens` of its batch; one without a mask or with an error
/// as it is. `permuted_v`: as the backend asks for.
[[nodiscard]] Observation visible_rows(
    const Observation& seen, bool permuted_v,
    std::int64_t tokens = std::numeric_limits<std::int64_t>::max());

/// The convention of caches that place rows as they like: gets are compared as visible_rows, those
/// of a layer that some pass did not put are not, and neither are calls of the shift function.
extern const std::array<ConventionInfo, 1> kOwnCells;

}  // namespace kvo::positional
