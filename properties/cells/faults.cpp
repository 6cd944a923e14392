#include "properties/cells/faults.hpp"

#include <utility>

namespace kvo::cells {
namespace {

using seeding::Fault;

constexpr std::string_view kTable = "reference/cells/plain_cells.cpp";
constexpr std::string_view kHalf = "reference/cells/plain_half_cache.cpp";
constexpr std::string_view kSequences = "reference/cells/plain_half_cache.cpp";
constexpr std::string_view kStates = "reference/cells/plain_recurrent_cache.cpp";
constexpr std::string_view kFastTable = "optimized/cells/stream_table.cpp";
constexpr std::string_view kFastRanges = "optimized/cells/stream_table.cpp";
constexpr std::string_view kFastHalf = "optimized/cells/cell_half.cpp";
constexpr std::string_view kFastMeta = "optimized/cells/meta_table.cpp";
constexpr std::string_view kFastStates = "optimized/cells/recurrent_cells.cpp";

std::vector<Fault> table_faults() {
  return {
      {"cells.meta",
       "owner_stays",
       "a sequence that leaves a shared cell stays an owner",
       "B050, F05: a count of Mooncake's leaked where something was given back",
       {{kTable, "at(i).owners &= ~owner(seq);",
         "if (at(i).owners.count() == 1) at(i).owners.reset();"}}},
      {"cells.meta",
       "shift_is_the_last_one",
       "of two shifts the later one alone is remembered",
       "B017, F03: llama.cpp did not add up the deltas of shifts",
       {{kTable, "cell.shift += delta;", "cell.shift = delta;"}}},
      {"cells.meta",
       "fast_token_before_position",
       "the token at a position is that of the one before",
       "B018, F03: llama.cpp went by the cell where the position counted",
       {{kFastMeta, "its.index_of(std::int64_t{pos} + 1)", "its.index_of(std::int64_t{pos})"}}},
      {"cells.meta",
       "fast_last_owner_unknown",
       "of two owners one leaves, and the other is no longer known to be alone",
       "B074, F08: two tables of vLLM's evictor contradicted each other",
       {{kFastTable, "if (set.count() == 1) left.owner = set.first();",
         "if (set.count() == 0) left.owner = kNoOwner;"}}},
  };
}

std::vector<Fault> cache_faults() {
  return {
      {"cells.kv",
       "masked_cell_one_early",
       "a cell is taken while the next token of its sequence still sees it",
       "B006, F01: SGLang's chunk cache evicted tokens inside the sliding window",
       {{kHalf, "window_.masks(cell.pos, *next[seq])", "window_.masks(cell.pos, *next[seq] + 1)"}}},
      {"cells.kv",
       "shared_cells_are_taken",
       "a cell outside the window of one owner is taken from all of them",
       "B007, F01: eviction freed a page that was still read",
       {{kHalf, "cell.owners.count() == 1", "cell.owners.any()"}}},
      {"cells.kv",
       "removed_by_cell",
       "a range of positions is removed as one of cells",
       "B018, F03: llama.cpp's tokens_rm went by the cell where the position counted",
       {{kSequences, "range.has(cell.pos) && stream.table.remove_owner(i, seq)",
         "range.has(static_cast<std::int32_t>(i)) && stream.table.remove_owner(i, seq)"}}},
      {"cells.kv",
       "first_stream_is_turned",
       "pending shifts turn the keys of the first stream alone",
       "B019, F03: llama.cpp applied shifts to stream 0 only",
       {{kSequences, "if (!cell.empty()) stream.rows[i].rot += cell.shift;",
         "if (!cell.empty() && &stream == &streams_.front()) stream.rows[i].rot += cell.shift;"}}},
      {"cells.kv",
       "copy_forgets_shift",
       "a copy between streams takes positions without their pending shifts",
       "B017, F03: llama.cpp did not apply a shift unless a token had left the cache",
       {{kSequences, "cell.shift", "std::int32_t{0}",
         "to.table.at(i) = {.used = true, .pos = cell.pos, .shift ="}}},
      {"cells.kv",
       "head_stays_behind_removal",
       "cells that became empty below the head are looked at last",
       "B117, F13: llama.cpp searched from another cell than it should have",
       {{kSequences, "stream.head = std::min(stream.head, emptied);", "(void)emptied;"}}},
      {"cells.kv",
       "saved_to_the_head",
       "a whole state ends where the head is, not at the last used cell",
       "B115, F13: llama.cpp took the head for the number of cells to save",
       {{kSequences, "i < stream.rows.size()", "i < static_cast<std::size_t>(stream.head)",
         "seq < 0 ? -1 : stream.table.extremes(seq).max;"}}},
      {"cells.kv",
       "mask_by_cell",
       "a token sees cells up to its own place, whatever their positions",
       "B110, F12: what llama.cpp answered depended on the cells that tokens lay in",
       {{kHalf, "if (causal && cell.pos > token.pos) continue;",
         "if (causal && static_cast<std::int64_t>(j) > token.pos) continue;"}}},
      {"cells.iswa",
       "rehearsal_is_not_undone",
       "a batch that is refused keeps the cells of its first ubatches",
       "B062, F07: vLLM kept what a failed scheduling had computed",
       {{kHalf, "stream.table.at(found[u][i]) = done[u].cells[i];",
         "if (u > 0) stream.table.at(found[u][i]) = done[u].cells[i];"}},
       Profile::kOriginal},
  };
}

std::vector<Fault> fast_cache_faults() {
  return {
      {"cells.kv",
       "fast_window_one_long",
       "a cell behind the window counts as seen for a token longer",
       "B009, F01: a sliding window never evicted",
       {{kFastTable, "return next - window_.size + 1;", "return next - window_.size;"}}},
      {"cells.kv",
       "fast_others_not_reread",
       "a shift of shared cells leaves the order of their other owners as it was",
       "B074, F08: two tables of vLLM's evictor contradicted each other",
       {{kFastRanges, "others.each([&](std::int32_t other) { reread(other); });", "(void)lowest;",
         "its(seq).erase(low, low + emptied);"}},
       Profile::kOriginal},
      {"cells.kv",
       "fast_rows_not_copied_behind",
       "a copy between streams leaves old rows behind the last one of the source",
       "B005, F01: an edge was taken from one of two lengths",
       {{kFastHalf, "std::max(source.written, target.written)", "source.written"}}},
  };
}

std::vector<Fault> state_faults() {
  return {
      {"cells.recurrent",
       "rollback_kept",
       "a state that went back goes back again at its next token",
       "B029, F04: counters of speculative decoding did not advance",
       {{kStates, "std::exchange(back(*cell.owners.begin()), 0)", "back(*cell.owners.begin())"}}},
      {"cells.recurrent",
       "shared_state_is_overwritten",
       "a sequence whose state others share goes on in the same cell",
       "B061, F05: a block of vLLM's was written by one request and read by another",
       {{kStates, "at(i).owners.erase(seq);", "at(i).owners.clear();"}}},
      {"cells.recurrent",
       "fast_one_too_far_back",
       "a state goes back one token further than there are snapshots",
       "B038, F04: a rejected draft was taken back to the wrong place",
       {{kFastStates, "rollback(seq) != 0 || back > options().n_rs_seq",
         "rollback(seq) != 0 || back > options().n_rs_seq + 1"}}},
      {"cells.recurrent",
       "fast_copy_keeps_its_old_state",
       "a sequence that becomes a copy stays an owner of the state that it had",
       "B050, F05: a count of Mooncake's leaked where something was given back",
       {{kFastStates, "if (tail(dst) >= 0) leave(tail(dst), dst);", "(void)src;"}}},
  };
}

}  // namespace

const std::vector<Fault>& faults() {
  static const std::vector<Fault> kAll = [] {
    std::vector<Fault> all = table_faults();
    for (Fault& fault : cache_faults()) all.push_back(std::move(fault));
    for (Fault& fault : fast_cache_faults()) all.push_back(std::move(fault));
    for (Fault& fault : state_faults()) all.push_back(std::move(fault));
    return all;
  }();
  return kAll;
}

}  // namespace kvo::cells
