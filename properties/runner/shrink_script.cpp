#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "properties/runner/shrink_passes.hpp"
#include "reference/contract/describe/difference.hpp"
#include "reference/contract/describe/shrink.hpp"
#include "reference/contract/values/tags.hpp"

namespace kvo {
namespace {

bool is_same(const Op& a, const Op& b) {
  return &a.kind() == &b.kind() &&
         !first_difference(a.arguments().type(), a.arguments().get(), b.arguments().get());
}

// Both records with the sum of theirs as their member `name`, if they have one.
void add_up(Record& first, Record& second, std::string_view name) {
  const auto of = [&](const Record& record) {
    const auto integers = integers_of(record);
    const auto found = std::ranges::find(integers, name, &NamedInteger::first);
    return found != integers.end() && found->second > 0 && found->second < kMostScaled
               ? *found
               : NamedInteger();
  };
  const NamedInteger one = of(first);
  const NamedInteger other = of(second);
  if (one.second == 0 || other.second == 0) return;
  first = *with_integer(first, one, one.second + other.second);
  second = *with_integer(second, other, one.second + other.second);
}

/// Operations that come again and again, of the same kinds: passes and their rows.
struct Rounds {
  std::size_t begin;
  std::size_t length;
  std::size_t count;
};

// The rounds of `length` operations from `begin` on.
Rounds rounds_at(const Script& script, std::size_t begin, std::size_t length) {
  std::size_t end = begin + length;
  while (end < script.size() && &script[end].kind() == &script[end - length].kind()) ++end;
  return {begin, length, end <= script.size() ? (end - begin) / length : 0};
}

// Whether the operation before `begin` belongs to a round like the one there.
bool continues(const Script& script, std::size_t begin, std::size_t length) {
  const std::size_t last = begin + length - 1;
  return begin > 0 && last < script.size() && &script[begin - 1].kind() == &script[last].kind();
}

// One round with what all of them hold; their members `counted` are added up. Nothing if they
// cannot be joined.
std::optional<Script> joined(const Script& script, const Rounds& rounds, std::string_view counted) {
  Script rest = without(script, rounds.begin + rounds.length, (rounds.count - 1) * rounds.length);
  for (std::size_t i = rounds.begin; i < rounds.begin + rounds.length; ++i) {
    Record all = script[i].arguments();
    for (std::size_t round = 1; round < rounds.count; ++round) {
      Record next = script[i + round * rounds.length].arguments();
      add_up(all, next, counted);
      auto both = as_one(all, next);
      if (!both) return std::nullopt;
      all = std::move(*both);
    }
    rest[i] = Op(script[i].kind(), std::move(all));
  }
  return rest;
}

// Nothing, and the members of the round that may count what it holds.
std::set<std::string_view> counts_in(const Script& script, std::size_t begin, std::size_t length) {
  std::set<std::string_view> names{{}};
  for (std::size_t i = begin; i < begin + length; ++i)
    for (const auto& [name, value] : integers_of(script[i].arguments()))
      if (value > 0) names.insert(name);
  return names;
}

std::uint64_t size_of(const Record& record) {
  std::uint64_t sum = 0;
  for (const auto& [name, value] : all_integers_of(record))
    sum += value < 0 ? -static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  return sum;
}

// The last operation may be replaced, too, by a simpler one. Defaults of a query may be larger.
bool may_replace(const Op& last, const Op& query, const Script& queries) {
  if (&last.kind() == &query.kind())
    return !is_same(last, query) && size_of(query.arguments()) <= size_of(last.arguments());
  return std::ranges::none_of(queries, [&](const Op& one) { return &one.kind() == &last.kind(); });
}

Script with_plain_elements(const Script& script) {
  Tagger tagger;
  Script plain;
  for (const Op& op : script) {
    std::vector<float> counted;
    plain.emplace_back(op.kind(), with_tensors(op.arguments(), [&](Tensor& tensor) {
                         if (tensor.dtype != DType::kF32) return;
                         const auto cells = tensor.floats();
                         if (counted.size() == cells.size()) {
                           std::ranges::transform(counted, cells.begin(), std::negate<>());
                         } else {
                           counted.resize(cells.size());
                           tagger.fill(cells, counted);
                           std::ranges::copy(cells, counted.begin());
                         }
                       }));
  }
  return plain;
}

}  // namespace

bool drop_operations(Shrinkable& trial, Judge& fails, std::size_t finest) {
  struct OfScripts {
    const Record& config;
    Judge& fails;
    [[nodiscard]] bool may_ask() const { return fails.may_ask(); }
    bool operator()(const Script& script) const { return fails({script, config}); }
  };
  return drop_chunks(trial.script, OfScripts{trial.config, fails}, finest);
}

bool drop_tail(Shrinkable& trial, Judge& fails) {
  bool any = false;
  for (std::size_t size = trial.script.size() / 2; size > 0; size /= 2)
    while (size < trial.script.size() &&
           fails.replaces(trial, without(trial.script, trial.script.size() - size, size)))
      any = true;
  return any;
}

bool end_with_query(Shrinkable& trial, Judge& fails, const Script& queries) {
  const Script& script = trial.script;
  for (std::size_t kept = 1; kept < script.size() && fails.may_ask(); ++kept) {
    for (const Op& query : queries) {
      if (kept + 1 == script.size() && !may_replace(script.back(), query, queries)) continue;
      Script candidate(script.begin(), script.begin() + static_cast<std::ptrdiff_t>(kept));
      candidate.push_back(query);
      if (fails.replaces(trial, std::move(candidate))) return true;
    }
  }
  return false;
}

bool join_lists(Shrinkable& trial, Judge& fails) {
  constexpr std::size_t kMostOperations = 512;
  const Script& script = trial.script;
  if (script.size() > kMostOperations) return false;
  bool any = false;
  for (std::size_t i = 0; i < script.size(); ++i) {
    for (std::size_t next = i + 1; next < script.size(); ++next) {
      const bool of_a_kind = &script[next].kind() == &script[i].kind();
      const auto both = joined(script[i].arguments(), script[next].arguments());
      if (!both) continue;
      Script candidate = script;
      candidate[i] = Op(script[i].kind(), *both);
      if (of_a_kind) candidate[next] = candidate[i];
      if (!fails.replaces(trial, without(candidate, next, 1)) &&
          !(of_a_kind && fails.replaces(trial, without(candidate, i, 1))))
        continue;
      any = true;
      next = i;
    }
  }
  return any;
}

bool join_rounds(Shrinkable& trial, Judge& fails, std::size_t fewest) {
  constexpr std::size_t kFewest = 2;
  constexpr std::size_t kLongest = 9;
  bool any = false;
  for (std::size_t begin = 0; begin < trial.script.size(); ++begin)
    for (std::size_t length = 1; length <= kLongest; ++length) {
      // Where many are to be joined, it is from the first one on.
      if (fewest > kFewest && continues(trial.script, begin, length)) continue;
      Rounds rounds = rounds_at(trial.script, begin, length);
      while (rounds.count >= fewest && fails.may_ask()) {
        const bool joins = std::ranges::any_of(
            counts_in(trial.script, begin, length), [&](std::string_view counted) {
              auto candidate = joined(trial.script, rounds, counted);
              return candidate && fails.replaces(trial, std::move(*candidate));
            });
        any |= joins;
        if (joins)
          rounds = rounds_at(trial.script, begin, length);
        else
          rounds.count = rounds.count > 2 * fewest ? rounds.count / 2 : rounds.count - 1;
      }
    }
  return any;
}

bool shrink_arguments(Shrinkable& trial, Judge& fails) {
  bool shrunk = false;
  for (std::size_t i = 0; i < trial.script.size() && fails.may_ask(); ++i) {
    while (shrink_record(Record(trial.script[i].arguments()), [&](Record smaller) {
      Script candidate = trial.script;
      candidate[i] = Op(candidate[i].kind(), std::move(smaller));
      return fails.replaces(trial, std::move(candidate));
    }))
      shrunk = true;
  }
  return shrunk;
}

bool drop_several(Shrinkable& trial, Judge& fails) {
  constexpr std::size_t kMostOperations = 64;
  constexpr std::size_t kMostOfPairs = 24;
  const Script& script = trial.script;
  if (script.empty() || script.size() > kMostOperations) return false;
  for (std::size_t length = script.size(); --length > 1;)
    for (std::size_t begin = 0; begin + length <= script.size(); ++begin)
      if (fails.replaces(trial, without(script, begin, length))) return true;
  if (script.size() > kMostOfPairs) return false;
  for (std::size_t last = script.size(); last-- > 0;)
    for (std::size_t first = last; first-- > 0;)
      if (fails.replaces(trial, without(without(script, last, 1), first, 1))) return true;
  return false;
}

bool make_elements_plain(Shrinkable& trial, Judge& fails) {
  Script plain = with_plain_elements(trial.script);
  return !std::ranges::equal(trial.script, plain, is_same) &&
         fails.replaces(trial, std::move(plain));
}

}  // namespace kvo
