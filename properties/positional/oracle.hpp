// properties/positional/oracle.hpp: the oracle of the positional caches, from the
// definitions alone.
//
// For every sequence of every member it keeps the tokens with what was put for them, and at each
// get recomputes attention over what each row of the batch must see (OK-31), with keys moved by the
// shift function from where they were put to where they are. An encoder must show, bit by bit, what
// was put last (OK-73).
// Judged   every row of every get that succeeds, also in reserve passes, except
// Skipped  rows that may see a token which bounded memory may have given up (OK-18, OK-19), or one
//          whose rows were never put in that layer (OK-44); all rows of a pass whose mask was built
//          anew after a copy_prefix or remove (OK-41: the visible range is that of before); layers
//          of an encoder with reserve puts only (OK-76); rows that overflow their storage type. In
//          the original also what errors leave unknown until the sequence is cleared or copied
//          onto: after a remove (OK-66, OK-67), and in a wrapper after a start_forward (OK-83), for
//          the sequences of its batch.
// Unseen   by attention: keys where a token sees one row only, an equal change of all keys that it
//          sees, and moves below the tolerance: 1e-5 of the largest value in f32, in f16 and bf16
//          4 epsilon for the put and for each move. Rows that never moved have 1e-9.
#pragma once

#include <memory>

#include "properties/runner/oracle.hpp"

namespace kvo::positional {

/// The oracle of a case; null for kinds of other contracts.
[[nodiscard]] std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup);

}  // namespace kvo::positional
