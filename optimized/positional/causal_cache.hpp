// optimized/positional/causal_cache.hpp: the causal caches of `positional`, fast on a CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "optimized/positional/cells.hpp"
#include "optimized/positional/mask.hpp"
#include "optimized/positional/member.hpp"
#include "optimized/positional/rows.hpp"

namespace kvo::optimized {

/// All four causal caches (OK-7). A pass costs what its batch and its sequences' changes cost; no
/// operation but init looks at all cells.
class PositionalCausalCache final : public PositionalMember {
 public:
  /// Errors  kPrecondition: window or memory below 0.
  [[nodiscard]] static Result<std::unique_ptr<positional::Cache>> make(
      const positional::CacheOptions& options);
  PositionalCausalCache(positional::MemberOptions options, const positional::BackendConfig& backend,
                        QuirkSet<positional::Quirk> quirks);

  Status prepare_init(const positional::InitOptions& arguments) override;
  Status prepare_start(const positional::Batch& batch) override;
  Status prepare_copy(std::int64_t source, std::int64_t target, std::int32_t length) override;
  Status prepare_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) override;
  // Moves and what was reserved; std::variant looks to the linter as if it could throw.
  void commit() noexcept override;                                        // NOLINT
  void commit_unwound(const positional::Batch& batch) noexcept override;  // NOLINT
  void cancel() noexcept override;                                        // NOLINT

  Status do_set_layer(std::int64_t layer) override;
  Status do_put(const positional::Rows& k, const positional::Rows& v) override;
  Result<positional::Shown> do_get() override;
  Status do_set_causal(std::span<const std::int64_t> except, bool with_context) override;
  [[nodiscard]] Result<bool> do_can_resume(std::int64_t sequence,
                                           std::int32_t position) const override;

  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 private:
  /// What init decides (OK-10 to OK-14).
  struct Size {
    CellPool pool;
    std::int32_t window = positional::kMaxPosition;
    std::int32_t memory = positional::kMaxPosition;
    std::int64_t max_batch = 1;
    std::int64_t padding = 1;
    bool permuted_v = false;
    DType mask_dtype = DType::kF32;
    DType dtype = DType::kF32;
  };
  /// A sequence that a batch names.
  struct BatchSequence {
    std::int64_t name = 0;
    SequenceCells* cells = nullptr;  ///< null: owns nothing
    std::int32_t low = positional::kMaxPosition;
    std::size_t tokens = 0;
    std::uint64_t version = 0;  ///< of its cells when the pass began
    std::optional<std::int64_t> last_row = std::nullopt;
  };
  /// What the last start_forward left (OK-5).
  struct Pass {
    std::vector<std::int32_t> positions;
    std::vector<std::uint32_t> sequence_of;  ///< index into sequences, for each token
    std::vector<BatchSequence> sequences;
    std::vector<std::int32_t> targets;
    CellRange range;
    bool reserve = false;
    std::vector<std::int64_t> except;       ///< the list given last
    std::vector<std::int64_t> mask_except;  ///< the list that the mask was built with
  };
  /// An eviction that was tried.
  struct Trim {
    std::int64_t name = 0;
    SequenceCells* cells = nullptr;
    std::size_t count = 0;
    bool in_batch = false;
  };
  /// A start_forward: next_, trims_ and the taken cells hold the rest.
  struct Start {
    bool full = false;
  };
  struct Copy {
    std::int64_t target = 0;
    SequenceCells* cells = nullptr;  ///< null: owns nothing before and after
    std::vector<HeldCell> shared;
  };
  /// Keys of consecutive cells that the shift function moved, in the storage type.
  struct ShiftedKeys {
    LayerRows* rows = nullptr;
    std::int64_t first = 0;
    std::vector<std::byte> keys;
    std::vector<std::int32_t> cells;  ///< only these are written; empty: all
  };
  struct Removal {
    std::int64_t name = 0;
    SequenceCells* cells = nullptr;  ///< null: changes nothing
    std::int32_t begin = 0;
    std::int32_t end = 0;
    std::optional<std::int32_t> limit;
    std::vector<ShiftedKeys> shifted;
  };
  using Prepared = std::variant<std::monostate, Size, Start, Copy, Removal>;

  [[nodiscard]] bool bounded() const { return size_.memory != positional::kMaxPosition; }
  [[nodiscard]] SequenceCells* find(std::int64_t name);
  [[nodiscard]] const SequenceCells* find(std::int64_t name) const;
  /// The sequence of that name; made if there is none.
  [[nodiscard]] SequenceCells* find_or_make(std::int64_t name);
  void forget(std::int64_t name) noexcept;
  /// Lists a sequence for the next trim (OK-19); there is room.
  void touch(std::int64_t name, SequenceCells& cells) noexcept;
  void reserve_touch();

  // start_forward
  void collect(const positional::Batch& batch);
  void trim();
  void place();
  [[nodiscard]] CellRange visible_range() const;
  [[nodiscard]] MaskRows::Layout mask_layout(const Pass& pass) const;
  [[nodiscard]] SeenCells seen(const BatchSequence& sequence, std::int32_t position,
                               bool ahead) const;
  /// Writes the mask; `ahead` has one flag a row, or none at all.
  void show_mask(std::span<const char> ahead) noexcept;
  void finish(const Start& start) noexcept;
  void insert_batch() noexcept;
  void list_touched() noexcept;

  // remove
  [[nodiscard]] Status refuse_move(const SequenceCells& cells, const Removal& removal) const;
  [[nodiscard]] Status prepare_documented(Removal& removal);
  [[nodiscard]] Status prepare_original(Removal& removal);
  [[nodiscard]] bool resumable_behind(const Removal& removal) const;
  [[nodiscard]] Status shift_keys(Removal& removal);
  [[nodiscard]] Status shift_group(Removal& removal, std::span<const HeldCell> moved);

  void finish(Size& size) noexcept { size_ = std::move(size); }
  void finish(Copy& copy) noexcept;
  void finish(Removal& removal) noexcept;

  positional::MemberOptions options_;
  Size size_;
  std::unordered_map<std::int64_t, SequenceCells> sequences_;  ///< those that own a cell
  std::vector<std::int64_t> touched_;  ///< sequences that may have something to trim
  std::uint64_t passes_ = 0;
  Pass pass_;
  MaskRows mask_;
  std::int64_t layer_ = 0;
  LayerRows* rows_ = nullptr;  ///< of the current layer; null without storage
  std::map<std::int64_t, LayerRows> layers_;

  Prepared prepared_;
  Pass next_;
  std::vector<Trim> trims_;
  std::vector<std::int64_t> next_touched_;
};

}  // namespace kvo::optimized
