#include "properties/arenas/faults.hpp"

namespace kvo::arenas {
namespace {

using seeding::Fault;

constexpr std::string_view kArena = "optimized/memory/arena.cpp";
constexpr std::string_view kPages = "optimized/memory/pages.cpp";
constexpr std::string_view kLayered = "optimized/layered/arena_cache.cpp";
constexpr std::string_view kPool = "optimized/block_pool/arena_pool.cpp";
constexpr std::string_view kPoolHeader = "optimized/block_pool/arena_pool.hpp";
constexpr std::string_view kContiguous = "optimized/provider/contiguous_arena_cache.cpp";
constexpr std::string_view kPaged = "optimized/provider/paged_arena_cache.cpp";
constexpr std::string_view kPagedHeader = "optimized/provider/paged_arena_cache.hpp";

std::vector<Fault> faults_in_few_steps() {
  return {
      // ---- Growth and copies of layered.vector ----
      {"layered.vector",
       "growth_loses_tail",
       "a side that moves to a larger place loses its last cell",
       "B010, F02: Ollama's rotating cache dropped the rows behind its index when it was rebuilt",
       {{kLayered, "to.size = from.size;",
         "to.size = from.size; if (to.size > 0) to.bytes[to.size - 1] = std::byte{};",
         "LayeredArenaCache::move("}}},
      {"layered.vector",
       "nans_all_alike",
       "a NaN of V loses its payload",
       "B098, F11: NaNs in rows that FlashAttention did not use came into its output",
       {{kLayered, "put(v, values.bytes + values.size);",
         "[&] { std::vector<float> own(v.begin(), v.end()); for (float& cell : own) "
         "if (cell != cell) cell = __builtin_nanf(\"\"); put(own, values.bytes + values.size); "
         "}();"}}},
      {"layered.vector",
       "minus_zero_lost",
       "a negative zero of K loses its sign",
       "B095, F11: mlxcel stored small rows by a scale that was at least 1",
       {{kLayered, "put(k, keys.bytes + keys.size);",
         "[&] { std::vector<float> own(k.begin(), k.end()); for (float& cell : own) cell += 0.0F; "
         "put(own, keys.bytes + keys.size); }();"}}},
      {"layered.vector",
       "groups_over_the_end_of_a_head",
       "groups of codes go on from one head of a token to the next",
       "B097, F11: KIVI let its quantisation groups begin where a call began",
       {{kLayered, "encode_rows(behaviour_.storage, geometry_.head_dim, entry, to);",
         "encode_rows(behaviour_.storage, in_groups(behaviour_.storage.type) ? entry.size() : "
         "geometry_.head_dim, entry, to);"}}},
      {"layered.vector",
       "large_values_are_no_numbers",
       "what is beyond the largest float of 8 bits becomes a NaN",
       "B101, F11: reader and writer of SGLang's 8-bit rows used scales of their own",
       {{kLayered, "encode_rows(behaviour_.storage, geometry_.head_dim, entry, to);",
         "[&] { std::vector<float> own(entry.begin(), entry.end()); for (float& cell : own) "
         "if (behaviour_.storage.type == StorageType::kF8E4m3 && (cell > 448 || cell < -448)) "
         "cell = __builtin_nanf(\"\"); encode_rows(behaviour_.storage, geometry_.head_dim, own, "
         "to); }();"}}},
      {"layered.vector",
       "clone_shares_places",
       "a clone writes where the cache writes that it was cloned from",
       "B043, F05: SGLang's copy of a node kept the host memory of the first, and both freed it",
       {{kLayered, "to.size = from.size;", "if (from.size > 0) to = from;",
         "LayeredArenaCache::clone("}}},
      {"layered.vector",
       "places_overlap",
       "a place begins in the last cell of the one before",
       "B046, F05: a stale map of SGLang named a slot that had been given to another",
       {{kArena, "next += cells + guard_cells(cells);", "next += cells - (cells > 1 ? 1 : 0);"}}},

      // ---- The blocks of block_pool.stack ----
      {"block_pool.stack",
       "state_not_cleared",
       "a block that was given back keeps its count of used positions",
       "B059, F07: a block that vLLM issued again still counted as computed",
       {{kPool, "state = {.used = 0, .owner = kFree};", "state.owner = kFree;"}}},
      {"block_pool.stack",
       "fresh_blocks_first",
       "blocks that were never handed out go before those that were given back",
       "B071, F08: vLLM is reported to have changed the order of blocks when it freed them later",
       {{kPool, "recycled_.empty()", "untouched_ < blocks_"}}},
      {"block_pool.stack",
       "given_back_to_bottom",
       "a block that is given back goes below all others that were",
       "B071, F08: vLLM is reported to have changed the order of blocks when it freed them later",
       {{kPool, "recycled_.push_back(block);", "recycled_.insert(recycled_.begin(), block);"}}},
      {"block_pool.stack",
       "last_block_refused",
       "an allocation that would leave no block is refused",
       "B037, F04: onnxruntime-genai refused rewinds that the full window still allowed",
       {{kPool, "blocks.size() > free_count()",
         "!blocks.empty() && blocks.size() >= free_count()"}}},
      {"block_pool.stack",
       "stride_of_one_side",
       "V of a block is K of the next",
       "B081, F09: a kernel of zerfoo read heads packed in a row with the wrong stride",
       {{kPool, "static_cast<std::size_t>(block) * 2 * stride_",
         "static_cast<std::size_t>(block) * stride_"}}},

      // ---- The buffers of provider.contiguous ----
      {"provider.contiguous",
       "gaps_seen_on_one_side",
       "a run is copied as one row when only its target has no gaps",
       "B086, F09: LMCache is reported to have read one layout as another of the same shape",
       {{kArena, "to.stride == width && from.stride == width", "to.stride == width"}}},
      {"provider.contiguous",
       "one_row_more",
       "short rows are copied once more than there are",
       "B083, F09: FlashInfer counted in pages and read the rows behind the last token",
       {{kArena, "r < rows", "r <= rows", "void copy_short("}}},
      {"provider.contiguous",
       "fixed_width_short",
       "rows of a common head size are copied without their last cell",
       "B081, F09: a kernel of zerfoo read heads packed in a row with the wrong stride",
       {{kArena, "copy_any(to, from, rows, width)",
         "copy_any(to, from, rows, width >= 32 && width % 16 == 0 ? width - 1 : width)"}}},
      {"provider.contiguous",
       "place_handed_out_twice",
       "K of a layer lies where V of the layer before does",
       "B041, F05: TensorRT-LLM queued a block twice and gave its number out twice",
       {{kContiguous, "arena_ = std::move(arena);",
         "arena_ = arena; arena_.next -= cells + guard_cells(cells);"}}},
      {"provider.contiguous",
       "groups_run_on",
       "groups of K run over the positions that are stored together",
       "B097, F11: KIVI let its quantisation groups begin where a call began",
       {{kContiguous, "dim", "in_groups(storage_.type) ? run : dim",
         "// K and V of a batch row."}}},
      {"provider.contiguous",
       "codes_without_their_scales",
       "gathered rows of codes are taken to lie as far apart as their codes alone are long",
       "B102, F11: InfiniLM moved the codes of V and left their scales where they were",
       {{kContiguous, "static_cast<std::size_t>(max_seq_len_) * row_bytes",
         "static_cast<std::size_t>(max_seq_len_) * (row_bytes - (in_groups(storage_.type) ? 2 : "
         "0))"}}},

      // ---- Blocks and runs of provider.paged ----
      {"provider.paged",
       "groups_run_on",
       "groups of codes run over the positions of one channel that are stored together",
       "B097, F11: KIVI let its quantisation groups begin where a call began",
       {{kPaged, "encode_rows(storage_, width, {from, cells}, to)",
         "encode_rows(storage_, in_groups(storage_.type) ? cells : width, {from, cells}, to)"}}},
      {"provider.paged",
       "codes_without_their_scales",
       "rows of codes are gathered as if they lay as far apart as their codes alone are long",
       "B102, F11: InfiniLM moved the codes of V and left their scales where they were",
       {{kPaged, "static_cast<std::size_t>(layer * block_size_ + run.slot) * position_bytes",
         "static_cast<std::size_t>(layer * block_size_ + run.slot) * "
         "(position_bytes - (in_groups(storage_.type) ? 2 : 0))"}}},
      {"provider.paged",
       "rows_past_caches_lack_a_lane",
       "rows that are gathered past the caches lack their last four cells",
       "B081, F09: a kernel of zerfoo read heads packed in a row with the wrong stride",
       {{kArena, "i < width", "i + kLane < width", "void copy_rows_past_caches("}}},
      {"provider.paged",
       "table_growth_loses_tail",
       "a table that grows takes its last block for its first",
       "B046, F05: a stale map of SGLang named a slot that had been given to another",
       {{kPaged, "grown.assign(entries_.begin(), entries_.end());",
         "grown.assign(entries_.begin(), entries_.end()); "
         "if (size > 0) grown[size - 1] = grown[0];"}}},
      {"provider.paged",
       "block_ahead_at_boundary",
       "rows that end at a block boundary take one block more",
       "B075, F08: TensorRT-LLM counted a free block off the wrong level",
       {{kPagedHeader, "(positions - 1) / block_size_ + 1", "positions / block_size_ + 1"}}},
      {"provider.paged",
       "runs_start_over",
       "K of each block is copied from the first position of the call",
       "B082, F09: FlashInfer read V from the wrong page when a tile spans two",
       {{kPaged, "run.position", "0", "put(sides.k.data() + to, k +"}}},
      {"provider.paged",
       "values_of_first_layer",
       "every layer shows V of the first one",
       "B023, F03: zerfoo took every layer's position from the cursor of layer 0",
       {{kPaged, "from", "run.slot * head_dim_", "take(v.data() + to, sides.v.data() +"}}},
      {"provider.paged",
       "values_transposed",
       "V with several channels is taken for [position, channel, dim]",
       "B081, F09: a kernel of zerfoo read heads packed in a row with the wrong stride",
       {{kPaged, "put(sides.v.data() + to, v + run.position * dim, run.count);",
         "copy_rows({sides.v.data() + to, 1}, {v + run.position * channels * dim, 1}, 1, "
         "run.count * channels * dim);"}}},
      {"provider.paged",
       "used_by_last_writer",
       "the count of a block follows the layer that wrote last",
       "B023, F03: zerfoo took every layer's position from the cursor of layer 0",
       {{kPaged, "pool_->used(run.block) < end", "true"}}},
      {"provider.paged",
       "layout_outlives_reset",
       "an emptied cache still asks for the channels it held before",
       "B026, F04: transformers took a crop to 0 for no crop at all",
       {{kPaged, "if (n == 0) channels_ = dim_ = 0;", ""}}},
      {"provider.paged",
       "layout_before_blocks",
       "a cache asks for the channels of rows that it had no memory for",
       "B050, F05: Mooncake left a reference counted when a copy failed half way",
       {{kPaged, "if (Status taken = extend(blocks_of(cursor + fits)); !taken) return taken;",
         "if (pins) pin(*rows.k); "
         "if (Status taken = extend(blocks_of(cursor + fits)); !taken) return taken;"}}},
  };
}

// Those that show only beyond a size or a length of life.
std::vector<Fault> faults_of_size() {
  return {
      {"layered.vector",
       "growth_copies_five_hundred_cells",
       "a side that moves to a larger place takes 512 cells with it",
       "B010, F02: Ollama's rotating cache dropped the rows behind its index when it was rebuilt",
       {{kLayered, "if (from.size > 0) std::memcpy(to.bytes, from.bytes, from.size);",
         "if (from.size > 0) std::memcpy(to.bytes, from.bytes, std::min<std::size_t>(from.size, "
         "2048));",
         "LayeredArenaCache::move("}}},
      {"layered.vector",
       "pages_left_behind",
       "a side whose pages are given other addresses leaves the last one behind",
       "B010, F02: Ollama's rotating cache dropped the rows behind its index when it was rebuilt",
       {{kPages, "from.bytes_", "from.bytes_ - kPageBytes", "const std::size_t bytes ="}}},
      {"layered.vector",
       "tokens_counted_in_one_byte",
       "the count of tokens is kept in 8 bits",
       "B089, F10: vLLM kept places of slots in too few bits",
       {{kLayered, "++len_;", "len_ = (len_ + 1) & 0xFFU;"}},
       Profile::kOriginal,
       300},
      {"block_pool.stack",
       "used_kept_in_four_bits",
       "the count of used positions of a block is kept in 4 bits",
       "B093, F10: Mooncake kept a size in too few bits",
       {{kPoolHeader, "states_[static_cast<std::size_t>(block)].used = used;",
         "states_[static_cast<std::size_t>(block)].used = used & 0xF;"}}},
      {"provider.contiguous",
       "position_kept_in_ten_bits",
       "rows behind position 1,023 are stored from the front on",
       "B090, F10: FlashInfer kept an offset of a page in too few bits",
       {{kContiguous, "to.cursor * dim", "(to.cursor & 0x3FF) * dim"}}},
      {"provider.contiguous",
       "layer_kept_in_four_bits",
       "rows for layer 16 and those behind it go to layers 0 and on",
       "B023, F03: zerfoo took every layer's position from the cursor of layer 0",
       {{kContiguous, "layers_[static_cast<std::size_t>(layer)]",
         "layers_[static_cast<std::size_t>(layer & 0xF)]", "Layer& to ="}}},
      {"provider.contiguous",
       "last_cell_of_128_left_out",
       "rows of 128 cells are copied without the last one",
       "B081, F09: a kernel of zerfoo read heads packed in a row with the wrong stride",
       {{kArena, "static_cast<std::size_t>(width) * sizeof(float)",
         "static_cast<std::size_t>(width == 128 ? 127 : width) * sizeof(float)"}}},
      {"provider.paged",
       "blocks_beyond_the_sixteenth",
       "of the blocks of one append those behind the 16th are the 16th again",
       "B087, F09: text-generation-inference counted on from the first slot instead of reading the "
       "table",
       {{kPaged, "std::ranges::copy(taken, entries_.begin() + size_);",
         "for (std::size_t i = 0; i < taken.size(); ++i) "
         "entries_[size + i] = taken[std::min<std::size_t>(i, 15)];"}}},
      {"provider.paged",
       "full_block_of_sixteen_is_empty",
       "a block's count of used positions is kept in 4 bits",
       "B093, F10: Mooncake kept a size in too few bits",
       {{kPaged, "run.slot + run.count", "(run.slot + run.count) & 0xF"}}},
  };
}

}  // namespace

const std::vector<Fault>& faults() {
  static const std::vector<Fault> kFaults = [] {
    std::vector<Fault> all = faults_in_few_steps();
    const std::vector<Fault> more = faults_of_size();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return kFaults;
}

}  // namespace kvo::arenas
