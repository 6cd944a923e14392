// The metamorphic laws of contract `groups`.
#include "properties/campaign/metamorphic.hpp"

#include <map>
#include <utility>

#include "properties/campaign/laws.hpp"
#include "properties/contract_parts.hpp"
#include "reference/groups/operations.hpp"

namespace kvo::groups {
namespace {

bool has_requests(const CacheKind& kind) {
  return &kind == &blocks_kind();
}

// ---- order_of_independent_sequences ----

// The first request has the last number. Offloads show the numbers.
Variation renamed(const Drawn& drawn) {
  constexpr std::int64_t kNames = 4'096;
  const auto from_last = [](std::int64_t request) {
    return request >= 0 && request < kNames ? kNames - 1 - request : request;
  };
  Variation variation;
  bool any = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    any = any || integer_of(op, "request").has_value();
    if (op.as<TakeOffloads>() != nullptr)
      variation.pair(at, op, error_only);
    else
      variation.pair(at, with_renamed(op, "request", from_last));
  }
  return any ? variation : Variation();
}

// ---- lookups_change_nothing ----

// Before each match of a request come matches of the others that were matched. A hit on A after B
// is the hit as before B. Matches that are announced are left out; what vetoes cost is counted of
// the last match.
Variation matched_more(const Drawn& drawn) {
  Variation variation;
  std::map<std::int64_t, bool> matched;  // whether it is announced
  bool any = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    if (const auto* made = op.as<MakeRequest>()) matched[made->request] = made->report.has_value();
    if (const auto* asked = op.as<Match>())
      for (const auto& [request, announced] : matched) {
        if (announced || request == asked->request) continue;
        variation.insert(Op::of(Match{request}));
        any = true;
      }
    if (op.as<ShowStatistics>() != nullptr)
      variation.pair(at, op, error_only);
    else
      variation.pair(at, op);
  }
  return any ? variation : Variation();
}

}  // namespace

std::vector<const Law*> laws() {
  static const MetamorphicLaw kNames(
      "order_of_independent_sequences",
      "what is done to one cache or sequence does not depend on when others are used, or on names",
      kLongScript,
      {.how = "with other request numbers", .applies = has_requests, .transformation = renamed});
  static const MetamorphicLaw kLookups("lookups_change_nothing",
                                       "what is found does not depend on what was looked up before",
                                       kLongScript,
                                       {.how = "with matches of other requests between",
                                        .applies = has_requests,
                                        .transformation = matched_more});
  return {&kNames, &kLookups};
}

}  // namespace kvo::groups
