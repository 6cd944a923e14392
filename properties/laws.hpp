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
  Allocations allocations = Allocations::kSucceed;
  MakeWatch watch = nullptr;          ///< what judges instead of the reference
  std::uint64_t most_operations = 0;  ///< longest script worth trying

  /// Whether scripts of that kind can refute it.
  [[nodiscard]] bool applies_to(const CacheKind& kind) const;
  /// How a script is run that is to refute it.
  [[nodiscard]] LockstepOptions options() const {
    return {.allocations = allocations, .watch = watch};
  }
};

[[nodiscard]] const std::vector<Law>& laws();
/// Those that apply to a kind.
[[nodiscard]] std::vector<const Law*> laws_of(const CacheKind& kind);

}  // namespace kvo
