#include "properties/runner/shrinker.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/contract/describe/difference.hpp"
#include "reference/contract/describe/element.hpp"
#include "reference/contract/describe/shrink.hpp"
#include "reference/contract/values/tags.hpp"

namespace kvo {
namespace {

/// Larger numbers are no sizes, and products of them would overflow.
constexpr std::int64_t kMostScaled = 1 << 20;

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

/// Chunks of operations, of halving size down to `finest`.
bool drop_operations(Shrinkable& trial, Judge& fails, std::size_t finest) {
  struct OfScripts {
    const Record& config;
    Judge& fails;
    [[nodiscard]] bool may_ask() const { return fails.may_ask(); }
    bool operator()(const Script& script) const { return fails({script, config}); }
  };
  return drop_chunks(trial.script, OfScripts{trial.config, fails}, finest);
}

/// Operations at the end.
bool drop_tail(Shrinkable& trial, Judge& fails) {
  bool any = false;
  for (std::size_t size = trial.script.size() / 2; size > 0; size /= 2)
    while (size < trial.script.size() &&
           fails.replaces(trial, without(trial.script, trial.script.size() - size, size)))
      any = true;
  return any;
}

/// The middle, all but a few operations of either end, then all but more: what is set up is set up
/// early, and what leads to the failure is near it. A short candidate costs little.
bool drop_middle(Shrinkable& trial, Judge& fails) {
  constexpr std::size_t kFewest = 16;
  const Script& script = trial.script;
  for (std::size_t rest = kFewest; rest < script.size() / 2; rest *= 2)
    for (const std::size_t head : {std::size_t{0}, rest})
      if (fails.replaces(trial, without(script, head, script.size() - rest - head))) return true;
  return false;
}

/// Cuts the script off early and ends it with a query: a difference often shows long before the
/// operation that first found it.
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

/// Makes one operation of two that hold lists of numbers, in the place of either: tokens that came
/// one by one, or by two ways, come together.
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

/// Makes one round of operations of at least `fewest` that follow each other, as passes and their
/// rows do; what counts them adds up.
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

/// The arguments of each operation.
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

/// Several operations that can only go together: any that follow each other, or two.
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

/// The elements in order of the script: keys, or what comes first in an operation, count up, what
/// follows counts down.
bool make_elements_plain(Shrinkable& trial, Judge& fails) {
  Script plain = with_plain_elements(trial.script);
  return !std::ranges::equal(trial.script, plain, is_same) &&
         fails.replaces(trial, std::move(plain));
}

using Names = std::set<std::string_view>;
using Values = std::set<std::int64_t>;
using Change = std::function<std::int64_t(const NamedInteger&)>;

// Copies nothing that stays the same.
Record changed(const Record& record, const Change& change) {
  const auto integers = all_integers_of(record);
  const bool same = std::ranges::all_of(
      integers, [&](const NamedInteger& one) { return change(one) == one.second; });
  return same ? record : with_integers(record, change);
}

Script changed(Script script, const Change& change, std::size_t begin = 0) {
  for (std::size_t i = begin; i < script.size(); ++i)
    script[i] = Op(script[i].kind(), changed(script[i].arguments(), change));
  return script;
}

Change replaced(const NamedInteger& from, std::int64_t to) {
  return [=](const NamedInteger& one) { return one == from ? to : one.second; };
}

// Integers of the operations, each once.
std::vector<NamedInteger> integers_in(const Script& script) {
  std::set<NamedInteger> integers;
  for (const Op& op : script)
    for (const NamedInteger& integer : all_integers_of(op.arguments())) integers.insert(integer);
  return {integers.begin(), integers.end()};
}

std::vector<NamedInteger> integers_in(const Record& config) {
  return config ? all_integers_of(config) : std::vector<NamedInteger>();
}

// The values of each member that operations name something by.
std::map<std::string_view, Values> named_in(const Script& script) {
  std::map<std::string_view, Values> named;
  for (const Op& op : script)
    for (const auto& [name, value] : integers_of(op.arguments()))
      if (value >= 0) named[name].insert(value);
  return named;
}

// The members that hold more than 0.
Names numbering(const Script& script) {
  Names names;
  for (const auto& [name, values] : named_in(script))
    if (*values.rbegin() > 0) names.insert(name);
  return names;
}

std::optional<std::int64_t> value_of(const Op& op, std::string_view name) {
  const auto integers = integers_of(op.arguments());
  const auto found = std::ranges::find(integers, name, &NamedInteger::first);
  return found != integers.end() ? std::optional(found->second) : std::nullopt;
}

// What an integer becomes; nothing if it stays.
using Pick = std::function<std::optional<std::int64_t>(const NamedInteger&)>;

Change each_of(const Pick& pick) {
  return [&pick](const NamedInteger& one) { return pick(one).value_or(one.second); };
}

std::vector<NamedInteger> picked(const std::vector<NamedInteger>& integers, const Pick& pick) {
  std::vector<NamedInteger> some;
  std::ranges::copy_if(integers, std::back_inserter(some),
                       [&](const NamedInteger& one) { return pick(one).has_value(); });
  return some;
}

// Tries a candidate as it is, and with the integers that must fit it: those that `together` picks
// of the script, of the config, or of both; one that `alone` picks of the config, or of the script.
bool replaces_with_integers(Shrinkable& trial, Judge& fails, const Shrinkable& base,
                            const Pick& together, const Pick& alone) {
  const auto in_script = integers_in(base.script);
  const auto in_config = integers_in(base.config);
  std::vector<Record> configs{base.config};
  if (!picked(in_config, together).empty())
    configs.push_back(changed(base.config, each_of(together)));
  for (const NamedInteger& one : picked(in_config, alone))
    configs.push_back(changed(base.config, replaced(one, *alone(one))));
  std::vector<Script> scripts{base.script};
  if (!picked(in_script, together).empty())
    scripts.push_back(changed(base.script, each_of(together)));
  for (const Script& script : scripts)
    for (const Record& config : configs)
      if (fails.replaces(trial, {script, config})) return true;
  return std::ranges::any_of(picked(in_script, alone), [&](const NamedInteger& one) {
    return fails.replaces(trial, {changed(base.script, replaced(one, *alone(one))), base.config});
  });
}

// Sizes that an axis has in tensors of the script.
std::set<std::pair<std::size_t, std::int64_t>> axis_sizes(const Script& script) {
  std::set<std::pair<std::size_t, std::int64_t>> sizes;
  for (const Op& op : script)
    for_each_tensor(op.arguments().type(), op.arguments().get(),
                    [&](std::string_view, const Tensor& tensor, AxisNames) {
                      for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis)
                        if (tensor.shape[axis] > 1) sizes.emplace(axis, tensor.shape[axis]);
                    });
  return sizes;
}

// `shorter` says how long an axis is to be that is `size` long.
Script with_axis(Script script, std::size_t axis,
                 const std::function<std::int64_t(std::int64_t size)>& shorter) {
  for (Op& op : script) {
    bool same = true;
    for_each_tensor(op.arguments().type(), op.arguments().get(),
                    [&](std::string_view, const Tensor& tensor, AxisNames) {
                      same = same && (axis >= tensor.shape.size() ||
                                      shorter(tensor.shape[axis]) == tensor.shape[axis]);
                    });
    if (!same)
      op = Op(op.kind(), with_tensors(op.arguments(), [&](Tensor& tensor) {
                if (axis < tensor.shape.size())
                  tensor = cut_axis(tensor, axis, shorter(tensor.shape[axis]));
              }));
  }
  return script;
}

// Sizes to try for an axis: short ones, and what is left where an integer that it is a multiple of
// gets smaller.
Values shorter_than(std::int64_t size, const std::vector<NamedInteger>& integers) {
  Values shorter{1, 2, size / 2, size - 1};
  for (const auto& [name, integer] : integers)
    if (integer > 1 && integer <= size && size % integer == 0)
      for (const std::int64_t less : {std::int64_t{1}, integer / 2, integer - 1})
        shorter.insert(size / integer * less);
  std::erase_if(shorter, [&](std::int64_t one) { return one < 1 || one >= size; });
  return shorter;
}

/// Values of a member that are dropped.
struct Range {
  std::string_view name;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t count;  // of all values, from 0 on

  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

// The trial without what the range numbers; higher numbers close the gap.
Shrinkable without_values(const Shrinkable& trial, const Range& range) {
  Script rest;
  for (const Op& op : trial.script)
    if (const auto value = value_of(op, range.name);
        !value || *value < range.begin || *value >= range.end)
      rest.push_back(op);
  const Change closed = [&](const NamedInteger& one) {
    const bool higher = one.first == range.name && one.second >= range.end;
    return higher ? one.second - range.size() : one.second;
  };
  return {changed(std::move(rest), closed), trial.config};
}

// Tries that, and with it lists and counts of as many values, or of one less.
bool drop_range(Shrinkable& trial, Judge& fails, const Range& range) {
  const Pick fewer = [&](const NamedInteger& one) -> std::optional<std::int64_t> {
    const bool counts =
        one.second > range.size() && (one.second == range.count || one.second == range.count - 1);
    return counts ? std::optional(one.second - range.size()) : std::nullopt;
  };
  const Shrinkable base = without_values(trial, range);
  if (base.config) {
    const Shrinkable cut{base.script,
                         without_entries(base.config, static_cast<std::size_t>(range.count),
                                         static_cast<std::size_t>(range.begin),
                                         static_cast<std::size_t>(range.end))};
    if (first_difference(base.config.type(), base.config.get(), cut.config.get()) &&
        replaces_with_integers(trial, fails, cut, fewer, fewer))
      return true;
  }
  return replaces_with_integers(trial, fails, base, fewer, fewer);
}

// lower_together, once.
bool lower_once(Shrinkable& trial, Judge& fails) {
  constexpr std::size_t kMostOperations = 128;
  constexpr std::size_t kMostBounds = 8;
  if (trial.script.size() > kMostOperations) return false;
  Values bounds;
  Names names;
  for (const auto& [name, value] : integers_in(trial.script)) {
    names.insert(name);
    bounds.insert(value);
  }
  for (const auto& [axis, size] : axis_sizes(trial.script))
    if (axis == 0) bounds.insert(size);
  std::erase_if(bounds, [](std::int64_t one) { return one < 2 || one > kMostScaled; });
  while (bounds.size() > kMostBounds) bounds.erase(bounds.begin());
  for (const std::int64_t bound : bounds)
    for (const std::int64_t less : {bound - 1, bound / 2, std::int64_t{1}}) {
      const auto lower = [&](std::int64_t one) { return one >= bound ? one - less : one; };
      const Pick together = [&](const NamedInteger& one) {
        return one.second >= bound ? std::optional(lower(one.second)) : std::nullopt;
      };
      for (const Script& script : {trial.script, with_axis(trial.script, 0, lower)}) {
        const Shrinkable base{script, trial.config};
        if (replaces_with_integers(trial, fails, base, together, together)) return true;
        for (const std::string_view name : names)
          if (fails.replaces(trial, changed(script, [&](const NamedInteger& one) {
                               return one.first == name ? lower(one.second) : one.second;
                             })))
            return true;
      }
    }
  return false;
}

/// Integers and flags of the config.
bool shrink_config(Shrinkable& trial, Judge& fails) {
  bool shrunk = false;
  while (trial.config && fails.may_ask() &&
         shrink_record(Record(trial.config), [&](Record simpler) {
           return fails.replaces(trial, {trial.script, std::move(simpler)});
         }))
    shrunk = true;
  return shrunk;
}

/// Drops all operations that name some of the values of a member: caches, sequences, layers.
bool drop_named(Shrinkable& trial, Judge& fails) {
  bool any = false;
  for (const auto& [name, values] : named_in(trial.script)) {
    if (values.size() < 2) continue;
    const auto keeps = [&, name = name](const Values& kept) {
      Script rest;
      for (const Op& op : trial.script)
        if (const auto value = value_of(op, name); !value || kept.contains(*value))
          rest.push_back(op);
      return rest.size() < trial.script.size() && fails.replaces(trial, std::move(rest));
    };
    // The last one is likely to be needed.
    std::vector<std::int64_t> items(values.begin(), values.end());
    std::optional<std::int64_t> last;
    for (std::size_t i = trial.script.size(); i > 0 && !last; --i)
      last = value_of(trial.script[i - 1], name);
    if (!last) continue;  // went with what another member names
    std::rotate(items.begin(), std::ranges::find(items, *last), items.end());
    struct OfValues {
      const decltype(keeps)& keep;
      Judge& judge;
      [[nodiscard]] bool may_ask() const { return judge.may_ask(); }
      bool operator()(const std::vector<std::int64_t>& kept) const {
        return keep(Values(kept.begin(), kept.end()));
      }
    };
    if (keeps({items.front()}))
      any = true;
    else
      any = drop_chunks(items, OfValues{keeps, fails}) || any;
  }
  return any;
}

/// The same, one value or all but one; higher values are renumbered, and a count of the values (of
/// layers, in the config) gets smaller with them.
bool drop_values(Shrinkable& trial, Judge& fails) {
  constexpr std::int64_t kMostValues = 128;
  bool any = false;
  for (const auto& [name, values] : named_in(trial.script)) {
    if (*values.rbegin() < 1 || *values.rbegin() >= kMostValues) continue;
    std::int64_t count = *values.rbegin() + 1;
    for (std::int64_t size = count / 2; size > 0; size /= 2)
      for (std::int64_t end = count; end > 0 && fails.may_ask(); end -= size) {
        const std::int64_t begin = std::max<std::int64_t>(end - size, 0);
        if (!drop_range(trial, fails, {name, begin, end, count})) continue;
        any = true;
        count -= end - begin;
      }
  }
  return any;
}

/// Drops an operation, and from it on lets the things of the numbers 0 and 1 change them.
bool drop_and_swap(Shrinkable& trial, Judge& fails) {
  constexpr std::size_t kMostOperations = 24;
  if (trial.script.size() > kMostOperations) return false;
  const Names names = numbering(trial.script);
  for (const std::string_view name : names)
    for (const std::string_view other : names) {
      // What is absent may mean 0.
      Script all = trial.script;
      for (Op& op : all) op = Op(op.kind(), with_zero(with_zero(op.arguments(), name), other));
      const Values values = named_in(all)[name];
      if (!values.contains(0) || !values.contains(1)) break;
      const Change swap = [&](const NamedInteger& one) {
        const bool swaps =
            (one.first == name || one.first == other) && (one.second == 0 || one.second == 1);
        return swaps ? 1 - one.second : one.second;
      };
      for (std::size_t i = 0; i < all.size(); ++i)
        if (fails.replaces(trial, changed(without(all, i, 1), swap, i))) return true;
    }
  return false;
}

/// Replaces an integer by 0 or 1 wherever it is: what several operations name, a token in lists.
bool renumber(Shrinkable& trial, Judge& fails) {
  constexpr std::size_t kMostIntegers = 64;
  bool any = false;
  const auto lowers = [&](std::int64_t to, const std::function<bool(const NamedInteger&)>& some) {
    const bool helped = fails.replaces(trial, changed(trial.script, [&](const NamedInteger& one) {
                                         return one.second > to && some(one) ? to : one.second;
                                       }));
    any |= helped;
    return helped;
  };
  const auto integers = integers_in(trial.script);
  Names names;
  for (const auto& [name, value] : integers) names.insert(name);
  for (const std::string_view name : names)
    for (const std::int64_t to : {0, 1})
      if (lowers(to, [&](const NamedInteger& one) { return one.first == name; })) break;
  if (integers.size() > kMostIntegers) return any;
  for (const NamedInteger& integer : integers)
    for (const std::int64_t to : {0, 1})
      if (lowers(to, [&](const NamedInteger& one) { return one == integer; }) ||
          lowers(to, [&](const NamedInteger& one) { return one.second == integer.second; }))
        break;
  return any;
}

/// Cuts an axis of all tensors that are as long there, and with it numbers in proportion: rows that
/// must fit each other and the cache.
bool cut_axes(Shrinkable& trial, Judge& fails) {
  for (const auto& [axis, size] : axis_sizes(trial.script)) {
    std::vector<NamedInteger> integers = integers_in(trial.config);
    for (const NamedInteger& integer : integers_in(trial.script)) integers.push_back(integer);
    for (const std::int64_t shorter : shorter_than(size, integers)) {
      const Pick equal = [&, size = size](const NamedInteger& one) {
        return one.second == size ? std::optional(shorter) : std::nullopt;
      };
      const Pick in_proportion =
          [&, size = size](const NamedInteger& one) -> std::optional<std::int64_t> {
        const bool scales = one.second > 0 && one.second < kMostScaled && size < kMostScaled &&
                            one.second * shorter % size == 0;
        return scales ? std::optional(one.second * shorter / size) : std::nullopt;
      };
      const Shrinkable base{
          with_axis(trial.script, axis,
                    [&, size = size](std::int64_t one) { return one == size ? shorter : one; }),
          trial.config};
      if (replaces_with_integers(trial, fails, base, equal, in_proportion)) return true;
    }
  }
  return false;
}

/// Makes an integer smaller, and another one in proportion: a product of sizes, or the last index
/// below it.
bool scale_together(Shrinkable& trial, Judge& fails) {
  constexpr std::size_t kMostIntegers = 24;
  std::vector<NamedInteger> integers = integers_in(trial.config);
  for (const NamedInteger& one : integers_in(trial.script)) integers.push_back(one);
  std::erase_if(integers,
                [](const NamedInteger& one) { return one.second < 2 || one.second > kMostScaled; });
  if (integers.size() > kMostIntegers) return false;
  for (const NamedInteger& factor : integers)
    for (const std::int64_t less : {std::int64_t{1}, factor.second / 2, factor.second - 1})
      for (const NamedInteger& product : integers)
        for (const std::int64_t last : {0, 1}) {  // 1: the product is one more
          const std::int64_t scaled = (product.second + last) * less;
          if (product == factor || scaled % factor.second != 0) continue;
          const Change both = [&](const NamedInteger& one) {
            return one == factor    ? less
                   : one == product ? scaled / factor.second - last
                                    : one.second;
          };
          const Record config = trial.config ? changed(trial.config, both) : trial.config;
          if (fails.replaces(trial, {changed(trial.script, both), config})) return true;
        }
  return false;
}

/// Lowers all integers from a bound on by the same amount, and cuts the first axes of tensors by
/// it: counts of tokens that must fit each other.
bool lower_together(Shrinkable& trial, Judge& fails) {
  bool any = false;
  while (lower_once(trial, fails)) any = true;
  return any;
}

// Takes large parts out of a long script, each candidate of which costs as much as the case itself.
bool shrink_long(Shrinkable& trial, Judge& fails) {
  constexpr std::size_t kLong = 256;
  constexpr std::uint64_t kRuns = 24;  // of the whole script
  constexpr std::size_t kChunks = 32;
  constexpr std::size_t kRounds = 16;
  if (trial.script.size() < kLong) return false;
  return fails.apart(kRuns * trial.script.size(), [&] {
    bool any = false;
    for (bool helped = true; helped && trial.script.size() >= kLong && fails.may_ask();) {
      helped = drop_middle(trial, fails);
      helped = drop_named(trial, fails) || helped;
      helped = drop_values(trial, fails) || helped;
      helped = drop_operations(trial, fails, 1 + trial.script.size() / kChunks) || helped;
      helped = drop_tail(trial, fails) || helped;
      helped = join_rounds(trial, fails, kRounds) || helped;
      helped = cut_axes(trial, fails) || helped;
      any |= helped;
    }
    return any;
  });
}

// One after the other; what costs more, only where the rest does not help.
bool shrink_once(Shrinkable& trial, Judge& fails, const Script& queries) {
  constexpr std::size_t kMostOfRounds = 128;
  bool helped = drop_operations(trial, fails, 1);
  helped = end_with_query(trial, fails, queries) || helped;
  helped = join_lists(trial, fails) || helped;
  if (trial.script.size() <= kMostOfRounds) helped = join_rounds(trial, fails, 2) || helped;
  helped = shrink_arguments(trial, fails) || helped;
  helped = shrink_config(trial, fails) || helped;
  helped = renumber(trial, fails) || helped;
  helped = cut_axes(trial, fails) || helped;
  helped = make_elements_plain(trial, fails) || helped;
  return helped || drop_values(trial, fails) || scale_together(trial, fails) ||
         lower_together(trial, fails) || drop_and_swap(trial, fails) || drop_several(trial, fails);
}

}  // namespace

bool Judge::operator()(const Shrinkable& trial) {
  if (!may_ask()) return false;
  left_ -= std::min<std::uint64_t>(left_, kOperationsOfAttempt + trial.script.size());
  return fails_(trial);
}

bool Judge::replaces(Shrinkable& trial, Shrinkable candidate) {
  // What a pass did not change is shared.
  const bool same =
      candidate.config.get() == trial.config.get() &&
      std::ranges::equal(
          candidate.script, trial.script, {}, [](const Op& op) { return op.arguments().get(); },
          [](const Op& op) { return op.arguments().get(); });
  if (same || !(*this)(candidate)) return false;
  trial = std::move(candidate);
  return true;
}

bool Judge::replaces(Shrinkable& trial, Script candidate) {
  return replaces(trial, Shrinkable{std::move(candidate), trial.config});
}

bool Judge::apart(std::uint64_t operations, const std::function<bool()>& shrink) {
  const std::uint64_t before = std::exchange(left_, operations);
  const bool shrunk = shrink();
  left_ = before;
  return shrunk;
}

Script simplest_queries(const std::vector<const OpKind*>& operations) {
  Script queries;
  for (const OpKind* kind : operations) {
    if (kind->returns->fields.empty()) continue;
    const bool numbers_only = std::ranges::all_of(kind->arguments->fields, [](const Field& field) {
      return field.type->is_optional() || field.type->type_class == TypeClass::kInteger;
    });
    if (numbers_only)
      queries.emplace_back(*kind, Record(*kind->arguments, kind->arguments->made()));
  }
  return queries;
}

void for_each_simpler(const Script& script, const std::function<bool(const Script&)>& candidate) {
  for (std::size_t size = script.size(); size > 0; size /= 2)
    for (std::size_t begin = 0; begin < script.size(); begin += size)
      if (candidate(without(script, begin, size))) return;
  for (std::size_t i = 0; i < script.size(); ++i) {
    const auto attempt = [&](Record smaller) {
      Script simpler = script;
      simpler[i] = Op(script[i].kind(), std::move(smaller));
      return candidate(simpler);
    };
    if (shrink_record(script[i].arguments(), attempt)) return;
  }
}

bool shrink_trial(Shrinkable& trial, Judge& fails, const Script& queries) {
  bool any = shrink_long(trial, fails);
  while (fails.may_ask() && shrink_once(trial, fails, queries)) any = true;
  // Worth an attempt, too, where the budget is spent.
  return fails.apart(1, [&] { return make_elements_plain(trial, fails); }) || any;
}

Script shrink_script(Script script, const std::function<bool(const Script&)>& fails,
                     std::uint64_t most_attempts, const Script& queries) {
  Shrinkable trial{std::move(script)};
  Judge judge([&](const Shrinkable& candidate) { return fails(candidate.script); }, most_attempts);
  shrink_trial(trial, judge, queries);
  return std::move(trial.script);
}

}  // namespace kvo
