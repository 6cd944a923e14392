#include "properties/campaign/learn.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "properties/campaign/random_case.hpp"
#include "reference/contract/subject/conventions.hpp"
#include "traces/log/conventions_file.hpp"

namespace kvo {
namespace {

/// Runs the reference and the subject side by side, and counts the subject's answers.
class Surveyor {
 public:
  Surveyor(const Contracts& contracts, const Subject& subject, const SurveyTerms& terms,
           Survey earlier)
      : contracts_(contracts), subject_(subject), terms_(terms), survey_(std::move(earlier)) {
    survey_.cases = survey_.operations = survey_.ended = survey_.differing = 0;
    survey_.rounds.push_back(subject.conventions);
  }

  Survey run() {
    constexpr std::size_t kMostOfARequest = std::size_t{16} << 20U;
    const std::size_t limit = std::exchange(allocation_gate.limit_bytes, kMostOfARequest);
    const std::size_t fill = std::exchange(allocation_gate.fill_bytes, 0);  // reserved is not used
    for (index_ = 0; index_ < terms_.cases; ++index_) {
      const CasePlan plan = surveyed_case(contracts_, subject_, terms_, index_);
      if (std::ranges::find(plan.subjects, &subject_) == plan.subjects.end()) continue;
      const auto reference = plan.baseline->open(plan.setup);
      const auto judged = subject_.open(plan.setup);
      if (!reference || !judged) continue;
      ++survey_.cases;
      run_case(plan, **reference, **judged);
    }
    allocation_gate.limit_bytes = limit;
    allocation_gate.fill_bytes = fill;
    return std::move(survey_);
  }

 private:
  void run_case(const CasePlan& plan, Session& reference, Session& judged) {
    const auto ops = plan.ops();
    Labels unused;
    at_ = 0;
    while (const auto op = ops->next()) {
      const Observation want = reference.apply(*op, probe_);
      const Observation got = judged.apply(*op, probe_);
      ++survey_.operations;
      if (!goes_on(*op, want, got)) return;
      if (judged.broken_invariant()) {
        ++survey_.differing;
        return;
      }
      ops->observe(*op, want, unused);
      ++at_;
    }
  }

  bool goes_on(const Op& op, const Observation& want, const Observation& got) {
    // Plain scripts have absurd sizes: a case that the limit of memory ends is no evidence.
    const bool refused = std::exchange(allocation_gate.refused_bytes, 0) > 0;
    if (want.failed_with(Code::kOutOfMemory) || (refused && got.failed_with(Code::kOutOfMemory)))
      return false;
    if (want.error) {
      count(op, *want.error, got);
      survey_.ended += got.error ? 0 : 1;
      return got.error.has_value();
    }
    const Exactness exactness{Wanted::kComputed, subject_.stored_in(op.kind().name)};
    if (!observation_difference(want, got, exactness)) return true;
    Conventions copies;
    copies.copies = true;
    const Observation settled = as_promised(copies, op.kind(), want, got);
    if (observation_difference(want, settled, exactness)) {
      ++survey_.differing;
      return false;
    }
    survey_.copies = true;
    return true;
  }

  void count(const Op& op, const Error& wanted, const Observation& got) {
    SurveyedRefusal key{std::string(op.kind().name), wanted.code_text(), because_of(wanted)};
    auto known = std::ranges::find_if(survey_.refusals, [&](const SurveyedRefusal& one) {
      return one.operation == key.operation && one.wanted == key.wanted &&
             one.because == key.because;
    });
    if (known == survey_.refusals.end()) known = survey_.refusals.insert(known, std::move(key));
    std::optional<std::string> given;
    if (got.error) given = got.error->code_text();
    auto answer = std::ranges::find(known->answers, given, &SurveyedAnswer::given);
    if (answer == known->answers.end())
      answer = known->answers.insert(answer, {given, 0, survey_.rounds.size() - 1, index_, at_});
    ++answer->times;
  }

