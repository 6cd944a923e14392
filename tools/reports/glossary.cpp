#include "tools/reports/glossary.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/commands/rules_text.hpp"

namespace kvo::tools {
namespace {

constexpr std::string_view kCampaign = "column of run, check and conform";
constexpr std::string_view kLawTable = "column of check, in the table of laws";
constexpr std::string_view kTimeTable = "column of times";
constexpr std::string_view kBenchTable = "column of bench";
constexpr std::string_view kGateTable = "column of gate";
constexpr std::string_view kMutantTable = "column of mutants";
constexpr std::string_view kOutcome = "outcome of a case";
constexpr std::string_view kCode = "error code of an operation";
constexpr std::string_view kRegression = "regression that gate reports";

constexpr std::array kTerms{
    // The table of subjects.
    Term{"subject", kCampaign,
         "An implementation under test: contract.cache@variant. After a slash: the cache inside."},
    Term{"cases", kCampaign, "Scripts that the subject, law or pair of runs had part in."},
    Term{"operations", kCampaign, "Operations of these scripts: what all cases together ran."},
    Term{"mismatches", kCampaign, "Cases with the outcome mismatch: a result differs."},
    Term{"broken", kCampaign, "Cases with the outcome broken: the subject contradicts itself."},
    Term{"died", kCampaign, "Cases with the outcome died: the process of the subject ended."},
    Term{"not supported", kCampaign,
         "Cases with the outcome not supported. Nothing was compared in them."},
    Term{"time / reference", kCampaign,
         "Median of the cases' ratios of the subject's time to the reference's. Less is faster. In "
         "brackets: the interval that has the median with 95 %, from 6 cases on."},
    Term{"retried", kLawTable,
         "Operations that were repeated at once after each injected failure of an allocation."},
    Term{"deferred", kLawTable,
         "Operations that an injected failure stopped, and that were repeated after the next "
         "operation."},
    Term{"skipped", kLawTable,
         "Operations that an injected failure stopped, and that were not repeated. The reference "
         "leaves them out, too."},
    Term{"law", kLawTable, "A sentence that must hold of every subject. `list laws` shows all."},
    Term{"compared", kLawTable, "Results that were compared with those of the reference."},
    Term{"rows judged", kLawTable,
         "Rows that an oracle judged: it computes the expected row from the history of the case."},
    Term{"rows skipped", kLawTable,
         "Rows that the oracle cannot judge, for instance after an operation failed half way."},
    Term{"failures injected", kLawTable, "Allocations of the subjects that were made to fail."},
    Term{"cache", "column of figures", "The cache kind: contract.cache."},
    Term{"figure", "column of figures",
         "A quantity that the reference counts, such as prompt tokens that hit."},
    Term{"value", "column of figures", "The figure: a sum over all cases, or the largest one."},
    Term{"share", "column of figures", "The value as a share of another figure of the cache."},
    // Times.
    Term{"operation", kTimeTable, "The operation that was timed; `list CONTRACT` describes it."},
    Term{"count", kTimeTable, "Calls of the operation."},
    Term{"total", kTimeTable, "Time of all calls. Copies for the comparison are not in it."},
    Term{"median", kTimeTable, "Half of the calls take less, to 1/16."},
    Term{"99 %", kTimeTable, "99 % of the calls take less, to 1/16."},
    Term{"payload", kTimeTable, "Tensor bytes in arguments and results."},
    Term{"rate", kTimeTable,
         "Payload over time. `view`: the result was not copied, so there is no rate."},
    Term{"/ reference", kTimeTable,
         "Time over that of the reference on the same operations. Less is faster."},
    Term{"/ memcpy", kTimeTable, "Time over that of a memcpy of as many bytes. Less is faster."},
    // bench
    Term{"load", kBenchTable, "layers x heads x elements of a head, and how many sequences."},
    Term{"bytes", kBenchTable,
         "Calls that move about as many bytes share a row; up to a power of two."},
    Term{"calls", kBenchTable, "Calls of the operation in all rounds."},
    Term{"worst", kBenchTable, "Time of the slowest call."},
    Term{"allocations a call", kBenchTable, "Allocations from the heap by the cache, per call."},
    Term{"/ memset", kBenchTable, "Time over that of a memset of as many bytes. Less is faster."},
    Term{"second pass / first", kBenchTable,
         "Noise within a round. Ignore ratios that are closer to 1 than this."},
    // gate
    Term{"before", kGateTable, "Median ratio to the reference's time in the baseline."},
    Term{"now", kGateTable, "Median ratio to the reference's time in the current run."},
    Term{"factor", kGateTable,
         "Median growth of a case's ratio from the baseline to the current run."},
    Term{"noise", kGateTable, "The same growth between two runs of the baseline (--again)."},
    // mutants
    Term{"mutant", kMutantTable, "A subject with one seeded fault, which a law must catch."},
    Term{"profile", kMutantTable,
         "original: caches behave as the followed system does. documented: as it promises."},
    Term{"origin", kMutantTable, "The real bug that the mutant follows."},
    Term{"caught by", kMutantTable, "The law that failed first. GOT AWAY: none did."},
    Term{"shrunk to", kMutantTable,
         "Operations of the smallest script that still shows the fault."},
    // Outcomes.
    Term{"agrees", kOutcome, "Every observation is the expected one."},
    Term{"mismatch", kOutcome, "A result differs from the reference, the oracle or the log."},
    Term{"broken", kOutcome,
         "The subject threw, an invariant of it no longer holds, it changed its arguments, or it "
         "contradicts its own history."},
    Term{"not supported", kOutcome,
         "The subject does not offer the config or an operation of the case. This is no fault."},
    Term{"out of memory", kOutcome,
         "The case needs more memory than --case-memory allows. It says nothing of the subject."},
    Term{"vacuous", kOutcome,
         "The law found nothing to compare or judge. If a whole run is vacuous, its status is 2."},
    Term{"died", kOutcome, "The process of the subject crashed, exited or did not answer in time."},
    // Error codes.
    Term{"full", kCode, "The cache holds as many tokens as it may."},
    Term{"not_supported", kCode, "The cache does not offer this operation or config."},
    Term{"out_of_range", kCode, "An index or size is outside of what is allowed."},
    Term{"bad_shape", kCode, "A tensor has the wrong shape."},
    Term{"exhausted", kCode, "The block pool has no free block."},
    Term{"bad_position", kCode, "A position is not the next one."},
    Term{"closed", kCode, "The cache has been closed."},
    Term{"precondition", kCode,
         "The caller broke a precondition: the original panics or is undefined. Nothing changed."},
    Term{"other", kCode, "A reason of one contract, named after the colon."},
    Term{"out_of_memory", kCode, "An allocation failed. The state is as before the call."},
    Term{"threw", kCode, "The subject threw or broke an invariant. Its state is unknown."},
    // Regressions.
    Term{"failure", kRegression, "A case fails that did not fail, or fails in another way."},
    Term{"subject gone", kRegression, "A subject takes no part any more."},
    Term{"fewer cases", kRegression, "A law judged fewer cases of a subject."},
    Term{"fewer operations", kRegression, "A subject ran fewer operations."},
    Term{"state lost", kRegression,
         "A state that the baseline reached is not reached any more. `list states` shows all."},
    Term{"slower", kRegression,
         "The ratio to the reference's time grew by more than --slower, and not by chance."},
};

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

std::span<const Term> terms() {
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
  for (const Term& term : kTerms)
    all.push_back({std::string(term.name), std::string(term.sort), std::string(term.text) + "\n"});
  return all;
}

bool same_name(std::string_view one, std::string_view other) {
  return normal(one) == normal(other);
}

}  // namespace kvo::tools
