#include "tools/selection.hpp"

#include <algorithm>

#include "properties/all_subjects.hpp"
#include "tools/usage.hpp"

namespace kvo::tools {
namespace {

std::vector<std::string> known_words() {
  std::vector<std::string> known;
  for (const CacheKind* kind : all_kinds()) {
    if (std::ranges::find(known, kind->contract) == known.end()) known.emplace_back(kind->contract);
    known.push_back(kind->name());
  }
  return known;
}

std::vector<const Subject*> meant_by(const std::string& word) {
  if (const Subject* subject = find_subject(word)) return {subject};
  std::vector<const Subject*> meant;
  for (const Subject* subject : all_subjects())
    if (subject->kind->contract == word || subject->kind->name() == word) meant.push_back(subject);
  if (meant.empty()) throw unknown_word("contract, cache or subject", word, known_words());
  return meant;
}

}  // namespace

std::vector<Lineup> select_subjects(const std::vector<std::string>& words) {
  std::vector<const Subject*> chosen =
      words.empty() ? all_subjects() : std::vector<const Subject*>();
  for (const std::string& word : words)
    for (const Subject* subject : meant_by(word))
      if (std::ranges::find(chosen, subject) == chosen.end()) chosen.push_back(subject);
  std::vector<Lineup> lineups;
  for (const CacheKind* kind : all_kinds()) {
    Lineup lineup{kind, {&reference_of(*kind)}};
    bool wanted = false;
    for (const Subject* subject : chosen) {
      if (subject->kind != kind) continue;
      wanted = true;
      if (subject != lineup.subjects.front()) lineup.subjects.push_back(subject);
    }
    if (wanted) lineups.push_back(std::move(lineup));
  }
  return lineups;
}

std::vector<std::string> subject_names(const std::vector<Lineup>& lineups) {
  std::vector<std::string> names;
  for (const Lineup& lineup : lineups)
    for (const Subject* subject : lineup.subjects) names.push_back(subject->name());
  return names;
}

}  // namespace kvo::tools
