#include "properties/generators/positional_case.hpp"

#include <algorithm>

namespace kvo::positional {
namespace {

std::optional<ShiftConfig> draw_shift(Draw& draw) {
  switch (draw.weighted({25, 45, 22, 8})) {
    case 0:
      return std::nullopt;
    case 1:
      return ShiftConfig{.kind = ShiftKind::kAdd,
                         .scale = draw.one_of<float>({0.015625F, 0.015625F, 1.0F, 16.0F})};
    case 2:
      return ShiftConfig{.kind = ShiftKind::kRope, .base = 100.0F};
    default:
      return ShiftConfig{.kind = ShiftKind::kFail, .message = "shift refused"};
  }
}

DrawnMember draw_member(Draw& draw, Flavour flavour) {
  DrawnMember member{.setup = {.flavour = flavour}, .shift = std::nullopt};
  if (flavour == Flavour::kSwa || flavour == Flavour::kSwaMem)
    member.setup.window = static_cast<std::int32_t>(draw.between(draw.percent(5) ? 0 : 1, 6));
  if (flavour == Flavour::kSwaMem) {
    member.setup.memory = member.setup.window + static_cast<std::int32_t>(draw.between(0, 4));
    if (draw.percent(4)) member.setup.memory = static_cast<std::int32_t>(draw.between(0, 4));
  }
  if (flavour == Flavour::kChunked)
    member.setup.chunk = static_cast<std::int32_t>(draw.between(draw.percent(4) ? 0 : 1, 6));
  if (flavour != Flavour::kEncoder) member.shift = draw_shift(draw);
  return member;
}

std::vector<DrawnMember> draw_members(Draw& draw, const CacheKind& kind) {
  constexpr std::array kFlavours{Flavour::kCausal, Flavour::kSwa, Flavour::kSwaMem,
                                 Flavour::kChunked, Flavour::kEncoder};
  for (const Flavour flavour : kFlavours)
    if (&kind == &kind_of(flavour)) return {draw_member(draw, flavour)};
  std::vector<DrawnMember> members{draw_member(draw, kFlavours.at(draw.weighted({2, 4, 2, 3, 3})))};
  const std::size_t count = 1 + draw.weighted({8, 62, 30});
  while (members.size() < count) {
    members.push_back(draw_member(draw, kFlavours.at(draw.weighted({50, 18, 14, 16, 2}))));
    // Most models move keys alike in all their layers.
    if (members.back().shift && members.front().shift && draw.percent(75))
      members.back().shift = members.front().shift;
  }
  return members;
}

Init draw_init(Draw& draw, const DrawnCase& drawn) {
  std::int64_t memory = 0;
  for (const DrawnMember& member : drawn.members)
    memory = std::max<std::int64_t>({memory, member.setup.memory, member.setup.window + 1});
  Init init{.max_sequences = draw.between(1, 3),
            .capacity = draw.between(3, 12),
            .max_batch = draw.between(1, 6),
            .dtype = StorageType::kF32};
  // Bounded memory needs a capacity beyond it (OK-12).
  if (memory > 1) init.capacity = memory + draw.between(1, 6);
  if (memory > 1 && draw.percent(20)) init.capacity = draw.between(2, memory);
  if (drawn.has_encoder() && draw.percent(98)) init.max_sequences = 1;
  if (draw.percent(1)) init.capacity = 0;
  init.dtype = draw.one_of({StorageType::kF32, StorageType::kF32, StorageType::kF32,
                            StorageType::kF16, StorageType::kF16});
  if (draw.percent(10)) init.dtype = StorageType::kBf16;
  return init;
}

boost::json::object member_config(const DrawnMember& member) {
  const MemberSetup& setup = member.setup;
  boost::json::object config;
  if (setup.flavour == Flavour::kSwa || setup.flavour == Flavour::kSwaMem)
    config["window"] = setup.window;
  if (setup.flavour == Flavour::kSwaMem) config["memory"] = setup.memory;
  if (setup.flavour == Flavour::kChunked) config["chunk"] = setup.chunk;
  if (setup.flavour != Flavour::kEncoder)
    config["shift"] = member.shift ? write_json(*member.shift) : boost::json::value(nullptr);
  return config;
}

}  // namespace

bool DrawnCase::has_encoder() const {
  return std::ranges::any_of(
      members, [](const DrawnMember& member) { return member.setup.flavour == Flavour::kEncoder; });
}

DrawnCase draw_case(Draw& draw, const CacheKind& kind) {
  DrawnCase drawn;
  drawn.members = draw_members(draw, kind);
  drawn.backend.cache_padding = draw.one_of<std::int64_t>({0, 1, 2, 4, 8});
  if (drawn.has_encoder() && draw.percent(98))
    drawn.backend.cache_padding = draw.one_of<std::int64_t>({0, 1});
  drawn.backend.permuted_v = draw.percent(35);
  drawn.backend.mask_dtype = draw.one_of({MaskType::kUnset, MaskType::kF32, MaskType::kF16});
  drawn.init = draw_init(draw, drawn);
  drawn.heads = draw.between(1, 2);
  drawn.k_dim = draw.between(1, 3);
  drawn.v_dim = draw.percent(60) ? drawn.k_dim : draw.between(1, 3);
  drawn.layers = draw.between(1, 3);
  drawn.encoder_tokens = draw.between(1, 4);
  const std::int64_t count = draw.between(1, 3);
  const std::int64_t first = draw.percent(97) ? draw.between(0, 1) : draw.one_of({-1, 1000});
  for (std::int64_t i = 0; i < count; ++i) drawn.sequences.push_back(first + i);
  return drawn;
}

void perturb(Draw& draw, StartForward& pass) {
  std::int32_t& one = pass.positions[draw.below(pass.positions.size())];
  switch (draw.below(7)) {
    case 0:
      std::ranges::reverse(pass.positions);
      break;
    case 1:
      one += static_cast<std::int32_t>(draw.between(1, 5));
      break;
    case 2:
      one = static_cast<std::int32_t>(draw.between(0, one));
      break;
    case 3:
      pass.positions.push_back(one);
      pass.seqs.push_back(pass.seqs.front());
      break;
    case 4: {
      // A whole batch further back, as after a prefix was found again.
      const auto back = static_cast<std::int32_t>(draw.between(1, 3));
      for (std::int32_t& position : pass.positions) position = std::max(position - back, 0);
      break;
    }
    case 5: {
      const std::int64_t more = draw.between(1, 4);
      for (std::int64_t i = 0; i < more; ++i) {
        pass.positions.push_back(pass.positions.back() + 1);
        pass.seqs.push_back(pass.seqs.back());
      }
      break;
    }
    default:
      if (draw.percent(80))
        one = draw.one_of<std::int32_t>({100, 1'000'000});
      else
        pass.seqs.push_back(0);
  }
}

boost::json::object config_of(const DrawnCase& drawn, const CacheKind& kind) {
  boost::json::object config;
  if (&kind == &wrapper_kind()) {
    boost::json::array caches;
    for (const DrawnMember& member : drawn.members) {
      boost::json::object cache{{"cache", kind_of(member.setup.flavour).cache}};
      for (const auto& field : member_config(member)) cache.insert(field);
      caches.push_back(std::move(cache));
    }
    config["caches"] = std::move(caches);
  } else {
    config = member_config(drawn.members.front());
  }
  config["backend"] = write_json(drawn.backend);
  return config;
}

}  // namespace kvo::positional
