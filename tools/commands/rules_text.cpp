#include "tools/commands/rules_text.hpp"

#include <sstream>

#include "tools/commands/rules_documents.hpp"

namespace kvo::tools {

std::vector<RuleText> read_rules(std::string_view contract, std::string_view document) {
  constexpr std::string_view kMark = "**";
  std::vector<RuleText> rules;
  bool inside = false;
  std::istringstream lines{std::string(document)};
  for (std::string line; std::getline(lines, line);) {
    const bool marked = line.starts_with(kMark);
    const std::size_t close = marked ? line.find(kMark, kMark.size()) : std::string::npos;
    const bool begins = close != std::string::npos;
    inside = begins || (inside && !marked && !line.empty());
    if (begins) {
      rules.push_back({line.substr(kMark.size(), close - kMark.size()), std::string(contract), ""});
      line.erase(0, close + kMark.size() + 1);
    }
    if (inside) rules.back().text += line + "\n";
  }
  return rules;
}

const std::vector<RuleText>& all_rules() {
  static const std::vector<RuleText> kAll = [] {
    std::vector<RuleText> all;
    for (const RulesDocument& document : kRulesDocuments)
      for (RuleText& rule : read_rules(document.contract, document.text))
        all.push_back(std::move(rule));
    return all;
  }();
  return kAll;
}

}  // namespace kvo::tools
