#include "properties/all_subjects.hpp"

#include <algorithm>
#include <iterator>

#include "optimized/subjects.hpp"
#include "properties/mutants/mutants.hpp"
#include "reference/contract/check.hpp"
#include "reference/subjects.hpp"

namespace kvo {

const std::vector<const Subject*>& all_subjects() {
  static const auto kAll = [] {
    std::vector<const Subject*> all;
    for (const auto* folder : {&reference::subjects(), &optimized::subjects()})
      for (const Subject& subject : *folder) all.push_back(&subject);
    return all;
  }();
  return kAll;
}

const std::vector<const CacheKind*>& all_kinds() {
  static const auto kKinds = [] {
    std::vector<const CacheKind*> kinds;
    for (const Subject& subject : reference::subjects()) kinds.push_back(subject.kind);
    return kinds;
  }();
  return kKinds;
}

const CacheKind* find_kind(std::string_view contract, std::string_view cache) {
  for (const CacheKind* kind : all_kinds())
    if (kind->contract == contract && kind->cache == cache) return kind;
  return nullptr;
}

const Subject* find_subject(std::string_view name) {
  for (const Subject* subject : all_subjects())
    if (subject->name() == name) return subject;
  for (const Mutant& mutant : mutants())
    if (mutant.subject.name() == name) return &mutant.subject;
  return nullptr;
}

const Subject& reference_of(const CacheKind& kind) {
  const auto& references = reference::subjects();
  const auto found = std::ranges::find(references, &kind, &Subject::kind);
  KVO_CHECK(found != references.end());
  return *found;
}

std::vector<const Subject*> subjects_of(const CacheKind& kind) {
  std::vector<const Subject*> found;
  std::ranges::copy_if(all_subjects(), std::back_inserter(found),
                       [&](const Subject* subject) { return subject->kind == &kind; });
  return found;
}

}  // namespace kvo
