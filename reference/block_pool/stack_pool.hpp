// reference/block_pool/stack_pool.hpp: the reference of contract `block_pool`.
#pragma once

#include <mutex>
#include <vector>

#include "reference/block_pool/cache.hpp"

namespace kvo::block_pool {

/// The shortest pool that keeps the contract: a vector of cells and a vector of free blocks.
class StackPool : public BlockPool {
 public:
  /// Errors  as of sizes_of.
  static Result<std::unique_ptr<BlockPool>> make(const Geometry& geometry, QuirkSet<Quirk> quirks);

  StackPool(const Geometry& geometry, const Sizes& sizes, QuirkSet<Quirk> quirks);

  [[nodiscard]] Geometry geometry() const override { return geometry_; }
  [[nodiscard]] std::int64_t cap() const override { return sizes_.blocks; }
  [[nodiscard]] std::int64_t available() const override;
  [[nodiscard]] Status alloc(Owner owner, std::span<std::int64_t> blocks) override;
  void free(Owner owner, std::span<const std::int64_t> blocks) override;
  [[nodiscard]] std::int64_t used(std::int64_t block) const override;
  void set_used(std::int64_t block, std::int64_t used) override;
  [[nodiscard]] Sides sides(std::int64_t block) override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 protected:
  /// Whether a free by `owner` is heeded (ZF-24).
  [[nodiscard]] bool may_free(Owner owner, std::size_t block) const;

  Geometry geometry_;
  Sizes sizes_;
  QuirkSet<Quirk> quirks_;
  std::vector<std::byte> cells_;              ///< [block][K, V][layer][position], as stored
  std::vector<std::int64_t> used_;            ///< [block], positions
  std::vector<std::optional<Owner>> owners_;  ///< [block], nothing while free
  mutable std::mutex lock_;                   ///< guards free_ and owners_
  std::vector<std::int64_t> free_;            ///< the next block to hand out is last
};

}  // namespace kvo::block_pool
