// tools/commands/card.hpp: whether the chosen caches need a card that this machine lacks.
#pragma once

#include <string>
#include <vector>

#include "properties/campaign/contracts.hpp"

namespace kvo::tools {

/// "layered.vector@cuda: no CUDA device: ..."; empty: no chosen subject is over a card, or there is
/// one. A process that has used a card cannot start others that do: another process looks.
[[nodiscard]] std::string missing_card(const std::vector<Comparison>& chosen);

}  // namespace kvo::tools
