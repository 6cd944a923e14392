// properties/campaign/learn.hpp: which conventions a cache has, from its answers in random cases.
//
// Where the rules refuse an operation, the cache's answer is counted by the error that the rules
// give: its code and its text. A cache that always gives the same answer there has a convention.
// One that gives two answers has none: what a fault does depends on the state. Any other difference
// is no convention either, unless one with a name (ConventionInfo) explains it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/describe/class.hpp>

#include "properties/campaign/contracts.hpp"

namespace kvo {

/// An answer of a cache to an operation that the rules refuse.
struct SurveyedAnswer {
  std::optional<std::string> given = std::nullopt;  ///< its code; absent: it was carried out
  std::uint64_t times = 0;
  std::uint64_t round = 0;       ///< of the survey, where it was given after the fewest operations
  std::uint64_t case_index = 0;  ///< there
  std::uint64_t op_index = 0;    ///< there
};
BOOST_DESCRIBE_STRUCT(SurveyedAnswer, (), (given, times, round, case_index, op_index))

/// All answers where the rules give one error.
struct SurveyedRefusal {
  std::string operation;
  std::string wanted;
  std::string because;
  std::vector<SurveyedAnswer> answers = {};
};
BOOST_DESCRIBE_STRUCT(SurveyedRefusal, (), (operation, wanted, because, answers))

/// A convention with a name that explained a difference.
struct SurveyedName {
  std::string name;
  std::uint64_t round = 0;  ///< as of SurveyedAnswer
  std::uint64_t case_index = 0;
  std::uint64_t op_index = 0;
};
BOOST_DESCRIBE_STRUCT(SurveyedName, (), (name, round, case_index, op_index))

/// How often an operation was answered, and how often it was not supported.
struct SurveyedOperation {
  std::string operation;
  std::uint64_t answered = 0;
  std::uint64_t missing = 0;
};
BOOST_DESCRIBE_STRUCT(SurveyedOperation, (), (operation, answered, missing))

/// The values of a config's members (config_values), and whether the cache was opened with it.
struct SurveyedConfig {
  std::vector<std::string> values = {};
  bool taken = false;
};
BOOST_DESCRIBE_STRUCT(SurveyedConfig, (), (values, taken))

/// How a cache answers in random cases. A case ends where it carries out what the rules refuse, or
/// differs in anything but the class of an error.
struct Survey {
  std::uint64_t cases = 0;       ///< that the cache took part in
  std::uint64_t operations = 0;  ///< that were compared
  std::uint64_t ended = 0;       ///< cases that ended because a refused operation was carried out
  std::uint64_t differing = 0;   ///< cases that ended with another difference
  SurveyedName difference = {};  ///< the first of them
  std::vector<SurveyedName> named = {};
  std::vector<SurveyedOperation> operations_asked = {};
  std::vector<std::string> config_members = {};
  std::vector<SurveyedConfig> configs = {};
  std::uint64_t refused_configs = 0;  ///< cases in which it was not opened
  std::vector<SurveyedRefusal> refusals = {};
  std::vector<Conventions> rounds = {};  ///< what each round left out of its cases
};
BOOST_DESCRIBE_STRUCT(Survey, (),
                      (cases, operations, ended, differing, difference, named, operations_asked,
                       config_members, configs, refused_configs, refusals, rounds))

/// Which random cases are surveyed.
struct SurveyTerms {
  Profile profile = Profile::kOriginal;
  std::uint64_t seed = 1;
  std::uint64_t cases = 600;
  bool plain = true;  ///< whether some scripts are plain: calls in any order, most of no use
};

/// The index-th case of a survey.
[[nodiscard]] CasePlan surveyed_case(const Contracts& contracts, const Subject& subject,
                                     const SurveyTerms& terms, std::uint64_t index);

/// Runs the cases in this process: once without conventions, and again without the calls that the
/// subject was found to lack, or to accept although the rules refuse them, until nothing new is
/// found. Those calls end a case, and hide what comes after. Where differences are left and the
/// kind has a convention of free choices, the cases are run with it, too; it is found if fewer of
/// them differ then. The counts of cases are those of the last round. Requires  the subject's kind
/// has a generator.
[[nodiscard]] Survey survey_of(const Contracts& contracts, const Subject& subject,
                               const SurveyTerms& terms);

/// The first case in which a failed allocation changes something although the subject agrees with
/// its reference in the same case without one; nothing: there is none among some cases.
/// `conventions`: what was learned of the subject.
[[nodiscard]] std::optional<std::uint64_t> failed_allocation_shows(const Contracts& contracts,
                                                                   const Subject& subject,
                                                                   const Conventions& conventions,
                                                                   const SurveyTerms& terms);
/// The index-th of these cases. `subject` has the conventions.
[[nodiscard]] CasePlan failing_case(const Contracts& contracts, const Subject& subject,
                                    const SurveyTerms& terms, std::uint64_t index);

/// A convention with the place where it shows.
struct LearnedConvention {
  RefusalConvention row;
  SurveyedAnswer shown;
};

/// What a survey shows: conventions, and refusals that were answered in several ways.
struct Learned {
  std::vector<LearnedConvention> refusals = {};
  std::vector<SurveyedRefusal> undecided = {};
  std::vector<SurveyedName> named = {};
  std::vector<std::string> without = {};  ///< operations
  std::vector<ConfigConvention> configs = {};
  [[nodiscard]] Conventions conventions() const;
};

/// The fewest rows. Those about the class of an error have no text, those about calls that are
/// carried out only where all errors of the operation and code are.
[[nodiscard]] Learned learned_from(const Survey& survey);

}  // namespace kvo
