// The metamorphic laws of contract `snapshot`.
#include "properties/campaign/metamorphic.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "properties/campaign/laws.hpp"
#include "properties/contract_parts.hpp"
#include "reference/snapshot/operations.hpp"

namespace kvo::snapshot {
namespace {

constexpr std::array<std::string_view, 3> kHandleMembers{"handle", "parent", "child"};

// The number that operation `at` gave to a snapshot that it took, if it took one.
const Numbered* taken_by(const Drawn& drawn, std::size_t at) {
  if (drawn.script[at].as<Take>() == nullptr || !drawn.succeeded(at)) return nullptr;
  const auto* taken = drawn.seen[at].returns.get_if<Numbered>();
  return taken != nullptr && taken->handle.has_value() ? taken : nullptr;
}

std::int64_t end_of(const Contents& taken) {
  return taken.to ? *taken.to : *taken.offset;
}

// A script whose rows have one type and one shape but for the tokens, and whose snapshots are the
// only numbered things: more updates in between change nothing but what they write.
bool is_plain(const Drawn& drawn) {
  const Update* first = nullptr;
  const auto alike = [](const Tensor& a, const Tensor& b) {
    if (a.dtype != b.dtype || a.shape.size() != b.shape.size()) return false;
    for (std::size_t axis = 0; axis < a.shape.size(); ++axis)
      if (axis != kTokenAxis && a.shape[axis] != b.shape[axis]) return false;
    return true;
  };
  return std::ranges::all_of(drawn.script, [&](const Op& op) {
    const auto* update = op.as<Update>();
    if (update == nullptr) return true;
    if (first == nullptr) first = update;
    return !update->keep.value_or(false) && alike(update->k, first->k) &&
           alike(update->v, first->v);
  });
}

bool has_states(const Drawn& drawn) {
  return &drawn.kind == &recurrent_kind();
}

// A plain script in which nothing shows that a snapshot was restored. A second close of a state may
// (MR-48).
bool may_restore_more(const Drawn& drawn) {
  const bool closes =
      std::ranges::any_of(drawn.script, [](const Op& op) { return op.as<Close>() != nullptr; });
  return is_plain(drawn) &&
         !(has_states(drawn) && closes && drawn.setup.profile == Profile::kOriginal);
}

// Of the kinds that have one cache.
bool is_of_one_cache(const CacheKind& kind) {
  return &kind == &kv_kind() || &kind == &rotating_kind() || &kind == &recurrent_kind();
}

// Other rows than those of the snapshot, or of the last update.
void write_others(Variation& varied, const Contents& taken, const Update* last) {
  const auto plus_one = [](Tensor tensor) {
    if (tensor.dtype == DType::kF32)
      for (float& cell : tensor.floats()) cell += 1;
    return tensor;
  };
  if (taken.conv) {
    varied.insert(Op::of(SetConvState{plus_one(*taken.conv)}));
    varied.insert(Op::of(Advance{3}));
  } else {
    const Op update = Op::of(Update{plus_one(last->k), plus_one(last->v)});
    varied.insert(update);
    varied.insert(update);
  }
}

// ---- a_b_a ----

// After every snapshot the cache continues, and comes back by it.
Variation gone_and_restored(const Drawn& drawn) {
  Variation varied;
  if (!may_restore_more(drawn)) return {};
  const Update* last = nullptr;
  bool any = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    varied.pair(at, op);
    if (const auto* update = op.as<Update>(); update && drawn.succeeded(at)) last = update;
    const Numbered* taken = taken_by(drawn, at);
    if (taken == nullptr || (!has_states(drawn) && last == nullptr)) continue;
    any = true;
    write_others(varied, taken->shown, last);
    varied.insert(Op::of(Restore{taken->handle, end_of(taken->shown)}));
  }
  return any ? varied : Variation();
}

const MetamorphicLaw& back_again() {
  static const MetamorphicLaw kLaw("a_b_a", "what is added and taken back again leaves no trace",
                                   kLongScript,
                                   {.how = "with an append and a restore inserted",
                                    .applies = is_of_one_cache,
                                    .transformation = gone_and_restored});
  return kLaw;
}

// ---- split_then_merge ----

// Numbers depend on what was taken before.
Observation without_numbers(const Observation& seen) {
  if (const auto* one = seen.returns ? seen.returns.get_if<Numbered>() : nullptr) {
    Numbered changed = *one;
    if (changed.handle.has_value()) changed.handle = 0;
    return {.error = seen.error, .returns = Record::of(std::move(changed))};
  }
  if (const auto* halves = seen.returns ? seen.returns.get_if<Split::Returns>() : nullptr) {
    Split::Returns changed = *halves;
    for (Nullable<Numbered>* half : {&changed.parent, &changed.child})
      if (half->has_value()) half->value->handle = 0;
    return {.error = seen.error, .returns = Record::of(std::move(changed))};
  }
  return seen;
}

// Snapshots that an operation showed first get the numbers that come.
void number_shown(const Observation& seen, NewNumbers& numbers) {
  const auto made = [&](const Numbered& one) {
    if (one.handle.has_value()) numbers.made(*one.handle);
  };
  if (!seen.returns || seen.error) return;
  if (const auto* one = seen.returns.get_if<Numbered>()) made(*one);
  if (const auto* halves = seen.returns.get_if<Split::Returns>())
    for (const Nullable<Numbered>& half : {halves->parent, halves->child})
      if (half.has_value()) made(*half);
}

// Every snapshot of two tokens or more is split, and its halves take its place as one.
Variation split_and_merged(const Drawn& drawn) {
  if (!is_plain(drawn)) return {};
  Variation varied;
  NewNumbers numbers(kHandleMembers, 1);
  bool any = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    varied.pair(at, numbers.named(drawn.script[at]), without_numbers);
    number_shown(drawn.seen[at], numbers);
    const Numbered* taken = taken_by(drawn, at);
    if (taken == nullptr || *taken->shown.to - *taken->shown.from < 2) continue;
    any = true;
    const std::int64_t whole = numbers.of(*taken->handle);
    const std::int64_t before = numbers.skip();
    const std::int64_t behind = numbers.skip();
    varied.insert(Op::of(
        Split{whole, *taken->shown.from + cut_of(at, *taken->shown.to - *taken->shown.from)}));
    varied.insert(Op::of(Merge{before, behind}));
    numbers.becomes(*taken->handle, numbers.skip());
  }
  return any ? varied : Variation();
}

