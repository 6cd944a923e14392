// The metamorphic laws of contract `layered`.
#include "properties/campaign/metamorphic.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "properties/campaign/laws.hpp"
#include "properties/contract_parts.hpp"
#include "reference/layered/cache.hpp"

namespace kvo::layered {
namespace {

// The number that an operation gave to the cache that it made, if it made one.
std::optional<std::int64_t> made_by(const Drawn& drawn, std::size_t at) {
  const auto* made = drawn.seen[at].returns.get_if<CacheNumber>();
  return made != nullptr ? std::optional(static_cast<std::int64_t>(made->cache)) : std::nullopt;
}

// Numbers depend on what was made before.
Observation without_number(const Observation& seen) {
  if (!seen.returns) return seen;
  return {.error = seen.error, .returns = Record::of(CacheNumber())};
}

// A script that is put together anew, and the numbers of its caches.
struct Renumbered {
  explicit Renumbered(const Drawn& of) : drawn(of) {}

  // Adds operation `at` of the drawn script; what it is compared by is left to `paired`.
  void add(std::size_t at, bool paired = true) {
    const auto made = made_by(drawn, at);
    if (paired)
      variation.pair(at, numbers.named(drawn.script[at]),
                     made ? Canonical(without_number) : nullptr);
    else
      variation.insert(numbers.named(drawn.script[at]));
    if (made) numbers.made(*made);
  }

  static constexpr std::array<std::string_view, 2> kMembers{"cache", "source"};
  const Drawn& drawn;
  NewNumbers numbers{kMembers, 0};
  Variation variation;
};

// ---- order_of_independent_sequences ----

// Caches that were copied from each other are one family, named by one of them.
class Families {
 public:
  [[nodiscard]] std::int64_t of(std::int64_t cache) const {
    const auto found = parents_.find(cache);
    return found == parents_.end() ? cache : of(found->second);
  }
  void join(std::int64_t a, std::int64_t b) {
    if (of(a) != of(b)) parents_[of(a)] = of(b);
  }

 private:
  std::map<std::int64_t, std::int64_t> parents_;
};

// The cache that an operation is about; nothing if it is not there.
std::optional<std::int64_t> cache_of(const Drawn& drawn, std::size_t at) {
  if (drawn.seen[at].failed_with(Code::kPrecondition)) return std::nullopt;
  const auto made = made_by(drawn, at);
  return made ? made : integer_of(drawn.script[at], "cache");
}

Variation family_by_family(const Drawn& drawn) {
  Families families;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    if (!drawn.succeeded(at)) continue;
    if (const auto* clone = drawn.script[at].as<Clone>())
      families.join(*made_by(drawn, at), static_cast<std::int64_t>(clone->cache));
    if (const auto* copied = drawn.script[at].as<CloneFrom>())
      families.join(static_cast<std::int64_t>(copied->cache),
                    static_cast<std::int64_t>(copied->source));
  }
  std::map<std::int64_t, std::vector<std::size_t>> members;
  for (std::size_t at = 0; at < drawn.script.size(); ++at)
    if (const auto cache = cache_of(drawn, at)) members[families.of(*cache)].push_back(at);
  if (members.size() < 2) return {};
  Renumbered script(drawn);
  // The last one first, so that a script without any turns is changed, too.
  for (auto family = members.rbegin(); family != members.rend(); ++family)
    for (const std::size_t at : family->second)
      if (script.numbers.knows(drawn.script[at])) script.add(at);
  return std::move(script.variation);
}

const MetamorphicLaw& order() {
  static const MetamorphicLaw kLaw(
      "order_of_independent_sequences",
      "what is done to one cache or sequence does not depend on when others are used, or on names",
      kLongScript,
      {.how = "one cache after the other",
       .applies = [](const CacheKind& kind) { return &kind == &vector_kind(); },
       .transformation = family_by_family});
  return kLaw;
}

// ---- a_b_a ----

// Behind every append the cache is cloned, appends the row once more, and is made a copy of its
// clone: as it was before.
Variation changed_and_copied_back(const Drawn& drawn) {
  Renumbered script(drawn);
  bool any = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    if (!script.numbers.knows(op)) continue;
    // A copy promises other capacities (RS-15), so addresses may move.
    const bool addresses = op.as<Pin>() != nullptr || op.as<Pinned>() != nullptr;
    script.add(at, !addresses);
    const auto* append = op.as<Append>();
    if (append == nullptr || !drawn.succeeded(at)) continue;
    any = true;
    const auto cache =
        static_cast<std::uint64_t>(script.numbers.of(static_cast<std::int64_t>(append->cache)));
    const auto kept = static_cast<std::uint64_t>(script.numbers.skip());
    Append again = *append;
    again.cache = cache;
    script.variation.insert(Op::of(Clone{.cache = cache}));
    script.variation.insert(Op::of(std::move(again)));
    script.variation.insert(Op::of(Advance{.cache = cache}));
    script.variation.insert(Op::of(CloneFrom{.cache = cache, .source = kept}));
  }
  return any ? std::move(script.variation) : Variation();
}

const MetamorphicLaw& back_again() {
  static const MetamorphicLaw kLaw(
      "a_b_a", "what is added and taken back again leaves no trace", kLongScript,
      {.how = "with an append and a rollback inserted",
       .applies = [](const CacheKind& kind) { return &kind == &vector_kind(); },
       .transformation = changed_and_copied_back});
  return kLaw;
}

}  // namespace

std::vector<const Law*> laws() {
  return {&order(), &back_again()};
}

}  // namespace kvo::layered
