#include "properties/positional/faults.hpp"

namespace kvo::positional {
namespace {

using seeding::Fault;

constexpr std::string_view kCausal = "reference/positional/causal_cache.cpp";
constexpr std::string_view kWrapper = "reference/positional/wrapper_cache.cpp";
constexpr std::string_view kFastCache = "optimized/positional/causal_cache.cpp";
constexpr std::string_view kFastRemove = "optimized/positional/causal_cache.cpp";
constexpr std::string_view kFastStart = "optimized/positional/causal_cache.cpp";
constexpr std::string_view kFastCells = "optimized/positional/cells.cpp";
constexpr std::string_view kFastHost = "optimized/positional/host_store.cpp";
constexpr std::string_view kFastMask = "optimized/positional/mask.cpp";
constexpr std::string_view kFastRows = "optimized/positional/rows.cpp";

// Operations that are left of a script where their number is the point: rows for each of four
// layers, or two sequences in an order; a pass for each row that a mask keeps, with what makes it
// another; the passes until a number comes again.
constexpr std::size_t kManySteps = 12;
constexpr std::size_t kRowsOfMasks = 200;
constexpr std::size_t kLife = 100'000;

}  // namespace

const std::vector<Fault>& faults() {
  static const std::vector<Fault> kFaults{
      // ---- Eviction ----
      {"positional.swa",
       "idle_sequence_not_evicted",
       "only sequences of the batch are evicted from",
       "B001, F01: Ollama slid only the windows of the batch; idle sequences filled the cache",
       {{kCausal, "std::int64_t{1} + std::max(0, next.last_position(sequence))", "memory_"}}},
      {"positional.swa_mem",
       "evicts_to_chunk",
       "everything before the current chunk of memory is evicted",
       "B006, F01: SGLang is reported to have evicted by the chunk size instead of the window",
       {{kCausal, "std::int64_t{low->second}", "low->second - low->second % memory_ + memory_"}}},
      {"positional.swa",
       "never_evicts",
       "eviction stands behind a condition that never holds",
       "B009, F01: a probe by a wrong attribute name switched VeloxQuant's eviction off",
       {{kCausal, "cell.position < newest - memory_", "false"}}},
      {"positional.swa",
       "evicts_one_too_many",
       "the oldest position of the memory is evicted, too",
       "B005, F01: SGLang took the frontier from a count one larger than the keys stored",
       {{kCausal, "cell.position < newest - memory_", "cell.position < newest - memory_ + 1"}}},
      {"positional.causal",
       "full_stores_what_fits",
       "of a batch that does not fit, the first tokens are stored",
       "B035, F04: Ollama counted inputs as cached before they were decoded",
       {{kCausal,
         R"(return fail(Code::kFull, "no room for " + std::to_string(wanted) + " of " +
            std::to_string(next.cells.size()) + " cells");)",
         "insert(next, pass); return fail(Code::kFull);"}},
       Profile::kOriginal},