const MetamorphicLaw& halves() {
  static const MetamorphicLaw kLaw(
      "split_then_merge", "a snapshot that is split and merged again is what it was", kLongScript,
      {.how = "with a split and a merge inserted",
       .applies = [](const CacheKind& kind) { return &kind == &kv_kind(); },
       .transformation = split_and_merged});
  return kLaw;
}

// ---- snapshots_do_not_change ----

// A snapshot as reread shows it.
Observation as_contents(const Observation& seen) {
  const auto* one = seen.returns ? seen.returns.get_if<Numbered>() : nullptr;
  if (one == nullptr) return seen;
  return {.error = seen.error, .returns = Record::of(one->shown)};
}

// Whatever comes after them, snapshots that no merge or split took over are read again at the end.
Variation read_at_the_end(const Drawn& drawn) {
  Variation varied;
  std::set<std::int64_t> given_up;
  for (const Op& op : drawn.script) {
    varied.insert(op);
    if (op.as<Merge>() == nullptr && op.as<Split>() == nullptr && op.as<Close>() == nullptr)
      continue;
    for (const std::string_view member : kHandleMembers)
      if (const auto number = integer_of(op, member)) given_up.insert(*number);
  }
  for (std::size_t at = 0; at < drawn.script.size(); ++at)
    if (const Numbered* taken = taken_by(drawn, at); taken && !given_up.contains(*taken->handle))
      varied.pair(at, Op::of(Reread{*taken->handle}), as_contents);
  return varied.pairs.empty() ? Variation() : varied;
}

const MetamorphicLaw& lasting() {
  static const MetamorphicLaw kLaw("snapshots_do_not_change",
                                   "what a snapshot holds does not depend on what is done later",
                                   kLongScript,
                                   {.how = "snapshot read at the end",
                                    .applies = is_of_one_cache,
                                    .transformation = read_at_the_end});
  return kLaw;
}

// ---- fork_then_write ----

// A cache in the place of the one that was, at what the snapshot holds.
void restore_anew(Variation& varied, std::optional<std::int64_t> window, std::int64_t number,
                  const Numbered& taken) {
  varied.insert(Op::of(New{window}));
  varied.insert(Op::of(Restore{number, end_of(taken.shown)}));
}

// After every snapshot of all that is live a second cache comes of it. Other rows are written
// there, and a snapshot holds them. Then a third one continues in the place of the first.
Variation forked_and_written(const Drawn& drawn) {
  if (!may_restore_more(drawn)) return {};
  Variation varied;
  NewNumbers numbers(kHandleMembers, 1);
  std::optional<std::int64_t> window;
  const Update* last = nullptr;
  bool any = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    varied.pair(at, numbers.named(op), without_numbers);
    number_shown(drawn.seen[at], numbers);
    if (const auto* made = op.as<New>(); made && drawn.succeeded(at)) window = made->max_size;
    if (const auto* update = op.as<Update>(); update && drawn.succeeded(at)) last = update;
    const Numbered* taken = taken_by(drawn, at);
    if (taken == nullptr || (!has_states(drawn) && last == nullptr)) continue;
    if (&drawn.kind == &kv_kind() && *taken->shown.from > 0) continue;  // not all that is live
    any = true;
    const std::int64_t number = numbers.of(*taken->handle);
    restore_anew(varied, window, number, *taken);
    write_others(varied, taken->shown, last);
    varied.insert(Op::of(Take{-1}));
    (void)numbers.skip();
    varied.pair(at, Op::of(Reread{number}), as_contents);
    restore_anew(varied, window, number, *taken);
  }
  return any ? varied : Variation();
}

const MetamorphicLaw& forks() {
  static const MetamorphicLaw kLaw(
      "fork_then_write", "what is written on one branch does not show on the other", kLongScript,
      {.how = "after a write to another branch",
       .applies = is_of_one_cache,
       .transformation = forked_and_written});
  return kLaw;
}

}  // namespace

std::vector<const Law*> laws() {
  return {&back_again(), &halves(), &lasting(), &forks()};
}

}  // namespace kvo::snapshot
