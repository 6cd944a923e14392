// reference/generation/speculative.hpp: a small model guesses, and the model whose tokens count
// says of several guesses at once which are right.
//
// Words    draft   the small model, or the tokens that it guesses.
//          target  the model whose tokens count.
//          round   draft tokens, one forward of the target, and what is accepted.
// Source   rules ZF-100 to ZF-109.
#pragma once

#include <cstdint>
#include <string>

#include "reference/generation/generator.hpp"

namespace kvo::generation {

/// What becomes of the tokens of a draft.
struct Verified {
  Ids accepted;
  std::int64_t bonus = -1;  ///< the target's own token behind them; -1: none
};

/// The target's token by row `row` of logits [1, rows, vocab]: the first of the largest.
/// Errors  as of a greedy choice; kBadShape: no such row.
[[nodiscard]] Result<std::int64_t> target_token(const Tensor& logits, std::int64_t row,
                                                const ChooseToken& choose);

/// Compares a draft with logits whose row i stands before draft token i (ZF-104, documented).
/// Errors  as target_token.
[[nodiscard]] Result<Verified> verified(const Tensor& logits, const Ids& draft, const Ids& stops,
                                        const ChooseToken& choose);
/// The same with logits whose row i stands behind draft token i, so that nothing says whether the
/// first one is right: it is accepted (ZF-104). Errors  as target_token.
[[nodiscard]] Result<Verified> verified_but_first(const Tensor& logits, const Ids& draft,
                                                  const Ids& stops, const ChooseToken& choose);

/// A model with what it works on.
struct SpeculativePart {
  Model& model;
  CacheSource& caches;
  GeneratorSizes sizes;
};

/// What a speculative generator works with; all of it outlives the generator.
struct SpeculativeParts {
  SpeculativePart draft;
  SpeculativePart target;
  Tokenizer& tokenizer;
  const ChooseToken& choose;
};

/// Documented: returns what Generator of the target returns for a greedy request, whatever the
/// draft is, in fewer forwards where it guesses well.
class SpeculativeGenerator {
 public:
  /// `draft_len` in tokens; 0 or less counts as 4.
  SpeculativeGenerator(const SpeculativeParts& parts, std::int64_t draft_len, bool adaptive,
                       QuirkSet<Quirk> quirks);

  /// Errors  as Generator::generate; kNotSupported: temperature above 0, or a penalty; with
  ///         kDraftFailureFails those of the draft.
  [[nodiscard]] Result<std::string> generate(const Request& request, const Context& context);

 private:
  SpeculativeParts parts_;
  std::int64_t draft_len_;
  bool adaptive_;
  QuirkSet<Quirk> quirks_;
};

}  // namespace kvo::generation
