// optimized/cells/batch_plan.hpp: a batch, checked and divided in memory that is used again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "optimized/cells/owners.hpp"
#include "reference/cells/values.hpp"

namespace kvo::optimized {

/// The tokens of a batch: whether they may go on (LC-31, LC-32, LC-38), and how they are divided
/// (LC-33, LC-97). Used again, it allocates only for larger batches.
class BatchPlan {
 public:
  struct Token {
    std::int32_t pos = 0;
    std::int32_t primary = 0;
    std::uint32_t begin = 0;  ///< of its sequences
    std::uint32_t end = 0;    ///< behind them
  };

  /// Step 1: reads the tokens. Throws std::bad_alloc.
  /// Errors  other:invalid_batch: no token, or a sequence outside [0, n_seq_max).
  [[nodiscard]] Status read(const cells::Batch& batch, std::int64_t n_seq_max,
                            QuirkSet<cells::Quirk> quirks);
  /// The sequences that tokens name, each once, in the order of the batch.
  [[nodiscard]] std::span<const std::int32_t> named() const { return named_; }
  /// Step 2, for each of them: what it has stored.
  void set_stored(std::int32_t seq, const cells::Extremes& stored) { of(seq).stored = stored; }
  /// Step 3: positions, and whether all is valid.
  /// Errors  other:invalid_batch; kPrecondition: a position behind all that there are.
  [[nodiscard]] Status check();

  /// Step 4: one of these. @{
  /// Runs of n_ubatch tokens (LC-33). Throws std::bad_alloc.
  void split_in_order(std::int64_t n_ubatch);
  /// Equal shares of sequences with neighbouring numbers (LC-33, LC-97). Throws std::bad_alloc.
  /// Errors  kFull: a token of several sequences; kPrecondition: n_ubatch is not above keep_tail.
  [[nodiscard]] Status split_sequential(std::int64_t n_ubatch, std::int64_t keep_tail);
  /// @}
  /// A second division, by sets of sequences (LC-69), to be used when the first one fails.
  /// prepare_sets throws std::bad_alloc. @{
  void prepare_sets(std::int64_t n_ubatch);
  void use_sets() noexcept {
    rows_.swap(set_rows_);
    ends_.swap(set_ends_);
  }
  /// @}

  [[nodiscard]] std::span<const Token> tokens() const { return tokens_; }
  [[nodiscard]] std::span<const std::int32_t> seqs_of(const Token& token) const {
    return std::span<const std::int32_t>(seqs_).subspan(token.begin, token.end - token.begin);
  }
  /// Tokens that name a sequence.
  [[nodiscard]] std::size_t count_of(std::int32_t seq) const {
    return states_[static_cast<std::size_t>(seq)].count;
  }
  /// Sequences of all tokens together.
  [[nodiscard]] std::size_t owner_count() const { return seqs_.size(); }
  [[nodiscard]] bool has_shared_token() const { return seqs_.size() > tokens_.size(); }
  [[nodiscard]] std::int32_t lowest_pos() const { return lowest_pos_; }
  /// Rows of the batch, one ubatch after another.
  [[nodiscard]] std::span<const std::int32_t> rows() const { return rows_; }
  /// [ubatch], behind its last of rows().
  [[nodiscard]] std::span<const std::size_t> ends() const { return ends_; }

 private:
  /// What is known of a sequence that the batch of `stamp` names.
  struct State {
    std::uint64_t stamp = 0;
    std::size_t count = 0;
    cells::Extremes stored = {};
    std::int64_t next = -1;  ///< the position that it is given next (LC-32)
    std::int64_t last = 0;   ///< its last position so far
    bool begun = false;      ///< there is a last one
    std::size_t first = 0;   ///< of its rows, in sequence_rows_
    std::size_t cursor = 0;  ///< behind its rows that are in an ubatch
    std::size_t behind = 0;  ///< behind its rows
    std::size_t taken = 0;   ///< rows that the ubatch in the making has of it
  };
  [[nodiscard]] State& of(std::int32_t seq) { return states_[static_cast<std::size_t>(seq)]; }
  [[nodiscard]] Status fill_positions();
  [[nodiscard]] bool goes_on(std::int32_t seq, std::int32_t pos);
  [[nodiscard]] bool sets_are_nested() const;
  void take_shares(std::size_t row, std::int64_t most);
  void keep_tails(std::int64_t n_ubatch, std::size_t keep);

  std::vector<Token> tokens_;
  std::vector<std::int32_t> seqs_;
  std::vector<std::int32_t> named_;
  std::vector<std::int32_t> rows_;
  std::vector<std::size_t> ends_;
  std::vector<std::int32_t> set_rows_;
  std::vector<std::size_t> set_ends_;
  std::vector<std::int32_t> sequence_rows_;  ///< rows of the batch by sequence
  std::vector<std::int32_t> shares_;         ///< sequences of the ubatch in the making
  std::array<State, cells::kSequences> states_{};
  std::uint64_t stamp_ = 0;
  std::int32_t lowest_pos_ = 0;
  bool counts_positions_ = false;
  QuirkSet<cells::Quirk> quirks_;
};

}  // namespace kvo::optimized
