// optimized/positional/causal_cache.hpp: the causal caches of `positional`, fast on a CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "optimized/positional/cells.hpp"
#include "optimized/positional/member.hpp"
#include "optimized/positional/store.hpp"

namespace kvo::optimized {

/// All four causal caches (OK-7). A pass costs what its batch and its sequences' changes cost; no
/// operation but init looks at all cells.
class PositionalCausalCache final : public PositionalMember {
 public:
  /// Errors  kPrecondition: window or memory below 0.
  [[nodiscard]] static Result<std::unique_ptr<positional::Cache>> make(
      const positional::CacheOptions& options);
  /// The same with rows and masks elsewhere than in host memory. Requires a store.
  [[nodiscard]] static Result<std::unique_ptr<positional::Cache>> make_over(
      const positional::CacheOptions& options, std::unique_ptr<PositionalStore> store);
  PositionalCausalCache(positional::MemberOptions options, const positional::BackendConfig& backend,
                        QuirkSet<positional::Quirk> quirks, std::unique_ptr<PositionalStore> store);

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
    StorageFormat storage = {};
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
  struct Removal {
    std::int64_t name = 0;
    SequenceCells* cells = nullptr;  ///< null: changes nothing
    std::int32_t begin = 0;
    std::int32_t end = 0;
    std::optional<std::int32_t> limit;
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
  void finish(const Start& start) noexcept;
  void insert_batch() noexcept;
  void list_touched() noexcept;

  // remove
  [[nodiscard]] Status refuse_move(const SequenceCells& cells, const Removal& removal) const;
  [[nodiscard]] Status prepare_documented(Removal& removal);
  [[nodiscard]] Status prepare_original(Removal& removal);
  [[nodiscard]] bool resumable_behind(const Removal& removal) const;
  [[nodiscard]] Status shift_keys(const Removal& removal);

  void finish(Size& size) noexcept;
  void finish(Copy& copy) noexcept;
  void finish(Removal& removal) noexcept;

  positional::MemberOptions options_;
  Size size_;
  std::unordered_map<std::int64_t, SequenceCells> sequences_;  ///< those that own a cell
  std::vector<std::int64_t> touched_;  ///< sequences that may have something to trim
  std::uint64_t passes_ = 0;
  PositionalPass pass_;
  std::int64_t layer_ = 0;
  std::unique_ptr<PositionalStore> store_;

  Prepared prepared_;
  PositionalPass next_;
  std::vector<Trim> trims_;
  std::vector<std::int64_t> next_touched_;
};

}  // namespace kvo::optimized
