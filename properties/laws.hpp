// properties/laws.hpp: what must hold of every subject, one line each in laws.cpp.
#pragma once

#include <string_view>
#include <vector>

#include "properties/lockstep.hpp"

namespace kvo {

/// A law that a script can refute.
struct Law {
  std::string_view name;
  std::string_view doc;
  Allocations allocations;
  std::uint64_t most_operations;  ///< longest script worth trying
};

[[nodiscard]] const std::vector<Law>& laws();

}  // namespace kvo
