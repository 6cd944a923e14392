#include <algorithm>
#include <memory>
#include <string>

#include "properties/arenas/arena_mutants.hpp"
#include "properties/contract_parts.hpp"
#include "reference/block_pool/operations.hpp"
#include "reference/block_pool/stack_pool.hpp"

namespace kvo::block_pool {
namespace {

/// A mutant whose pools are `Faulty`, a StackPool with one method done wrong.
template <class Faulty>
Mutant mutant_of(const std::string& name, std::string_view fault, std::string_view origin) {
  const auto make = [](const Geometry& geometry,
                       QuirkSet<Quirk> quirks) -> Result<std::unique_ptr<BlockPool>> {
    const auto sizes = sizes_of(geometry, quirks);
    if (!sizes) return sizes.error();
    return std::make_unique<Faulty>(geometry, *sizes, quirks);
  };
  return {.subject = make_subject("mutant:" + name, std::string(fault), make),
          .fault = std::string(fault),
          .origin = std::string(origin)};
}

/// Puts the counts back that a free has cleared.
class FreeKeepsUsed final : public StackPool {
 public:
  using StackPool::StackPool;
  void free(Owner owner, std::span<const std::int64_t> blocks) override {
    const auto kept = used_;
    StackPool::free(owner, blocks);
    used_ = kept;
  }
};

/// Frees one by one what holds a position, and nothing else.
class UnusedNotFreed final : public StackPool {
 public:
  using StackPool::StackPool;
  void free(Owner owner, std::span<const std::int64_t> blocks) override {
    for (const std::int64_t& block : blocks)
      if (used(block) > 0) StackPool::free(owner, {&block, 1});
  }
};

/// Shows V one cell of f32 too early.
class SidesOverlap final : public StackPool {
 public:
  using StackPool::StackPool;
  [[nodiscard]] Sides sides(std::int64_t block) override {
    const auto side = static_cast<std::size_t>(sizes_.side_bytes);
    const std::span<std::byte> both =
        std::span(cells_).subspan(static_cast<std::size_t>(block) * 2 * side, 2 * side);
    return {both.first(side), both.subspan(side - std::min(side, sizeof(float)), side)};
  }
};

/// Divides the budget by what a block of f32 would take.
class BlocksCountedInF32 final : public StackPool {
 public:
  BlocksCountedInF32(const Geometry& geometry, const Sizes& sizes, QuirkSet<Quirk> quirks)
      : StackPool(geometry, counted(sizes), quirks) {}

 private:
  static Sizes counted(Sizes sizes) {
    const auto f32 = sizes.side * static_cast<std::int64_t>(sizeof(float));
    sizes.blocks = std::max<std::int64_t>(1, sizes.blocks * sizes.side_bytes / f32);
    return sizes;
  }
};

}  // namespace

std::vector<Mutant> mutants() {
  std::vector<Mutant> made{
      mutant_of<FreeKeepsUsed>(
          "free_keeps_used", "a freed block keeps its count of used positions",
          "Z5, F05: zerfoo's truncate leaves the count of a block it keeps as it was"),
      mutant_of<UnusedNotFreed>("unused_not_freed",
                                "a block that was handed out but never filled is not taken back",
                                "B042, F05: TensorRT-LLM is reported to have removed a sequence "
                                "and left its blocks behind"),
      mutant_of<SidesOverlap>(
          "sides_overlap", "the first V cell of a block is the last K cell",
          "B086, F09: LMCache is reported to have read one layout as another of the same shape"),
      mutant_of<BlocksCountedInF32>(
          "blocks_counted_in_f32", "a pool of narrow rows has no more blocks than one of f32",
          "B075, F08: TensorRT-LLM counted free blocks on the wrong level"),
  };
  const auto fast = arenas::mutants_of("block_pool");
  made.insert(made.end(), fast.begin(), fast.end());
  return made;
}

}  // namespace kvo::block_pool
