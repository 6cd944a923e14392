#include "properties/shrinker.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

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
    bool again = true;
    while (again) {
      again = false;
      const Op current = script[i];
      current.kind().shrink(current.arguments(), [&](std::shared_ptr<const void> smaller) {
        if (again) return;
        Script candidate = script;
        candidate[i] = Op(current.kind(), std::move(smaller));
        if (!fails(candidate)) return;
        script = std::move(candidate);
        again = shrunk = true;
      });
    }
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

// A member of the arguments of several operations that holds the same number in all of them.
using SharedNumber = std::pair<std::string, std::int64_t>;

std::optional<std::int64_t> integer(const boost::json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64() && std::in_range<std::int64_t>(value.get_uint64()))
    return static_cast<std::int64_t>(value.get_uint64());
  return std::nullopt;
}

std::map<SharedNumber, int> numbers_of(const Script& script) {
  std::map<SharedNumber, int> counts;
  for (const Op& op : script)
    for (const auto& [name, value] : op.kind().write_arguments(op.arguments()))
      if (const auto number = integer(value)) ++counts[{std::string(name), *number}];
  return counts;
}

std::optional<Script> renumbered(const Script& script, const SharedNumber& from, std::int64_t to) {
  Script changed;
  for (const Op& op : script) {
    boost::json::object arguments = op.kind().write_arguments(op.arguments());
    const boost::json::value* member = arguments.if_contains(from.first);
    if (member == nullptr || integer(*member) != from.second) {
      changed.push_back(op);
      continue;
    }
    arguments[from.first] = to;
    JsonFault fault;
    auto read = op.kind().read_arguments(arguments, fault);
    if (!read) return std::nullopt;
    changed.emplace_back(op.kind(), std::move(read));
  }
  return changed;
}

// Makes the number of a cache or a layer smaller in all operations that name it. True if any could.
bool renumber(Script& script, const Fails& fails) {
  for (const auto& [number, count] : numbers_of(script)) {
    if (count < 2 || number.second <= 0) continue;
    const auto candidate = renumbered(script, number, 0);
    if (!candidate || !fails(*candidate)) continue;
    script = *candidate;
    return true;
  }
  return false;
}

}  // namespace

Script simplest_queries(const std::vector<const OpKind*>& operations) {
  Script queries;
  for (const OpKind* kind : operations) {
    if (kind->returns.empty()) continue;
    boost::json::object arguments;
    for (const FieldInfo& field : kind->arguments)
      if (field.presence == Presence::kRequired) arguments[field.name] = 0;
    JsonFault fault;
    if (auto read = kind->read_arguments(arguments, fault)) queries.emplace_back(*kind, read);
  }
  return queries;
}

void for_each_simpler(const Script& script, const std::function<bool(const Script&)>& candidate) {
  for (std::size_t size = script.size(); size > 0; size /= 2)
    for (std::size_t begin = 0; begin < script.size(); begin += size)
      if (candidate(without(script, begin, size))) return;
  bool done = false;
  for (std::size_t i = 0; i < script.size() && !done; ++i) {
    script[i].kind().shrink(script[i].arguments(), [&](std::shared_ptr<const void> smaller) {
      if (done) return;
      Script simpler = script;
      simpler[i] = Op(script[i].kind(), std::move(smaller));
      done = candidate(simpler);
    });
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
