// reference/cells/batch_tokens.hpp: the tokens of a batch, whether they may go on, and how they are
// divided (LC-31 to LC-33, LC-38, LC-69, LC-97).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "reference/cells/values.hpp"

namespace kvo::cells {

struct Token {
  std::int32_t pos = 0;
  std::vector<std::int32_t> seqs = {};  ///< in the caller's order, without repetitions
  std::int32_t primary = 0;             ///< LC-38
};

/// What a sequence has stored.
using ExtremesOf = std::function<Extremes(std::int32_t seq)>;

/// The tokens of a batch whose sequences are 0 to n_seq_max - 1.
/// Errors  other:invalid_batch (LC-31); kPrecondition: a position behind all that there are.
[[nodiscard]] Result<std::vector<Token>> tokens_of(const Batch& batch, std::int64_t n_seq_max,
                                                   QuirkSet<Quirk> quirks,
                                                   const ExtremesOf& extremes_of);

/// Rows of a batch that are placed together, in their order.
using Ubatch = std::vector<std::int32_t>;

/// Runs of n_ubatch tokens.
[[nodiscard]] std::vector<Ubatch> split_in_order(std::size_t tokens, std::int64_t n_ubatch);

/// How tokens are divided into equal shares of sequences.
struct EqualSplit {
  std::int64_t n_ubatch = 1;
  bool sequential = false;     ///< only sequences with neighbouring numbers (LC-33)
  bool one_too_many = false;   ///< kUbatchTooLarge
  std::int64_t keep_tail = 0;  ///< last tokens of a sequence that stay together (LC-97)
};
/// Errors  kFull: sequential, and a token of several sequences; kPrecondition: n_ubatch not above
/// keep_tail.
[[nodiscard]] Result<std::vector<Ubatch>> split_equal(const std::vector<Token>& tokens,
                                                      const EqualSplit& how);

}  // namespace kvo::cells
