// What is done wrong inside the optimized caches.
#include <utility>

#include "properties/prefix/faults.hpp"

namespace kvo::prefix {
namespace {

using seeding::Fault;

constexpr std::string_view kAllocate = "optimized/prefix/block_cache.cpp";
constexpr std::string_view kRules = "optimized/prefix/block_cache.cpp";
constexpr std::string_view kQueue = "optimized/prefix/free_queue.hpp";
constexpr std::string_view kFastTree = "optimized/prefix/radix_tree.cpp";
constexpr std::string_view kHeap = "optimized/prefix/leaf_heap.hpp";
constexpr std::string_view kFastSlots = "optimized/prefix/slot_pool.cpp";

std::vector<Fault> optimized_block_faults() {
  return {
      {"prefix.blocks",
       "fast_last_goes_second",
       "what joins the end of the queue goes behind its front",
       "B071, F08: vLLM's deferred free lost the order in which blocks go",
       {{kQueue, "put_behind(block, links_[0].before)", "put_behind(block, links_[0].after)"}}},
      {"prefix.blocks",
       "fast_later_holder_goes_first",
       "of blocks with one content, all but the first go like those without a key",
       "B074, F08: the tables of vLLM's evictor fell out of step",
       {{kAllocate, "options_.enable_caching && carried_[block] != kNone",
         "options_.enable_caching && carried_[block] != kNone && "
         "index_.first(carried_[block]) == block",
         "if (!queue_.unpin(block)) return;"}}},
      {"prefix.blocks",
       "fast_front_is_reversed",
       "blocks without a key join the front of the queue in the wrong order",
       "B071, F08: vLLM's deferred free lost the order in which blocks go",
       {{kAllocate, "front = block;", "(void)block;"}}},
      {"prefix.blocks",
       "fast_free_hits_not_counted",
       "hits that leave the queue are not counted in what an allotment needs",
       "B075, F08: TensorRT-LLM counted free blocks on the wrong level",
       {{kAllocate, "block != 0 && queue_.users(block) == 0",
         "block != 0 && queue_.users(block) == 1"}}},
      {"prefix.blocks",
       "fast_run_one_longer",
       "under retention the block before a run keeps its key, too",
       "B005, F01: SGLang's frontier of a window was one off for pairs",
       {{kRules, "i > last - run()", "i >= last - run()"}}},
      {"prefix.blocks",
       "fast_step_not_admitted",
       "the cap of admission under a window leaves out what one step writes",
       "B009, F01: a sliding window's cache never evicted, and reported a capped count",
       {{kRules, "options_.window - 1 + options_.max_in_flight", "options_.window - 1"}}},
  };
}

std::vector<Fault> optimized_tree_faults() {
  return {
      {"prefix.radix",
       "fast_split_drops_the_lock",
       "the front part of a locked node is not locked",
       "B045, F05: SGLang locked a node that was split later, and the locks no longer fitted",
       {{kFastTree, "front.lock = rest.lock;", "front.lock = 0;"}}},
      {"prefix.radix",
       "fast_one_lock_does_not_protect",
       "a leaf with a single lock may go",
       "B049, F05: LMCache took a count back once too often, and freed what was in use",
       {{kFastTree, "listed == (node.first == kNone && node.lock <= 0)",
         "listed == (node.first == kNone && node.lock <= 1)"}}},
      {"prefix.radix",
       "fast_hit_counted_at_the_end",
       "a node that a request filed before counts it again",
       "B029, F08: counters of committed and allocated tokens fell out of step",
       {{kFastTree, "if (end > use->inserted) ++node.hits;",
         "if (end >= use->inserted) ++node.hits;"}}},
      {"prefix.radix",
       "fast_heap_is_stale",
       "a leaf that is used stays where it is among those to go",
       "B074, F08: the queue of vLLM's evictor kept entries that were no longer true",
       {{kFastTree, "if (node.place != kNowhere) leaves_.renew(*this, id);", "(void)id;"}},
       std::nullopt,
       18},
      {"prefix.radix",
       "fast_parent_never_follows",
       "a node whose last child has gone does not join the candidates",
       "B078, F08: Mooncake's batch eviction missed its target",
       {{kFastTree, "nodes_[node.parent].lock == 0", "nodes_[node.parent].lock == -1'000"}},
       std::nullopt,
       12},
      {"prefix.radix",
       "fast_heap_takes_the_later_child",
       "what sinks in the heap changes places with the child that is to go later",
       "B074, F08: the queue of vLLM's evictor kept entries that were no longer true",
       {{kHeap, "nodes.before(leaves_[child + 1], leaves_[child])",
         "nodes.before(leaves_[child], leaves_[child + 1])"}}},
      {"prefix.radix",
       "fast_staged_not_sorted",
       "what was staged joins the list as it is",
       "B071, F08: vLLM's deferred free lost the order in which blocks go",
       {{kFastSlots, "free_.sort();", "(void)free_;"}},
       std::nullopt,
       20},
      {"prefix.radix",
       "fast_page_opened_late",
       "a decoded token opens a page where one has just ended",
       "B018, F03: llama.cpp went by the cell where the position counted",
       {{kFastSlots, "length % page_ == 1", "length % page_ == 0"}}},
      {"prefix.radix",
       "fast_tokens_run_over_a_page",
       "tokens behind an open page go on in the next slots, whose they are",
       "B065, F03: device and host disagreed on where the next token goes",
       {{kFastSlots, "whole(at) * page_", "(whole(at) + (at % page_ == 0 ? 0 : 1)) * page_"}}},
  };
}

}  // namespace

std::vector<Fault> optimized_faults() {
  std::vector<Fault> all = optimized_block_faults();
  for (Fault& fault : optimized_tree_faults()) all.push_back(std::move(fault));
  return all;
}

}  // namespace kvo::prefix
