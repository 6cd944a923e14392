// The oracle of contract `prefix`, from the definitions alone.
//
// Who put which tokens where says what a lookup may find, what may be handed out, and what all
// figures come to; see blocks_history.cpp and radix_history.cpp. Unit: an answer.
#include "properties/contract_parts.hpp"
#include "properties/prefix/history.hpp"
#include "reference/contract/subject/named_quirks.hpp"
#include "reference/prefix/operations.hpp"

namespace kvo::prefix {

std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup) {
  const auto quirks = quirks_of<Quirk>(setup, kQuirkRows);
  if (!quirks) return nullptr;
  if (&kind == &blocks_kind()) return blocks_history(setup.config_as<BlocksConfig>(), *quirks);
  if (&kind == &radix_kind()) return radix_history(setup.config_as<RadixConfig>(), *quirks);
  return nullptr;
}

}  // namespace kvo::prefix
