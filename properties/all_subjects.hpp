// properties/all_subjects.hpp: every subject there is, from every folder.
#pragma once

#include <string_view>
#include <vector>

#include "reference/contract/subject.hpp"

namespace kvo {

/// References first, then the caches of the other folders; mutants are not among them.
[[nodiscard]] const std::vector<const Subject*>& all_subjects();

/// All cache kinds, in the order of their references.
[[nodiscard]] const std::vector<const CacheKind*>& all_kinds();

/// The kind of a contract and a cache, or null.
[[nodiscard]] const CacheKind* find_kind(std::string_view contract, std::string_view cache);

/// The subject of that full name ("provider.paged@optimized"), mutants included, or null.
[[nodiscard]] const Subject* find_subject(std::string_view name);

/// The reference of a kind.
[[nodiscard]] const Subject& reference_of(const CacheKind& kind);

/// The subjects of a kind, its reference first.
[[nodiscard]] std::vector<const Subject*> subjects_of(const CacheKind& kind);

}  // namespace kvo
