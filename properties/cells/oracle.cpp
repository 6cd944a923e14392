// The oracle of contract `cells`, from the definitions alone.
//
// Which token lies in which cell, and what became of it, says what each operation must answer; see
// meta_history.cpp, kv_history.cpp and recurrent_history.cpp. Unit: an answer.
#include "properties/cells/history.hpp"
#include "properties/contract_parts.hpp"
#include "reference/contract/subject/named_quirks.hpp"

namespace kvo::cells {

std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup) {
  const auto quirks = quirks_of<Quirk>(setup, kQuirkRows);
  if (!quirks) return nullptr;
  if (&kind == &kv_kind() || &kind == &iswa_kind())
    return kv_history(kv_options(kind, setup, *quirks));
  if (&kind == &meta_kind()) return meta_history(setup.config_as<MetaConfig>().size, *quirks);
  if (&kind == &recurrent_kind())
    return recurrent_history(setup.config_as<RecurrentConfig>(), *quirks);
  return nullptr;
}

}  // namespace kvo::cells
