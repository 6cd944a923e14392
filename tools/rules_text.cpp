#include "tools/rules_text.hpp"

#include "tools/rules_documents.hpp"

namespace kvo::tools {

std::vector<RuleText> read_rules(std::string_view contract, std::string_view document) {
  constexpr std::string_view kMark = "**";
  std::vector<RuleText> rules;
  bool inside = false;
  while (!document.empty()) {
    const std::size_t end = document.find('\n');
    const std::string_view line = document.substr(0, end);
    document.remove_prefix(end == std::string_view::npos ? document.size() : end + 1);
    if (line.starts_with(kMark)) {
      const std::size_t close = line.find(kMark, kMark.size());
      inside = close != std::string_view::npos;
      if (!inside) continue;
      const std::string_view rest = line.substr(close + kMark.size());
      rules.push_back({std::string(line.substr(kMark.size(), close - kMark.size())),
                       std::string(contract),
                       std::string(rest.substr(rest.empty() ? 0 : 1)) + "\n"});
    } else if (line.empty()) {
      inside = false;
    } else if (inside) {
      rules.back().text += std::string(line) + "\n";
    }
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
