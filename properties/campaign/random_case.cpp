#include "properties/campaign/random_case.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "properties/runner/led_reference.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo {

namespace {

// Short scripts are quick and shrink well, long ones reach deep states: both are tried.
std::uint64_t drawn_length(const Law& law, const CaseTerms& terms) {
  constexpr std::uint64_t kLonger = 8;
  if (terms.scale == Scale::kLong) return kLongLife;
  const std::uint64_t most = law.most_operations() * (terms.scale == Scale::kLarge ? kLonger : 1);
  return 1 + Draw(~terms.seed).below(most);
}

bool refuses(const Subject& subject, const Setup& setup) {
  return (subject.refuses && subject.refuses(setup)) ||
         may_refuse(subject.conventions, *subject.kind, setup);
}

// Whether every subject but the reference refuses a case: it would compare nothing, and another one
// is drawn. A case that one of several subjects refuses is drawn once: the other subjects get the
// cases that they get without that subject.
bool is_refused(const std::vector<const Subject*>& judged, const Subject* reference,
                const Setup& setup) {
  bool others = false;
  for (const Subject* subject : judged) {
    if (subject == reference) continue;
    others = true;
    if (!refuses(*subject, setup)) return false;
  }
  return others;
}

}  // namespace

DrawnOps::Outside outside_of(std::vector<const Subject*> judged, const Subject* reference) {
  std::erase(judged, reference);
  const auto any = [](const Subject* subject) { return subject->conventions.any(); };
  if (judged.empty() || !std::ranges::all_of(judged, any)) return nullptr;
  return [judged = std::move(judged)](const Op& op, const Error* refusal) {
    return std::ranges::all_of(judged, [&](const Subject* subject) {
      if (refusal == nullptr) return is_outside(subject->conventions, *subject->kind, op);
      return may_answer(subject->conventions, op.kind().name, *refusal, std::nullopt);
    });
  };
}

Scale scale_of(const Law& law, std::uint64_t nth) {
  constexpr std::uint64_t kLongEvery = 256;
  constexpr std::uint64_t kFirstLong = 12;
  constexpr std::uint64_t kLargeEvery = 6;
  if (law.lives_long() && nth % kLongEvery == kFirstLong) return Scale::kLong;
  return nth % kLargeEvery == kLargeEvery - 1 ? Scale::kLarge : Scale::kSmall;
}

CasePlan random_case(const Contracts& contracts, const Law& law,
                     const std::vector<const Subject*>& subjects, std::uint64_t seed,
                     std::uint64_t index, Profile profile, Scale scale) {
  const CacheKind& kind = *subjects.front()->kind;
  const Generator* generator = contracts.generator_of(kind);
  KVO_CHECK(generator != nullptr);
  if (scale == Scale::kLong && !generator->lives_long) scale = Scale::kLarge;
  const Subject* reference = &contracts.reference_of(kind);
  std::vector<const Subject*> judged;
  for (const Subject* subject : subjects)
    if ((subject != reference || law.judges_reference()) && law.concerns(*subject))
      judged.push_back(subject);
  CaseTerms terms{.seed = case_seed(seed, index), .profile = profile, .scale = scale};
  GeneratedCase drawn = generator->make(terms);
  constexpr std::uint64_t kRedraws = 100;
  for (std::uint64_t i = 0; i < kRedraws && is_refused(judged, reference, drawn.setup); ++i) {
    terms.seed = case_seed(case_seed(seed, index), i);
    drawn = generator->make(terms);
  }
  std::erase_if(judged, [&](const Subject* subject) { return refuses(*subject, drawn.setup); });
  drawn.setup.schedule = schedule_of(terms.seed);
  CasePlan plan{.kind = &kind,
                .name = "seed" + std::to_string(seed) + "-case" + std::to_string(index),
                .note = "generated; law " + std::string(law.name()),
                .setup = drawn.setup,
                .law = &law,
                .baseline = reference,
                .subjects = std::move(judged),
                .reference_of = contracts.reference_finder(),
                .history = contracts.oracle_of(kind)};
  lead(plan);
  plan.ops = [generator, terms, operations = drawn_length(law, terms), setup = plan.setup,
              led = plan.led, outside = outside_of(plan.subjects, reference)] {
    auto ops = generator->make(terms).ops;
    if (led != nullptr) ops->follow(*led, setup, terms.scale);
    ops->leave_out(outside);
    return std::make_unique<FirstOps>(std::move(ops), operations);
  };
  return plan;
}

std::vector<std::string_view> missing_labels(const Generator& generator, Profile profile,
                                             const Labels& reached) {
  std::vector<std::string_view> missing;
  for (const std::string_view label : generator.labels(profile))
    if (!reached.contains(label)) missing.push_back(label);
  return missing;
}

}  // namespace kvo
