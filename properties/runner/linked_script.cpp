#include "properties/runner/linked_script.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "properties/runner/lockstep.hpp"

namespace kvo {
namespace {

// A list that is a whole result stays so, whatever its length.
void join_lists(std::vector<ResultReference>& references,
                const std::vector<std::vector<Handle>>& returned) {
  std::vector<ResultReference> joined;
  for (std::size_t begin = 0; begin < references.size();) {
    const ResultReference& first = references[begin];
    std::size_t end = begin;
    const auto follows = [&](const ResultReference& one, std::size_t at) {
      return one.argument == first.argument && one.operation == first.operation &&
             one.member == first.member && one.at == at && one.of == at;
    };
    while (end < references.size() && follows(references[end], end - begin)) ++end;
    const auto all = static_cast<std::size_t>(std::ranges::count(
        returned[first.operation], first.member, [](const Handle& one) { return one.member; }));
    const bool more =
        end < references.size() && references[end].argument == first.argument && end > begin;
    if (end > begin && end - begin == all && !more) {
      joined.push_back({first.argument, std::nullopt, first.operation, first.member, std::nullopt});
      begin = end;
      continue;
    }
    joined.push_back(first);
    ++begin;
  }
  references = std::move(joined);
}

}  // namespace

LinkedScript::LinkedScript(const Subject& reference, const Setup& setup, Script script)
    : reference_(&reference), script_(std::move(script)) {
  const std::array<const Subject*, 1> only{&reference};
  Lockstep lockstep(nullptr, only, setup);
  // Where a handle came from last, by what it identifies and its value.
  std::map<std::pair<std::string_view, std::int64_t>, ResultReference> sources;
  std::vector<std::vector<Handle>> returned;
  for (const Op& op : script_) {
    if (!lockstep.worthwhile()) break;
    Link link{.number = returned.size()};
    for (const Handle& handle : handles_of(op.arguments()))
      if (const auto source = sources.find({handle.of, handle.value}); source != sources.end()) {
        ResultReference& follows = link.references.emplace_back(source->second);
        follows.argument = handle.member;
        follows.at = handle.at;
      }
    join_lists(link.references, returned);
    any_ |= !link.references.empty();
    const Observation& seen = lockstep.step(op);
    returned.push_back(handles_of(seen.returns));
    for (const Handle& handle : returned.back())
      if (handle.value >= 0)  // -1 stands for none
        sources[{handle.of, handle.value}] = {
            .operation = link.number, .member = handle.member, .of = handle.at};
    links_.insert_or_assign(op.arguments().get(), std::move(link));
  }
}

Script LinkedScript::resolved(const Script& candidate, const Setup& setup) const {
  if (!any_) return candidate;
  const std::array<const Subject*, 1> only{reference_};
  Lockstep lockstep(nullptr, only, setup);
  std::unordered_map<std::uint64_t, std::vector<Handle>> returned;
  Script script = candidate;
  for (Op& op : script) {
    if (!lockstep.worthwhile()) break;
    const auto link = links_.find(op.arguments().get());
    if (link != links_.end()) {
      Record arguments = op.arguments();
      for (const ResultReference& reference : link->second.references)
        if (const auto source = returned.find(reference.operation); source != returned.end())
          if (auto changed = with_result(arguments, reference, source->second))
            arguments = std::move(*changed);
      if (arguments.get() != op.arguments().get()) op = Op(op.kind(), std::move(arguments));
    }
    const Observation& seen = lockstep.step(op);
    if (link != links_.end()) returned[link->second.number] = handles_of(seen.returns);
  }
  return script;
}

}  // namespace kvo
