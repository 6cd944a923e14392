// properties/replay/variation.hpp: shapes and loads that differ from case to case.
//
// Faults that need a shape (a third head, a fourth layer, a block of one position) or a load (more
// sequences in a batch than a word has bits) hide from replays of one shape. So each case may have
// sizes of its own.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "properties/replay/lowering.hpp"

namespace kvo::replay {

/// What a case is lowered by.
struct Policies {
  SchedulePolicy schedule;
  LoweringPolicy lowering;
};

/// Names of members of the policies: "num_layers".
using Members = std::set<std::string, std::less<>>;

/// All members that can vary.
[[nodiscard]] const Members& varying_members();
/// The policies of case `number` of a lowering: `given`, but for the members that are varied. A
/// member takes each of its values once in as many consecutive cases as it has values, in an order
/// that follows from the seed, the lowering's name and the member.
/// Where `chunk_tokens` varies, a batch of all slots has at most a thousand tokens.
[[nodiscard]] Policies varied(const Policies& given, const Members& members, std::uint64_t seed,
                              std::string_view lowering, std::uint64_t number);
/// The sizes of a case in words: "2 layers, 3 heads of 4, ...".
[[nodiscard]] std::string sizes_text(const Policies& policies);

}  // namespace kvo::replay
