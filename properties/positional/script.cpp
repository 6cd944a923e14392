// Sizes, long lives and planned orders of the scripts of contract positional.
#include "properties/positional/script.hpp"

namespace kvo::positional {

// ---- Sizes ----

// The reference copies all cells, asks each for each token, and when it evicts for each sequence;
// the script follows it with a second one.
void PositionalScript::pay_for(const StartForward& pass) {
  const std::int64_t evicting = memory() < kMaxPosition ? 3 * std::ssize(case_.sequences) : 0;
  pay(cells_.pool() * (20 + std::ssize(pass.positions) + evicting));
}

void PositionalScript::saw_sizes(const StartForward& pass, const PassEffects& effects) {
  if (pass.reserve) return;
  if (effects.cells > 64) reach(Label::kMoreThan64Cells);
  if (effects.cells > 1'024) reach(Label::kMoreThan1024Cells);
  if (effects.evicted > 64) reach(Label::k64EvictionsOfASequence);
  if (pass.positions.size() > 16) reach(Label::kMoreThan16Tokens);
  if (pass.positions.size() > 64) reach(Label::kMoreThan64Tokens);
  if (scale_ == Scale::kLarge) {
    const std::set<std::int64_t> together(pass.seqs.begin(), pass.seqs.end());
    if (together.size() > 64) reach(Label::k65SequencesInABatch);
    named_.insert(together.begin(), together.end());
    if (named_.size() > 64) reach(Label::k65SequencesInACase);
  }
}

// ---- Long lives ----

// One token more of the sequence that lives, unless an old one is due.
Op PositionalScript::age() {
  constexpr std::int64_t kRoom = 3;
  if (was_full_ || (cells_.free() < kRoom && memory() == kMaxPosition)) {
    was_full_ = false;
    return Op::of(Remove{draw().percent(70) ? 0 : draw().between(1, 3), 0, kMaxPosition});
  }
  for (const Old& old : old_)
    if (old.visits == 0 || passes_ + 1 - old.named >= old.idle) return visit(old);
  return Op::of(StartForward{.positions = {next_position(0)}, .seqs = {0}});
}

// At first by itself, then behind another, so that its number in the batch is not what it was.
Op PositionalScript::visit(const Old& old) {
  const std::int32_t at = next_position(old.sequence);
  constexpr std::int32_t kKept = 2;
  if (at > kKept && memory() == kMaxPosition) return Op::of(Remove{old.sequence, 1, kMaxPosition});
  visits_ = true;
  if (old.visits % 2 == 0) return Op::of(StartForward{.positions = {at}, .seqs = {old.sequence}});
  plan(CanResume{old.sequence, at});
  return Op::of(StartForward{.positions = {next_position(0), at}, .seqs = {0, old.sequence}});
}

void PositionalScript::saw_age(const StartForward& pass) {
  ++passes_;
  for (Old& old : old_) {
    if (std::ranges::find(pass.seqs, old.sequence) == pass.seqs.end()) continue;
    if (old.visits > 0 && passes_ - old.named == 256) reach(Label::kIdleFor256Passes);
    if (old.visits > 0 && passes_ - old.named == 65'536) reach(Label::kIdleFor65536Passes);
    old.named = passes_;
    ++old.visits;
  }
}

// ---- Planned orders ----

void PositionalScript::choose_two() {
  one_ = case_.sequences[draw().below(case_.sequences.size())];
  other_ = one_ + 1;
}

// Of the first member, as init decides it (OK-10 to OK-12).
std::int64_t PositionalScript::memory() const {
  const CacheConfig& member = case_.members.front();
  const std::int64_t window = member.window.value_or(0);
  if (window == 0) return kMaxPosition;
  std::int64_t memory = member.memory.value_or(0);
  if (memory == 0) memory = window;
  if (case_.init.max_sequences > 1) memory = std::max(memory, window + 1);
  return memory >= case_.init.capacity ? kMaxPosition : memory;
}

std::optional<Op> PositionalScript::tokens_of(std::int64_t sequence, std::int64_t count,
                                              bool reserve) {
  if (cells_.free() < count) return std::nullopt;
  StartForward pass{.reserve = reserve};
  const std::int32_t first = next_position(sequence);
  for (std::int64_t i = 0; i < count; ++i) {
    pass.positions.push_back(first + static_cast<std::int32_t>(i));
    pass.seqs.push_back(sequence);
  }
  return Op::of(std::move(pass));
}

// One position of a sequence, neither its first nor its last.
std::optional<Op> PositionalScript::middle_of(std::int64_t sequence) {
  const std::vector<std::int32_t> all = cells_.positions(sequence);
  if (all.size() < 3) return std::nullopt;
  const auto at = static_cast<std::size_t>(draw().between(1, std::ssize(all) - 2));
  return Op::of(Remove{sequence, all[at], all[at + 1]});
}

// The mask is built anew over cells that lie outside the range of its pass (OK-41).
std::optional<Op> PositionalScript::copied_onto_then_seen_ahead(std::size_t number) {
  switch (number) {
    case 0:
      choose_two();
      return tokens_of(other_, draw().between(2, 3));
    case 1:
      return tokens_of(one_, draw().between(1, 3));
    case 2:
      return Op::of(CopyPrefix{other_, one_, next_position(other_)});
    case 3:
      return Op::of(SetCausal{.except = {0}});
    case 4:
      return tokens_of(one_, 1);
    default:
      return get();
  }
}

std::optional<Op> PositionalScript::removed_then_seen_ahead(std::size_t number) {
  switch (number) {
    case 0:
      choose_two();
      return tokens_of(one_, draw().between(3, 5));
    case 1:
      return draw().percent(50)
                 ? middle_of(one_)
                 : std::optional(Op::of(Remove{one_, some_position(one_), kMaxPosition}));
    case 2:
      return Op::of(SetCausal{.except = {0}});
    case 3:
      return tokens_of(one_, 1);
    default:
      return get();
  }
}

// Both sequences would give up all that they have, and the batch does not fit.
std::optional<Op> PositionalScript::refused_while_two_evict(std::size_t number) {
  constexpr std::int64_t kMostTokens = 300;
  if (memory() == kMaxPosition || cells_.pool() >= kMostTokens) return std::nullopt;
  switch (number) {
    case 0: {
      choose_two();
      StartForward pass;
      for (const std::int64_t each : {one_, other_})
        for (std::int32_t i = 0; i < 2; ++i) {
          pass.positions.push_back(next_position(each) + i);
          pass.seqs.push_back(each);
        }
      return Op::of(std::move(pass));
    }
    case 1: {
      const auto gap = static_cast<std::int32_t>(memory() + draw().between(0, 2));
      StartForward pass;
      std::int32_t next = next_position(one_) + gap;
      pass.positions = {next++, next_position(other_) + gap};
      pass.seqs = {one_, other_};
      while (std::ssize(pass.positions) <= cells_.pool()) {
        pass.positions.push_back(next++);
        pass.seqs.push_back(one_);
      }
      return Op::of(std::move(pass));
    }
    case 2:
      return Op::of(CanResume{one_, next_position(one_)});
    case 3:
      return Op::of(CanResume{other_, next_position(other_)});
    case 4:
      return tokens_of(other_, 1);
    default:
      return get();
  }
}

std::optional<Op> PositionalScript::reserved_in_between(std::size_t number) {
  switch (number) {
    case 0:
      choose_two();
      return tokens_of(one_, 2);
    case 1:
      return tokens_of(one_, draw().between(1, 3), true);
    case 2:
      return Op::of(SetCausal{.except = {0}});
    case 3:
      return tokens_of(one_, 1);
    default:
      return get();
  }
}

// Cells that two had are one's again, and may move (OK-67).
std::optional<Op> PositionalScript::shared_then_moved(std::size_t number) {
  switch (number) {
    case 0:
      choose_two();
      return tokens_of(one_, 4);
    case 1:
      return Op::of(CopyPrefix{one_, other_, next_position(one_)});
    case 2:
      return Op::of(Remove{other_, 0, kMaxPosition});
    case 3:
      return middle_of(one_);
    case 4:
      return tokens_of(one_, 1);
    default:
      return get();
  }
}

// Two go on from a prefix, each in cells of its own, and one of them ends.
std::optional<Op> PositionalScript::shared_then_parted(std::size_t number) {
  switch (number) {
    case 0:
      choose_two();
      return tokens_of(one_, 3);
    case 1:
      return Op::of(CopyPrefix{one_, other_, next_position(one_) - 1});
    case 2: {
      StartForward pass{.positions = {next_position(one_), next_position(other_)},
                        .seqs = {one_, other_}};
      return Op::of(std::move(pass));
    }
    case 3:
      return Op::of(Remove{one_, 0, kMaxPosition});
    case 4:
      return tokens_of(other_, 1);
    default:
      return get();
  }
}

// More groups than a batch or a word has (OK-65).
std::optional<Op> PositionalScript::many_groups_moved(std::size_t number) {
  constexpr std::int64_t kGroups = 9;
  constexpr std::int64_t kMostTokens = 200;
  const std::int64_t tokens = kGroups * case_.init.max_batch + 3;
  const auto& shift = case_.members.front().shift;
  const bool moves = shift && shift->has_value() && (*shift)->kind != ShiftKind::kFail;
  switch (number) {
    case 0:
      choose_two();
      if (!moves || tokens > kMostTokens) return std::nullopt;
      return tokens_of(one_, tokens);
    case 1: {
      const std::vector<std::int32_t> all = cells_.positions(one_);
      if (std::ssize(all) < tokens) return std::nullopt;
      return Op::of(Remove{one_, all[1], all[2]});
    }
    default:
      return get();
  }
}

// A batch that takes all cells but a few.
std::optional<Op> PositionalScript::prefilled_at_once(std::size_t number) {
  constexpr std::int64_t kMostTokens = 1'100;
  switch (number) {
    case 0:
      choose_two();
      if (scale_ != Scale::kLarge) return std::nullopt;
      return tokens_of(one_, std::clamp<std::int64_t>(cells_.free() - 4, 1, kMostTokens));
    case 1:
      return middle_of(one_);
    case 2:
      return tokens_of(one_, 1);
    default:
      return get();
  }
}

// A row of the mask for a sequence that is another one by its cells, more often than rows are kept.
std::optional<Op> PositionalScript::many_rows_of_masks(std::size_t number) {
  constexpr std::size_t kSeen = 132;  // operations whose masks nobody looks at
  constexpr std::int64_t kEach = 3;
  if (number == 0) {
    choose_two();
    if (scale_ == Scale::kSmall || cells_.free() < 2 * kEach) return std::nullopt;
    StartForward pass;
    for (std::int32_t i = 0; i < kEach; ++i)
      for (const std::int64_t each : {one_, other_}) {
        pass.positions.push_back(next_position(each) + i);
        pass.seqs.push_back(each);
      }
    return Op::of(std::move(pass));
  }
  if (number % 2 == 1) {
    if (draw().percent(50)) std::swap(one_, other_);
    return Op::of(Remove{one_, std::max(next_position(one_) - 1, 0), kMaxPosition});
  }
  quiet_ = number < kSeen;
  return tokens_of(one_, 1);
}

// A member behind the encoder has no room; the encoder's rows, which come with the next pass,
// belong to the token that was refused (OK-83).
std::optional<Op> PositionalScript::put_after_unwinding(std::size_t number) {
  constexpr std::int64_t kMostTokens = 300;
  const auto encoder = std::ranges::find(case_.members, MemberKind::kEncoder, &CacheConfig::cache) -
                       case_.members.begin();
  if (encoder + 1 >= std::ssize(case_.members) || encoder >= case_.layers ||
      cells_.pool() >= kMostTokens)
    return std::nullopt;
  switch (number) {
    case 0:
    case 4: {
      if (number == 0) choose_two();
      at_ = next_position(one_);
      const std::int64_t tokens = number == 0 ? 1 : cells_.pool() + 1;
      StartForward pass{.seqs = std::vector(static_cast<std::size_t>(tokens), one_)};
      for (std::int32_t i = 0; i < tokens; ++i) pass.positions.push_back(at_ + i);
      pass.multimodal = {0};
      // The token of the rows that are there comes once more, and takes them out.
      if (number > 0) pass.positions.back() = std::max(at_ - 1, 0);
      return Op::of(std::move(pass));
    }
    case 6:
      return tokens_of(one_, 1);
    case 1:
    case 7:
      return Op::of(SetLayerType{encoder});
    case 2:
    case 8:
      return Op::of(SetLayer{encoder});
    case 3:
    case 9:
      return put(encoder, false);
    case 10:
      return Op::of(Remove{one_, at_, kMaxPosition});
    default:
      return encoder_cached();
  }
}

}  // namespace kvo::positional
