// properties/sampling/contract.hpp: what the machine is told of contract `sampling`.
#pragma once

#include <memory>
#include <vector>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/mutant.hpp"
#include "properties/runner/law.hpp"
#include "properties/runner/oracle.hpp"

namespace kvo::sampling {

/// One of each kind that random cases are drawn for.
[[nodiscard]] std::vector<Generator> generators();
/// What follows from the definitions, and its metamorphic laws.
[[nodiscard]] std::vector<const Law*> laws();
/// Samplers with a known fault.
[[nodiscard]] std::vector<Mutant> mutants();

/// Judges each answer by the definitions (ZF-92 to ZF-98), with the exponential of the standard
/// library; null for kinds of other contracts.
/// Judged   every operation that succeeds on numbers, -inf among them.
/// Skipped  NaN, infinity and results that are not finite; penalties inside `sample`.
/// Unseen   sets of top-p that differ by a probability below 1e-9, and which of the tokens that
///          may be drawn is.
[[nodiscard]] std::unique_ptr<Oracle> definition_oracle(const CacheKind& kind, const Setup& setup);

}  // namespace kvo::sampling
