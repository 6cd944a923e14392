// The metamorphic law of contract `prefix`.
#include "properties/campaign/metamorphic.hpp"

#include <utility>

#include "properties/campaign/laws.hpp"
#include "properties/contract_parts.hpp"
#include "reference/prefix/operations.hpp"

namespace kvo::prefix {
namespace {

// ---- order_of_independent_sequences ----

bool has_requests(const CacheKind& kind) {
  return &kind == &blocks_kind() || &kind == &radix_kind();
}

// The first request has the last number. What is handed out to whom does not depend on names; in
// what order it is depends on who asks first, so that requests keep their turns.
Variation renamed(const Drawn& drawn) {
  constexpr std::int64_t kNames = 4'096;
  const auto from_behind = [](std::int64_t request) {
    return request >= 0 && request < kNames ? kNames - 1 - request : request;
  };
  Variation variation;
  bool any = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    any = any || integer_of(op, "request").has_value();
    variation.pair(at, with_renamed(op, "request", from_behind));
  }
  return any ? variation : Variation();
}

const MetamorphicLaw& names_of_requests() {
  static const MetamorphicLaw kLaw(
      "order_of_independent_sequences",
      "what is done to one cache or sequence does not depend on when others are used, or on names",
      kLongScript,
      {.how = "with other request numbers", .applies = has_requests, .transformation = renamed});
  return kLaw;
}

}  // namespace

std::vector<const Law*> laws() {
  return {&names_of_requests()};
}

}  // namespace kvo::prefix
