#include "tools/commands/convention_table.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "tools/commands/word_option.hpp"
#include "traces/log/conventions_file.hpp"

namespace kvo::tools {
namespace {

// The answers of a cache where the rules give an error: "precondition or carried out".
std::string answers_of(const SurveyedRefusal& refusal) {
  std::vector<std::string> answers;
  for (const SurveyedAnswer& answer : refusal.answers)
    answers.push_back(answer.given.value_or("carried out"));
  std::ranges::sort(answers);
  std::string text;
  for (const std::string& answer : answers) text += (text.empty() ? "" : " or ") + answer;
  return text;
}

std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2)
    text.insert(at, 1, '\\');
  return text;
}

}  // namespace

Subject system_of(const Contracts& contracts, const CacheKind& kind) {
  Subject system = contracts.reference_of(kind);
  system.variant = "original";
  system.open = [open = system.open](Setup setup) {
    setup.profile = Profile::kOriginal;
    return open(setup);
  };
  return system;
}

std::vector<ConventionRow> convention_table(const Survey& subject, const Conventions& learned,
                                            const Survey& system) {
  std::map<std::string, ConventionRow> rows;  // sorted by what the rules say
  const auto add = [&](const Survey& survey, std::string ConventionRow::*member) {
    for (const SurveyedRefusal& refusal : survey.refusals) {
      const std::string name = fmt::format("{} {}{}{}", refusal.operation, refusal.wanted,
                                           refusal.because.empty() ? "" : ": ", refusal.because);
      rows.try_emplace(name, ConventionRow{name, refusal.wanted, "not asked", "not asked"})
              .first->second.*
          member = answers_of(refusal);
    }
  };
  add(subject, &ConventionRow::subject);
  add(system, &ConventionRow::system);
  std::vector<ConventionRow> table;
  for (auto& entry : rows) {
    ConventionRow& row = entry.second;
    const auto differs = [&](const std::string& answer) {
      return answer != row.rules && answer != "not asked";
    };
    if (differs(row.subject) || differs(row.system)) table.push_back(std::move(row));
  }
  Conventions others = learned;
  others.refusals.clear();
  for (const std::string& name : traces::convention_rows(others))
    table.push_back({name, "no", "yes", "no"});
  return table;
}

std::string convention_markdown(std::string_view subject, const CacheKind& kind, Profile profile,
                                const std::vector<ConventionRow>& table) {
  std::string text = fmt::format(
      "| {} | rules, profile {} | `{}` | `{}@reference`, profile original |\n"
      "| --- | --- | --- | --- |\n",
      "where the rules refuse", word_of(profile), subject, kind.name());
  for (const ConventionRow& row : table)
    text += fmt::format("| {} | {} | {} | {} |\n", cell(row.convention), row.rules,
                        cell(row.subject), cell(row.system));
  return text;
}

}  // namespace kvo::tools
