#include "properties/runner/shrinker.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "reference/contract/describe/shrink.hpp"

namespace kvo {
namespace {

using Fails = std::function<bool(const Script&)>;

Script without(const Script& script, std::size_t begin, std::size_t count) {
  Script rest(script.begin(), script.begin() + static_cast<std::ptrdiff_t>(begin));
  const std::size_t end = std::min(script.size(), begin + count);
  rest.insert(rest.end(), script.begin() + static_cast<std::ptrdiff_t>(end), script.end());
  return rest;
}

// Drops chunks of `size` from the end on, for what was set up early is needed longest. True if any
// could go.
bool drop_chunks(Script& script, std::size_t size, const Fails& fails) {
  bool dropped = false;
  for (std::size_t end = script.size(); end > 0;) {
    const std::size_t begin = end > size ? end - size : 0;
    Script rest = without(script, begin, end - begin);
    if (fails(rest)) {
      script = std::move(rest);
      dropped = true;
    }
    end = begin;
  }
  return dropped;
}

// Replaces operations by smaller ones. True if any could be.
bool shrink_arguments(Script& script, const Fails& fails) {
  bool shrunk = false;
  for (std::size_t i = 0; i < script.size(); ++i) {
    while (shrink_record(Record(script[i].arguments()), [&](Record smaller) {
      Script candidate = script;
      candidate[i] = Op(script[i].kind(), std::move(smaller));
      if (!fails(candidate)) return false;
      script = std::move(candidate);
      return true;
    }))
      shrunk = true;
  }
  return shrunk;
}

// Cuts the script off early and ends it with a query: what went wrong often shows long before the
// operation that happened to stumble over it. At most `most` operations are kept. True if that
// helped.
bool end_with_query(Script& script, std::size_t most, const Script& queries, const Fails& fails) {
  for (std::size_t kept = 1; kept <= most && kept < script.size(); ++kept) {
    for (const Op& query : queries) {
      Script candidate(script.begin(), script.begin() + static_cast<std::ptrdiff_t>(kept));
      candidate.push_back(query);
      if (!fails(candidate)) continue;
      script = std::move(candidate);
      return true;
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

// Makes the number of a cache or a layer smaller in all operations that name it. True if any could.
bool renumber(Script& script, const Fails& fails) {
  for (const auto& [integer, count] : integers_in(script)) {
    if (count < 2 || integer.second <= 0) continue;
    Script candidate = renumbered(script, integer, 0);
    if (!fails(candidate)) continue;
    script = std::move(candidate);
    return true;
  }
  return false;
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
  std::uint64_t attempts = 0;
  const auto limited = [&](const Script& candidate) {
    return attempts++ < most_attempts && fails(candidate);
  };
  bool helped = true;
  // At first a query may also take the place of the last operation, whose arguments may pin others.
  std::size_t spared = 1;
  while (helped && attempts < most_attempts) {
    helped = false;
    for (std::size_t size = std::max<std::size_t>(script.size() / 2, 1); size > 0; size /= 2)
      helped = drop_chunks(script, size, limited) || helped;
    const std::size_t most = script.size() - std::min(script.size(), spared);
    helped = end_with_query(script, most, queries, limited) || helped;
    spared = 2;
    helped = shrink_arguments(script, limited) || helped;
    helped = renumber(script, limited) || helped;
  }
  return script;
}

}  // namespace kvo
