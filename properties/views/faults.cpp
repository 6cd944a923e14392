#include "properties/views/faults.hpp"

namespace kvo::views {
namespace {

using seeding::Fault;

constexpr std::string_view kCache = "reference/views/paged_cache.cpp";
constexpr std::string_view kFastCache = "optimized/views/paged_views_cache.cpp";
constexpr std::string_view kFastStore = "optimized/views/block_store.cpp";
constexpr std::string_view kFastHeader = "optimized/views/block_store.hpp";
constexpr std::string_view kFastMirror = "optimized/views/packed_mirror.cpp";
constexpr std::string_view kPaged = "views.paged";

std::vector<Fault> faults_by_the_rules() {
  return {
      {kPaged,
       "truncate_to_nothing_ignored",
       "truncating to 0 keeps everything",
       "B026, F04: transformers took crop(0) for no crop at all",
       {{kCache, "std::max<std::int64_t>(tokens, 0)",
         "(tokens == 0 ? seq_len_ : std::max<std::int64_t>(tokens, 0))"}}},
      {kPaged,
       "drafts_not_counted",
       "a commit of a part of what is pending counts nothing",
       "B029, F04: in sglang-jax the counters stayed at the prompt's length while drafts were "
       "accepted",
       {{kCache, "seq_len_ += n;", "seq_len_ += n == most ? n : 0;"}}},
      {kPaged,
       "rejected_draft_counted",
       "a commit counts all that is pending",
       "B030, F04: Ollama committed a whole draft to the cache while fewer tokens were recorded",
       {{kCache, "seq_len_ += n;", "seq_len_ += most;"}}},
      {kPaged,
       "appends_behind_pending",
       "an append does not replace what is pending",
       "B031, F04: after an interruption mlx-lm kept tokens that nobody had recorded",
       {{kCache, "(options_.append_stacks ? to.pending : 0)", "to.pending"}}},
      {kPaged,
       "last_place_refused",
       "the last token of a full sequence is refused",
       "B037, F04: a guard of onnxruntime-genai refused what was still legal",
       {{kCache, "end > options_.max_seq_len", "end >= options_.max_seq_len && n > 0"}}},
      {kPaged,
       "truncate_drops_the_cut_block",
       "truncating drops the block that it cuts",
       "B038, F04: a rollback of aprender dropped tokens that had been accepted",
       {{kCache, "seq_len_ = std::min(seq_len_, std::max<std::int64_t>(tokens, 0));",
         "if (tokens < seq_len_) seq_len_ = std::max<std::int64_t>(tokens, 0) / "
         "options_.block_size * options_.block_size;"}}},
      {kPaged,
       "writes_into_the_shared_prefix",
       "rows that differ are written into a block that another sequence holds, too",
       "B055, F06: the entry at the boundary of a prefix was used by both sides in Ollama's trie",
       {{kCache, "to.table[first].use_count() > 1", "false"}}},
      {kPaged,
       "decode_writes_at_the_front",
       "a single token is written to the first place",
       "B065, F07: zerfoo's counter on the device stayed 0 after the prompt, and decoding wrote "
       "there",
       {{kCache, "write(table, start, k, v);", "write(table, n == 1 ? 0 : start, k, v);"}}},
      {kPaged,
       "attention_without_the_last_token",
       "views end one token early while tokens are pending",
       "B107, F12: row lengths of mlx-lm were off by the token that is under way",
       {{kCache, "shown_ = views_of(layer, of.table, 0, seq_len_ + pending);",
         "shown_ = views_of(layer, of.table, 0, seq_len_ + std::max<std::int64_t>(pending - 1, "
         "0));"}}},
      {kPaged,
       "chunk_sees_itself_only",
       "views of a layer with several tokens pending begin with these",
       "B109, F12: masks of candle began at the chunk and left out the cached prefix",
       {{kCache, "shown_ = views_of(layer, of.table, 0, seq_len_ + pending);",
         "shown_ = views_of(layer, of.table, pending > 1 ? seq_len_ : 0, seq_len_ + pending);"}}},
  };
}

std::vector<Fault> faults_of_the_fast_one() {
  return {
      {kPaged,
       "copies_one_row_less",
       "a block that is taken out of a shared one lacks the last row of the prefix",
       "B055, F06: Ollama's trie paired the tokens at the boundary of a prefix wrongly",
       {{kFastCache, "static_cast<std::size_t>(tokens) * row_bytes_",
         "static_cast<std::size_t>(tokens - 1) * row_bytes_"}}},
      {kPaged,
       "shared_block_not_left",
       "a block that another sequence holds is written in place",
       "B058, F06: vLLM wrote new tokens into a block that was known by its old ones",
       {{kFastCache, "store_->is_shared(to.table[index])", "false"}}},
      {kPaged,
       "first_owner_frees_for_all",
       "a shared block goes back when the first of its holders lets go",
       "B061, F07: vLLM handed out blocks of a hit that had no reference of its own",
       {{kFastStore, "if (--blocks_[block].holders > 0) return;",
         "if (blocks_[block].holders == 0) return; blocks_[block].holders = 0;"}}},
      {kPaged,
       "packed_rows_survive",
       "rows that were packed are not packed again when they are overwritten",
       "B062, F07: a cached lookup of vLLM survived what it had looked at",
       {{kFastCache, "to.packed.forget(start);", "to.packed.forget(end);"}}},
      {kPaged,
       "short_view_stays_short",
       "the view of a block stays as short as when it was shown first",
       "B105, F12: FlashInfer kept the mask of an earlier plan",
       {{kFastCache,
         "if (layer.cut < layer.shown.size()) layer.shown[layer.cut].length = "
         "options_->block_size;",
         "(void)0;"}}},
      {kPaged,
       "packed_heads_not_moved",
       "heads that lie apart by the block's length stay where they were when it grows",
       "B105, F12: FlashInfer read rows behind their bound",
       {{kFastMirror, "if (by_length) at -= at % size;", "(void)0;"}}},
  };
}

// Those of rows in narrow types.
std::vector<Fault> faults_of_storage() {
  return {
      {kPaged,
       "groups_over_the_end_of_a_head",
       "groups of codes go on from one head of a token to the next",
       "B097, F11: KIVI let its quantisation groups begin where a call began",
       {{kCache,
         "store_rows(options_.storage, dim, k.floats().subspan(from, width), &block.k[to]);",
         "store_rows(options_.storage, in_groups(options_.storage.type) ? options_.kv_dim() : dim, "
         "k.floats().subspan(from, width), &block.k[to]);"}}},
      {kPaged,
       "scale_at_least_one",
       "small elements are stored by a scale of 1",
       "B095, F11: mlxcel floored the scale of its int8 keys and values at 1",
       {{kFastCache, "encode_rows(storage, dim, rows, to);",
         "[&] { std::vector<float> own(rows.begin(), rows.end()); for (float& x : own) if "
         "(storage.type == StorageType::kQ8 && x > -127 && x < 127) x = "
         "static_cast<float>(static_cast<int>(x)); encode_rows(storage, dim, own, to); }();"}}},
      {kPaged,
       "packed_without_offset",
       "what packs rows does not add the offset of their groups",
       "B101, F11: reader and writer of SGLang's 8-bit rows used scales of their own",
       {{kFastMirror, "decode_rows(options.storage, size, stored, std::span(head, size));",
         "[&] { StorageFormat read = options.storage; decode_rows(read, size, stored, "
         "std::span(head, size)); if (!read.offset) return; std::uint16_t bits = 0; "
         "std::copy_n(stored + 2, 2, reinterpret_cast<std::byte*>(&bits)); for (float& x : "
         "std::span(head, size)) x -= f32_of_f16(bits); }();"}}},
  };
}

// Those that show only beyond a size.
std::vector<Fault> faults_of_size() {
  return {
      {kPaged,
       "seventeenth_view_not_listed",
       "an append returns 16 views at most",
       "B083, F09: FlashInfer bounded reads in pages",
       {{kFastCache, "appended_.push_back(view);",
         "if (appended_.size() < 16) appended_.push_back(view);"}}},
      {kPaged,
       "holders_counted_in_one_byte",
       "a block that 256 caches hold counts as free",
       "B093, F10: Mooncake kept a size in too few bits",
       {{kFastHeader, "++blocks_[block].holders;",
         "blocks_[block].holders = (blocks_[block].holders + 1) & 0xFFU;"}},
       Profile::kOriginal,
       300},
      {kPaged,
       "table_kept_in_sixty_four",
       "rows behind the 64th block of a layer are written into its first blocks",
       "B090, F10: FlashInfer kept an offset of a page in too few bits",
       {{kFastCache, "put(store_->k(layer.table[index]) + to, k.floats().subspan(from, cells));",
         "put(store_->k(layer.table[index & 63U]) + to, k.floats().subspan(from, cells));"}}},
  };
}

}  // namespace

const std::vector<Fault>& faults() {
  static const std::vector<Fault> kFaults = [] {
    std::vector<Fault> all = faults_by_the_rules();
    for (const auto& more : {faults_of_the_fast_one(), faults_of_storage(), faults_of_size()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return kFaults;
}

}  // namespace kvo::views
