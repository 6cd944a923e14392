// Faults in the optimized caches of rows: of sharing, of places, of rings.
#include "properties/snapshot/faults.hpp"

namespace kvo::snapshot {
namespace {

constexpr std::string_view kBlock = "optimized/snapshot/block.cpp";
constexpr std::string_view kSlots = "optimized/snapshot/slots.cpp";
constexpr std::string_view kKv = "optimized/snapshot/kv_cache.cpp";
constexpr std::string_view kRing = "optimized/snapshot/ring_cache.cpp";

}  // namespace

std::vector<seeding::Fault> optimized_rows_faults() {
  return {
      {"snapshot.kv",
       "rewound_writer_goes_on",
       "after a rewind rows are written over those that a snapshot has",
       "B111, F13: a refill behind a rewind wrote over a later snapshot of Ollama's",
       {{kSlots, "(behind || block_.use_count() == 1)", "true"}}},
      {"snapshot.rotating",
       "restored_from_the_first_row",
       "a restored ring begins with the first row of the block that its snapshot is part of",
       "B117, F13: a restored cache of llama.cpp looked for room from its first cell on",
       {{kSlots, "begin_ = rows.begin;", "(void)rows;"}}},
      {"snapshot.kv",
       "moved_rows_are_the_first",
       "rows that leave a block which few others use all become the first of them",
       "B115, F13: llama.cpp counted the rows of a saved state from the wrong end",
       {{kBlock, "put_rows(*own, 0, keeper.rows_.array(), 0, keeper.rows_.count);",
         "for (std::int64_t row = 0; row < keeper.rows_.count; ++row)"
         " put_rows(*own, row, keeper.rows_.array(), 0, 1);"}}},
      {"snapshot.kv",
       "joins_without_a_look",
       "snapshots of one block are joined as if they adjoined there",
       "B113, F13: a node of Ollama's trie was extended under its snapshots",
       {{kKv, "first.block == second.block && first.begin + first.count == second.begin",
         "first.block == second.block"}},
       Profile::kOriginal},  // documented snapshots are merged only where they adjoin
      {"snapshot.rotating",
       "ring_writes_into_snapshots",
       "a ring writes over a slot that a snapshot sees",
       "B121, F13: a prefix cache of vmlx returned an object that went on living",
       {{kSlots,
         "return (at == stored_ && block_->written() == begin_ + at) || block_.use_count() == 1;",
         "return true;"}}},
      {"snapshot.rotating",
       "fast_slot_is_the_last",
       "a full ring that is written in place begins again at its last slot",
       "B010, F02: Ollama's rotating cache dropped the rows behind its index when it was rebuilt",
       {{kRing, "idx_ < window_ ? idx_ : 0", "idx_ < window_ ? idx_ : window_ - 1"}}},
      {"snapshot.rotating",
       "trims_nothing",
       "rows that leave the window in front of a chunk stay in place",
       "B015, F02: mlx-lm trimmed by what was allocated and not by what was valid",
       {{kSlots, "begin_ += parts[0].begin;", "(void)parts;"}}},
  };
}

}  // namespace kvo::snapshot
