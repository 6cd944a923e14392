// Faults by which a snapshot shares rows with a cache that goes on writing them.
#include "properties/snapshot/faults.hpp"

namespace kvo::snapshot {

std::vector<seeding::Fault> shared_rows_faults() {
  return {
      {"snapshot.kv",
       "writes_into_snapshots",
       "rows that find room are written in place, also where a snapshot has its rows",
       "B114, F13: a snapshot of Ollama's held the live buffer where it should have held a copy",
       {{"reference/snapshot/kv_cache.cpp", "overwritten(room, offset, end, rows).value_or(room)",
         "[&] { Array made = overwritten(room, offset, end, rows).value_or(room);"
         " if (!full && made.view.strides == room.view.strides)"
         " std::copy_n(made.view.data, bytes_of(made), const_cast<std::byte*>(room.view.data));"
         " return made; }()"}}},
      {"snapshot.rotating",
       "writes_into_snapshots",
       "the oldest key is written over in place, also in the snapshots of the ring",
       "B114, F13: a snapshot of Ollama's held the live buffer where it should have held a copy",
       {{"reference/snapshot/rotating_cache.cpp",
         "overwritten(ring.rows->k, ring.idx, end, k).value_or(ring.rows->k)",
         "[&] { const Array& room = ring.rows->k;"
         " Array made = overwritten(room, ring.idx, end, k).value_or(room);"
         " if (made.view.strides == room.view.strides)"
         " std::copy_n(made.view.data, bytes_of(made), const_cast<std::byte*>(room.view.data));"
         " return made; }()"}}},
  };
}

}  // namespace kvo::snapshot
