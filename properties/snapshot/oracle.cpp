// The oracle of contract `snapshot`, from the definitions alone.
//
// A history needs no reference and no buffers: a list of tokens, a state that was put, and the set
// of all sequences that were filed say what each operation must answer.
// Judged   kv: every answer, bit by bit: a list that is added to, cut, and put together again.
//          rotating: what is shown is the window: the newest tokens, as many as the window at most
//          after a single one, one less of the older ones before a chunk; in order of time, which
//          goes round after a wrap. A snapshot's idx says where.
//          recurrent: states are what was put, restores succeed at the snapshot's offset alone.
//          All: a snapshot is what it was when it was taken (MR-3), whoever closed what (MR-4).
//          trie: see trie_history.cpp.
// Skipped  in profile original, answers that a quirk has touched: buffers after rows that do not
//          fit, until they are freed or replaced; a ring from a chunk on a wrapped ring on, until
//          it is as long as its window again; snapshots that were merged unchecked.
// Unit     an answer.
#include "properties/contract_parts.hpp"
#include "properties/snapshot/history.hpp"
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