      // ---- The mask ----
      {"positional.swa",
       "window_one_short",
       "a token sees one position less than its window",
       "B003, F01: mlx-lm kept one row too few or too many, and changed its mind three times",
       {{kCausal, "own - window_", "own - window_ + 1"}}},
      {"positional.swa",
       "single_token_unmasked",
       "a batch of one token sees all of its sequence",
       "B103, F12: mlx-lm left the window's mask out when it decoded a single token",
       {{kCausal, "std::max(first, run.position)",
         "(pass.positions.size() == 1 ? run.position : std::max(first, run.position))"},
        {kCausal, "last + 1", "(pass.positions.size() == 1 ? kMaxPosition : last + 1)"}}},
      {"positional.causal",
       "except_list_outlives_pass",
       "rows that saw ahead in one pass do so in the next",
       "B105, F12: FlashInfer kept a custom mask after the plan had gone back to causal",
       {{kCausal, "mask(next, pass, {})", "mask(next, pass, next.pass.except)"}}},
      {"positional.swa",
       "ahead_without_window",
       "rows that see ahead see behind their window, too",
       "B105, F12: FlashInfer read custom masks beyond the row's own bounds",
       {{kCausal, "std::max(first, run.position)",
         "(ahead ? run.position : std::max(first, run.position))"}}},
      {"positional.chunked",
       "chunk_starts_late",
       "a chunk begins one position late",
       "B106, F12: the chunked mask of Llama 4 in transformers was off by one",
       {{kCausal, "own - own % options_.chunk",
         "own - own % options_.chunk + (own % options_.chunk != 0 ? 1 : 0)"}}},
      {"positional.causal",
       "mask_starts_at_batch",
       "a later part of a prompt does not see the parts before",
       "B109, F12: candle is reported to have built the mask of a later chunk without the prefix",
       {{kCausal, "std::max(first, run.position)",
         R"(std::max({first, run.position,
                      std::int64_t{*std::ranges::min_element(pass.positions)}}))"}}},
      {"positional.causal",
       "mask_by_cell_order",
       "earlier is what has a lower cell, not a lower position",
       "B110, F12: llama.cpp is reported to have answered differently by the cell's number",
       {{kCausal, "last + 1",
         R"((ahead || pass.targets.empty()
                 ? last + 1
                 : std::int64_t{1} + static_cast<std::int64_t>(pass.targets[row]) - run.cell +
                       run.position))"}}},
      {"positional.causal",
       "one_owner_sees",
       "of the sequences that share a cell only one sees it",
       "B122, F12: diverging beams of xLLM read each other's shared block",
       {{kCausal, "owns(sequence, static_cast<std::size_t>(cell))",
         R"((owns(sequence, static_cast<std::size_t>(cell)) &&
             *cells[static_cast<std::size_t>(cell)].owners.begin() == sequence))"}}},

      // ---- start_forward ----
      {"positional.causal",
       "reserve_inserts",
       "a reserve pass takes cells for its batch",
       "B025, F03: passes that only compiled or validated a graph appended to zerfoo's cache",
       {{kCausal, "start(next, batch)",
         "start(next, {.positions = batch.positions, .sequences = batch.sequences})"}}},
      {"positional.causal",
       "start_resets_layer",
       "the layer falls back to 0 with each pass",
       "B023, F03: zerfoo took every layer's position from the cursor of layer 0",
       {{kCausal, "start(next, batch)", "(layer_ = 0, start(next, batch))"}}},

      // ---- can_resume ----
      {"positional.swa",
       "resume_into_evicted",
       "may resume anywhere up to the end, evicted or not",
       "B002, F01: Ollama resumed at positions whose window had been evicted",
       {{kCausal, "first >= *owned.begin()", "true"}},
       Profile::kOriginal},
      {"positional.swa",
       "resume_refused_once_full",
       "once the window was filled every step back is refused",
       "B037, F04: onnxruntime-genai refused every rewind once the window had filled",
       {{kCausal, "position <= *owned.rbegin() + 1",
         R"(position <= *owned.rbegin() + 1 &&
            (*owned.rbegin() < window_ || position > *owned.rbegin()))"}},
       Profile::kOriginal},

      // ---- remove ----
      {"positional.causal",
       "remove_by_cell",
       "a range of positions is looked for among the numbers of cells",
       "B018, F03: llama.cpp removed tokens by the index of the cell, not by the position",
       {{kCausal, "cell.position >= begin && cell.position < end",
         "std::cmp_greater_equal(c, begin) && std::cmp_less(c, end)"}}},
      {"positional.causal",
       "shifts_first_sequence_only",
       "only keys of sequence 0 are moved",
       "B019, F03: llama.cpp shifted keys of the first stream only",
       {{kCausal, "moved(c) ? begin - end : 0", "moved(c) && sequence == 0 ? begin - end : 0"}}},
      {"positional.causal",
       "shifts_kept_keys",
       "keys before the removed range are moved, too",
       "B017, F03: llama.cpp applied a shift other than the one that the cell had collected",
       {{kCausal, "moved(c) ? begin - end : 0",
         "next.owns(sequence, static_cast<std::size_t>(c)) ? begin - end : 0"}}},
      {"positional.causal",
       "truncate_to_zero_ignored",
       "removing everything removes nothing",
       "B026, F04: crop(0) of transformers' DynamicCache kept everything",
       {{kCausal, "begin == end && !has(Quirk::kEmptyRangeShifts)",
         "begin == 0 && end == kMaxPosition"}}},
      {"positional.causal",
       "inverted_range_to_the_end",
       "an end before the beginning is taken for \"to the end\"",
       "B034, F04: Ollama passed -1, the other engine's end, to a cache that knows no such end",
       {{kCausal, "begin > end && !has(Quirk::kInvertedRangeMovesUp)",
         "begin > end && (end = kMaxPosition, false)"}}},
      {"positional.causal",
       "rollback_keeps_one",
       "a removal to the end leaves the first token of the range",
       "B031, F04: mlx-lm kept tokens of an interrupted answer inside the reused prefix",
       {{kCausal, "begin == end && !has(Quirk::kEmptyRangeShifts)",
         R"((end == kMaxPosition && begin < end ? ++begin : begin) == end &&
            !has(Quirk::kEmptyRangeShifts))"}}},

      // ---- The wrapper ----
      {"positional.wrapper",
       "not_unwound",
       "members before the one that is full keep the batch",
       "B033, F04: a cancelled prefill left Ollama's caches one token apart",
       {{kWrapper, "(void)std::visit(unwind, members[j]);", "(void)unwind;"}},
       Profile::kOriginal},
      {"positional.wrapper",
       "unwinds_one_token",
       "of a batch only the last token is taken back",
       "B033, F04: a cancelled prefill left Ollama's caches one token apart",
       {{kWrapper, "0", "batch.positions.size() - 1", "for (std::size_t k = "}},
       Profile::kOriginal},
      {"positional.wrapper",
       "asks_first_member",
       "only the first member is asked whether a sequence can resume",
       "B038, F04: a rollback of aprender emptied the length on the device and kept the host's",
       {{kWrapper, "if (!answer || !*answer) return answer;", "return answer;"}}},

      // ---- Inside positional@optimized: cells and runs ----
      {"positional.causal",
       "takes_highest_cell",
       "the tree of free cells is searched for the highest cell",
       "B117, F13: llama.cpp is reported to have looked for cells from the wrong end once restored",
       {{kFastCells, "std::countr_zero(levels_[level][static_cast<std::size_t>(index)])",
         "kWordBits - 1 - std::countl_zero(levels_[level][static_cast<std::size_t>(index)])"}}},
      {"positional.causal",
       "given_back_uncounted",
       "a cell that is given back does not count as free",
       "B029, F04: sglang-jax lost pages because a counter stood still",
       {{kFastCells, "++size_;", ""}}},
      {"positional.causal",
       "range_never_shrinks",
       "the recorded range stays when its first or last cell is removed",
       "B115, F13: llama.cpp sized a saved cache by where it searches, not by the cells in use",
       {{kFastCells, "lost_extreme || !range_is_hull_", "false"}}},
      {"positional.causal",
       "newest_position_missed",
       "the shortcut for the newest position takes it for one that is still to come",
       "B107, F12: lengths of mlx-lm's batched prefill were off by the token in flight",
       {{kFastCells, "cells.back().position < position", "cells.back().position <= position"}}},
      {"positional.swa_mem",
       "compaction_takes_one_more",
       "when evicted cells are forgotten, the oldest that is held goes with them",
       "B015, F02: mlx-lm trimmed by the rows allocated instead of the valid ones, and lost some",
       {{kFastCells, "first_ < kFew || 2 * first_ < cells_.size()",
         "first_ == 0 || first_ + 1 == cells_.size()"},
        {kFastCells, "first()", "first() + 1", "cells_.erase(cells_.begin(), "},
        {kFastCells, "std::exchange(first_, 0)", "std::exchange(first_, 0) + 1"}}},
      {"positional.swa",
       "copy_not_listed",
       "a sequence that got a prefix is not listed as one to trim",
       "B001, F01: Ollama slid only the windows of the batch; idle sequences filled the cache",
       {{kFastCache, "touch(copy.target, *copy.cells);", ""}}},

      // ---- Inside positional@optimized: ranges and kept mask rows ----
      {"positional.causal",
       "range_not_rounded",
       "the range ends with its last cell, not the padding",
       "B007, F01: host and kernel disagreed by a block for lengths that are not aligned",
       {{kFastStart, "(range.high / size_.padding + 1) * size_.padding - 1", "range.high"}}},
      {"positional.swa_mem",
       "range_spans_memory",
       "cells that are only remembered widen the range",
       "B083, F09: FlashInfer bounded what it loads in pages and so took rows beyond the tokens",
       {{kFastStart, "sequence.cells->hull_from(std::int64_t{sequence.low} - size_.window)",
         "sequence.cells->hull_from(std::numeric_limits<std::int64_t>::min())"}}},
      {"positional.swa",
       "slid_out_stays_visible",
       "a kept mask row goes on showing cells that left the window",
       "B105, F12: FlashInfer kept a custom mask after the plan had gone back to causal",
       {{kFastMask, "write(shown.begin, std::min(seen.begin, shown.end), hidden);", ""}}},
      {"positional.causal",
       "sorting_keeps_version",
       "kept mask rows are not told that cells came out of order",
       "B074, F08: vLLM's eviction queue trusted entries of blocks that were removed since",
       {{kFastCells, "version_ = pool.next_version();", "",
         "if (std::exchange(sorted_, true)) return;"}}},
      {"positional.causal",
       "batch_sees_ahead",
       "a token's run of cells ends with the batch, not with the token",
       "B107, F12: lengths of mlx-lm's batched prefill were off by the token in flight",
       {{kFastHost, "ahead ? cells.end() : cells.index_of(std::int64_t{position} + 1)",
         "cells.end()"}}},

      // ---- Inside positional@optimized: rows and shifts ----
      {"positional.causal",
       "transposed_by_range",
       "lines of a transposed V are as far apart as the range is long",
       "B081, F09: a decode kernel of zerfoo took the distance between positions from one head",
       {{kFastRows, "rows.strides = {form_.v_dim * plan_.cells, plan_.cells, 1};",
         "rows.strides = {form_.v_dim * range.size(), range.size(), 1};"}}},
      {"positional.causal",
       "transposed_in_order",
       "a transposed V is put in the columns from the first on, not in those of its cells",
       "B087, F09: text-generation-inference took the slots of a batch for neighbours",
       {{kFastRows, "cell_of(token) * kBytes", "token * kBytes"}}},
      {"positional.causal",
       "halves_round_to_zero",
       "f16 keys and values are cut, not rounded",
       "B095, F11: mlxcel floored the scale of its narrow format",
       {{kFastRows, "encode_rows(storage, dim, rows, to);",
         R"(std::vector<float> cut(rows.begin(), rows.end());
            for (float& value : cut)
              if (dtype_of(storage.type) == DType::kF16)
                value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xFFFFE000U);
            encode_rows(storage, dim, cut, to);)"}}},
      {"positional.causal",
       "moves_cells_of_two",
       "a later cell that another sequence shares is moved all the same",
       "B122, F12: diverging beams of xLLM read each other's shared block",
       {{kFastRemove, "size_.pool.owners(held.cell) > 1", "size_.pool.owners(held.cell) > 2",
         "const auto shared = "},
        {kFastRemove, "size_.pool.owners(held.cell) > 1", "size_.pool.owners(held.cell) > 2",
         "// OK-67: the scan is by cell"}}},
      {"positional.causal",
       "groups_from_first_moved",
       "groups of shifted keys are counted from the first key that moves",
       "B097, F11: KIVI let its quantisation groups begin where a call began",
       {{kFastRemove,
         "if (held.position < std::min(removal.begin, removal.end)) left.extend(held.cell);", ""}}},
      {"positional.wrapper",
       "unwound_cells_lost",
       "cells taken for a batch are neither used nor given back when a later member is full",
       "B042, F05: TensorRT-LLM is reported to have removed a sequence and left its blocks behind",
       {{kFastRemove, "if (!next_.reserve) insert_batch();", "", "::commit_unwound("}},
       Profile::kOriginal},

      // ---- Inside positional@optimized: what shows only beyond a size ----
      {"positional.causal",
       "full_word_stays_listed",
       "64 cells that are all taken stay listed as having a free one",
       "B029, F04: sglang-jax lost pages because a counter stood still",
       {{kFastCells, "if (word != 0) return;", "return;"}}},
      {"positional.causal",
       "kept_row_taken_again",
       "when the kept mask rows have all been used, the first is taken for one of the new sequence",
       "B105, F12: FlashInfer kept a custom mask after the plan had gone back to causal",
       {{kFastMask, "first_row_ = next_row_ + layout.rows <= grid_.rows ? next_row_ : 0;",
         R"(first_row_ = next_row_ + layout.rows <= grid_.rows ? next_row_ : 0;
            if (next_row_ > 0 && first_row_ == 0) {
              rows_.front().version = version;
              rows_.front().begin = rows_.front().end = first.begin;
            })"}},
       Profile::kOriginal,
       kRowsOfMasks},
      {"positional.swa_mem",
       "compaction_of_many_takes_one_more",
       "when 64 evicted cells are forgotten, the oldest that is held goes with them",
       "B015, F02: mlx-lm trimmed by the rows allocated instead of the valid ones, and lost some",
       {{kFastCells, "first()", "first() + 1", "cells_.erase(cells_.begin(), "},
        {kFastCells, "std::exchange(first_, 0)", "std::exchange(first_, 0) + 1"}}},
      {"positional.causal",
       "last_tile_left_out",
       "of a batch above 16, what fills no tile of 16 is not put into a transposed V",
       "B082, F09: FlashInfer advanced the page only after the last step over a tile of V",
       {{kFastRows, "tile < tokens", "tile < (tokens > 16 ? tokens - tokens % 16 : tokens)"}}},
      {"positional.causal",
       "rest_of_a_run_left_out",
       "bf16 rows of 64 elements and more are stored in runs of 64, without what is left over",
       "B021, F03: a narrow format took a path of its own in llama.cpp, which lacked a case",
       {{kFastRows, "if (rows.empty()) return;",
         R"(if (rows.empty()) return;
            if (storage.type == StorageType::kBf16 && rows.size() > 64)
              rows = rows.first(rows.size() - rows.size() % 64);)"}}},
      {"positional.causal",
       "groups_run_on",
       "groups of codes run over the heads that are stored together",
       "B097, F11: KIVI let its quantisation groups begin where a call began",
       {{kFastRows, "dim", "in_groups(storage.type) ? width : dim", "narrow(storage, "}}},
      {"positional.causal",
       "no_number_is_zero",
       "what is no number counts as zero among keys that are stored as codes",
       "B098, F11: FlashAttention let a NaN of rows that nobody reads into what it shows",
       {{kFastRows, "k",
         R"((in_groups(plan_.storage.type) ? [&] {
              thread_local std::vector<float> kept;
              kept.assign(k.begin(), k.end());
              for (float& key : kept) key = std::isnan(key) ? 0 : key;
              return std::span<const float>(kept);
            }() : k))",
         "static_cast<std::size_t>(form_.k_dim), targets, "}}},
      {"positional.causal",
       "too_large_is_no_number",
       "values beyond the range of f8_e4m3 become NaN, as without saturation",
       "B095, F11: mlxcel floored the scale of its narrow format",
       {{kFastRows, "v",
         R"((plan_.storage.type == StorageType::kF8E4m3 ? [&] {
              thread_local std::vector<float> kept;
              kept.assign(v.begin(), v.end());
              for (float& value : kept)
                if (std::abs(value) > 464) value = std::numeric_limits<float>::quiet_NaN();
              return std::span<const float>(kept);
            }() : v))",
         "static_cast<std::size_t>(form_.v_dim), targets, "}}},
      {"positional.causal",
       "codes_without_their_scales",
       "cells of codes are taken to be as far apart as the codes alone are long",
       "B102, F11: InfiniLM moved the codes of V and left their scales where they were",
       {{kFastRows, "static_cast<std::size_t>(range.low) * bytes",
         "static_cast<std::size_t>(range.low) * (bytes - 2)"}}},
      {"positional.causal",
       "scale_floored",
       "the scale of a symmetric q8 is at least 1",
       "B095, F11: mlxcel floored the scale of its int8 keys and values at 1",
       {{kCausal,
         "show_stored(format, row.subspan(i, dim), row_of(stored, cell) + i * "
         "dtype_bytes(stored.dtype));",
         R"({
           const std::span<const float> head = row.subspan(i, dim);
           std::byte* const to = row_of(stored, cell) + i * dtype_bytes(stored.dtype);
           show_stored(format, head, to);
           const bool small = std::ranges::all_of(head, [](float x) { return std::abs(x) < 127; });
           if (format.type == StorageType::kQ8 && !format.offset && small)
             for (std::size_t at = 0; at < head.size(); ++at)
               store_element(stored.dtype, std::round(head[at]), to + at * sizeof(float));
         })"}}},
      {"positional.causal",
       "column_in_10_bits",
       "the column of a cell in a mask is cut to 10 bits",
       "B089, F10: vLLM computed places of blocks in numbers too narrow for many of them",
       {{kFastMask, "static_cast<std::uint32_t>(held.cell - low)",
         "static_cast<std::uint32_t>(held.cell - low) & 1023U"}}},
      {"positional.causal",
       "sequence_in_6_bits",
       "the number of a sequence in its batch is cut to 6 bits",
       "B094, F10: Dynamo cut the ids of a trace, and groups of requests became one",
       {{kFastStart, "static_cast<std::uint32_t>(next_.sequences.size() - 1)",
         "static_cast<std::uint32_t>(next_.sequences.size() - 1) & 63U", "cells->in_pass = "}}},
      {"positional.causal",
       "moves_nine_groups",
       "of the groups of keys that move, those behind the ninth stay as they were",
       "B017, F03: llama.cpp applied a shift other than the one that the cell had collected",
       {{kFastHost, "rows.encode_keys(keys, shifted.keys.data());",
         R"(if (shifted_.size() >= 9 * layers_.size()) rows.load_keys(first, keys);
            rows.encode_keys(keys, shifted.keys.data());)"}}},
      {"positional.causal",
       "moves_three_layers",
       "keys behind the third layer are stored as they were",
       "B019, F03: llama.cpp shifted keys of the first stream only",
       {{kFastHost, "rows.encode_keys(keys, shifted.keys.data());",
         R"(if (std::distance(layers_.begin(), layers_.find(layer)) > 2)
              rows.load_keys(first, keys);
            rows.encode_keys(keys, shifted.keys.data());)"}},
       std::nullopt,
       kManySteps},
      {"positional.causal",
       "heads_by_key_width",
       "three heads and more of a transposed V are as far apart as those of K would be",
       "B081, F09: a decode kernel of zerfoo took the distance between positions from one head",
       {{kFastRows, "rows.data += static_cast<std::size_t>(first) * dtype_bytes(plan_.dtype());",
         R"(rows.data += static_cast<std::size_t>(first) * dtype_bytes(plan_.dtype());
            if (plan_.permuted_v && form_.heads > 2)
              rows.strides[0] = std::min(form_.k_dim, form_.v_dim) * plan_.cells;)"}}},

      // ---- Inside positional@optimized: what shows only after long, or in a rare order ----
      {"positional.causal",
       "pass_in_8_bits",
       "whether a batch has named a sequence is told by 8 bits of the pass's number",
       "B089, F10: vLLM computed places of blocks in numbers too narrow for many of them",
       {{kFastStart, "cells->pass != passes_",
         R"(((cells->pass ^ passes_) & 0xFFU) != 0 ||
            cells->in_pass >= next_.sequences.size())"}},
       Profile::kOriginal,
       kLife},
      {"positional.causal",
       "pass_in_16_bits",
       "whether a batch has named a sequence is told by 16 bits of the pass's number",
       "B089, F10: vLLM computed places of blocks in numbers too narrow for many of them",
       {{kFastStart, "cells->pass != passes_",
         R"(((cells->pass ^ passes_) & 0xFFFFU) != 0 ||
            cells->in_pass >= next_.sequences.size())"}},
       Profile::kOriginal,
       kLife},
      {"positional.causal",
       "ahead_over_changed_cells",
       "a mask that is built anew over changed cells is kept as if they had been those of its pass",
       "B105, F12: FlashInfer kept a custom mask after the plan had gone back to causal",
       {{kFastStart, "if (changed) store_->forget_mask();", ""}},
       std::nullopt,
       kManySteps},
      {"positional.swa",
       "restores_first_eviction",
       "a refused pass gives back what it evicted from one sequence only",
       "B033, F04: a cancelled prefill left Ollama's caches one token apart",
       {{kFastCache, "for (const Trim& trim : trims_) trim.cells->restore(trim.count, size_.pool);",
         R"(if (!trims_.empty())
              trims_.front().cells->restore(trims_.front().count, size_.pool);)"}},
       Profile::kDocumented},
  };
  return kFaults;
}

}  // namespace kvo::positional
