#include "tools/selection.hpp"

#include <algorithm>

#include "tools/usage.hpp"

namespace kvo::tools {
namespace {

std::vector<std::string> known_words(const Contracts& contracts) {
  std::vector<std::string> known;
  for (const CacheKind* kind : contracts.kinds()) {
    if (std::ranges::find(known, kind->contract) == known.end()) known.emplace_back(kind->contract);
    known.push_back(kind->name());
  }
  return known;
}

std::vector<const Subject*> meant_by(const Contracts& contracts, const std::string& word) {
  if (const Subject* subject = contracts.find_subject(word)) return {subject};
  std::vector<const Subject*> meant;
  for (const Subject* subject : contracts.subjects())
    if (subject->kind->contract == word || subject->kind->name() == word) meant.push_back(subject);
  if (meant.empty()) throw unknown_word("contract, cache or subject", word, known_words(contracts));
  return meant;
}

}  // namespace

std::vector<Comparison> select_subjects(const Contracts& contracts,
                                        const std::vector<std::string>& words) {
  std::vector<const Subject*> chosen =
      words.empty() ? contracts.subjects() : std::vector<const Subject*>();
  for (const std::string& word : words)
    for (const Subject* subject : meant_by(contracts, word))
      if (std::ranges::find(chosen, subject) == chosen.end()) chosen.push_back(subject);
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

std::vector<std::string> subject_names(const std::vector<Comparison>& comparisons) {
  std::vector<std::string> names;
  for (const Comparison& comparison : comparisons) {
    names.push_back(comparison.reference->name());
    for (const Subject* subject : comparison.subjects) names.push_back(subject->name());
  }
  return names;
}

}  // namespace kvo::tools
