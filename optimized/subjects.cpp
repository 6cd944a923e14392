#include "optimized/subjects.hpp"

#include <memory>

#include "optimized/block_pool/arena_pool.hpp"
#include "optimized/cells/caches.hpp"
#include "optimized/groups/blocks_cache.hpp"
#include "optimized/layered/arena_cache.hpp"
#include "optimized/positional/causal_cache.hpp"
#include "optimized/positional/encoder_cache.hpp"
#include "optimized/positional/wrapper_cache.hpp"
#include "optimized/prefix/block_cache.hpp"
#include "optimized/prefix/radix_cache.hpp"
#include "optimized/provider/contiguous_arena_cache.hpp"
#include "optimized/provider/paged_arena_cache.hpp"
#include "optimized/sampling/selecting_sampler.hpp"
#include "optimized/snapshot/prefix_trie.hpp"
#include "optimized/snapshot/slots.hpp"
#include "optimized/views/paged_views_cache.hpp"
#include "reference/block_pool/operations.hpp"
#include "reference/cells/meta_operations.hpp"
#include "reference/cells/recurrent_operations.hpp"
#include "reference/groups/operations.hpp"
#include "reference/layered/operations.hpp"
#include "reference/positional/operations.hpp"
#include "reference/prefix/operations.hpp"
#include "reference/provider/contiguous.hpp"
#include "reference/provider/paged.hpp"
#include "reference/sampling/operations.hpp"
#include "reference/snapshot/trie.hpp"
#include "reference/views/operations.hpp"

namespace kvo::optimized {

std::vector<Subject> layered_subjects() {
  return {layered::make_subject("optimized", "arenas that all layers grow through",
                                LayeredArenaCache::make)};
}

std::vector<Subject> block_pool_subjects() {
  return {block_pool::make_subject("optimized", "one arena, cleared block by block when first used",
                                   ArenaPool::make)};
}

std::vector<Subject> provider_subjects() {
  return {provider::make_contiguous_subject("optimized", "one arena that is never cleared",
                                            ContiguousArenaCache::make),
          provider::make_paged_subject("optimized", "all positions of a block at once",
                                       ArenaPool::make, PagedArenaCache::make)};
}

std::vector<Subject> positional_subjects() {
  using positional::MemberKind;
  std::vector<Subject> all;
  for (const MemberKind member_kind :
       {MemberKind::kCausal, MemberKind::kSwa, MemberKind::kSwaMem, MemberKind::kChunked})
    all.push_back(positional::make_subject(positional::kind_of(member_kind), "optimized",
                                           "each sequence's cells sorted; masks changed, not built",
                                           PositionalCausalCache::make));
  all.push_back(positional::make_subject(positional::kind_of(MemberKind::kEncoder), "optimized",
                                         "rows stored in the order that they are shown in",
                                         PositionalEncoderCache::make));
  all.push_back(positional::make_subject(positional::wrapper_kind(), "optimized",
                                         "members that prepare, and then all carry out",
                                         PositionalWrapperCache::make));
  return all;
}

snapshot::MakeCaches snapshot_caches(const LiveBytesPtr& live) {
  return caches_over<SlotsPair>(live);
}

std::vector<Subject> snapshot_subjects() {
  snapshot::MakeCaches make = snapshot_caches(std::make_shared<LiveBytes>());
  std::vector<Subject> all =
      snapshot::make_subjects("optimized", "written in place, shared with snapshots", make);
  make.recurrent = snapshot::make_state_cache;
  all.push_back(snapshot::make_trie_subject(
      "optimized", "a compressed radix tree, with an index of what can be evicted", make,
      make_prefix_trie));
  return all;
}

std::vector<Subject> sampling_subjects() {
  return {sampling::make_subject("optimized", "selects what may be drawn, touches nothing else",
                                 make_selecting_sampler)};
}

std::unique_ptr<sampling::Sampler> make_selecting_sampler(QuirkSet<sampling::Quirk> quirks) {
  return std::make_unique<SelectingSampler>(quirks);
}

std::vector<Subject> views_subjects() {
  return {views::make_subject("optimized", "blocks shared, shown where they lie, packed once",
                              make_paged_views)};
}

std::vector<Subject> prefix_subjects() {
  return {
      prefix::make_blocks_subject("optimized", "contents by number, free blocks in a list of links",
                                  PrefixBlockCache::make),
      prefix::make_radix_subject("optimized",
                                 "edges in one index, leaves in a heap, runs in a pool",
                                 PrefixRadixCache::make)};
}

std::vector<Subject> groups_subjects() {
  return {groups::make_blocks_subject("optimized", "contents by hash, free blocks in links",
                                      make_groups_cache)};
}

std::vector<Subject> cells_subjects() {
  return {cells::make_meta_subject("optimized", "bitmaps, and each sequence's cells by position",
                                   make_cells_table),
          cells::make_subject(cells::kv_kind(), "optimized",
                              "bitmaps, and each sequence's cells by position", make_kv_cells),
          cells::make_subject(cells::iswa_kind(), "optimized",
                              "bitmaps, and each sequence's cells by position", make_kv_cells),
          cells::make_recurrent_subject("optimized", "sets of bits; nothing is rehearsed",
                                        make_recurrent_cells)};
}

}  // namespace kvo::optimized