  const Contracts& contracts_;
  const Subject& subject_;
  const SurveyTerms& terms_;
  Survey survey_;
  Probe probe_;
  std::uint64_t index_ = 0;  // of the case
  std::uint64_t at_ = 0;     // of the operation
};

bool is_as_wanted(const SurveyedRefusal& refusal) {
  return refusal.answers.size() == 1 && refusal.answers.front().given == refusal.wanted;
}

// Whether all answers may be conventions: none is a word that the harness alone says, and each is a
// refusal where the call must not be carried out.
bool may_be_chosen(const SurveyedRefusal& refusal) {
  return std::ranges::all_of(refusal.answers, [&](const SurveyedAnswer& answer) {
    if (answer.given == refusal.wanted) return true;
    if (!answer.given) return traces::may_be_accepted(refusal.wanted);
    return answer.given != "not_supported" && answer.given != "out_of_memory" &&
           answer.given != "threw";
  });
}

}  // namespace

CasePlan surveyed_case(const Contracts& contracts, const Subject& subject, const SurveyTerms& terms,
                       std::uint64_t index) {
  constexpr std::uint64_t kLargeEvery = 6;
  constexpr std::uint64_t kPlainEvery = 8;
  const Law& law = *contracts.find_law("agrees_with_reference");
  const Subject& reference = contracts.reference_of(*subject.kind);
  CasePlan plan =
      random_case(contracts, law, {&reference, &subject}, terms.seed, index, terms.profile,
                  index % kLargeEvery == 0 ? Scale::kLarge : Scale::kSmall);
  if (!terms.plain || index % kPlainEvery != kPlainEvery - 1) return plan;
  // Generators seldom draw calls that make no sense. Plain scripts are full of them.
  static constexpr std::uint64_t kOperations = 30;
  plan.ops = [&reference, setup = plan.setup, seed = case_seed(terms.seed, index),
              outside = outside_of(plan.subjects, &reference)] {
    auto ops = plain_generator(*reference.kind).make({.seed = seed, .profile = setup.profile}).ops;
    ops->follow(reference, setup, Scale::kSmall);
    ops->leave_out(outside);
    return std::make_unique<FirstOps>(std::move(ops), kOperations);
  };
  return plan;
}

Survey survey_of(const Contracts& contracts, const Subject& subject, const SurveyTerms& terms) {
  constexpr int kMostRounds = 4;
  Subject judged = subject;
  judged.conventions = {};
  Survey survey;
  for (int round = 0; round < kMostRounds; ++round) {
    survey = Surveyor(contracts, judged, terms, std::move(survey)).run();
    Conventions found = learned_from(survey).conventions();
    std::erase_if(found.refusals, [](const RefusalConvention& row) { return row.given; });
    if (found.refusals.size() == judged.conventions.refusals.size()) break;
    judged.conventions = std::move(found);
  }
  return survey;
}

Conventions Learned::conventions() const {
  Conventions all;
  for (const LearnedConvention& one : refusals) all.refusals.push_back(one.row);
  all.copies = copies;
  return all;
}

Learned learned_from(const Survey& survey) {
  Learned learned{.copies = survey.copies};
  // The class that the cache has for another error of the operation: where two errors apply to a
  // call, it may name either.
  const auto is_class_of_another = [&](const SurveyedRefusal& refusal,
                                       const std::optional<std::string>& given) {
    return std::ranges::any_of(survey.refusals, [&](const SurveyedRefusal& other) {
      return &other != &refusal && other.operation == refusal.operation &&
             other.answers.size() == 1 && given && other.answers.front().given == given;
    });
  };
  for (const SurveyedRefusal& refusal : survey.refusals) {
    if (is_as_wanted(refusal)) continue;
    const auto others = std::ranges::count_if(refusal.answers, [&](const SurveyedAnswer& answer) {
      return !is_class_of_another(refusal, answer.given);
    });
    const bool also_done = refusal.answers.size() > 1 &&
                           std::ranges::any_of(refusal.answers, [](const SurveyedAnswer& answer) {
                             return !answer.given;
                           });
    if (others > 1 || also_done || !may_be_chosen(refusal)) {
      learned.undecided.push_back(refusal);
      continue;
    }
    const bool all_alike = std::ranges::all_of(survey.refusals, [&](const SurveyedRefusal& other) {
      return other.operation != refusal.operation || other.wanted != refusal.wanted ||
             (other.answers.size() == 1 && refusal.answers.size() == 1 &&
              other.answers.front().given == refusal.answers.front().given);
    });
    for (const SurveyedAnswer& answer : refusal.answers) {
      if (answer.given == refusal.wanted) continue;
      RefusalConvention row{refusal.operation, refusal.wanted, all_alike ? "" : refusal.because,
                            answer.given};
      const bool known = std::ranges::any_of(learned.refusals, [&](const LearnedConvention& one) {
        return all_alike && one.row.operation == row.operation && one.row.wanted == row.wanted;
      });
      if (!known) learned.refusals.push_back({std::move(row), answer});
    }
  }
  return learned;
}

}  // namespace kvo
