// optimized/provider/paged_arena_cache.hpp: `provider.paged`, fast on a CPU.
#pragma once

#include <memory>
#include <vector>

#include "optimized/memory/arena.hpp"
#include "optimized/provider/paged_control.hpp"

namespace kvo::optimized {

/// Copies all positions of a block at once: a position is divided by the block size once a call,
/// and the pool is asked once a block. Needs a pool whose blocks are in host memory.
class PagedArenaCache final : public PagedControl<PagedArenaCache> {
 public:
  /// Errors  as provider::MakePaged says.
  static Result<std::unique_ptr<provider::Paged>> make(const provider::PagedOptions& options,
                                                       QuirkSet<provider::Quirk> quirks);

  PagedArenaCache(const provider::PagedOptions& options, QuirkSet<provider::Quirk> quirks)
      : PagedControl(options, quirks) {}

  [[nodiscard]] Result<std::optional<provider::KvPair>> get(std::int64_t layer) override;

 private:
  friend PagedControl;
  [[nodiscard]] Status put(std::int64_t layer, const Rows& rows, std::int64_t fits) {
    Status taken = extend(blocks_of(cursors_[static_cast<std::size_t>(layer)] + fits));
    if (taken) store(layer, rows, fits);
    return taken;
  }
  [[nodiscard]] static Status reserve_table(std::size_t /*capacity*/) { return {}; }
  static void moved_table() {}
  static void cut_table() {}

  /// Consecutive positions in one block.
  struct Run {
    std::int64_t position;  ///< of the first, counted from where the call began
    std::int64_t slot;      ///< of the first
    std::int64_t count;
    std::int64_t block;
  };
  /// Calls visit(run) for each block that holds positions [start, start + count).
  template <class Visit>
  void for_each_run(std::int64_t start, std::int64_t count, Visit&& visit) const;

  void store(std::int64_t layer, const provider::Rows& rows, std::int64_t count);
  /// Rows that are no f32: stored, and gathered as they are stored.
  void store_narrow(std::int64_t layer, const provider::Rows& rows, std::int64_t count);
  [[nodiscard]] provider::KvPair gather_narrow(std::int64_t layer, std::int64_t cursor);

  ResultSides results_;
};

}  // namespace kvo::optimized
