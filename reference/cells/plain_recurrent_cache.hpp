// reference/cells/plain_recurrent_cache.hpp: the reference of `cells.recurrent`.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "reference/cells/batch_tokens.hpp"
#include "reference/cells/recurrent.hpp"

namespace kvo::cells {

/// A list of cells, looked through each time.
class PlainRecurrent final : public RecurrentMemory {
 public:
  static Result<std::unique_ptr<RecurrentMemory>> make(const RecurrentOptions& options);
  explicit PlainRecurrent(const RecurrentOptions& options);

  [[nodiscard]] Extremes seq_pos(std::int64_t seq) const override;
  void clear(bool data) override;
  [[nodiscard]] ShownStates shown() const override;
  [[nodiscard]] std::optional<std::string> broken_invariant() const override;

 protected:
  Status do_decode(const Batch& batch, const SeeStates& see) override;
  bool do_seq_rm(std::int32_t seq, const Range& range) override;
  void do_seq_cp(std::int32_t src, std::int32_t dst) override;
  void do_seq_keep(std::int32_t seq) override;
  Status do_seq_add(std::int32_t seq, const Range& range, std::int32_t delta) override;
  Status do_seq_div(std::int32_t seq, const Range& range, std::int32_t d) override;

 private:
  struct Cell {
    std::int32_t pos = -1;
    std::set<std::int32_t> owners = {};
    std::int64_t src = -1;
  };

  /// What LC-90 lists.
  struct Memory {
    std::vector<Cell> cells = {};
    std::vector<std::int64_t> tails = {};     ///< [sequence], its cell or -1
    std::vector<std::int64_t> rollback = {};  ///< [sequence]
    std::int64_t head = 0;
    std::int64_t used = 0;

    [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(cells.size()); }
    [[nodiscard]] Cell& at(std::int64_t i) { return cells[static_cast<std::size_t>(i)]; }
    [[nodiscard]] const Cell& at(std::int64_t i) const {
      return cells[static_cast<std::size_t>(i)];
    }
    [[nodiscard]] std::int64_t& tail(std::int32_t seq) {
      return tails[static_cast<std::size_t>(seq)];
    }
    [[nodiscard]] std::int64_t& back(std::int32_t seq) {
      return rollback[static_cast<std::size_t>(seq)];
    }
    /// The first cell without owners from there on, cyclic.
    [[nodiscard]] std::int64_t free_from(std::int64_t begin) const;
    /// Gives each sequence a tail that it alone owns; the smallest and largest (LC-93).
    std::pair<std::int64_t, std::int64_t> find_tails(const std::vector<std::int32_t>& seqs);
    /// Exchanges two cells, and the tails that name them (LC-94).
    void exchange(std::int64_t a, std::int64_t b);
    /// A cell gives its owner up; whether it was emptied.
    bool leave(std::int64_t i, std::int32_t seq);
    /// Places an ubatch and says what becomes of the rows (LC-93, LC-94).
    void place(const std::vector<Token>& tokens, const Ubatch& ubatch, const SeeStates& see);
  };

  [[nodiscard]] static Memory fresh(std::int64_t n);
  /// The tail of seq, if its position is in range; or null.
  [[nodiscard]] Cell* tail_in(std::int32_t seq, const Range& range);

  Memory memory_;
};

}  // namespace kvo::cells
