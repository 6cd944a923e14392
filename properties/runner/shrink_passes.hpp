// properties/runner/shrink_passes.hpp: the passes of the shrinker. Each tries simpler trials, and
// returns true if one of them fails and has taken the place of the trial.
#pragma once

#include <cstddef>
#include <cstdint>

#include "properties/runner/shrinker.hpp"

namespace kvo {

/// Larger numbers are no sizes, and products of them would overflow.
inline constexpr std::int64_t kMostScaled = 1 << 20;

// Of the script alone: shrink_script.cpp.

/// Chunks of operations, of halving size down to `finest`.
bool drop_operations(Shrinkable& trial, Judge& fails, std::size_t finest);
/// Operations at the end.
bool drop_tail(Shrinkable& trial, Judge& fails);
/// Cuts the script off early and ends it with a query: a difference often shows long before the
/// operation that first found it.
bool end_with_query(Shrinkable& trial, Judge& fails, const Script& queries);
/// Makes one operation of two that hold lists of numbers, in the place of either: tokens that came
/// one by one, or by two ways, come together.
bool join_lists(Shrinkable& trial, Judge& fails);
/// Makes one round of operations of at least `fewest` that follow each other, as passes and their
/// rows do; what counts them adds up.
bool join_rounds(Shrinkable& trial, Judge& fails, std::size_t fewest);
/// The arguments of each operation.
bool shrink_arguments(Shrinkable& trial, Judge& fails);
/// Several operations that can only go together: any that follow each other, or two.
bool drop_several(Shrinkable& trial, Judge& fails);
/// The elements in order of the script: keys, or what comes first in an operation, count up, what
/// follows counts down.
bool make_elements_plain(Shrinkable& trial, Judge& fails);

// Of several operations, and of the config with them: shrink_jointly.cpp.

/// Integers and flags of the config.
bool shrink_config(Shrinkable& trial, Judge& fails);
/// Drops all operations that name some of the values of a member: caches, sequences, layers.
bool drop_named(Shrinkable& trial, Judge& fails);
/// The same, one value or all but one; higher values are renumbered, and a count of the values (of
/// layers, in the config) gets smaller with them.
bool drop_values(Shrinkable& trial, Judge& fails);
/// Drops operations that gave numbers to what they made: higher numbers get smaller.
bool drop_numbered(Shrinkable& trial, Judge& fails);
/// Drops an operation, and from it on lets the things of the numbers 0 and 1 change them.
bool drop_and_swap(Shrinkable& trial, Judge& fails);
/// Replaces an integer by 0 or 1 wherever it is: what several operations name, a token in lists.
bool renumber(Shrinkable& trial, Judge& fails);
/// Cuts an axis of all tensors that are as long there, and with it numbers in proportion: rows that
/// must fit each other and the cache.
bool cut_axes(Shrinkable& trial, Judge& fails);
/// Makes an integer smaller, and another one in proportion: a product of sizes, or the last index
/// below it.
bool scale_together(Shrinkable& trial, Judge& fails);
/// Lowers all integers from a bound on by the same amount, and cuts the first axes of tensors by
/// it: counts of tokens that must fit each other.
bool lower_together(Shrinkable& trial, Judge& fails);

}  // namespace kvo
