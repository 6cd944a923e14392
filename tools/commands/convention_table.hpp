// tools/commands/convention_table.hpp: a cache beside the rules and the system that they follow.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/describe/class.hpp>

#include "properties/campaign/learn.hpp"

namespace kvo::tools {

/// Where a cache or the system does other than the rules promise.
struct ConventionRow {
  std::string convention;  ///< an operation with the error that the rules give, or a name
  std::string rules;       ///< what they promise
  std::string subject;     ///< what the cache does
  std::string system;      ///< what the reference does in profile original
};
BOOST_DESCRIBE_STRUCT(ConventionRow, (), (convention, rules, subject, system))

/// The reference of a kind in profile original, whatever the profile of the case.
[[nodiscard]] Subject system_of(const Contracts& contracts, const CacheKind& kind);

/// One row for each error to which one of the two surveys has another answer than the rules, then
/// one for each other convention of `learned`, which was learned from `subject`.
[[nodiscard]] std::vector<ConventionRow> convention_table(const Survey& subject,
                                                          const Conventions& learned,
                                                          const Survey& system);

/// The table in Markdown.
[[nodiscard]] std::string convention_markdown(std::string_view subject, const CacheKind& kind,
                                              Profile profile,
                                              const std::vector<ConventionRow>& table);

}  // namespace kvo::tools
