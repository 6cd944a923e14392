// Planned orders and long lives of the scripts of snapshot.kv and snapshot.rotating.
#include "properties/snapshot/rows_script.hpp"

namespace kvo::snapshot {

// Planned orders.
// What a cache shares with a snapshot is overwritten, once round and more.
std::optional<Op> RowsScript::changed_while_away(std::size_t number) {
  switch (number) {
    case 0:
      return update(window_ > 0 ? live_window_ + 1 : 3);
    case 1:
      return whole();
    case 2:
      return window_ > 0 ? update(2 * live_window_ + 1) : Op::of(Free{});
    case 3:
      return restored();
    case 4:
      return update(1);
    default:
      return state();
  }
}

std::optional<Op> RowsScript::merged_halves_restored(std::size_t number) {
  switch (number) {
    case 0:
      return update(4);
    case 1:
      return whole();
    case 2:
      merges_halves_ = true;  // the merge comes of itself
      return last_ ? std::optional(Op::of(Split{*last_, draw().between(1, 3)})) : std::nullopt;
    case 3:
      return Op::of(Free{});
    case 4:
      return restored();
    case 5:
      return update(1);
    default:
      return state();
  }
}

// What is cut off and written anew stays what it was in the snapshot.
std::optional<Op> RowsScript::rewound_under_a_snapshot(std::size_t number) {
  switch (number) {
    case 0:
      return update(3);
    case 1:
      return whole();
    case 2:
      return Op::of(Restore{std::nullopt, std::max<std::int64_t>(offset_ - 2, 0)});
    case 3:
      return update(2);
    case 4:
      return last_ ? std::optional(Op::of(Reread{*last_})) : std::nullopt;
    case 5:
      return restored();
    default:
      return state();
  }
}

std::optional<Op> RowsScript::closed_while_restored(std::size_t number) {
  switch (number) {
    case 0:
      return update(3);
    case 1:
      return whole();
    case 2:
      return restored();
    case 3:
      return last_ ? std::optional(Op::of(Close{*last_})) : std::nullopt;
    case 4:
      return update(2);
    default:
      return state();
  }
}

// The cache goes on behind the first of two snapshots, which the second one goes on behind, too.
std::optional<Op> RowsScript::tails_of_two_snapshots(std::size_t number) {
  switch (number) {
    case 0:
      return update(3);
    case 1:
      return whole();
    case 2:
      first_ = last_;
      first_end_ = offset_;
      return update(1);
    case 3:
      return whole();
    case 4:
      return first_ ? std::optional(Op::of(Restore{*first_, first_end_})) : std::nullopt;
    case 5:
      return update(1);
    default:
      return last_ ? std::optional(Op::of(Reread{*last_})) : std::nullopt;
  }
}

// Two snapshots that adjoin, and whose keys alone differ in shape.
std::optional<Op> RowsScript::merged_of_two_shapes(std::size_t number) {
  switch (number) {
    case 0:
      return window_ > 0 ? std::nullopt : std::optional(update(3));
    case 1:
      return whole();
    case 2:
      first_ = last_;
      first_end_ = offset_;
      return Op::of(Free{});
    case 3: {
      auto [k, v] = rows(first_end_ + 2, k_dim_ + 1, v_dim_, type_);
      return Op::of(Update{std::move(k), std::move(v)});
    }
    case 4:
      last_.reset();
      return Op::of(Take{first_end_});
    case 5:
      return first_ && last_ ? std::optional(Op::of(Merge{*first_, *last_})) : std::nullopt;
    default:
      return Op::of(Free{});
  }
}

// Wide rows, or many.
void RowsScript::grow() {
  if (draw().percent(50)) {
    batch_ = heads_ = k_dim_ = v_dim_ = 1;
  } else {
    batch_ = draw().percent(80) ? draw().between(1, 2) : draw().edge(4, 17);
    heads_ = draw().edge(1, batch_ > 2 ? 3 : 17);
    k_dim_ = draw().edge(8, 129);
    v_dim_ = draw().percent(70) ? k_dim_ : draw().edge(1, 129);
    while (width() > 512) {
      if (heads_ > 1 && k_dim_ <= 64 && v_dim_ <= 64) {
        heads_ /= 2;
      } else {
        k_dim_ = (k_dim_ + 1) / 2;
        v_dim_ = (v_dim_ + 1) / 2;
      }
    }
  }
  type_ = draw().one_of({DType::kF32, DType::kF32, DType::kF16, DType::kF16, DType::kBF16,
                         DType::kBF16, DType::kF8E4M3});
}

// Rows are f32, and of codes longer than a group where there are few.
void RowsScript::narrow() {
  type_ = DType::kF32;
  if (!in_groups(storage_.format.type) || is_long() || scale_ == Scale::kLong ||
      odd_draw_.percent(40))
    return;
  batch_ = 1;
  heads_ = odd_draw_.between(1, 2);
  k_dim_ = odd_draw_.between(33, 100);
  v_dim_ = odd_draw_.percent(60) ? k_dim_ : odd_draw_.between(33, 100);
}

// A long life: a ring goes round, or a cache is rewound and written anew; now and then there is a
// snapshot for a while.
Op RowsScript::age() {
  constexpr std::int64_t kTokens = 4;
  if (window_ == 0 && offset_ > 2 * kTokens) return Op::of(Restore{std::nullopt, kTokens});
  if (draw().percent(98)) return update(1);
  if (last_) return Op::of(Close{*std::exchange(last_, std::nullopt)});
  return Op::of(Take{0});
}

void RowsScript::plan_fork(std::int64_t number) {
  const std::int64_t end = offset_;
  const std::optional<std::int64_t> window =
      window_ > 0 ? std::optional(live_window_) : std::nullopt;
  for (int branch = 0; branch < 2; ++branch) {
    plan(New{window});
    plan(Restore{number, end});
    plan(update(draw().between(1, 3)));
    plan(Take{0});
  }
  plan(Reread{number});
  plan(Restore{number, end});
  forked_ = true;
}

std::pair<Tensor, Tensor> RowsScript::rows(std::int64_t tokens, std::int64_t k_dim,
                                           std::int64_t v_dim, DType type) {
  auto [k, unused] = tagger_.pair({batch_, heads_, tokens, k_dim});
  auto [spare, v] = tagger_.pair({batch_, heads_, tokens, v_dim});
  if (storage_.odd_rows) {
    fill_oddly(odd_draw_, k);
    fill_oddly(odd_draw_, v);
  }
  return {of_type(k, type), of_type(v, type)};
}

void RowsScript::saw_sizes(std::int64_t tokens) {
  pay();
  const DType kept = is_narrow() ? dtype_of(storage_.format.type) : type_;
  if (tokens > 64 && dtype_bytes(kept) == 2 && k_dim_ >= 1) reach(Label::kHalfWordsInRunsOf64);
  if (dtype_bytes(kept) == 1) reach(StorageLabel::kEightBitFloats);
  reach_stored(storage_.format, k_dim_, storage_.odd_rows,
               [&](StorageLabel label) { reach(label); });
  if (offset_ + tokens > 1'024) reach(Label::kMoreThan1024Tokens);
  if (++writes_ > 65'536) reach(Label::kWritesBeyond65536);
  if (heads_ > 4) reach(Label::kFiveHeads);
  if (k_dim_ >= 64) reach(Label::kHeadsOf64Elements);
}

Op RowsScript::split() {
  const Nullable<std::int64_t> handle = handles_.any(draw());
  const Handles::Known* known = handles_.find(handle);
  if (known == nullptr) return Op::of(Split{handle, draw().between(-1, 5)});
  return Op::of(Split{handle, draw().between(known->from - 1, known->to + 1)});
}

Op RowsScript::make() {
  if (window_ == 0 || draw().percent(50)) return Op::of(New{});
  return Op::of(New{draw().percent(5) ? draw().between(1, 3) : draw().size(1, kMostWindow)});
}

}  // namespace kvo::snapshot
