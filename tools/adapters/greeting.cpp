#include "tools/adapters/greeting.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "tools/commands/usage.hpp"
#include "tools/reports/console.hpp"
#include "traces/log/conventions_file.hpp"

namespace kvo::tools {
namespace {

UsageError refused_greeting(const std::string& name, std::string_view member,
                            const std::string& value, const std::string& problem) {
  constexpr std::size_t kMostOfValue = 120;
  return UsageError(fmt::format("greeting of {}: {}: '{}': {}", name, member,
                                printable(value.substr(0, kMostOfValue)), problem));
}

}  // namespace

std::vector<std::string> missing_operations(const Greeting& greeting, const CacheKind& kind) {
  std::vector<std::string> missing;
  for (const GreetedKind& greeted : greeting.kinds)
    if (greeted.kind == kind.name() && !greeted.operations.empty())
      for (const OpKind* op : kind.operations)
        if (std::ranges::find(greeted.operations, op->name) == greeted.operations.end())
          missing.emplace_back(op->name);
  return missing;
}

std::vector<Subject> greeted_subjects(const Contracts& contracts, const Greeting& greeting,
                                      const std::string& name) {
  std::vector<Subject> subjects;
  for (const GreetedKind& greeted : greeting.kinds) {
    const std::size_t dot = std::min(greeted.kind.find('.'), greeted.kind.size());
    const CacheKind* kind = contracts.find_kind(
        greeted.kind.substr(0, dot), greeted.kind.substr(std::min(dot + 1, greeted.kind.size())));
    if (kind == nullptr) throw refused_greeting(name, "kinds", greeted.kind, "is no kind of cache");
    for (const Subject& other : subjects)
      if (other.kind == kind) throw refused_greeting(name, "kinds", greeted.kind, "is there twice");
    for (const std::string& operation : greeted.operations)
      if (kind->operation(operation) == nullptr)
        throw refused_greeting(name, "operations", operation, "is no operation of " + kind->name());
    std::string text = "kind " + kind->name() + "\n";
    for (const std::string& row : greeted.conventions) text += row + "\n";
    auto read = traces::read_conventions("greeting of " + name, text, contracts.kind_finder());
    if (!read) throw UsageError(read.error().text());
    Conventions conventions = std::move(read->front().conventions);
    std::ranges::move(missing_operations(greeting, *kind), std::back_inserter(conventions.without));
    Subject made{.kind = kind,
                 .variant = name,
                 .doc = fmt::format("{} {}", greeting.system, greeting.version)};
    made.survives_failed_allocation = false;
    made.conventions_of = greeting.conventions_of;
    subjects.push_back(with_conventions(std::move(made), conventions));
  }
  return subjects;
}

}  // namespace kvo::tools
