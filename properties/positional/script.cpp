// Sizes, long lives and planned orders of the scripts of contract positional.
#include "properties/positional/script.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "properties/campaign/generator.hpp"

namespace kvo::positional {

// ---- cases ----

namespace {

// Sizes over scales. Where they multiply, all but the small ones are rare: a reference looks at
// every cell for every token.
constexpr std::int64_t kMostSequences = 9;
constexpr std::int64_t kMostCapacity = 65;
constexpr std::int64_t kMostBatch = 33;
constexpr std::int64_t kMostWindow = 33;
constexpr std::int64_t kMostLayers = 5;
constexpr std::int64_t kMostHeads = 5;
constexpr std::int64_t kMostDim = 9;

// Mostly from `low` to `usual`, for small cases are quick and shrink well; now and then any scale.
std::int64_t size(Draw& draw, std::int64_t low, std::int64_t usual, std::int64_t most) {
  constexpr std::uint64_t kUsualPercent = 92;
  return draw.percent(kUsualPercent) ? draw.between(low, usual) : draw.size(low, most);
}

std::int64_t few(Draw& draw, std::int64_t most) {
  return size(draw, 1, 3, most);
}

std::int32_t draw_positions(Draw& draw, std::int64_t low, std::int64_t most) {
  return static_cast<std::int32_t>(size(draw, low, std::min<std::int64_t>(low + 5, most), most));
}

std::optional<ShiftConfig> draw_shift(Draw& draw) {
  if (draw.percent(25)) return std::nullopt;
  if (draw.percent(10)) return ShiftConfig{.kind = ShiftKind::kFail, .message = "shift refused"};
  if (draw.percent(33)) return ShiftConfig{.kind = ShiftKind::kRope, .base = 100.0F};
  return ShiftConfig{.kind = ShiftKind::kAdd,
                     .scale = draw.one_of<float>({0.015625F, 0.015625F, 1.0F, 16.0F})};
}

CacheConfig draw_member(Draw& draw, MemberKind member_kind) {
  CacheConfig member{.cache = member_kind};
  if (member_kind == MemberKind::kEncoder) return member;
  if (member_kind == MemberKind::kSwa || member_kind == MemberKind::kSwaMem)
    member.window = draw_positions(draw, draw.percent(5) ? 0 : 1, kMostWindow);  // 0: none (OK-10)
  if (member_kind == MemberKind::kSwaMem) {
    member.memory = *member.window + draw_positions(draw, 0, kMostWindow / 2);
    // As likely as not less than the window: init refuses it (OK-13).
    if (draw.percent(4)) member.memory = draw_positions(draw, 0, 4);
  }
  if (member_kind == MemberKind::kChunked)
    member.chunk = draw_positions(draw, draw.percent(4) ? 0 : 1, kMostWindow);
  member.shift = Nullable<ShiftConfig>(draw_shift(draw));
  return member;
}

std::vector<CacheConfig> draw_members(Draw& draw, const CacheKind& kind) {
  if (const auto member_kind = member_kind_of(kind)) return {draw_member(draw, *member_kind)};
  constexpr std::array kMemberKinds{MemberKind::kCausal, MemberKind::kSwa, MemberKind::kSwaMem,
                                    MemberKind::kChunked, MemberKind::kEncoder};
  // Windows in front, as models have them; an encoder further back would rarely be selected.
  std::vector<CacheConfig> members{
      draw_member(draw, kMemberKinds.at(draw.weighted({2, 4, 2, 3, 3})))};
  const std::size_t count = 1 + draw.weighted({8, 62, 30});
  while (members.size() < count) {
    CacheConfig member = draw_member(draw, kMemberKinds.at(draw.weighted({50, 18, 14, 16, 2})));
    // Most models move keys alike in all their layers.
    if (member.shift && members.front().shift && draw.percent(75))
      member.shift = members.front().shift;
    members.push_back(std::move(member));
  }
  return members;
}

Init draw_init(Draw& draw, const DrawnCase& drawn) {
  std::int64_t memory = 0;
  for (const CacheConfig& member : drawn.members)
    memory =
        std::max<std::int64_t>({memory, member.memory.value_or(0), member.window.value_or(0) + 1});
  Init init{.max_sequences = few(draw, kMostSequences),
            .capacity = size(draw, 3, 12, kMostCapacity),
            .max_batch = size(draw, 1, 6, kMostBatch),
            .dtype = draw.one_of({StorageType::kF32, StorageType::kF32, StorageType::kF32,
                                  StorageType::kF16, StorageType::kF16})};
  // Bounded memory needs a capacity beyond it (OK-12).
  if (memory > 1) init.capacity = memory + size(draw, 1, 6, kMostCapacity / 2);
  if (memory > 1 && draw.percent(20)) init.capacity = draw.between(2, memory);
  // More sequences than one are refused by an encoder (OK-70).
  if (drawn.has_encoder() && draw.percent(98)) init.max_sequences = 1;
  if (draw.percent(1)) init.capacity = 0;
  // Few cases: bf16 holds too little of a tag to tell rows apart.
  if (draw.percent(10)) init.dtype = StorageType::kBf16;
  return init;
}

// A type that is narrower still, and holds even less. Where keys may be moved by 0 beside others
// that move (OK-65), that must leave them as they are: it takes the sign from a zero of f8, spreads
// a NaN over a pair that turns, and may round a group with an offset anew.
void store_narrowly(Draw& draw, DrawnCase& drawn, Scale scale) {
  Init& init = drawn.init;
  init.dtype = draw.one_of({StorageType::kF8E4m3, StorageType::kF8E5m2, StorageType::kQ8,
                            StorageType::kQ8, StorageType::kQ4, StorageType::kQ4});
  const bool moves = std::ranges::any_of(drawn.members, [](const CacheConfig& member) {
    return member.shift && member.shift->has_value();
  });
  drawn.odd_rows = draw.percent(60) && (in_groups(init.dtype) || !moves);
  if (!in_groups(init.dtype)) return;
  if (draw.percent(50)) init.group = draw.one_of({32, 64, 128});
  if (draw.percent(50) && !moves) init.offset = draw.percent(80);
  // Heads of more than a group, where there are few cells.
  constexpr std::int64_t kMostElements = 60'000;
  const std::int64_t dim = draw.between(33, 100);
  const std::int64_t cells = init.max_sequences * init.capacity;
  if (scale != Scale::kLarge || cells * 2 * dim > kMostElements) return;
  init.group = std::nullopt;
  drawn.heads = 1;
  drawn.k_dim = drawn.v_dim = dim;
  drawn.layers = std::min<std::int64_t>(drawn.layers, 2);
}

void draw_rows(Draw& draw, DrawnCase& drawn) {
  drawn.heads = draw.percent(80) ? draw.between(1, 2) : draw.size(1, kMostHeads);
  drawn.k_dim = few(draw, kMostDim);
  drawn.v_dim = draw.percent(60) ? drawn.k_dim : few(draw, kMostDim);
  drawn.layers = few(draw, kMostLayers);
  drawn.encoder_tokens = draw.size(1, kMostBatch);
  // Every get shows all rows of a range: where there are many, they are short.
  constexpr std::int64_t kMostElements = 2'048;
  const std::int64_t cells = drawn.init.max_sequences * drawn.init.capacity;
  if (cells * drawn.heads * (drawn.k_dim + drawn.v_dim) <= kMostElements) return;
  drawn.heads = std::min<std::int64_t>(drawn.heads, 2);
  drawn.k_dim = drawn.v_dim = 1;
}

// ---- Large cases ----

/// What is large in a case, and by how much at most.
struct Growth {
  std::uint64_t weight;
  std::string_view name;  // for readers
  void (*apply)(Draw& draw, DrawnCase& drawn);
};

// The window or chunk of bounded members, and their memory.
void widen(Draw& draw, DrawnCase& drawn, std::int64_t most) {
  for (CacheConfig& member : drawn.members) {
    if (member.chunk) member.chunk = static_cast<std::int32_t>(draw.edge(3, most));
    if (!member.window) continue;
    member.window = static_cast<std::int32_t>(draw.edge(3, most));
    if (member.memory) member.memory = *member.window + draw_positions(draw, 0, 33);
  }
}

// More cells than the memory of each member, but for those of few.
void enlarge_pool(Draw& draw, DrawnCase& drawn, std::int64_t most) {
  std::int64_t memory = 0;
  for (const CacheConfig& member : drawn.members)
    memory =
        std::max<std::int64_t>({memory, member.memory.value_or(0), member.window.value_or(0) + 1});
  drawn.init.capacity = memory + draw.edge(8, most);
}

constexpr std::array kGrowths{
    Growth{30, "cells",
           [](Draw& draw, DrawnCase& drawn) {
             drawn.init.max_sequences = draw.between(1, 2);
             drawn.init.max_batch = draw.edge(16, 257);
             if (draw.percent(60)) widen(draw, drawn, draw.percent(50) ? 1'025 : 129);
             enlarge_pool(draw, drawn, draw.percent(50) ? 2'049 : 257);
           }},
    Growth{25, "sequences",
           [](Draw& draw, DrawnCase& drawn) {
             drawn.init.max_sequences = draw.edge(32, 129);
             drawn.init.max_batch = draw.edge(16, 129);
             drawn.init.capacity = draw.between(3, 9);
           }},
    Growth{15, "batches",
           [](Draw& draw, DrawnCase& drawn) {
             drawn.init.max_batch = draw.edge(12, 129);
             enlarge_pool(draw, drawn, 257);
           }},
    Growth{15, "windows",
           [](Draw& draw, DrawnCase& drawn) {
             widen(draw, drawn, 513);
             drawn.init.max_batch = draw.edge(8, 65);
             enlarge_pool(draw, drawn, 257);
           }},
    Growth{15, "cells in small batches",
           [](Draw& draw, DrawnCase& drawn) {
             drawn.init.max_sequences = draw.between(1, 3);
             drawn.init.max_batch = draw.between(1, 6);
             enlarge_pool(draw, drawn, 129);
           }},
    Growth{30, "rows",
           [](Draw& draw, DrawnCase& drawn) {
             drawn.heads = draw.edge(1, 17);
             drawn.k_dim = draw.edge(4, 129);
             drawn.v_dim = draw.percent(60) ? drawn.k_dim : draw.edge(1, 129);
           }},
    Growth{15, "layers", [](Draw& draw, DrawnCase& drawn) { drawn.layers = draw.edge(4, 33); }},
};

// One thing is large, and sometimes a second one. The elements of all rows stay within bounds.
void grow(Draw& draw, DrawnCase& drawn) {
  std::vector<std::uint64_t> weights;
  for (const Growth& growth : kGrowths) weights.push_back(growth.weight);
  for (int left = draw.percent(30) ? 2 : 1; left > 0; --left)
    kGrowths.at(draw.weighted(weights)).apply(draw, drawn);
  if (drawn.has_encoder()) drawn.init.max_sequences = 1;
  drawn.encoder_tokens = draw.edge(4, 129);
  // In every second case: runs of 16 bits are what vectors are used for.
  if (draw.percent(50))
    drawn.init.dtype = draw.one_of({StorageType::kF16, StorageType::kBf16, StorageType::kBf16});
  constexpr std::int64_t kMostElements = 60'000;
  const std::int64_t cells = drawn.init.max_sequences * drawn.init.capacity;
  const auto elements = [&] { return cells * drawn.heads * (drawn.k_dim + drawn.v_dim); };
  while (elements() > kMostElements && drawn.k_dim + drawn.v_dim + drawn.heads > 3)
    for (std::int64_t* size : {&drawn.k_dim, &drawn.v_dim, &drawn.heads}) *size = (*size + 1) / 2;
  if (elements() * drawn.layers > kMostElements)
    drawn.layers = std::min(drawn.layers, few(draw, 3));
}

// ---- Long lives ----

// The smallest rows, one or two sequences that live, and one that grows old.
void shrink(Draw& draw, DrawnCase& drawn) {
  for (CacheConfig& member : drawn.members) {
    if (member.window) member.window = static_cast<std::int32_t>(draw.between(1, 3));
    if (member.memory) member.memory = *member.window + draw_positions(draw, 0, 2);
    if (member.chunk) member.chunk = static_cast<std::int32_t>(draw.between(1, 3));
  }
  drawn.init.max_sequences = 3;
  drawn.init.max_batch = draw.between(1, 2);
  drawn.init.capacity = draw.percent(50) ? draw.between(2, 3) : draw.between(6, 8);
  drawn.heads = drawn.k_dim = drawn.v_dim = drawn.layers = 1;
  drawn.sequences = {0, 1};
  drawn.in_order = true;
}

// ---- Strange batches ----

struct Perturbation {
  std::string_view name;  // for readers
  void (*apply)(Draw& draw, StartForward& pass, std::int32_t& one);
};

constexpr std::array kPerturbations{
    Perturbation{"reversed", [](Draw& /*draw*/, StartForward& pass,
                                std::int32_t& /*one*/) { std::ranges::reverse(pass.positions); }},
    Perturbation{"a token further on",
                 [](Draw& draw, StartForward& /*pass*/, std::int32_t& one) {
                   one += static_cast<std::int32_t>(draw.between(1, 5));
                 }},
    Perturbation{"a token before its place",
                 [](Draw& draw, StartForward& /*pass*/, std::int32_t& one) {
                   one = static_cast<std::int32_t>(draw.between(0, one));
                 }},
    Perturbation{"a token twice",
                 [](Draw& /*draw*/, StartForward& pass, std::int32_t& one) {
                   pass.positions.push_back(std::int32_t{one});
                   pass.seqs.push_back(pass.seqs.front());
                 }},
    Perturbation{"a whole batch further back, as after a prefix was found again",
                 [](Draw& draw, StartForward& pass, std::int32_t& /*one*/) {
                   const auto back = static_cast<std::int32_t>(draw.between(1, 3));
                   for (std::int32_t& position : pass.positions)
                     position = std::max(position - back, 0);
                 }},
    Perturbation{"more tokens than a batch should have",
                 [](Draw& draw, StartForward& pass, std::int32_t& /*one*/) {
                   for (std::int64_t more = draw.between(1, 4); more > 0; --more) {
                     pass.positions.push_back(pass.positions.back() + 1);
                     pass.seqs.push_back(pass.seqs.back());
                   }
                 }},
    Perturbation{"a token far on, or lists of two lengths",
                 [](Draw& draw, StartForward& pass, std::int32_t& one) {
                   if (draw.percent(80))
                     one = draw.one_of<std::int32_t>({100, 1'000'000});
                   else
                     pass.seqs.push_back(0);
                 }},
};

}  // namespace

bool DrawnCase::has_encoder() const {
  return std::ranges::any_of(
      members, [](const CacheConfig& member) { return member.cache == MemberKind::kEncoder; });
}

DrawnCase draw_case(Draw& draw, const CacheKind& kind, Scale scale) {
  DrawnCase drawn;
  drawn.members = draw_members(draw, kind);
  drawn.backend.cache_padding = draw.one_of<std::int64_t>({0, 1, 2, 4, 8});
  // An encoder's init refuses any other (OK-70).
  if (drawn.has_encoder() && draw.percent(98))
    drawn.backend.cache_padding = draw.one_of<std::int64_t>({0, 1});
  drawn.backend.permuted_v = draw.percent(35);
  drawn.backend.mask_dtype = draw.one_of({MaskType::kUnset, MaskType::kF32, MaskType::kF16});
  drawn.init = draw_init(draw, drawn);
  draw_rows(draw, drawn);
  if (scale == Scale::kLarge) grow(draw, drawn);
  if (draw.percent(12)) store_narrowly(draw, drawn, scale);
  if (scale == Scale::kLong) {
    shrink(draw, drawn);
    return drawn;
  }
  // Sequence numbers are names: what init is told bounds neither them nor their count (OK-26).
  const std::int64_t count =
      draw.percent(50) ? drawn.init.max_sequences : few(draw, kMostSequences);
  const std::int64_t first = draw.percent(97) ? draw.between(0, 1) : draw.one_of({-1, 1000});
  for (std::int64_t i = 0; i < count; ++i) drawn.sequences.push_back(first + i);
  return drawn;
}

SetConfig draw_set_config(Draw& draw, const DrawnCase& drawn) {
  SetConfig config{.cache_padding = draw.one_of<std::int64_t>({0, 1, 2, 4}),
                   .permuted_v = draw.percent(50),
                   .mask_dtype = draw.one_of({MaskType::kUnset, MaskType::kF16})};
  if (drawn.has_encoder()) config.cache_padding = 1;
  const std::int64_t count = std::ssize(drawn.members);
  if (count > 1 && draw.percent(50)) config.target = draw.between(0, count - 1);
  return config;
}

std::int64_t draw_sequence(Draw& draw, const DrawnCase& drawn) {
  if (!drawn.in_order && draw.percent(2)) return draw.one_of<std::int64_t>({-1, 3, 1000});
  return drawn.sequences[draw.below(drawn.sequences.size())];
}

StartForward draw_batch(Draw& draw, const DrawnCase& drawn,
                        const std::function<std::int32_t(std::int64_t sequence)>& next_position) {
  StartForward pass;
  std::map<std::int64_t, std::int32_t> next;
  const auto add = [&](std::int64_t sequence) {
    const auto [at, is_new] = next.try_emplace(sequence, 0);
    if (is_new) at->second = next_position(sequence);
    pass.positions.push_back(at->second++);
    pass.seqs.push_back(sequence);
  };
  // Engines decode one token of each of some sequences, or prefill one of them.
  switch (draw.weighted({40, 42, 18})) {
    case 0: {
      const std::uint64_t percent = draw.percent(20) ? 100 : 60;
      for (const std::int64_t one : drawn.sequences)
        if (pass.seqs.empty() || draw.percent(percent)) add(one);
      break;
    }
    case 1: {
      const std::int64_t one = draw_sequence(draw, drawn);
      for (std::int64_t left = draw.between(1, drawn.init.max_batch); left > 0; --left) add(one);
      break;
    }
    default:
      for (std::int64_t left = draw.between(1, drawn.init.max_batch); left > 0; --left)
        add(draw_sequence(draw, drawn));
  }
  return pass;
}

void perturb(Draw& draw, StartForward& pass) {
  std::int32_t& one = pass.positions[draw.below(pass.positions.size())];
  kPerturbations.at(draw.below(kPerturbations.size())).apply(draw, pass, one);
}

Record config_of(const DrawnCase& drawn, const CacheKind& kind) {
  if (!member_kind_of(kind))
    return Record::of(WrapperConfig{.caches = drawn.members, .backend = drawn.backend});
  CacheConfig only = drawn.members.front();
  only.cache = std::nullopt;
  only.backend = drawn.backend;
  return Record::of(std::move(only));
}

// ---- scripts ----

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

Op PositionalScript::overfill(std::int64_t gap) {
  const auto ahead = static_cast<std::int32_t>(memory() + gap);
  std::int32_t next = next_position(one_) + ahead;
  StartForward pass{.positions = {next++, next_position(other_) + ahead}, .seqs = {one_, other_}};
  while (std::ssize(pass.positions) <= cells_.pool()) {
    pass.positions.push_back(next++);
    pass.seqs.push_back(one_);
  }
  return Op::of(std::move(pass));
}

Op PositionalScript::seen_batch(bool too_large) {
  at_ = next_position(one_);
  const std::int64_t tokens = too_large ? cells_.pool() + 1 : 1;
  StartForward pass{.seqs = std::vector(static_cast<std::size_t>(tokens), one_)};
  for (std::int32_t i = 0; i < tokens; ++i) pass.positions.push_back(at_ + i);
  pass.multimodal = {0};
  if (too_large) pass.positions.back() = std::max(at_ - 1, 0);
  return Op::of(std::move(pass));
}

std::span<const OrderWord> PositionalScript::order_words() {
  using S = PositionalScript;
  static constexpr auto kWords = std::to_array<OrderWord>({
      order_word<&S::choose_two>("choose_two"),
      order_word<&S::forward_of>("tokens"),
      order_word<&S::reserve_of>("reserve"),
      order_word<&S::middle_of>("remove_middle_of"),
      order_word<&S::remove_some_tail>("remove_some_tail"),
      order_word<&S::overfill>("overfill"),
      order_word<&S::batch_with_rows>("batch_with_rows"),
      order_word<&S::batch_too_large>("batch_too_large"),
      order_word<&S::put_rows>("put_rows"),
      order_word<&S::swap_sometimes>("swap_sometimes"),
      order_word<&S::be_quiet>("be_quiet"),
      order_word<&S::one_>("one"),
      order_word<&S::other_>("other"),
      order_word<&S::at_>("seen_position"),
      order_word<&S::evicts>("evicts"),
      order_word<&S::pool>("pool"),
      order_word<&S::free>("free_cells"),
      order_word<&S::is_large>("large"),
      order_word<&S::is_small>("small"),
      order_word<&S::held>("held"),
      order_word<&S::held_position>("held_position"),
      order_word<&S::next_of>("next"),
      order_word<&S::max_batch>("max_batch"),
      order_word<&S::moves>("moves"),
      order_word<&S::encoder>("encoder"),
      order_word<&S::has_encoder_before_a_member>("has_encoder_before_a_member"),
  });
  return kWords;
}

// ---- steps ----

void PositionalScript::plan_init() {
  Init init = case_.init;
  if (refused_inits_ > 0) {
    // A small capacity makes memory unbounded, and an encoder wants one sequence (OK-12, OK-70).
    init.max_sequences = 1;
    init.capacity = draw().between(1, 2);
    if (case_.has_encoder()) plan(SetConfig{1, false, MaskType::kF32});
  } else if (draw().percent(8)) {
    plan(set_config());
  }
  plan(init);
}

// A sequence that holds something, if draws find one.
std::int64_t PositionalScript::held_sequence() {
  std::int64_t drawn = sequence();
  for (int tries = 0; tries < 4 && next_position(drawn) == 0; ++tries) drawn = sequence();
  return drawn;
}

StartForward PositionalScript::batch() {
  StartForward pass = draw_batch(draw(), case_, [&](std::int64_t of) { return next_position(of); });
  if (draw().percent(perturb_percent_)) perturb(draw(), pass);
  return pass;
}

void PositionalScript::add_multimodal(StartForward& pass) {
  // Without one an encoder remembers nothing (OK-71); other caches ignore it.
  if (!draw().percent(case_.has_encoder() ? 55 : 3)) return;
  const std::int64_t tokens = std::ssize(pass.positions);
  std::vector<std::int64_t> indices;
  while (tokens > 0 && std::ssize(indices) < 2 && !(draw().percent(40) && !indices.empty()))
    indices.push_back(draw().percent(99) ? draw().between(0, tokens - 1) : tokens);
  pass.multimodal = std::move(indices);
}

Op PositionalScript::forward() {
  StartForward pass;
  if (case_.in_order || !draw().percent(1)) pass = batch();  // an empty batch is refused (OK-29)
  add_multimodal(pass);
  return Op::of(std::move(pass));
}

// Distinct and exact in the storage type, but for bf16 and what is narrower.
Tensor PositionalScript::rows(std::int64_t tokens, std::int64_t dim, float sign) {
  constexpr std::uint64_t kExactInF16 = 2'048;
  Tensor tensor = make_tensor({tokens, case_.heads, dim});
  if (case_.odd_rows) {
    fill_oddly(draw(), tensor);
    return tensor;
  }
  for (float& element : tensor.floats()) {
    const std::uint64_t n = tags_++;
    element = sign * tag(1 + (case_.init.dtype == StorageType::kF32 ? n : n % kExactInF16));
  }
  return tensor;
}

// Rows for the batch in a member; now and then of another shape, if they may be spoilt.
Op PositionalScript::put(std::int64_t member, bool spoilt) {
  std::int64_t tokens = std::ssize(pass_.positions);
  if (is_member(member) && case_.is_encoder(static_cast<std::size_t>(member)))
    tokens = case_.encoder_tokens;
  if (spoilt && draw().percent(12)) tokens = draw().between(0, 4);
  Put put{rows(tokens, case_.k_dim, 1), rows(tokens, case_.v_dim, -1)};
  if (spoilt && draw().percent(6)) put.v = rows(tokens + 1, case_.v_dim, -1);
  if (spoilt && draw().percent(6)) put.k = rows(tokens, case_.k_dim + 1, 1);
  return Op::of(std::move(put));
}

Op PositionalScript::set_causal() {
  SetCausal call;
  const std::int64_t tokens = std::ssize(pass_.positions);
  const std::int64_t count = draw().between(0, std::min<std::int64_t>(tokens, 3));
  for (std::int64_t i = 0; i < count; ++i)
    call.except.push_back(draw().percent(92) ? draw().between(0, tokens - 1)
                                             : draw().one_of<std::int64_t>({-1, tokens, 100}));
  // A list given again builds no mask (OK-40).
  if (draw().percent(40) && !except_.empty()) call.except = except_;
  if (draw().percent(18)) call.ctx = draw().percent(20);
  return Op::of(std::move(call));
}

Op PositionalScript::copy_prefix() {
  const std::int64_t source = draw().percent(90) ? held_sequence() : sequence();
  std::int64_t target = sequence();
  for (int tries = 0; tries < 3 && target == source; ++tries)
    target = draw().percent(30) ? draw().between(0, 3) : sequence();
  std::int32_t length = some_position(source);
  if (draw().percent(25)) length = next_position(source);
  if (draw().percent(4)) length = draw().one_of<std::int32_t>({-1, 0, 100, kMaxPosition});
  return Op::of(CopyPrefix{source, target, length});
}

Op PositionalScript::can_resume() {
  const std::int64_t of = draw().percent(90) ? held_sequence() : sequence();
  std::int32_t position = next_position(of);
  if (draw().percent(60)) position = some_position(of);
  if (draw().percent(10)) position += static_cast<std::int32_t>(draw().between(-3, 3));
  if (draw().percent(2)) position = -2;
  return Op::of(CanResume{of, position});
}

// What an engine does whose context is full: the first tokens stay, those after them go.
Op PositionalScript::remove_middle() {
  const std::int64_t of = held_sequence();
  const std::vector<std::int32_t> all = cells_.positions(of);
  if (all.size() < 2) return remove_tail();
  const std::int32_t own = cells_.unshared_from(of);
  Remove remove{of, 0, 0};
  // Best a range that leaves cells between those it moves, in a sequence whose cells are mixed.
  for (int tries = 0; tries < 4 && !cells_.keeps_between(remove); ++tries) {
    std::size_t from = draw().below(all.size() - 1);
    // Shared cells behind the range refuse the removal (OK-67): half the time they lie before.
    if (own != kMaxPosition && draw().percent(50))
      while (from + 1 < all.size() - 1 && all[from + 1] < own) ++from;
    const std::size_t to = from + 1 + draw().below(all.size() - 1 - from);
    remove = {of, all[from], all[to]};
  }
  return Op::of(remove);
}

// Inverted, empty, too long, from below 0, anywhere, behind everything.
Op PositionalScript::remove_nonsense() {
  const std::int64_t of = sequence();
  const std::int32_t at = some_position(of);
  const std::int32_t end = next_position(of);
  const auto more = static_cast<std::int32_t>(draw().between(1, 4));
  return Op::of(draw().one_of<Remove>({{of, at + more, at},
                                       {of, at, at},
                                       {of, at, end + more},
                                       {of, -more, at},
                                       {of, at, at + more},
                                       {of, end + more, kMaxPosition}}));
}

// Puts and gets of the layers that a model has, each in the member it belongs to.
void PositionalScript::plan_layers(std::uint64_t put_percent) {
  const bool wrapper = !member_kind_of(kind_);
  for (std::int64_t layer = 0; layer < case_.layers; ++layer) {
    if (draw().percent(sloppy_percent_)) continue;
    plan(SetLayer{layer});
    const std::int64_t member = layer % std::ssize(case_.members);
    if (wrapper && layer > 0) plan(SetLayerType{member});
    if (draw().percent(put_percent)) plan(put(member, draw().percent(2)));
    if (draw().percent(65)) plan(Get{});
  }
}

}  // namespace kvo::positional
