// properties/campaign/laws.hpp: the laws that hold in every contract.
#pragma once

#include <cstdint>
#include <vector>

#include "properties/runner/law.hpp"

namespace kvo {

/// Operations of the longest script that is worth trying where each is carried out once.
inline constexpr std::uint64_t kLongScript = 80;

/// agrees_with_reference, failed_allocation_changes_nothing.
[[nodiscard]] std::vector<const Law*> general_laws();

}  // namespace kvo
