// tools/commands/selection.hpp: the subjects that somebody names on the command line.
#pragma once

#include <string>
#include <vector>

#include "properties/campaign/contracts.hpp"
#include "tools/commands/usage.hpp"

namespace kvo::tools {

/// Whether a word of the command line means a subject: its contract ("provider"), its cache
/// ("provider.paged") or itself ("provider.paged@optimized"). Words may have wild cards as in
/// fnmatch(3), behind an @ or before: "*.paged@*", "layered.*".
[[nodiscard]] bool means(const std::string& word, const Subject& subject);

/// The one subject of that whole name, mutants included.
/// Throws UsageError: there is none.
[[nodiscard]] const Subject& subject_named(const Contracts& contracts, const std::string& name);

/// What the words mean, as above; mutants only by words with an @, and any subject over any other
/// that it can have inside by its whole name. None at all means every subject that is no mutant.
/// Throws UsageError for a word that means nothing.
[[nodiscard]] std::vector<Comparison> select_subjects(const Contracts& contracts,
                                                      const std::vector<std::string>& words);

/// Subjects with an operation "generate" over those that the words mean, each beside the reference
/// of its kind; none means all that have another cache inside.
/// Throws UsageError for a word that means nothing, or nothing that can be inside.
[[nodiscard]] std::vector<Comparison> select_inside(const Contracts& contracts,
                                                    const std::vector<std::string>& words);

/// Whether the words mean references, too.
[[nodiscard]] bool means_references(const Contracts& contracts,
                                    const std::vector<std::string>& words);

/// The names of all contracts, and of their caches.
[[nodiscard]] std::vector<std::string> kind_words(const Contracts& contracts);

/// Throws  UsageError: the build left the seeded faults out (KVO_MUTANTS).
void check_has_mutants(const Contracts& contracts);

/// The names of all subjects of some comparisons, references included, in order.
[[nodiscard]] std::vector<std::string> subject_names(const std::vector<Comparison>& comparisons);

}  // namespace kvo::tools
