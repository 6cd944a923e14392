// tools/commands/rules_text.hpp: the numbered rules of all contracts, as docs/rules has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvo::tools {

/// One rule of a contract.
struct RuleText {
  std::string name;      ///< "OK-55"
  std::string contract;  ///< "positional": that of the file
  std::string text;      ///< a paragraph; lines end with LF
};

/// The paragraphs of `document` that begin with "**NAME-N** ".
[[nodiscard]] std::vector<RuleText> read_rules(std::string_view contract,
                                               std::string_view document);
/// Those of docs/rules, in their order.
[[nodiscard]] const std::vector<RuleText>& all_rules();

}  // namespace kvo::tools
