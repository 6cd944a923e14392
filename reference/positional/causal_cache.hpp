// reference/positional/causal_cache.hpp: the causal flavours, cell by cell.
//
// Each operation computes what it would change aside, from the cells as they are; then the change
// is carried out as a whole, or in profile documented dropped when the outcome is an error. What an
// allocation interrupts has so changed nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/container/flat_set.hpp>
#include <boost/container/small_vector.hpp>

#include "reference/positional/contract.hpp"

namespace kvo::positional {

/// One machine with three numbers (OK-7).
class CausalCache : public Cache {  // NOLINT(bugprone-exception-escape): as Tensor
 public:
  /// Errors  kPrecondition: window or memory below 0.
  [[nodiscard]] static Result<std::unique_ptr<Cache>> make(const CacheSetup& setup);
  /// Of the setup's members, `member` is this cache.
  CausalCache(const CacheSetup& setup, MemberSetup member);

  using Owners = boost::container::flat_set<std::int64_t, std::less<>,
                                            boost::container::small_vector<std::int64_t, 2>>;
  /// Free if and only if nobody owns it (OK-2).
  struct Cell {  // NOLINT(bugprone-exception-escape): as Tensor
    std::int32_t position = 0;
    Owners owners = {};
  };
  /// Cells from low to high, both included; empty for low > high.
  struct CellRange {
    std::int64_t low = std::numeric_limits<std::int64_t>::max();
    std::int64_t high = -1;
    void extend(std::int64_t cell);
    void extend(const CellRange& other);
    [[nodiscard]] bool empty() const { return low > high; }
    [[nodiscard]] std::int64_t size() const { return empty() ? 0 : high - low + 1; }
  };
  /// The cells, and the recorded range of each sequence that owns any (OK-3).
  struct Cells {
    std::vector<Cell> cells = {};
    std::map<std::int64_t, CellRange> ranges = {};
    [[nodiscard]] bool owns(std::int64_t sequence, std::size_t cell) const {
      return cells[cell].owners.contains(sequence);
    }
    /// The largest position that a sequence owns; -1 if it owns nothing.
    [[nodiscard]] std::int32_t last_position(std::int64_t sequence) const;
    /// Sets a recorded range anew: the hull of what the sequence owns.
    void record(std::int64_t sequence);
  };
  /// What the last start_forward left (OK-5).
  struct Pass {  // NOLINT(bugprone-exception-escape): as Tensor
    std::vector<std::int32_t> positions = {};
    std::vector<std::int64_t> sequences = {};
    bool reserve = false;
    std::vector<std::size_t> targets = {};  ///< cell of each token
    CellRange range = {};
    std::vector<std::int64_t> except = {};       ///< the list given last
    std::vector<std::int64_t> mask_except = {};  ///< the list that the mask was built with
    Tensor mask = {};                            ///< [token][cell of the range]
  };
  /// One key that the shift function has moved.
  struct KeyWrite {
    std::int64_t layer = 0;
    std::size_t cell = 0;
    std::vector<std::byte> row = {};
  };
  /// What an operation does, before it is done.
  struct Change {
    Status outcome = {};
    /// What makes a cache keep what was done before the error; without one, nothing has changed.
    std::optional<Quirk> kept_by = std::nullopt;
    Cells cells = {};
    std::optional<Pass> pass = std::nullopt;
    std::vector<KeyWrite> keys = {};
  };

  [[nodiscard]] Change started(const Batch& batch) const;
  [[nodiscard]] virtual Change copied(std::int64_t source, std::int64_t target,
                                      std::int32_t length) const;
  [[nodiscard]] Change removed(std::int64_t sequence, std::int32_t begin, std::int32_t end) const;
  /// Takes a batch out of a start that another member of a wrapper did not follow (OK-83).
  static void unwind(Change& change, const Batch& batch);
  void commit(Change change) noexcept;  // NOLINT(bugprone-exception-escape): moves only

  Status do_set_config(const BackendConfig& config, std::optional<std::int64_t> member) override;
  Status do_init(const InitArguments& arguments) override;
  Status do_start_forward(const Batch& batch) override;
  Status do_set_layer(std::int64_t layer) override;
  Status do_put(const Rows& k, const Rows& v) override;
  Result<Shown> do_get() override;
  Status do_set_causal(std::span<const std::int64_t> except, bool with_context) override;
  Status do_copy_prefix(std::int64_t source, std::int64_t target, std::int32_t length) override;
  [[nodiscard]] Result<bool> do_can_resume(std::int64_t sequence,
                                           std::int32_t position) const override;
  Status do_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) override;

