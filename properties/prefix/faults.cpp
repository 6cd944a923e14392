#include "properties/prefix/faults.hpp"

#include <utility>

namespace kvo::prefix {
namespace {

using seeding::Fault;

constexpr std::string_view kBlocks = "reference/prefix/blocks_cache.cpp";
constexpr std::string_view kSlotsOfBlocks = "reference/prefix/blocks_cache.cpp";
constexpr std::string_view kPool = "reference/prefix/block_pool.cpp";
constexpr std::string_view kTree = "reference/prefix/tree_cache.cpp";
constexpr std::string_view kRadix = "reference/prefix/radix_cache.cpp";
constexpr std::string_view kSlotPool = "reference/prefix/slot_pool.cpp";

std::vector<Fault> block_faults() {
  return {
      {"prefix.blocks",
       "window_one_short",
       "a block is let go while one token of it is in the window",
       "B006, F01: SGLang's chunk cache evicted tokens inside the sliding window",
       {{kSlotsOfBlocks, "tokens - options_.window + 1", "tokens - options_.window + 2"}}},
      {"prefix.blocks",
       "chunk_ends_early",
       "the last token of a chunk counts for the next one",
       "B007, F01: eviction kept a tail that was rounded up, the kernel read from one rounded down",
       {{kSlotsOfBlocks, "tokens / options_.chunk * options_.chunk",
         "(tokens + 1) / options_.chunk * options_.chunk"}}},
      {"prefix.blocks",
       "hit_shorter_than_window",
       "a hit under a window may lack the block that its oldest token is in",
       "B002, F01: Ollama resumed behind values that had fallen out of the window",
       {{kBlocks, "ceil_blocks(options_.window - 1)", "ceil_blocks(options_.window - 2)"}}},
      {"prefix.blocks",
       "lets_go_in_flight",
       "blocks behind the window go though a step under way reads them",
       "B063, F01: vLLM freed blocks of a running request under a window in mid-flight",
       {{kSlotsOfBlocks, "within - progress_[row].in_flight", "within - 0"}}},
      {"prefix.blocks",
       "loaded_tokens_not_counted",
       "tokens that were loaded from elsewhere do not move the first new slot",
       "B065, F03: a counter stayed 0 behind a prefill, and decoding wrote at position 0",
       {{kSlotsOfBlocks, "progress_[row].computed + asked.hit_tokens + asked.external",
         "progress_[row].computed + asked.hit_tokens"}}},
      {"prefix.blocks",
       "pinned_stays_free",
       "a held block that is hit stays in the queue, and is handed out to another",
       "B061, F05: a hit of vLLM's was stolen by another request's allocation",
       {{kPool, "if (blocks_[block].refs == 0 && blocks_[block].queued) dequeue(block);",
         "if (blocks_[block].refs < 0) dequeue(block);"}}},
      {"prefix.blocks",
       "key_stays_in_index",
       "a block that is handed out anew is still found under its old content",
       "B059, F05: a block that vLLM took from its evictor counted as computed",
       {{kPool, "std::erase(holders_.change(*key), block);", "(void)block;"}}},
      {"prefix.blocks",
       "held_go_first",
       "blocks with a key join the front of the queue: what is used most goes first",
       "B071, F08: vLLM's deferred free lost the order in which blocks go",
       {{kPool, "enqueue(block, blocks_[0].before, 0)", "enqueue(block, 0, blocks_[0].after)"}}},
      {"prefix.blocks",
       "keyless_go_last",
       "blocks without a key join the end of the queue, and what is held goes before them",
       "B073, F08: a cache recycled what others stood on before what nobody could use",
       {{kPool, "enqueue(block, 0, blocks_[0].after)", "enqueue(block, blocks_[0].before, 0)"}}},
      {"prefix.blocks",
       "request_in_ten_bits",
       "a request beyond the thousandth is looked for under the number of an early one",
       "B090, F10: FlashInfer kept an offset of a page in too few bits",
       {{kBlocks, "rows_.find(request)", "rows_.find(request & 0x3FF)"}}},
      {"prefix.blocks",
       "one_block_spared",
       "an allotment that takes the last free block is refused",
       "B075, F08: TensorRT-LLM counted free blocks on the wrong level",
       {{kSlotsOfBlocks, "need + kept_free <= pool_.free() - reserved",
         "need + kept_free < pool_.free() - reserved"}}},
  };
}

std::vector<Fault> key_faults() {
  return {
      {"prefix.blocks",
       "salt_is_forgotten",
       "requests of different salts share blocks",
       "B054, F06: vLLM's extra keys of adapter and salt were not told apart",
       {{kBlocks, "block == 0 ? text.salt : \"\"", "std::string()"}}},
      {"prefix.blocks",
       "keys_are_not_chained",
       "a block's key does not say what stands before it",
       "B053, F06: openvino.genai reused a block by its hash alone",
       {{kBlocks, "block > 0 ? static_cast<std::int64_t>(text.keys.back().low) : std::int64_t{-1}",
         "std::int64_t{-1}"}}},
      {"prefix.blocks",
       "lookahead_not_in_key",
       "the key does not hold the tokens behind the block that draft heads read",
       "B055, F06: Ollama's draft cache reused the pair at a boundary blindly",
       {{kBlocks, "begin + options_.block_size + behind", "begin + options_.block_size"}}},
      {"prefix.blocks",
       "newest_holder_is_hit",
       "of several blocks with a content the newest is hit",
       "B074, F06: the tables of vLLM's evictor fell out of step",
       {{kBlocks, "holders.front()", "holders.back()"}}},
  };
}

std::vector<Fault> tree_faults() {
  return {
      {"prefix.radix",
       "split_drops_the_lock",
       "the front part of a locked node is not locked",
       "B045, F05: SGLang locked a node that was split later, and the locks no longer fitted",
       {{kTree, "old.lock", "std::int64_t{0}"}}},
      {"prefix.radix",
       "one_lock_does_not_protect",
       "a leaf with a single lock is evicted",
       "B049, F05: LMCache took a count back once too often, and freed what was in use",
       {{kTree, "marks_[node].lock <= 0", "marks_[node].lock <= 1"}}},
      {"prefix.radix",
       "parent_never_follows",
       "a node whose last child has gone does not join the candidates",
       "B078, F08: Mooncake's batch eviction missed its target",
       {{kTree, "marks_[parent].lock == 0", "marks_[parent].lock == -1'000"}},
       std::nullopt,
       12},
      {"prefix.radix",
       "hit_counted_at_the_end",
       "a node that a request filed before counts it again",
       "B029, F08: counters of committed and allocated tokens fell out of step",
       {{kTree, "end > what.inserted", "end >= what.inserted"}}},
      {"prefix.radix",
       "use_is_not_renewed",
       "the oldest node goes first, used or not",
       "B077, F08: Mooncake set no time of use, and evicted what was fresh at once",
       {{kTree, "return {mark.used, 0, node};", "return {mark.created, 0, node};"}}},
      {"prefix.radix",
       "priority_not_raised",
       "an insert of a higher priority leaves what it passes as it is",
       "B077, F08: Mooncake set no time of use, and evicted what was fresh at once",
       {{kTree, "std::max(priority, insertion->priority)", "std::min(priority, priority)"}}},
      {"prefix.radix",
       "salt_is_forgotten",
       "namespaces that differ in the salt share nodes",
       "B054, F06: vLLM's extra keys of adapter and salt were not told apart",
       {{kTree, "space.salt", "decltype(space.salt)()", "places_.find(Place(parent, space.extra,"},
        {kTree, "space.salt", "decltype(space.salt)()", "Place there(parent, space.extra,"}}},
      {"prefix.radix",
       "frees_the_matched_slots",
       "a checkpoint frees what its admission had matched",
       "B051, F05: a slot of SGLang's was freed by two paths of release",
       {{kRadix, "from(held.slots, held.protected_, length)", "from(held.slots, 0, length)"}}},
      {"prefix.radix",
       "row_keeps_freed_slots",
       "a row goes on with the slots that a checkpoint gave back",
       "B047, F05: SGLang inserted into its tree again what it had freed",
       {{kRadix, "std::min(units, std::ssize(kept))", "held.protected_"}}},
      {"prefix.radix",
       "whole_prompt_is_matched",
       "an admission leaves no token to compute",
       "B065, F03: a length disagreed with the tokens that were there",
       {{kRadix, "std::ssize(text.tokens) - 1", "std::ssize(text.tokens)"}}},
      {"prefix.radix",
       "page_opened_late",
       "a decoded token opens a page where one has just ended",
       "B018, F03: llama.cpp went by the cell where the position counted",
       {{kSlotPool, "length % page_size_ == 1", "length % page_size_ == 0"}}},
      {"prefix.radix",
       "page_freed_for_each_slot",
       "slots of one page free it several times",
       "B039, F05: vLLM released a list that held a block twice",
       {{kSlotPool, "pages.erase(twice, pages.end());", "(void)twice;"}}},
  };
}

std::vector<Fault> slot_faults() {
  return {
      {"prefix.radix",
       "staged_not_sorted",
       "what was staged joins the list as it is",
       "B071, F08: vLLM's deferred free lost the order in which blocks go",
       {{kSlotPool, "std::ranges::sort(lists.free);", "(void)lists;"}},
       std::nullopt,
       20},
  };
}

}  // namespace

const std::vector<Fault>& faults() {
  static const std::vector<Fault> kAll = [] {
    std::vector<Fault> all = block_faults();
    for (Fault& fault : key_faults()) all.push_back(std::move(fault));
    for (Fault& fault : tree_faults()) all.push_back(std::move(fault));
    for (Fault& fault : slot_faults()) all.push_back(std::move(fault));
    for (Fault& fault : optimized_faults()) all.push_back(std::move(fault));
    return all;
  }();
  return kAll;
}

}  // namespace kvo::prefix
