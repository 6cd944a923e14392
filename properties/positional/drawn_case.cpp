#include "properties/positional/drawn_case.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

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
  constexpr std::uint64_t kManySequencesPercent = 2;
  Init init{.max_sequences = draw.percent(kManySequencesPercent) ? draw.edge(62, 129)
                                                                 : few(draw, kMostSequences),
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
             if (draw.percent(20)) drawn.init.capacity += 1'024;
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
  // Sequence numbers are names: the arguments of init bound neither them nor their count (OK-26).
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

}  // namespace kvo::positional
