#include "properties/runner/shrinker.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "reference/contract/describe/difference.hpp"
#include "reference/contract/describe/shrink.hpp"
#include "reference/contract/values/tags.hpp"

namespace kvo {
namespace {

// Asks whether scripts fail, as often as it may.
class Judge {
 public:
  Judge(const std::function<bool(const Script&)>& fails, std::uint64_t most)
      : fails_(fails), left_(most) {}

  // Once it is false no script is said to fail, and none need be made.
  [[nodiscard]] bool may_ask() const { return left_ > 0; }
  bool operator()(const Script& script) {
    if (!may_ask()) return false;
    // A long script costs as many attempts as it is times longer than most.
    constexpr std::uint64_t kOperationsOfMost = 64;
    left_ -= std::min<std::uint64_t>(left_, 1 + script.size() / kOperationsOfMost);
    return fails_(script);
  }
  // Puts `candidate` in the place of `script` if it fails. True if so.
  bool replaces(Script& script, Script candidate) {
    if (!(*this)(candidate)) return false;
    script = std::move(candidate);
    return true;
  }

 private:
  const std::function<bool(const Script&)>& fails_;
  std::uint64_t left_;
};

// Replaces operations by smaller ones. True if any could be.
bool shrink_arguments(Script& script, Judge& fails) {
  bool shrunk = false;
  for (std::size_t i = 0; i < script.size() && fails.may_ask(); ++i) {
    while (shrink_record(Record(script[i].arguments()), [&](Record smaller) {
      Script candidate = script;
      candidate[i] = Op(script[i].kind(), std::move(smaller));
      return fails.replaces(script, std::move(candidate));
    }))
      shrunk = true;
  }
  return shrunk;
}

// Makes one operation of two that hold lists of numbers, in the place of either: tokens that came
// one by one, or by two ways, come together. True if any could be.
bool join_lists(Script& script, Judge& fails) {
  constexpr std::size_t kMostOperations = 512;
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
      if (!fails.replaces(script, without(candidate, next, 1)) &&
          !(of_a_kind && fails.replaces(script, without(candidate, i, 1))))
        continue;
      any = true;
      next = i;
    }
  }
  return any;
}

// The round of `length` operations at `begin` with what the next one holds; nothing if that is
// another round.
std::optional<Script> with_next_round(const Script& script, std::size_t begin, std::size_t length) {
  Script rest = without(script, begin + length, length);
  for (std::size_t i = begin; i < begin + length; ++i) {
    const Op& next = script[i + length];
    if (&next.kind() != &script[i].kind()) return std::nullopt;
    auto both = as_one(script[i].arguments(), next.arguments());
    if (!both) return std::nullopt;
    rest[i] = Op(next.kind(), std::move(*both));
  }
  return rest;
}

// Makes one round of operations of two that follow each other, as passes and their rows do. True if
// any could be.
bool join_rounds(Script& script, Judge& fails) {
  constexpr std::size_t kMostOperations = 128;
  constexpr std::size_t kLongest = 9;
  if (script.size() > kMostOperations) return false;
  bool any = false;
  for (std::size_t begin = 0; begin < script.size(); ++begin) {
    for (std::size_t length = 1; length <= kLongest; ++length) {
      while (begin + 2 * length <= script.size()) {
        auto candidate = with_next_round(script, begin, length);
        if (!candidate || !fails.replaces(script, std::move(*candidate))) break;
        any = true;
      }
    }
  }
  return any;
}

// Drops two operations that can only go together. True if any could.
bool drop_pairs(Script& script, Judge& fails) {
  constexpr std::size_t kMostOperations = 24;
  if (script.size() > kMostOperations) return false;
  for (std::size_t last = script.size(); last-- > 0;) {
    for (std::size_t first = last; first-- > 0;) {
      if (fails.replaces(script, without(without(script, last, 1), first, 1))) return true;
    }
  }
  return false;
}

// Cuts the script off early and ends it with a query: what went wrong often shows long before the
// operation that happened to stumble over it. At most `most` operations are kept. True if that
// helped.
bool end_with_query(Script& script, std::size_t most, const Script& queries, Judge& fails) {
  for (std::size_t kept = 1; kept <= most && kept < script.size() && fails.may_ask(); ++kept) {
    for (const Op& query : queries) {
      Script candidate(script.begin(), script.begin() + static_cast<std::ptrdiff_t>(kept));
      candidate.push_back(query);
      if (fails.replaces(script, std::move(candidate))) return true;
    }
  }
  return false;
}

std::map<NamedInteger, int> integers_in(const Script& script) {
  std::map<NamedInteger, int> counts;
  for (const Op& op : script)
    for (const NamedInteger& integer : integers_of(op.arguments())) ++counts[integer];
  return counts;
}

Script renumbered(const Script& script, const NamedInteger& from, std::int64_t to) {
  Script changed;
  for (const Op& op : script) {
    auto arguments = with_integer(op.arguments(), from, to);
    changed.push_back(arguments ? Op(op.kind(), std::move(*arguments)) : op);
  }
  return changed;
}

