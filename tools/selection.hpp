// tools/selection.hpp: the subjects that somebody names on the command line.
#pragma once

#include <string>
#include <vector>

#include "reference/contract/subject.hpp"

namespace kvo::tools {

/// The subjects of one kind that take part in a run, its reference first.
struct Lineup {
  const CacheKind* kind;
  std::vector<const Subject*> subjects;
};

/// `words` are contracts ("provider"), cache kinds ("provider.paged") or subjects
/// ("provider.paged@optimized", mutants too); none at all means every subject.
/// Throws UsageError for a word that is none of these.
[[nodiscard]] std::vector<Lineup> select_subjects(const std::vector<std::string>& words);

/// The names of all subjects of some lineups, in order.
[[nodiscard]] std::vector<std::string> subject_names(const std::vector<Lineup>& lineups);

}  // namespace kvo::tools
