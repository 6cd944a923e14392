// properties/prefix/radix_rules_case.hpp: what tests of single rules of prefix.radix are written
// with. Nodes are numbered from 1 on, in the order in which they are made.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "properties/prefix/rules_case.hpp"

namespace kvo::prefix {

/// A tree over so many slots.
inline RadixConfig radix_of(std::int64_t slots) {
  return {.slots = slots};
}

/// A fresh cache of each subject in each profile: check(case, is_original).
template <class Check>
void in_each_tree(const RadixConfig& config, Check&& check) {
  in_each(radix_kind(), Record::of(config), std::forward<Check>(check));
}

/// "2 node 1": units that were there before, and the last node.
inline std::string inserted(RulesCase& cache, Insert op) {
  const auto done = cache.values(std::move(op));
  return fmt::format("{} node {}", done.length,
                     done.node.value ? fmt::to_string(*done.node.value) : "null");
}

/// Inserts a text with slots that were taken for it; those of what was there before are given back.
inline std::string filed(RulesCase& cache, std::string_view text, std::int64_t priority = 0) {
  const Numbers slots = cache.values(AllocSlots{std::ssize(text)}).slots;
  const auto done =
      cache.values(Insert{.tokens = tokens_of(text), .slots = slots, .priority = priority});
  EXPECT_EQ(cache.code(FreeSlots{{slots.begin(), slots.begin() + done.length}}), "ok");
  return fmt::format("{} node {}", done.length, done.node.value.value_or(-1));
}

/// "2 node 1 [5, 6]": length, node and slots of a hit.
inline std::string looked(RulesCase& cache, std::string_view text,
                          std::optional<std::int64_t> limit = std::nullopt) {
  const auto hit = cache.values(MatchTokens{.tokens = tokens_of(text), .limit = limit});
  return fmt::format("{} node {} {}", hit.length, hit.node, hit.slots);
}

/// "3 [2, 1]": units that went, and the nodes in order; or the code of the error.
inline std::string gone(RulesCase& cache, std::int64_t units) {
  const Observation seen = cache.run(EvictUnits{units});
  if (seen.error) return code_of(seen);
  const auto& evicted = seen.as<EvictUnits::Returns>();
  return fmt::format("{} {}", evicted.tokens, evicted.nodes);
}

/// By how much the evictable units change, or the code of the error.
template <class LockOrUnlock>
std::string delta_of(RulesCase& cache, LockOrUnlock op) {
  const Observation seen = cache.run(op);
  return seen.error ? code_of(seen) : fmt::to_string(seen.as<Delta>().delta);
}

/// "1<2:cd 2<0:ab": each node with the one above it and its tokens.
inline std::string tree(RulesCase& cache) {
  std::vector<std::string> nodes;
  for (const ShownNode& node : cache.values(ShowTree{}).nodes)
    nodes.push_back(fmt::format("{}<{}:{}", node.node, node.parent, text_of(node.tokens)));
  return fmt::format("{}", fmt::join(nodes, " "));
}

/// "1:2 2:0": a figure of each node.
inline std::string each_node(RulesCase& cache, std::int64_t ShownNode::*figure) {
  std::vector<std::string> nodes;
  for (const ShownNode& node : cache.values(ShowTree{}).nodes)
    nodes.push_back(fmt::format("{}:{}", node.node, node.*figure));
  return fmt::format("{}", fmt::join(nodes, " "));
}

/// What may be evicted, the first to go first.
inline Numbers leaves(RulesCase& cache) {
  return cache.values(ShowTree{}).leaves;
}

/// Units that are evictable, and units that are protected.
inline Numbers sizes(RulesCase& cache) {
  const auto shown = cache.values(ShowTree{});
  return {shown.evictable, shown.protected_};
}

/// Slots, or pages, that are free, the next to be taken first.
inline Numbers free_list(RulesCase& cache) {
  return cache.values(ShowTree{}).free;
}

}  // namespace kvo::prefix