 protected:
  // Rules that stand alone.
  /// A row of the batch that looks at a cell; `except` lists the rows that see ahead (OK-38).
  struct Look {
    const Cells& held;
    const Pass& pass;
    const std::vector<std::int64_t>& except;
    std::size_t row;
    std::size_t cell;

    [[nodiscard]] bool owned() const { return held.owns(pass.sequences[row], cell); }
    [[nodiscard]] std::int64_t own() const { return pass.positions[row]; }
    [[nodiscard]] std::int64_t seen() const { return held.cells[cell].position; }
    [[nodiscard]] bool ahead() const;
  };
  /// Whether the row sees the cell (OK-31).
  [[nodiscard]] virtual bool visible(const Look& look) const;
  /// The smallest position that a sequence keeps at the start of a pass (OK-18, OK-19); `low` is
  /// the smallest position that the batch has of it, if any.
  [[nodiscard]] virtual std::int64_t kept_from(const Cells& held, std::int64_t sequence,
                                               std::optional<std::int32_t> low) const;
  /// The visible range before the batch is inserted (OK-17, OK-20).
  [[nodiscard]] virtual CellRange provisional_range(
      const Cells& held, const std::map<std::int64_t, std::int32_t>& lows) const;
  [[nodiscard]] virtual std::vector<std::size_t> free_cells(const Cells& held,
                                                            std::size_t most) const;
  /// Whether a token of `sequence` at `position` would find what it must see (OK-55 to OK-58).
  [[nodiscard]] virtual bool resumable(const Cells& held, std::int64_t sequence,
                                       std::int64_t position) const;
  /// Takes [begin, end) out and moves what lies behind (OK-60, OK-67).
  [[nodiscard]] virtual Status cut(Cells& held, std::int64_t sequence, std::int32_t begin,
                                   std::int32_t end) const;
  /// Offset of a cell in the shift phase; 0 for one that is not moved (OK-65).
  [[nodiscard]] virtual std::int32_t offset_of(const Cells& held, std::int64_t sequence,
                                               std::size_t cell, std::int32_t begin,
                                               std::int32_t end) const;
  /// Stores the rows of the batch in a layer that has storage (OK-44).
  virtual void store(const Pass& pass, const Rows& rows, Tensor& stored) const;

  [[nodiscard]] bool bounded() const { return memory_ != kMaxPosition; }
  [[nodiscard]] std::int64_t window() const { return window_; }
  [[nodiscard]] std::int64_t memory() const { return memory_; }
  [[nodiscard]] std::int64_t chunk() const { return setup_.chunk; }
  [[nodiscard]] const Cells& cells() const { return cells_; }
  [[nodiscard]] const Pass& pass() const { return pass_; }

 private:
  struct Layer {  // NOLINT(bugprone-exception-escape): as Tensor
    Tensor k;     ///< [cell][kv_head][k_head_dim]
    Tensor v;     ///< [cell][kv_head][v_head_dim]; get permutes
  };

  /// Neighbouring cells whose keys go through the shift function in one call (OK-65).
  struct Group {
    std::size_t first = 0;
    std::vector<std::int32_t> offsets = {};  ///< one a cell
    std::vector<bool> moved = {};            ///< the others only lie between
  };

  [[nodiscard]] BackendConfig effective() const;
  [[nodiscard]] Tensor mask(const Cells& held, const Pass& pass,
                            const std::vector<std::int64_t>& except) const;
  void evict(Cells& held, const std::map<std::int64_t, std::int32_t>& lows) const;
  [[nodiscard]] Status shift_keys(Change& change, std::int64_t sequence, std::int32_t begin,
                                  std::int32_t end) const;
  [[nodiscard]] Status shift_group(Change& change, const Layer& layer, std::int64_t number,
                                   const Group& group) const;
  [[nodiscard]] Status settle(Change change);

  MemberSetup setup_;
  BackendConfig backend_;
  std::optional<BackendConfig> config_;
  std::int64_t window_ = kMaxPosition;
  std::int64_t memory_ = kMaxPosition;
  std::int64_t max_batch_ = 1;
  DType dtype_ = DType::kF32;
  Cells cells_;
  Pass pass_;
  std::int64_t layer_ = 0;
  std::map<std::int64_t, Layer> layers_;
};

}  // namespace kvo::positional