// From operation `begin` on, what `names` name is named by one less.
Script renumbered_behind(Script script, std::size_t begin,
                         const std::set<std::string_view>& names) {
  for (std::size_t i = begin; i < script.size(); ++i) {
    Record arguments = script[i].arguments();
    for (const NamedInteger& integer : integers_of(arguments))
      if (names.contains(integer.first) && integer.second > 1)
        arguments = *with_integer(arguments, integer, integer.second - 1);
    script[i] = Op(script[i].kind(), std::move(arguments));
  }
  return script;
}

// Drops an operation that gave something a number: what came behind it is then named by one less.
// True if any could be.
bool drop_numbered(Script& script, Judge& fails) {
  constexpr std::size_t kMostNames = 5;
  std::set<std::string_view> names;
  for (const auto& [integer, count] : integers_in(script))
    if (integer.second > 1 && names.size() < kMostNames) names.insert(integer.first);
  // Fields of several names may name what one operation made: "handle", "parent", "child".
  for (std::size_t chosen = 1; chosen < std::size_t{1} << names.size(); ++chosen) {
    std::set<std::string_view> among;
    std::size_t bit = 0;
    for (const std::string_view name : names)
      if ((chosen >> bit++ & 1U) != 0) among.insert(name);
    for (std::size_t i = 0; i < script.size() && fails.may_ask(); ++i) {
      if (fails.replaces(script, renumbered_behind(without(script, i, 1), i, among))) return true;
    }
  }
  return false;
}

// Makes the number of a cache or a layer smaller in all operations that name it. True if any could.
bool renumber(Script& script, Judge& fails) {
  for (const auto& [integer, count] : integers_in(script)) {
    if (count < 2 || integer.second <= 0 || !fails.may_ask()) continue;
    if (fails.replaces(script, renumbered(script, integer, 0))) return true;
  }
  return false;
}

Script with_tensors_of(const Script& script, const std::function<void(Tensor&)>& change) {
  Script changed;
  for (const Op& op : script) changed.emplace_back(op.kind(), with_tensors(op.arguments(), change));
  return changed;
}

// Sizes that an axis has in tensors of the script.
std::set<std::pair<std::size_t, std::int64_t>> axis_sizes(const Script& script) {
  std::set<std::pair<std::size_t, std::int64_t>> sizes;
  (void)with_tensors_of(script, [&](Tensor& tensor) {
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis)
      if (tensor.shape[axis] > 1) sizes.emplace(axis, tensor.shape[axis]);
  });
  return sizes;
}

// Cuts an axis of all tensors that are as long there, and with it a number in proportion: rows that
// must fit each other and the cache. True if any could be.
bool cut_axes(Script& script, Judge& fails) {
  constexpr std::int64_t kMostScaled = 1 << 20;
  for (const auto& [axis, size] : axis_sizes(script)) {
    for (const std::int64_t shorter : {std::int64_t{1}, std::int64_t{2}, size / 2, size - 1}) {
      if (shorter < 1 || shorter >= size) continue;
      Script cut = with_tensors_of(script, [&, axis = axis, size = size](Tensor& tensor) {
        if (axis < tensor.shape.size() && tensor.shape[axis] == size)
          tensor = cut_axis(tensor, axis, shorter);
      });
      std::vector<Script> candidates{cut};
      for (const auto& [integer, count] : integers_in(script))
        if (integer.second > 0 && integer.second < kMostScaled &&
            integer.second * shorter % size == 0)
          candidates.push_back(renumbered(cut, integer, integer.second * shorter / size));
      for (Script& candidate : candidates)
        if (fails.replaces(script, std::move(candidate))) return true;
    }
  }
  return false;
}

// The elements in order of the script: keys, or what stands first in an operation, count up, what
// follows counts down.
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

bool is_plain(const Script& script) {
  const Script plain = with_plain_elements(script);
  return std::ranges::equal(script, plain, [](const Op& a, const Op& b) {
    return !first_difference(a.arguments().type(), a.arguments().get(), b.arguments().get());
  });
}

}  // namespace

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

Script shrink_script(Script script, const std::function<bool(const Script&)>& fails,
                     std::uint64_t most_attempts, const Script& queries) {
  Judge limited(fails, most_attempts);
  bool helped = true;
  // At first a query may also take the place of the last operation, whose arguments may pin others.
  std::size_t spared = 1;
  while (helped && limited.may_ask()) {
    helped = drop_chunks(script, limited);
    const std::size_t most = script.size() - std::min(script.size(), spared);
    helped = end_with_query(script, most, queries, limited) || helped;
    spared = 2;
    helped = join_lists(script, limited) || helped;
    helped = join_rounds(script, limited) || helped;
    helped = shrink_arguments(script, limited) || helped;
    helped = renumber(script, limited) || helped;
    helped = cut_axes(script, limited) || helped;
    helped = helped || drop_numbered(script, limited) || drop_pairs(script, limited);
  }
  if (!is_plain(script)) limited.replaces(script, with_plain_elements(script));
  return script;
}

}  // namespace kvo
