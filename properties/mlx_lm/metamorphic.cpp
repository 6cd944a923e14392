// The metamorphic laws of contract `mlx_lm`.
#include "properties/campaign/metamorphic.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "properties/campaign/laws.hpp"
#include "properties/contract_parts.hpp"
#include "reference/mlx_lm/operations.hpp"

namespace kvo::mlx_lm {
namespace {

bool is_cache(const CacheKind& kind) {
  return kind.contract == "mlx_lm" && kind.cache != "prompt_lru";
}
// Kinds that see all tokens.
bool sees_all(const CacheKind& kind) {
  return is_cache(kind) && kind.cache != "rotating" && kind.cache != "batch_rotating" &&
         kind.cache != "arrays";
}

// Whether each array belongs to one cache alone, and no operation reads an array again.
bool shares_nothing(const Drawn& drawn) {
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    if (op.as<Reread>() != nullptr || op.as<FromState>() != nullptr) return false;
    if (const auto* copy = op.as<Copy>(); copy != nullptr && !copy->deep) return false;
  }
  return true;
}

// Whether all rows have one type and succeed, so that more updates change nothing but what they
// write.
bool is_plain(const Drawn& drawn) {
  const Update* first = nullptr;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const auto* update = drawn.script[at].as<Update>();
    if (update == nullptr) continue;
    if (first == nullptr) first = update;
    if (!drawn.succeeded(at) || update->keep.value_or(false) || update->k.dtype != first->k.dtype ||
        update->v.dtype != first->v.dtype)
      return false;
  }
  return shares_nothing(drawn);
}

bool trims_below_zero(const Op& op) {
  const auto* trim = op.as<Trim>();
  return trim != nullptr && trim->n < 0;
}

// Whether it shows how many slots were allocated, or what is stale in them.
bool shows_allocation(const Op& op) {
  return op.as<ShowState>() != nullptr || op.as<ShowInfo>() != nullptr;
}

// ---- prefill_in_chunks ----

Variation in_chunks(const Drawn& drawn) {
  Variation varied;
  bool any = false;
  const bool original = drawn.setup.profile == Profile::kOriginal;
  if (!is_plain(drawn) || (original && std::ranges::any_of(drawn.script, trims_below_zero)))
    return {};
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    const auto* update = op.as<Update>();
    if (op.as<Finalize>() != nullptr) return {};  // it moves stale slots to the front
    if (update == nullptr || update->k.shape[2] < 2) {
      if (shows_allocation(op))
        varied.insert(op);
      else
        varied.pair(at, op);
      continue;
    }
    const std::int64_t tokens = update->k.shape[2];
    const std::int64_t cut = cut_of(at, tokens);
    Update part = *update;
    part.k = axis_range(update->k, 2, 0, cut);
    part.v = axis_range(update->v, 2, 0, cut);
    varied.insert(Op::of(part));
    part.k = axis_range(update->k, 2, cut, tokens);
    part.v = axis_range(update->v, 2, cut, tokens);
    varied.pair(at, Op::of(std::move(part)));
    any = true;
  }
  return any ? varied : Variation();
}

// ---- a_b_a ----

// A negative trim shows stale slots, a trim of a concatenate cache in profile original leaves
// tokens (ML-8), a ring forgets, a chunk without its front is not trimmed (ML-22).
Variation added_and_trimmed(const Drawn& drawn) {
  Variation varied;
  const bool original = drawn.setup.profile == Profile::kOriginal;
  if (!is_plain(drawn) || (original && std::ranges::any_of(drawn.script, trims_below_zero)))
    return {};
  if (original && drawn.kind.cache == "concatenate") return {};
  bool any = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    // What rotates or converts an allocation shows what is stale there.
    if (op.as<Finalize>() != nullptr || op.as<Prepare>() != nullptr ||
        op.as<ToQuantized>() != nullptr || op.as<Extend>() != nullptr)
      return {};
    if (!original && op.as<MaybeTrimFront>() != nullptr) return {};
    if (shows_allocation(op))
      varied.insert(op);
    else
      varied.pair(at, op);
    const auto* update = op.as<Update>();
    if (update == nullptr || !drawn.succeeded(at) || update->k.shape[2] == 0) continue;
    varied.insert(op);
    varied.insert(Op::of(Trim{update->cache, update->k.shape[2]}));
    any = true;
  }
  return any ? varied : Variation();
}

