#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "properties/runner/shrink_passes.hpp"
#include "reference/contract/describe/difference.hpp"
#include "reference/contract/describe/element.hpp"
#include "reference/contract/describe/shrink.hpp"

namespace kvo {
namespace {

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

// From operation `begin` on, numbers of `names` from `bound` on get smaller by `less`.
Script renumbered_after(Script script, std::size_t begin, const Names& names, std::int64_t bound,
                        std::int64_t less) {
  return changed(
      std::move(script),
      [&](const NamedInteger& one) {
        return names.contains(one.first) && one.second >= bound ? one.second - less : one.second;
      },
      begin);
}

// From where on numbers may get smaller: after the first ones that are free in operations from
// `begin` on.
Values bounds_of(const Script& script, std::size_t begin, const Names& names) {
  constexpr std::int64_t kMostFree = 3;
  Values used;
  for (std::size_t i = begin; i < script.size(); ++i)
    for (const auto& [name, value] : all_integers_of(script[i].arguments()))
      if (names.contains(name)) used.insert(value);
  if (used.empty()) return {};
  Values bounds{1};
  for (std::int64_t free = 0, found = 0; free < *used.rbegin() && found < kMostFree; ++free) {
    if (used.contains(free)) continue;
    bounds.insert(free);
    ++found;
  }
  return bounds;
}

// Fields of several names may name what one operation made: "handle", "parent", "child".
std::vector<Names> subsets(const Names& names) {
  constexpr std::size_t kMostNames = 5;
  const std::vector<std::string_view> all(names.begin(), names.end());
  std::vector<Names> found;
  found.reserve(all.size());
  for (const std::string_view name : all) found.push_back({name});
  if (all.size() > 1) found.push_back(names);
  for (std::size_t chosen = 1;
       all.size() <= kMostNames && chosen + 1 < std::size_t{1} << all.size(); ++chosen) {
    Names among;
    for (std::size_t bit = 0; bit < all.size(); ++bit)
      if ((chosen >> bit & 1U) != 0) among.insert(all[bit]);
    if (among.size() > 1) found.push_back(std::move(among));
  }
  return found;
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

}  // namespace

bool shrink_config(Shrinkable& trial, Judge& fails) {
  bool shrunk = false;
  while (trial.config && fails.may_ask() &&
         shrink_record(Record(trial.config), [&](Record simpler) {
           return fails.replaces(trial, {trial.script, std::move(simpler)});
         }))
    shrunk = true;
  return shrunk;
}

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

bool drop_numbered(Shrinkable& trial, Judge& fails) {
  bool any = false;
  for (const Names& among : subsets(numbering(trial.script)))
    for (std::size_t size = std::max<std::size_t>(trial.script.size() / 2, 1); size > 0; size /= 2)
      for (std::size_t end = trial.script.size(); end > 0 && fails.may_ask();) {
        const std::size_t begin = end > size ? end - size : 0;
        const auto less = static_cast<std::int64_t>(end - begin);
        const Script rest = without(trial.script, begin, end - begin);
        any |= std::ranges::any_of(bounds_of(rest, begin, among), [&](std::int64_t bound) {
          return fails.replaces(trial, renumbered_after(rest, begin, among, bound + less, less));
        });
        end = begin;
      }
  return any;
}

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

bool lower_together(Shrinkable& trial, Judge& fails) {
  bool any = false;
  while (lower_once(trial, fails)) any = true;
  return any;
}

}  // namespace kvo
