// Every command that is printed to repeat a failure does: of each mutant, by each law, in both
// profiles.
#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/contracts.hpp"
#include "tools/testing/command_test.hpp"

namespace kvo::tools {
namespace {

using testing::HasSubstr;

struct Trial {
  const CacheKind* kind;
  const Law* law;
  Profile profile;

  friend void PrintTo(const Trial& trial, std::ostream* out) {
    *out << trial.kind->name() << ", " << trial.law->name();
  }
};

// How many allocations there are to fail may change with what a process has done before, and with
// it what is drawn from a schedule: of that law subjects that draw are left out.
std::vector<const Mutant*> mutants_of(const CacheKind& kind, const Law& law) {
  const bool counted = law.name() == "failed_allocation_changes_nothing";
  std::vector<const Mutant*> all;
  for (const Mutant& mutant : contracts().mutants())
    if (mutant.subject.kind == &kind && !(counted && mutant.subject.scheduled))
      all.push_back(&mutant);
  return all;
}

// Where the reference judges, the profiles in turn. How what the other laws find is repeated
// depends on the law alone: each is tried on every third kind.
std::vector<Trial> trials() {
  std::vector<Trial> all;
  std::map<const Law*, std::size_t> kinds;
  for (const CacheKind* kind : contracts().kinds()) {
    for (const Law* law : contracts().laws_of(*kind)) {
      if (mutants_of(*kind, *law).empty()) continue;
      const std::size_t nth = kinds[law]++;
      const bool judge = law->name() == "agrees_with_reference";
      const bool second = judge && nth % 2 == 1;
      if (judge || nth % 3 == 0)
        all.push_back({kind, law, second ? Profile::kDocumented : Profile::kOriginal});
    }
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Trial>& info) {
  std::string name = info.param.kind->name() + "_" + std::string(info.param.law->name()) +
                     (info.param.profile == Profile::kDocumented ? "_documented" : "_original");
  std::ranges::replace(name, '.', '_');
  return name;
}

class Repeat : public CommandTest, public testing::WithParamInterface<Trial> {};

// The words of each command that is said to repeat something, and whom it concerns. What a subject
// of a device does that reads host memory of others is said not to repeat.
std::map<std::vector<std::string>, std::string> commands(const std::string& out) {
  static const std::string kMarker = "repeat with: kvoracle ";
  static const std::string kVaries = "host memory touched too early";
  static const std::string kFailed = "FAILED ";
  std::map<std::vector<std::string>, std::string> all;
  std::string subject;
  bool varies = false;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kFailed)) {
      subject = line.substr(kFailed.size(), line.find(' ', kFailed.size()) - kFailed.size());
      varies = false;
    }
    varies = varies || line.find(kVaries) != std::string::npos;
    const std::size_t at = line.find(kMarker);
    if (at == std::string::npos || varies) continue;
    all[words_of(line.substr(at + kMarker.size()))] = subject;
  }
  return all;
}

TEST_P(Repeat, EachFailureIsRepeatedByItsCommand) {
  const auto& [kind, law, profile] = GetParam();
  std::vector<std::string> words =  // no long life is among so few cases
      words_of("check --law " + std::string(law->name()) +
               " --seed 2 --cases 12 --shrink-attempts 10");
  if (profile == Profile::kDocumented) words.insert(words.end(), {"--profile", "documented"});
  bool of_profile = false;
  for (const Mutant* mutant : mutants_of(*kind, *law)) {
    words.push_back(mutant->subject.name());
    of_profile = of_profile || mutant->profile.value_or(profile) == profile;
  }
  Finished found = run(words);
  ASSERT_LE(found.status, kExitCrashed) << found.err;
  auto all = commands(found.out);
  if (all.empty() && law->name() == "agrees_with_reference" && of_profile) {
    std::ranges::replace(words, "12", "48");  // few of its cases reach a fault
    found = run(words);
    all = commands(found.out);
  }
  if (law->name() == "agrees_with_reference" && of_profile) {
    EXPECT_FALSE(all.empty()) << "no mutant of " << kind->name() << " failed";
  }
  if (all.empty()) GTEST_SKIP() << "this law finds none of these mutants in so few cases";
  // Spread over them all, and over days: by GTEST_RANDOM_SEED, which no test here shuffles by.
  const std::size_t most = law->name() == "agrees_with_reference" ? 2 : 1;
  const std::size_t stride = (all.size() + most - 1) / most;
  auto nth = static_cast<std::size_t>(GTEST_FLAG_GET(random_seed));
  for (const auto& [command, subject] : all) {
    if (nth++ % stride != 0) continue;
    const Finished once = run(command);
    const Finished again = run(command);
    EXPECT_TRUE(once.status == kExitDiffers || once.status == kExitCrashed)
        << testing::PrintToString(command) << once.out;
    EXPECT_THAT(once.out, HasSubstr("FAILED " + subject));
    EXPECT_EQ(once.status, again.status);
    const auto difference = [](const std::string& out) {
      return out.substr(std::min(out.find("FAILED"), out.size()));
    };
    EXPECT_EQ(difference(once.out), difference(again.out));
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Repeat, testing::ValuesIn(trials()), name_of);

}  // namespace
}  // namespace kvo::tools
