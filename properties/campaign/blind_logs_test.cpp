// Laws do not fail a correct cache on a log without the operations that only look, nor on one with
// gaps: logs of other engines seldom show internals.
// Cases are drawn from GTEST_RANDOM_SEED.
#include <cctype>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "properties/campaign/random_case.hpp"
#include "properties/contracts.hpp"
#include "properties/runner/shrunk.hpp"

namespace kvo {
namespace {

using Kinds = std::set<const OpKind*>;

constexpr std::uint64_t kScriptOperations = 160;
constexpr std::uint64_t kEachCases = 8;  // of each law, subject and profile

Script script_of(const CasePlan& plan) {
  return script_until(plan, kScriptOperations - 1);
}

Script without_kinds(const Script& script, const Kinds& left_out) {
  Script rest;
  for (const Op& op : script)
    if (!left_out.contains(&op.kind())) rest.push_back(op);
  return rest;
}

std::vector<Observation> observed(const CasePlan& plan, const Script& script) {
  Lockstep lockstep(plan.baseline, {}, plan.setup);
  std::vector<Observation> all;
  for (const Op& op : script) all.push_back(lockstep.step(op));
  return all;
}

/// The script without some of its operations, drawn one by one.
Script thinned(const Script& script, std::uint64_t seed, std::uint64_t index) {
  Draw draw(~case_seed(seed, index));
  const auto percent = draw.one_of<std::uint64_t>({0, 3, 10, 30});
  Script rest;
  for (const Op& op : script)
    if (!draw.percent(percent)) rest.push_back(op);
  return rest;
}

/// Whether the other operations of the script show the same without those of `left_out`.
bool shows_the_same(const CasePlan& plan, const Script& script,
                    const std::vector<Observation>& seen, const OpKind* left_out) {
  const std::vector<Observation> rest = observed(plan, without_kinds(script, {left_out}));
  std::size_t next = 0;
  for (std::size_t at = 0; at < script.size(); ++at)
    if (&script[at].kind() != left_out && observation_difference(seen[at], rest[next++]))
      return false;
  return true;
}

const Law& agreement_law() {
  return *contracts().find_law("agrees_with_reference");
}

CasePlan plan_of(const CacheKind& kind, std::uint64_t index) {
  return random_case(contracts(), agreement_law(), {&contracts().reference_of(kind)}, 1, index,
                     index % 2 == 0 ? Profile::kOriginal : Profile::kDocumented);
}

/// Operations that return something and change nothing that others show, by experiment. One too
/// many does no harm: laws hold on every script.
Kinds kinds_that_look(const CacheKind& kind) {
  constexpr std::uint64_t kTried = 20;
  Kinds looking;
  for (const OpKind* operation : kind.operations)
    if (!operation->returns->fields.empty()) looking.insert(operation);
  for (std::uint64_t index = 0; index < kTried; ++index) {
    const CasePlan plan = plan_of(kind, index);
    const Script script = script_of(plan);
    const std::vector<Observation> seen = observed(plan, script);
    std::erase_if(looking, [&](auto* each) { return !shows_the_same(plan, script, seen, each); });
  }
  return looking;
}

/// All of them in the first case; then a part, another one each time.
Kinds left_out_of(const Kinds& looking, std::uint64_t seed, std::uint64_t index) {
  if (index == 0) return looking;
  Draw draw(case_seed(seed, index));
  Kinds part;
  for (const OpKind* each : looking)
    if (draw.percent(70)) part.insert(each);
  return part;
}

std::vector<const Subject*> correct_subjects(const CacheKind& kind) {
  std::vector<const Subject*> all;
  for (const Subject* subject : contracts().subjects_of(kind))
    if (!subject->inside && !subject->on_request) all.push_back(subject);
  return all;
}

/// The log of the smallest script that fails, with its verdict.
std::string shrunk(const CasePlan& plan, const Subject& subject, const Script& script) {
  const Smaller smaller = smaller_case(plan, subject, script, {});
  std::string text = smaller.verdict.text() + "\n";
  for (const std::string& line : traces::lines_of(log_of(smaller, subject))) text += line + "\n";
  return text;
}

class EveryKind : public testing::TestWithParam<const CacheKind*> {};

TEST_P(EveryKind, KeepsTheLawsOnLogsThatDoNotShowInternals) {
  const CacheKind& kind = *GetParam();
  const Kinds looking = kinds_that_look(kind);
  const auto seed = 1 + static_cast<std::uint64_t>(GTEST_FLAG_GET(random_seed));
  for (const Law* law : contracts().laws_of(kind))
    for (const Subject* subject : correct_subjects(kind)) {
      if (subject->variant == "reference" && !law->judges_reference()) continue;
      for (std::uint64_t nth = 0; nth < 2 * kEachCases; ++nth) {
        const Profile profile = nth % 2 == 0 ? Profile::kOriginal : Profile::kDocumented;
        const std::uint64_t index = nth / 2;
        const CasePlan plan = random_case(contracts(), *law, {subject}, seed, index, profile);
        const Script script =
            thinned(without_kinds(script_of(plan), left_out_of(looking, seed, index)), seed, index);
        if (run_script(plan, *subject, script).failed()) {
          ADD_FAILURE() << "case " << index << " of seed " << seed << " of " << subject->name()
                        << "\n"
                        << shrunk(plan, *subject, script);
          break;
        }
      }
    }
}

INSTANTIATE_TEST_SUITE_P(BlindLogs, EveryKind, testing::ValuesIn(contracts().kinds()),
                         [](const auto& trial) {
                           std::string name = trial.param->name();
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

TEST(BlindLogs, OperationsThatLookAreFoundByExperiment) {
  const CacheKind& kind = *contracts().find_kind("prefix", "blocks");
  const Kinds looking = kinds_that_look(kind);
  for (const char* name : {"state", "table", "match", "usage"})
    EXPECT_TRUE(looking.contains(kind.operation(name))) << name;
  for (const char* name : {"request", "allocate", "evict", "free"})
    EXPECT_FALSE(looking.contains(kind.operation(name))) << name;
}

}  // namespace
}  // namespace kvo
