#include "tools/reports/glossary.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/commands/rules_text.hpp"

namespace kvo::tools {
namespace {

// Sorts, below each its terms, and further lines of a term below that.
std::vector<Term> read_terms(std::string_view text) {
  std::vector<Term> terms;
  std::string sort;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("    "))
      terms.back().text += line.substr(3);
    else if (line.starts_with("  "))
      terms.push_back({line.substr(2, colon - 2), sort, line.substr(colon + 2)});
    else if (!line.starts_with("#"))
      sort = line;
  }
  return terms;
}

// "a; b; c", each once
std::string joined(const std::set<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

void add_laws(const Contracts& contracts, std::vector<Meaning>& all) {
  for (const Law* law : contracts.laws()) {
    std::set<std::string> kinds;
    for (const CacheKind* kind : contracts.kinds())
      if (law->applies_to(*kind)) kinds.insert(kind->name());
    const bool everywhere = kinds.size() == contracts.kinds().size();
    all.push_back({std::string(law->name()), "law",
                   fmt::format("{}\napplies to: {}\n", law->doc(),
                               everywhere ? "all caches" : joined(kinds))});
  }
}

void add_states(const Contracts& contracts, std::vector<Meaning>& all) {
  std::map<std::string, std::set<std::string>> states;
  for (const CacheKind* kind : contracts.kinds())
    if (const Generator* generator = contracts.generator_of(*kind))
      for (const Profile profile : {Profile::kOriginal, Profile::kDocumented})
        for (const std::string_view label : generator->labels(profile))
          states[std::string(label)].insert(kind->name());
  for (const auto& [label, kinds] : states)
    all.push_back({label, "state",
                   fmt::format("A state that random cases should reach, of: {}\n", joined(kinds))});
}

void add_quirks(const Contracts& contracts, std::vector<Meaning>& all) {
  std::map<std::string, std::set<std::string>> caches;
  std::map<std::string, const QuirkInfo*> quirks;
  for (const CacheKind* kind : contracts.kinds())
    for (const QuirkInfo& quirk : kind->quirks) {
      quirks.emplace(quirk.name(), &quirk);
      caches[quirk.name()].insert(kind->name());
    }
  for (const auto& [name, quirk] : quirks)
    all.push_back({name, "quirk of the original",
                   fmt::format("{}\nrule: {}; caches: {}\n", quirk->sentence, quirk->rule,
                               joined(caches[name]))});
}

// The quirks that the followed system has there.
std::string quirks_of(const Contracts& contracts, const std::string& rule) {
  std::set<std::string> lines;
  for (const CacheKind* kind : contracts.kinds())
    for (const QuirkInfo& quirk : kind->quirks)
      if (quirk.rule == rule)
        lines.insert(fmt::format("quirk of the original, {}: {}\n", quirk.name(), quirk.sentence));
  return fmt::format("{}", fmt::join(lines, ""));
}

std::string normal(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != '-' && c != '_' && c != ' ')
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

const std::vector<Term>& terms() {
  static const std::vector<Term> kTerms = read_terms(term_files().front().text);
  return kTerms;
}

std::vector<Meaning> meanings(const Contracts& contracts) {
  std::vector<Meaning> all;
  for (const RuleText& rule : all_rules())
    all.push_back(
        {rule.name, "rule of " + rule.contract, rule.text + quirks_of(contracts, rule.name)});
  add_laws(contracts, all);
  add_states(contracts, all);
  add_quirks(contracts, all);
  for (const Mutant& mutant : contracts.mutants())
    all.push_back({mutant.subject.name(), "mutant",
                   fmt::format("{}\nfollows: {}\n", mutant.fault, mutant.origin)});
  for (const CacheKind* kind : contracts.kinds())
    all.push_back({kind->name(), "cache", std::string(kind->doc) + "\n"});
  for (const Term& term : terms()) all.push_back({term.name, term.sort, term.text + "\n"});
  return all;
}

bool same_name(std::string_view one, std::string_view other) {
  return normal(one) == normal(other);
}

}  // namespace kvo::tools
