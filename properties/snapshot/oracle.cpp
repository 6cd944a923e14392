#include "properties/snapshot/oracle.hpp"

#include "properties/snapshot/layer_history.hpp"
#include "properties/snapshot/trie_history.hpp"
#include "reference/contract/subject/named_quirks.hpp"

namespace kvo::snapshot {

std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup) {
  const auto quirks = quirks_of<Quirk>(setup, kQuirkRows);
  if (kind.contract != kv_kind().contract || !quirks) return nullptr;
  if (&kind == &kv_kind()) return kv_history(setup.config_as<RowsConfig>(), *quirks);
  if (&kind == &rotating_kind()) return ring_history(setup.config_as<RowsConfig>(), *quirks);
  if (&kind == &recurrent_kind()) return state_history(setup.config_as<RecurrentConfig>(), *quirks);
  return trie_history(setup.config_as<TrieConfig>(), *quirks);
}

}  // namespace kvo::snapshot
