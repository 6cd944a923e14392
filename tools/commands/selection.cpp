#include "tools/commands/selection.hpp"

#include <algorithm>
#include <deque>
#include <map>

#include <fmt/format.h>
#include <fnmatch.h>

#include "tools/adapters/adapter.hpp"
#include "tools/adapters/library.hpp"
#include "tools/adapters/systems.hpp"
#include "tools/reports/console.hpp"

namespace kvo::tools {
namespace {

constexpr std::string_view kExec = "exec:";
constexpr std::string_view kLib = "lib:";

bool has_variant(const std::string& word) {
  return word.find('@') != std::string::npos;
}

bool is_mutant(const std::string& word) {
  return word.find("@mutant:") != std::string::npos;
}

// What a variant names outside of this program, started once.
std::vector<Subject> started(const Contracts& contracts, const std::string& variant) {
  if (const System* system = find_system(variant)) try {
      return subjects_of_adapter(contracts, command_of(*system), {}, variant);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}: {}", variant, why_absent(error.what())));
    }
  const bool is_command = variant.starts_with(kExec);
  const std::string program = variant.substr(is_command ? kExec.size() : kLib.size());
  if (program.empty()) throw UsageError(fmt::format("'{}': nothing to start", printable(variant)));
  return is_command ? subjects_of_adapter(contracts, program)
                    : subjects_of_library(contracts, program);
}

// The subjects of "KIND@exec:COMMAND", "CONTRACT@lib:PATH", "@exec:COMMAND", "KIND@vllm", "vllm".
std::vector<const Subject*> from_outside(const Contracts& contracts, const std::string& word) {
  static std::map<std::string, std::deque<Subject>> known;  // do not move
  const std::size_t at = find_system(word) == nullptr ? word.find('@') : 0;
  if (at == std::string::npos) return {};
  const std::string variant = word.substr(word.starts_with('@') || at > 0 ? at + 1 : 0);
  if (!variant.starts_with(kExec) && !variant.starts_with(kLib) && find_system(variant) == nullptr)
    return {};
  auto [found, is_new] = known.try_emplace(variant);
  if (is_new)
    for (Subject& subject : started(contracts, variant))
      found->second.push_back(std::move(subject));
  const std::string kind = word.substr(0, at);
  std::vector<const Subject*> meant;
  for (const Subject& subject : found->second)
    if (kind.empty() || means(kind, subject)) meant.push_back(&subject);
  if (meant.empty())
    throw UsageError(fmt::format("{}: it has no cache '{}'", variant, printable(kind)));
  return meant;
}

std::vector<const Subject*> meant_by(const Contracts& contracts, const std::string& word) {
  std::vector<const Subject*> meant = from_outside(contracts, word);
  if (!meant.empty()) return meant;
  for (const Subject* subject : contracts.subjects())
    if (means(word, *subject) && (has_variant(word) || !subject->on_request))
      meant.push_back(subject);
  if (has_variant(word))
    for (const Mutant& mutant : contracts.mutants())
      if (means(word, mutant.subject))
        meant.push_back(contracts.find_subject(mutant.subject.name()));
  if (meant.empty())
    if (const Subject* composed = contracts.find_subject(word)) meant.push_back(composed);
  if (meant.empty()) {
    if (is_mutant(word)) check_has_mutants(contracts);
    std::vector<std::string> names;
    if (has_variant(word)) {
      for (const Subject* subject : contracts.subjects()) names.push_back(subject->name());
      for (const Mutant& mutant : contracts.mutants()) names.push_back(mutant.subject.name());
    }
    throw unknown_word("subject", word, kind_words(contracts), names);
  }
  return meant;
}

void add_new(std::vector<const Subject*>& all, const Subject* subject) {
  if (std::ranges::find(all, subject) == all.end()) all.push_back(subject);
}

bool generates(const CacheKind& kind) {
  return kind.operation("generate") != nullptr;
}

// The chosen ones by kind, beside its reference.
std::vector<Comparison> compared(const Contracts& contracts,
                                 const std::vector<const Subject*>& chosen) {
  std::vector<Comparison> comparisons;
  for (const CacheKind* kind : contracts.kinds()) {
    Comparison comparison{.kind = kind, .reference = &contracts.reference_of(*kind)};
    bool wanted = false;
    for (const Subject* subject : chosen) {
      if (subject->kind != kind) continue;
      wanted = true;
      if (subject != comparison.reference) comparison.subjects.push_back(subject);
    }
    if (wanted) comparisons.push_back(std::move(comparison));
  }
  return comparisons;
}

}  // namespace

