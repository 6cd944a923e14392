// properties/campaign/learn.hpp: which conventions a cache has, from its answers in random cases.
//
// Where the rules refuse an operation, the cache's answer is counted by the error that the rules
// give: its code and its text. A cache that always gives the same answer there has a convention.
// One that gives two answers has none: what a fault does depends on the state. Any other difference
// is no convention either.
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
  std::uint64_t round = 0;       ///< of the survey, where it was given first
  std::uint64_t first_case = 0;  ///< index of the case there
  std::uint64_t first_op = 0;    ///< the operation there
};
BOOST_DESCRIBE_STRUCT(SurveyedAnswer, (), (given, times, round, first_case, first_op))

/// All answers where the rules give one error.
struct SurveyedRefusal {
  std::string operation;
  std::string wanted;
  std::string because;
  std::vector<SurveyedAnswer> answers = {};
};
BOOST_DESCRIBE_STRUCT(SurveyedRefusal, (), (operation, wanted, because, answers))

/// How a cache answers in random cases. A case ends where it carries out what the rules refuse, or
/// differs in anything but the class of an error.
struct Survey {
  std::uint64_t cases = 0;       ///< that the cache took part in
  std::uint64_t operations = 0;  ///< that were compared
  std::uint64_t ended = 0;       ///< cases that ended because a refused operation was carried out
  std::uint64_t differing = 0;   ///< cases that ended with another difference
  bool copies = false;           ///< whether addresses differed
  std::vector<SurveyedRefusal> refusals = {};
  std::vector<Conventions> rounds = {};  ///< what each round left out of its cases
};
BOOST_DESCRIBE_STRUCT(Survey, (), (cases, operations, ended, differing, copies, refusals, rounds))

/// Which random cases are surveyed.
struct SurveyTerms {
  Profile profile = Profile::kOriginal;
  std::uint64_t seed = 1;
  std::uint64_t cases = 2'000;
  bool plain = true;  ///< whether some scripts are plain: calls in any order, most of no use
};

/// The index-th case of a survey.
[[nodiscard]] CasePlan surveyed_case(const Contracts& contracts, const Subject& subject,
                                     const SurveyTerms& terms, std::uint64_t index);

/// Runs the cases in this process: once without conventions, and again without the calls that the
/// subject was found to accept although the rules refuse them, until nothing new is found. Those
/// calls end a case, and hide what comes after. The counts of cases are those of the last round.
/// Requires  the subject's kind has a generator.
[[nodiscard]] Survey survey_of(const Contracts& contracts, const Subject& subject,
                               const SurveyTerms& terms);

/// A convention with the place where it shows.
struct LearnedConvention {
  RefusalConvention row;
  SurveyedAnswer shown;
};

/// What a survey shows: conventions, and refusals that were answered in several ways.
struct Learned {
  std::vector<LearnedConvention> refusals = {};
  std::vector<SurveyedRefusal> undecided = {};
  bool copies = false;
  [[nodiscard]] Conventions conventions() const;
};

/// The fewest rows: where all errors of an operation and code are answered alike, one without a
/// text.
[[nodiscard]] Learned learned_from(const Survey& survey);

}  // namespace kvo
