#include "reference/subjects.hpp"

#include <algorithm>

#include "reference/contract/values/check.hpp"
#include "reference/generation/operations.hpp"
#include "reference/sampling/pipeline.hpp"

namespace kvo::generation {

InnerSubjects reference_caches() {
  const std::vector<Subject> all = provider::references();
  const auto named = [&](std::string_view kind) {
    const auto found =
        std::ranges::find(all, kind, [](const Subject& subject) { return subject.kind->name(); });
    KVO_CHECK(found != all.end());
    return *found;
  };
  return {.contiguous = named("provider.contiguous"),
          .paged = named("provider.paged"),
          .tensor = named("provider.tensor")};
}

std::vector<Subject> references() {
  const InnerSubjects inner = reference_caches();
  std::vector<Subject> all;
  for (const CacheKind* kind : {&contiguous_kind(), &paged_kind(), &tensor_kind()})
    all.push_back(make_generator_subject(*kind, "reference", "the loop by the rules",
                                         sampling::make_pipeline, inner));
  all.push_back(make_generator_subject(speculative_kind(), "reference", "round by round",
                                       sampling::make_pipeline, inner));
  all.push_back(make_tracker_subject("reference", "the last outcomes, counted"));
  return all;
}

}  // namespace kvo::generation