void check_has_mutants(const Contracts& contracts) {
  if (contracts.mutants().empty())
    throw UsageError(
        "this build has no mutants; ./tools/test builds them, and so does CMake with "
        "-DKVO_MUTANTS=ON");
}

bool means(const std::string& word, const Subject& subject) {
  const auto matches = [&](const std::string& name) {
    return fnmatch(word.c_str(), name.c_str(), 0) == 0;
  };
  if (has_variant(word)) return matches(subject.name());
  return matches(std::string(subject.kind->contract)) || matches(subject.kind->name());
}

bool means_references(const Contracts& contracts, const std::vector<std::string>& words) {
  return words.empty() || std::ranges::any_of(contracts.kinds(), [&](const CacheKind* kind) {
           return std::ranges::any_of(words, [&](const std::string& word) {
             return means(word, contracts.reference_of(*kind));
           });
         });
}

std::vector<std::string> kind_words(const Contracts& contracts) {
  std::vector<std::string> words;
  for (const CacheKind* kind : contracts.kinds()) {
    if (std::ranges::find(words, kind->contract) == words.end()) words.emplace_back(kind->contract);
    words.push_back(kind->name());
  }
  return words;
}

const Subject& subject_named(const Contracts& contracts, const std::string& name) {
  const auto outside = from_outside(contracts, name);
  if (outside.size() > 1) throw UsageError(fmt::format("'{}': name its kind", printable(name)));
  if (!outside.empty()) return *outside.front();
  if (const Subject* found = contracts.find_subject(name)) return *found;
  if (is_mutant(name)) check_has_mutants(contracts);
  std::vector<std::string> known;
  for (const Subject* subject : contracts.subjects()) known.push_back(subject->name());
  throw unknown_word("subject", name, known);
}

std::vector<Comparison> select_subjects(const Contracts& contracts,
                                        const std::vector<std::string>& words) {
  std::vector<const Subject*> chosen =
      words.empty() ? contracts.usual_subjects() : std::vector<const Subject*>();
  for (const std::string& word : words)
    for (const Subject* subject : meant_by(contracts, word)) add_new(chosen, subject);
  return compared(contracts, chosen);
}

std::vector<Comparison> select_inside(const Contracts& contracts,
                                      const std::vector<std::string>& words) {
  std::vector<const Subject*> chosen;
  for (const Subject* subject : contracts.subjects())
    if (words.empty() && subject->inside && generates(*subject->kind)) chosen.push_back(subject);
  for (const std::string& word : words) {
    const std::size_t before = chosen.size();
    for (const Subject* inner : meant_by(contracts, word))
      for (const CacheKind* kind : contracts.kinds())
        if (const Subject& outer = contracts.reference_of(*kind);
            generates(*kind) && can_stand_over(outer, *inner))
          add_new(chosen, contracts.find_subject(outer.name() + "/" + inner->name()));
    if (chosen.size() == before)
      throw UsageError(fmt::format("no text can be generated over '{}'", printable(word)));
  }
  return compared(contracts, chosen);
}

std::vector<std::string> subject_names(const std::vector<Comparison>& comparisons) {
  std::vector<std::string> names;
  for (const Comparison& comparison : comparisons) {
    names.push_back(comparison.reference->name());
    for (const Subject* subject : comparison.subjects) names.push_back(subject->name());
  }
  return names;
}

}  // namespace kvo::tools
