// tools/selection.hpp: the subjects that somebody names on the command line.
#pragma once

#include <string>
#include <vector>

#include "properties/campaign/contracts.hpp"

namespace kvo::tools {

/// `words` are contracts ("provider"), cache kinds ("provider.paged") or subjects
/// ("provider.paged@optimized", mutants too); none at all means every subject.
/// Throws UsageError for a word that is none of these.
[[nodiscard]] std::vector<Comparison> select_subjects(const Contracts& contracts,
                                                      const std::vector<std::string>& words);

/// The names of all subjects of some comparisons, references included, in order.
[[nodiscard]] std::vector<std::string> subject_names(const std::vector<Comparison>& comparisons);

}  // namespace kvo::tools
