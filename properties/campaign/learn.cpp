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
    survey_.refused_configs = 0;
    survey_.config_members.clear();
    for (const Field& field : subject.kind->config->fields)
      survey_.config_members.emplace_back(field.name);
    survey_.rounds.push_back(subject.conventions);
    for (const ConventionInfo* info : named_conventions(*subject.kind))
      if (info->relation != nullptr && (!info->chooses || subject.conventions.has(info->name)))
        tried_.named.emplace_back(info->name);
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
      note_config(plan.setup, judged.has_value());
      if (!reference || !judged) continue;
      ++survey_.cases;
      settlement_.emplace(tried_, *subject_.kind, plan.setup);
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
    script_.clear();
    while (const auto op = ops->next()) {
      const Observation want = reference.apply(*op, probe_);
      const Observation got = judged.apply(*op, probe_);
      ++survey_.operations;
      if (!goes_on(plan, *op, want, got)) return;
      script_.push_back(*op);
      if (judged.broken_invariant()) return differs();
      ops->observe(*op, want, unused);
      ++at_;
    }
  }

  // Whether queries tell the two apart after the operations so far. A cache that is wrong already
  // may carry out a call because of that.
  bool shows_a_difference(const CasePlan& plan) {
    constexpr std::uint64_t kMost = 200;
    if (asked_again_++ > kMost) return false;
    const auto reference = plan.baseline->open(plan.setup);
    const auto judged = subject_.open(plan.setup);
    if (!reference || !judged) return false;
    Settlement settlement(tried_, *subject_.kind, plan.setup);
    const auto differ = [&](const Op& op) {
      const Observation want = (*reference)->apply(op, probe_);
      const Observation got = settlement.settled(op, want, (*judged)->apply(op, probe_));
      return !want.error && !got.unsupported && observation_difference(want, got);
    };
    for (const Op& op : script_) (void)differ(op);
    return std::ranges::any_of(simplest_queries(subject_.kind->operations), differ);
  }

  bool goes_on(const CasePlan& plan, const Op& op, const Observation& want,
               const Observation& got) {
    // Plain scripts have absurd sizes: a case that the limit of memory ends is no evidence.
    const bool refused = std::exchange(allocation_gate.refused_bytes, 0) > 0;
    if (want.failed_with(Code::kOutOfMemory) || (refused && got.failed_with(Code::kOutOfMemory)))
      return false;
    auto asked =
        std::ranges::find(survey_.operations_asked, op.kind().name, &SurveyedOperation::operation);
    if (asked == survey_.operations_asked.end())
      asked = survey_.operations_asked.insert(asked, {std::string(op.kind().name)});
    ++(got.unsupported ? asked->missing : asked->answered);
    if (got.unsupported) return false;
    const std::size_t used = settlement_->used().size();
    const Observation settled = settlement_->settled(op, want, got);
    const bool ends = settlement_->ends_by_relation(op, want, settled);
    if (settlement_->used().size() > used) note(std::string(settlement_->used().back()));
    if (ends) {
      ++survey_.ended;
      return false;
    }
    if (want.error && !got.error && shows_a_difference(plan)) {
      differs();
      return false;
    }
    if (want.error) {
      count(op, *want.error, got);
      survey_.ended += got.error ? 0 : 1;
      return got.error.has_value();
    }
    const Exactness exactness{Wanted::kComputed, subject_.stored_in(op.kind().name)};
    if (!observation_difference(want, got, exactness)) return true;
    if (!observation_difference(want, settled, exactness)) return true;
    differs();
    return false;
  }

  void note_config(const Setup& setup, bool taken) {
    survey_.refused_configs += taken ? 0 : 1;
    SurveyedConfig config{config_values(*subject_.kind, setup), taken};
    const auto known = std::ranges::find_if(survey_.configs, [&](const SurveyedConfig& one) {
      return one.taken == taken && one.values == config.values;
    });
    constexpr std::size_t kMost = 1'000;
    if (known == survey_.configs.end() && survey_.configs.size() < kMost)
      survey_.configs.push_back(std::move(config));
  }

  void differs() {
    if (survey_.differing++ == 0 || at_ < survey_.difference.op_index)
      survey_.difference = {"", survey_.rounds.size() - 1, index_, at_};
  }

  void note(std::string name) {
    SurveyedName here{std::move(name), survey_.rounds.size() - 1, index_, at_};
    const auto known = std::ranges::find(survey_.named, here.name, &SurveyedName::name);
    if (known == survey_.named.end())
      survey_.named.push_back(std::move(here));
    else if (at_ < known->op_index)
      *known = std::move(here);
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
    if (at_ < answer->op_index) {
      answer->round = survey_.rounds.size() - 1;
      answer->case_index = index_;
      answer->op_index = at_;
    }
  }

  const Contracts& contracts_;
  const Subject& subject_;
  const SurveyTerms& terms_;
  Survey survey_;
  Script script_;                  // of the case, so far
  std::uint64_t asked_again_ = 0;  // how often it was carried out again for queries
  Conventions tried_;              // those with a name that may explain a difference
  std::optional<Settlement> settlement_;
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
           answer.given != "threw" && answer.given != "died";
  });
}

}  // namespace