// ---- copy_goes_on ----

constexpr std::array<std::string_view, 2> kMembers{"cache", "other"};

Op renamed(const Op& op, const std::vector<std::int64_t>& numbers) {
  const auto number = [&](std::int64_t drawn) {
    const bool known = drawn >= 0 && drawn < std::ssize(numbers);
    return known ? numbers[static_cast<std::size_t>(drawn)] : std::int64_t{4095};
  };
  if (const auto* merge = op.as<Merge>()) {
    Merge changed = *merge;
    for (std::int64_t& cache : changed.caches) cache = number(cache);
    return Op::of(std::move(changed));
  }
  Op changed = op;
  for (const std::string_view member : kMembers)
    if (op.as<Merge>() == nullptr) changed = with_renamed(changed, member, number);
  return changed;
}

// Other caches have other numbers.
Observation without_numbers(const Observation& seen) {
  if (!seen.returns || seen.error) return seen;
  if (seen.returns.get_if<CacheMade>() != nullptr) return {.returns = Record::of(CacheMade{0})};
  if (const auto* made = seen.returns.get_if<KindMade>())
    return {.returns = Record::of(KindMade{0, made->kind})};
  return seen;
}

std::optional<std::int64_t> made_by(const Observation& seen) {
  if (!seen.returns || seen.error) return std::nullopt;
  if (const auto* made = seen.returns.get_if<CacheMade>()) return made->cache;
  if (const auto* made = seen.returns.get_if<KindMade>()) return made->cache;
  return std::nullopt;
}

Tensor plus_one(Tensor tensor) {
  if (tensor.dtype == DType::kF32)
    for (float& cell : tensor.floats()) cell += 1;
  return tensor;
}

// After some updates a deep copy takes the place of the cache, which then loses what it was given
// and gets something else.
Variation copies_go_on(const Drawn& drawn) {
  if (!shares_nothing(drawn)) return {};
  Variation varied;
  std::vector<std::int64_t> numbers;  // of the drawn script's caches
  std::int64_t next = 0;
  bool any = false;
  for (std::size_t at = 0; at < drawn.script.size(); ++at) {
    const Op& op = drawn.script[at];
    varied.pair(at, renamed(op, numbers), without_numbers);
    if (made_by(drawn.seen[at])) numbers.push_back(next++);
    const auto* update = op.as<Update>();
    const auto* set = op.as<Set>();
    if ((update == nullptr && set == nullptr) || !drawn.succeeded(at) || at % 2 == 1) continue;
    const auto cache = static_cast<std::size_t>(update != nullptr ? update->cache : set->cache);
    if (cache >= numbers.size() || next >= 2'000) continue;
    const std::int64_t left = std::exchange(numbers[cache], next++);
    varied.insert(Op::of(Copy{left, true}));
    if (set != nullptr) {
      varied.insert(Op::of(Set{left, set->idx, plus_one(set->v)}));
    } else {
      varied.insert(Op::of(Trim{left, update->k.shape[2]}));
      varied.insert(Op::of(Update{left, plus_one(update->k), plus_one(update->v)}));
    }
    any = true;
  }
  return any ? varied : Variation();
}

}  // namespace

std::vector<const Law*> laws() {
  static const std::array kLaws{
      MetamorphicLaw(
          "prefill_in_chunks", "rows that are given in two parts show the same as given at once",
          kLongScript,
          {.how = "rows given in two parts", .applies = sees_all, .transformation = in_chunks}),
      MetamorphicLaw("a_b_a", "what is added and taken back again leaves no trace", kLongScript,
                     {.how = "with an update and a trim inserted",
                      .applies = sees_all,
                      .transformation = added_and_trimmed}),
      MetamorphicLaw("copy_goes_on", "a deep copy goes on as the cache that it was made of",
                     kLongScript,
                     {.how = "with deep copies in the place of caches",
                      .applies = is_cache,
                      .transformation = copies_go_on})};
  return {&kLaws[0], &kLaws[1], &kLaws[2]};
}

}  // namespace kvo::mlx_lm
