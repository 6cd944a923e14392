// properties/snapshot/model_rows.hpp: what the model behind `feed` makes of tokens, layer by layer
// (MR-68). Keys are tokens and values positions, so that a row says whose it is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "reference/snapshot/trie.hpp"

namespace kvo::snapshot {

inline constexpr std::int64_t kRowBytes = 8;     ///< a key and a value of one element each, in f32
inline constexpr std::int64_t kStateBytes = 16;  ///< two of two elements each

/// A layer of a trie's config.
struct LayerPlan {
  enum class Kind : std::uint8_t { kNone, kKv, kRing, kState };
  Kind kind = Kind::kNone;
  std::int64_t window = 0;
  /// A quirk may have taken rows of a wrapped ring: those that are left must be right.
  bool may_miss = false;
  StorageFormat storage = {};  ///< of rows

  /// Nothing for a word that names no layer.
  [[nodiscard]] static std::optional<LayerPlan> of(const std::string& word);
  /// The most that a snapshot of so many tokens counts for.
  [[nodiscard]] std::int64_t most_bytes(std::int64_t tokens) const;
};

/// The state of a recurrent layer that was fed tokens: the last two, their sum and their number.
[[nodiscard]] std::pair<Tensor, Tensor> state_after(std::span<const std::int32_t> fed);

/// Words if a layer does not hold what the model made of the tokens fed.
[[nodiscard]] std::optional<std::string> wrong_state(const LayerPlan& layer,
                                                     const LayerState& state, const Tokens& fed);
/// Words if a snapshot does not hold what the model made of the first tokens of `path`. What lies
/// behind its end is not looked at.
[[nodiscard]] std::optional<std::string> wrong_snapshot(const LayerPlan& layer,
                                                        const Contents& contents,
                                                        const Tokens& path);

}  // namespace kvo::snapshot
