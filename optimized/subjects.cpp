#include "optimized/subjects.hpp"

#include "optimized/arena_pool.hpp"
#include "optimized/contiguous_arena_cache.hpp"
#include "optimized/layered_arena_cache.hpp"
#include "optimized/paged_arena_cache.hpp"
#include "optimized/positional_causal_cache.hpp"
#include "optimized/positional_encoder_cache.hpp"
#include "optimized/positional_wrapper_cache.hpp"

namespace kvo::optimized {
namespace {

Subject positional_causal(positional::Flavour flavour) {
  return positional::make_subject(positional::kind_of(flavour), "optimized",
                                  "each sequence's cells sorted; masks changed, not built",
                                  PositionalCausalCache::make);
}

}  // namespace

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> kSubjects{
      layered::make_subject("optimized", "arenas that all layers grow through",
                            LayeredArenaCache::make),
      block_pool::make_subject("optimized", "one arena, cleared block by block when first used",
                               ArenaPool::make),
      provider::make_contiguous_subject("optimized", "one arena that is never cleared",
                                        ContiguousArenaCache::make),
      provider::make_paged_subject("optimized", "all positions of a block at once", ArenaPool::make,
                                   PagedArenaCache::make),
      positional_causal(positional::Flavour::kCausal),
      positional_causal(positional::Flavour::kSwa),
      positional_causal(positional::Flavour::kSwaMem),
      positional_causal(positional::Flavour::kChunked),
      positional::make_subject(positional::kind_of(positional::Flavour::kEncoder), "optimized",
                               "rows stored in the order that they are shown in",
                               PositionalEncoderCache::make),
      positional::make_subject(positional::wrapper_kind(), "optimized",
                               "members that prepare, and then all carry out",
                               PositionalWrapperCache::make),
  };
  return kSubjects;
}

const block_pool::MakePool& pool_maker() {
  static const block_pool::MakePool kMake = ArenaPool::make;
  return kMake;
}

}  // namespace kvo::optimized
