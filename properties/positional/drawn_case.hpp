// properties/positional/drawn_case.hpp: caches, sizes and batches of a random case.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "properties/campaign/generator.hpp"
#include "reference/positional/operations.hpp"

namespace kvo::positional {

/// Caches, backend and sizes of one case.
struct DrawnCase {
  std::vector<CacheConfig> members;  ///< a wrapper's, each with its kind; else one
  BackendConfig backend;
  Init init;
  bool odd_rows = false;  ///< rows that are hard on narrow types, not tags
  std::int64_t heads = 1;
  std::int64_t k_dim = 1;
  std::int64_t v_dim = 1;
  std::int64_t layers = 1;
  std::int64_t encoder_tokens = 1;      ///< rows of an encoder's put
  bool in_order = false;                ///< batches are never made strange
  std::vector<std::int64_t> sequences;  ///< those that most operations name

  [[nodiscard]] bool is_encoder(std::size_t member) const {
    return members[member].cache == MemberKind::kEncoder;
  }
  [[nodiscard]] bool has_encoder() const;
};

/// Draws a case of a kind. Nearly all can be initialised.
[[nodiscard]] DrawnCase draw_case(Draw& draw, const CacheKind& kind, Scale scale);

[[nodiscard]] SetConfig draw_set_config(Draw& draw, const DrawnCase& drawn);

/// A sequence that no operation of a long life names but those that come to it after long: it grows
/// old meanwhile.
inline constexpr std::int64_t kOldSequence = 1'000'000;

/// Mostly one of the case's sequences.
[[nodiscard]] std::int64_t draw_sequence(Draw& draw, const DrawnCase& drawn);

/// A batch as engines give it: each sequence goes on where it stands.
[[nodiscard]] StartForward draw_batch(
    Draw& draw, const DrawnCase& drawn,
    const std::function<std::int32_t(std::int64_t sequence)>& next_position);

/// Makes a sensible batch strange: out of order, with gaps or repeats, too large, out of contract.
/// Requires  the batch is not empty.
void perturb(Draw& draw, StartForward& pass);

/// The config of a case.
[[nodiscard]] Record config_of(const DrawnCase& drawn, const CacheKind& kind);

}  // namespace kvo::positional