CasePlan surveyed_case(const Contracts& contracts, const Subject& subject, const SurveyTerms& terms,
                       std::uint64_t index) {
  constexpr std::uint64_t kLargeEvery = 6;
  constexpr std::uint64_t kPlainEvery = 8;
  const Law& law = *contracts.find_law("agrees_with_reference");
  CasePlan plan = random_case(contracts, law, {&subject}, terms.seed, index, terms.profile,
                              index % kLargeEvery == 0 ? Scale::kLarge : Scale::kSmall);
  if (!terms.plain || index % kPlainEvery != kPlainEvery - 1) return plan;
  // Generators seldom draw calls that make no sense. Plain scripts are full of them.
  static constexpr std::uint64_t kOperations = 30;
  plan.ops = [baseline = plan.baseline, led = plan.led, setup = plan.setup,
              seed = case_seed(terms.seed, index),
              outside = outside_of(plan.subjects, plan.baseline)] {
    auto ops = plain_generator(*baseline->kind).make({.seed = seed, .profile = setup.profile}).ops;
    ops->follow(*baseline, setup, Scale::kSmall);
    ops->leave_out(outside);
    return std::make_unique<FirstOps>(std::move(ops), kOperations);
  };
  return plan;
}

namespace {

Survey survey_in_rounds(const Contracts& contracts, Subject subject, const SurveyTerms& terms,
                        Survey survey) {
  constexpr int kMostRounds = 4;
  const std::vector<std::string> given = subject.conventions.named;
  // What decides which operations are drawn.
  const auto left_out = [&](const Conventions& conventions) {
    return std::ranges::count_if(conventions.named, [&](const std::string& name) {
      return find_convention(*subject.kind, name)->outside != nullptr;
    });
  };
  for (int round = 0; round < kMostRounds; ++round) {
    survey = Surveyor(contracts, subject, terms, std::move(survey)).run();
    Conventions found = learned_from(survey).conventions();
    std::erase_if(found.refusals, [](const RefusalConvention& row) { return row.given; });
    for (const std::string& name : given)
      if (!found.has(name)) found.named.push_back(name);
    if (found.refusals.size() == subject.conventions.refusals.size() &&
        found.configs.size() == subject.conventions.configs.size() &&
        left_out(found) == left_out(subject.conventions) &&
        found.without.size() == subject.conventions.without.size())
      break;
    subject.conventions = std::move(found);
  }
  return survey;
}

}  // namespace

Survey survey_of(const Contracts& contracts, const Subject& subject, const SurveyTerms& terms) {
  Subject judged = subject;
  judged.conventions = {};
  Survey survey = survey_in_rounds(contracts, judged, terms, {});
  for (const ConventionInfo* info : named_conventions(*subject.kind)) {
    if (!info->chooses || survey.differing == 0) continue;
    judged.conventions.named = {std::string(info->name)};
    Survey first;
    first.rounds = survey.rounds;
    Survey led = survey_in_rounds(contracts, judged, terms, std::move(first));
    if (led.differing >= survey.differing) continue;
    SurveyedName shown = survey.difference;
    shown.name = info->name;
    std::erase_if(led.named, [&](const SurveyedName& one) { return one.name == shown.name; });
    led.named.push_back(std::move(shown));
    survey = std::move(led);
  }
  return survey;
}

