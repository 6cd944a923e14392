// properties/generators/positional_case.hpp: what a random positional case is set up with.
#pragma once

#include <cstdint>
#include <vector>

#include "properties/generator.hpp"
#include "reference/positional/contract.hpp"
#include "reference/positional/shift.hpp"

namespace kvo::positional {

/// One cache of a case; a wrapper has several.
struct DrawnMember {
  MemberSetup setup;                 ///< without its shift function
  std::optional<ShiftConfig> shift;  ///< what that function is to be
};

/// Caches, backend and sizes of one case.
struct DrawnCase {
  std::vector<DrawnMember> members;
  BackendConfig backend;
  Init init;
  std::int64_t heads = 1;
  std::int64_t k_dim = 1;
  std::int64_t v_dim = 1;
  std::int64_t layers = 1;
  std::int64_t encoder_tokens = 1;      ///< rows of an encoder's put
  std::vector<std::int64_t> sequences;  ///< those that most operations name

  [[nodiscard]] bool has_encoder() const;
};

/// Draws a case of a kind. Nearly all can be initialised.
[[nodiscard]] DrawnCase draw_case(Draw& draw, const CacheKind& kind);

/// Makes a sensible batch strange: out of order, with gaps or repeats, too large, out of contract.
/// Requires  the batch is not empty.
void perturb(Draw& draw, StartForward& pass);

/// The "config" of a log's header.
[[nodiscard]] boost::json::object config_of(const DrawnCase& drawn, const CacheKind& kind);

}  // namespace kvo::positional
