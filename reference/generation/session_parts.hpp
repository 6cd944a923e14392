// reference/generation/session_parts.hpp: what the sessions of the contract share.
#pragma once

#include <array>
#include <span>

#include "reference/contract/subject/named_quirks.hpp"
#include "reference/generation/quirks.hpp"
#include "reference/provider/quirks.hpp"
#include "reference/sampling/quirks.hpp"

namespace kvo::generation {

/// Of the references of contract `provider`, those that a generation can show.
inline constexpr std::array kInnerQuirks = provider::kTracingQuirks;

/// The quirks of a case, each contract's for itself; those of its caches are left to their setup.
struct Quirks {
  QuirkSet<Quirk> own;
  QuirkSet<sampling::Quirk> of_sampling;
};

/// `rows` are all that the kind lists. Errors  kNotSupported: a name that no row has.
[[nodiscard]] inline Result<Quirks> quirks_of_case(const Setup& setup,
                                                   std::span<const QuirkInfo> rows) {
  const auto own = quirks_of<Quirk>(setup, kQuirkRows, rows);
  if (!own) return own.error();
  const auto of_sampling = quirks_of<sampling::Quirk>(setup, sampling::kQuirkRows, rows);
  if (!of_sampling) return of_sampling.error();
  return Quirks{*own, *of_sampling};
}

}  // namespace kvo::generation