CasePlan failing_case(const Contracts& contracts, const Subject& subject, const SurveyTerms& terms,
                      std::uint64_t index) {
  return random_case(contracts, *contracts.find_law("failed_allocation_changes_nothing"),
                     {&subject}, terms.seed, index, terms.profile);
}

std::optional<std::uint64_t> failed_allocation_shows(const Contracts& contracts,
                                                     const Subject& subject,
                                                     const Conventions& conventions,
                                                     const SurveyTerms& terms) {
  constexpr std::uint64_t kCases = 60;
  if (!subject.survives_failed_allocation || !subject.kind->repeatable) return std::nullopt;
  Subject judged = subject;
  judged.conventions = conventions;
  const auto fails = [&](const CasePlan& plan) {
    for (const SubjectResult& one : run_case(plan, {.attempts = 0}).subjects)
      if (one.subject == judged.name() && one.verdict.failed()) return true;
    return false;
  };
  for (std::uint64_t index = 0; index < std::min(kCases, terms.cases); ++index) {
    CasePlan plan = failing_case(contracts, judged, terms, index);
    if (!fails(plan)) continue;
    plan.law = &agreement();
    if (!fails(plan)) return index;
  }
  return std::nullopt;
}

Conventions Learned::conventions() const {
  Conventions all;
  for (const LearnedConvention& one : refusals) all.refusals.push_back(one.row);
  for (const SurveyedName& one : named) all.named.push_back(one.name);
  all.without = without;
  all.configs = configs;
  return all;
}

namespace {

// Members that take few values where the cache is opened, and others where it is not: the fewest
// that explain every refusal. A refusal that none explains leaves no rows.
std::vector<ConfigConvention> learned_configs(const Survey& survey) {
  constexpr std::size_t kMostValues = 4;
  std::vector<const SurveyedConfig*> refused;
  for (const SurveyedConfig& config : survey.configs)
    if (!config.taken) refused.push_back(&config);
  std::vector<ConfigConvention> rows;
  while (!refused.empty()) {
    ConfigConvention best;
    std::size_t explained = 0;
    std::size_t best_member = 0;
    for (std::size_t member = 0; member < survey.config_members.size(); ++member) {
      ConfigConvention row{survey.config_members[member], {}};
      for (const SurveyedConfig& config : survey.configs)
        if (config.taken && std::ranges::find(row.only, config.values[member]) == row.only.end())
          row.only.push_back(config.values[member]);
      const bool counts = std::ranges::any_of(row.only, [](const std::string& value) {
        return value.find_first_not_of("-.0123456789") == value.npos;
      });
      if (row.only.empty() || row.only.size() > (counts ? 1 : kMostValues)) continue;
      const auto explains = std::ranges::count_if(refused, [&](const SurveyedConfig* config) {
        return std::ranges::find(row.only, config->values[member]) == row.only.end();
      });
      if (static_cast<std::size_t>(explains) <= explained) continue;
      explained = static_cast<std::size_t>(explains);
      best = std::move(row);
      best_member = member;
    }
    if (explained == 0) return {};
    std::ranges::sort(best.only);
    std::erase_if(refused, [&](const SurveyedConfig* config) {
      return std::ranges::find(best.only, config->values[best_member]) == best.only.end();
    });
    rows.push_back(std::move(best));
  }
  return rows;
}

}  // namespace

Learned learned_from(const Survey& survey) {
  Learned learned{.named = survey.named};
  learned.configs = learned_configs(survey);
  for (const SurveyedOperation& one : survey.operations_asked)
    if (one.missing > 0 && one.answered == 0) learned.without.push_back(one.operation);
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
      // The class of an error does not depend on its text: rare errors may not have shown.
      RefusalConvention row{refusal.operation, refusal.wanted,
                            all_alike || answer.given ? "" : refusal.because, answer.given};
      const bool known = std::ranges::any_of(learned.refusals, [&](const LearnedConvention& one) {
        return one.row.operation == row.operation && one.row.wanted == row.wanted &&
               one.row.because == row.because && one.row.given == row.given;
      });
      if (!known) learned.refusals.push_back({std::move(row), answer});
    }
  }
  return learned;
}

}  // namespace kvo
