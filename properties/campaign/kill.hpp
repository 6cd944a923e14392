// properties/campaign/kill.hpp: how long it takes the laws to kill a mutant.
//
// Source  mutation testing: DeMillo, Lipton, Sayward, Hints on test data selection, 1978.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "properties/campaign/contracts.hpp"
#include "properties/runner/run_case.hpp"

namespace kvo {

/// How a subject was told from a sound one.
struct Kill {
  std::string law;               ///< the simplest one that the script fails
  std::uint64_t cases = 0;       ///< tried, the last one included
  std::uint64_t operations = 0;  ///< carried out until then
  SubjectResult result;          ///< with the shrunk script that shows it
};

/// What a hunt came to.
struct Hunt {
  std::uint64_t cases = 0;                  ///< tried
  std::uint64_t operations = 0;             ///< carried out
  std::optional<Kill> kill = std::nullopt;  ///< nothing: the subject got away
};

/// Case `index` of a hunt: laws take turns.
[[nodiscard]] CasePlan hunted_case(const Contracts& contracts, const Subject& subject,
                                   std::uint64_t seed, std::uint64_t index, Profile profile);

/// Tries random cases, law by law in turns, until one kills `subject` or `most_cases` are tried.
[[nodiscard]] Hunt hunt(const Contracts& contracts, const Subject& subject, std::uint64_t seed,
                        std::uint64_t most_cases, Profile profile,
                        const ShrinkOptions& shrink = {});

/// The kill of such a hunt.
[[nodiscard]] std::optional<Kill> find_kill(const Contracts& contracts, const Subject& subject,
                                            std::uint64_t seed, std::uint64_t most_cases,
                                            Profile profile, const ShrinkOptions& shrink = {});

/// What can catch a mutant without the help of the others.
enum class SoleJudge : std::uint8_t {
  kLockstep,  ///< agrees_with_reference, the only one that has the reference
  kOracle,    ///< recompute_equivalence
  kLaw,       ///< all other laws, in turns
  kRecorded,  ///< recorded cases; in profile documented, where no quirks explain the difference
  kRule,      ///< cases with the answers that the rules require in each profile
};
BOOST_DESCRIBE_ENUM(SoleJudge, kLockstep, kOracle, kLaw, kRecorded, kRule)
inline constexpr std::array kSoleJudges{SoleJudge::kLockstep, SoleJudge::kOracle, SoleJudge::kLaw,
                                        SoleJudge::kRecorded, SoleJudge::kRule};

/// How far a judge searches.
struct JudgeTerms {
  std::uint64_t seed = 1;
  std::uint64_t most_cases = 0;  ///< of each law
  Profile profile = Profile::kOriginal;
  std::vector<traces::Case> recorded = {};  ///< of any kinds
  std::vector<traces::Case> rules = {};     ///< of any kinds
};

/// What one judge found of a mutant.
struct JudgedAlone {
  std::string mutant = {};
  Profile profile = Profile::kOriginal;
  SoleJudge judge = SoleJudge::kLockstep;
  std::optional<std::string> caught_by = std::nullopt;  ///< a law, a recorded case, or `died`
  std::uint64_t cases = 0;
  std::uint64_t operations = 0;
  std::string difference = {};
};
BOOST_DESCRIBE_STRUCT(JudgedAlone, (),
                      (mutant, profile, judge, caught_by, cases, operations, difference))

/// Tries `subject` by one judge until it is caught. Only kLockstep uses the reference: for the
/// other judges the subject is its own baseline, as if the reference had the same fault.
[[nodiscard]] JudgedAlone judge_alone(const Contracts& contracts, const Subject& subject,
                                      SoleJudge judge, const JudgeTerms& terms);

}  // namespace kvo
