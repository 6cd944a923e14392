#include "properties/campaign/contracts.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "properties/campaign/conform.hpp"
#include "properties/campaign/laws.hpp"
#include "properties/runner/run_case.hpp"
#include "reference/contract/device/simulated/watched_subject.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo {
namespace {

template <class T>
void append(std::vector<T>& all, std::vector<T> (*more)()) {
  if (more == nullptr) return;
  std::vector<T> made = more();
  all.insert(all.end(), std::make_move_iterator(made.begin()), std::make_move_iterator(made.end()));
}

// Kinds of a row without generators get plain ones.
std::vector<Generator> generators_of(const ContractRow& row) {
  if (row.generators != nullptr) return row.generators();
  std::vector<Generator> plain;
  for (const Subject& reference : row.references())
    plain.push_back(plain_generator(*reference.kind));
  return plain;
}

// "cuda-sim" over simulated devices, which report, and "cuda" over those that `card` opens. Both
// are slow, or may be absent: they are on request.
void append_devices(std::vector<Subject>& all, DeviceSubjects devices, const OpenDevice& card) {
  if (devices == nullptr) return;
  const std::size_t begin = all.size();
  const std::size_t kinds = devices("", nullptr).size();
  for (std::size_t kind = 0; kind < kinds; ++kind)
    all.push_back(watched_subject(
        [devices, kind](const OpenDevice& open) { return devices("cuda-sim", open)[kind]; },
        open_simulated));
  if (card)
    for (Subject& subject : devices(std::string(kCardVariant), card))
      all.push_back(std::move(subject));
  for (std::size_t i = begin; i < all.size(); ++i) all[i].on_request = true;
}

template <class Row>
const Row* row_of(const std::vector<Row>& rows, const CacheKind& kind) {
  const auto found = std::ranges::find(rows, &kind, &Row::kind);
  return found != rows.end() ? &*found : nullptr;
}

// One law that two contracts, or more, say in terms of their own.
class JoinedLaw final : public Law {
 public:
  JoinedLaw(const Law& one, const Law& other)
      : Law(one.name(), one.doc(), std::max(one.most_operations(), other.most_operations())),
        one_(one),
        other_(other) {}

  [[nodiscard]] bool applies_to(const CacheKind& kind) const override {
    return one_.applies_to(kind) || other_.applies_to(kind);
  }
  [[nodiscard]] bool concerns(const Subject& subject) const override {
    return of(*subject.kind).concerns(subject);
  }
  [[nodiscard]] bool judges_reference() const override {
    return one_.judges_reference() || other_.judges_reference();
  }
  [[nodiscard]] bool needs_whole_script() const override {
    return one_.needs_whole_script() || other_.needs_whole_script();
  }
  [[nodiscard]] LawRun run(const CasePlan& plan, const Subject* baseline,
                           std::span<const Subject* const> subjects, OpStream& ops) const override {
    return of(*plan.kind).run(plan, baseline, subjects, ops);
  }
  [[nodiscard]] std::vector<ScriptLine> shown(const CasePlan& plan, const Subject& subject,
                                              const std::vector<Op>& script,
                                              const Verdict& verdict) const override {
    return of(*plan.kind).shown(plan, subject, script, verdict);
  }

 private:
  [[nodiscard]] const Law& of(const CacheKind& kind) const {
    return one_.applies_to(kind) ? one_ : other_;
  }

  const Law& one_;
  const Law& other_;
};

void check_name(std::string_view what, std::string_view name, bool composed = false) {
  constexpr std::size_t kMost = 100;
  constexpr std::size_t kMostComposed = 500;
  const auto allowed = [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view(composed ? "._-+:/@" : "._-+:").find(c) != std::string_view::npos;
  };
  const std::size_t most = composed ? kMostComposed : kMost;
  if (!name.empty() && name.size() <= most && std::ranges::all_of(name, allowed)) return;
  throw InvalidName(fmt::format("{} '{}': a name is 1 to {} of letters, digits and . _ - + :", what,
                                traces::excerpt(name), most));
}

}  // namespace

Contracts::Contracts(std::vector<ContractRow> rows, std::vector<Subject> more,
                     const OpenDevice& card)
    : rows_(std::move(rows)), laws_(general_laws()) {
  std::vector<Subject> optimized;
  std::vector<Subject> devices;
  for (const ContractRow& row : rows_) {
    add(row);
    append(optimized, row.optimized);
    append_devices(devices, row.devices, card);
  }
  for (std::vector<Subject>* others : {&optimized, &devices, &more}) {
    for (Subject& subject : *others) {
      KVO_CHECK(std::ranges::find(kinds_, subject.kind) != kinds_.end());
      for (const Tolerance& each : subject.tolerances)
        KVO_CHECK(subject.kind->operation(each.operation) != nullptr && check(each.stored));
      subject.guest = others == &more || std::ranges::any_of(rows_, [&](const ContractRow& row) {
                        return row.guest && row.name == subject.kind->contract;
                      });
      listed_.push_back(&subjects_.emplace_back(std::move(subject)));
    }
  }
  for (const CacheKind* kind : kinds_) {
    check_name("contract", kind->contract);
    check_name("cache", kind->cache);
  }
  for (const Subject& subject : subjects_)
    check_name("subject", subject.variant, subject.inside != nullptr);
  for (const Mutant& mutant : mutants_)
    check_name("mutant", mutant.subject.variant, mutant.subject.inside != nullptr);
  compose();
}

void Contracts::compose() {
  const std::vector<const Subject*> alone = listed_;
  for (const CacheKind* kind : kinds_) {
    const Subject& outer = reference_of(*kind);
    for (const Subject* inner : alone)
      if (can_stand_over(outer, *inner) && inner != &reference_of(*inner->kind) &&
          !inner->on_request)
        listed_.push_back(&subjects_.emplace_back(over_cache(outer, *inner)));
  }
}

void Contracts::add(const ContractRow& row) {
  for (Subject& reference : row.references()) {
    kinds_.push_back(reference.kind);
    listed_.push_back(&subjects_.emplace_back(std::move(reference)));
  }
  for (Generator& generator : generators_of(row)) add(std::move(generator));
  append(lowerings_, row.lowerings);
  append(mutants_, row.mutants);
  if (row.device_mutants != nullptr)
    for (DeviceMutant& mutant : row.device_mutants())
      mutants_.push_back({watched_subject(mutant.over, open_simulated), std::move(mutant.fault),
                          std::move(mutant.origin), mutant.profile, mutant.longest_script});
  if (row.oracle != nullptr)
    add(oracle_laws_.emplace_back(
        "recompute_equivalence",
        "what is shown is what the whole history of the case, recomputed, says", kLongScript,
        LockstepLaw::Terms{.oracle = row.oracle, .compare = false}));
  if (row.laws != nullptr)
    for (const Law* law : row.laws()) add(*law);
}

// Its scripts follow the reference of the kind, whose marks they must reach.
void Contracts::add(Generator generator) {
  generator.make = [make = std::move(generator.make),
                    &reference = reference_of(*generator.kind)](const CaseTerms& terms) {
    GeneratedCase made = make(terms);
    made.ops->follow(reference, made.setup, terms.scale);
    return made;
  };
  for (const Mark& mark : marks()) {
    if (!mark.is_of(generator.kind->name())) continue;
    if (mark.profile != Profile::kDocumented) generator.original_labels.push_back(mark.text);
    if (mark.profile != Profile::kOriginal) generator.documented_labels.push_back(mark.text);
  }
  generators_.push_back(std::move(generator));
}

void Contracts::add(const Law& law) {
  const auto same = std::ranges::find(laws_, law.name(), &Law::name);
  if (same == laws_.end()) {
    laws_.push_back(&law);
    return;
  }
  joined_laws_.push_back(std::make_unique<JoinedLaw>(**same, law));
  *same = joined_laws_.back().get();
}

const CacheKind* Contracts::find_kind(std::string_view contract, std::string_view cache) const {
  std::string name(cache);  // logs write batch-kv for batch_kv
  std::ranges::replace(name, '-', '_');
  for (const CacheKind* kind : kinds_)
    if (kind->contract == contract && kind->cache == name) return kind;
  return nullptr;
}

traces::FindKind Contracts::kind_finder() const {
  return {[this](std::string_view contract, std::string_view cache) {
            return find_kind(contract, cache);
          },
          [this](const traces::CaseHeader& header) -> traces::Answerer {
            const std::array<const Subject*, 1> only{&reference_of(*header.kind)};
            auto lockstep =
                std::make_shared<Lockstep>(nullptr, only, setup_of(header, std::nullopt));
            return [lockstep](const Op& op) {
              if (lockstep->worthwhile()) return lockstep->step(op);
              return Observation{.error = fail(Code::kNotSupported)};
            };
          }};
}

const Subject* Contracts::find_subject(std::string_view name) const {
  if (const Subject* found = find_uncomposed(name)) return found;
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return nullptr;
  const Subject* outer = find_uncomposed(name.substr(0, slash));
  const Subject* inner = find_subject(name.substr(slash + 1));
  if (outer == nullptr || inner == nullptr || !can_stand_over(*outer, *inner)) return nullptr;
  const std::lock_guard lock(composing_);
  const auto known =
      std::ranges::find(composed_, name, [](const Subject& one) { return one.name(); });
  return known != composed_.end() ? &*known : &composed_.emplace_back(over_cache(*outer, *inner));
}

const Subject* Contracts::find_uncomposed(std::string_view name) const {
  for (const Subject* subject : listed_)
    if (subject->name() == name) return subject;
  for (const Mutant& mutant : mutants_)
    if (mutant.subject.name() == name) return &mutant.subject;
  return nullptr;
}

const Subject& Contracts::reference_of(const CacheKind& kind) const {
  const auto found = std::ranges::find(listed_, &kind, &Subject::kind);
  KVO_CHECK(found != listed_.end());
  return **found;
}

std::vector<const Subject*> Contracts::subjects_of(const CacheKind& kind) const {
  std::vector<const Subject*> found;
  std::ranges::copy_if(listed_, std::back_inserter(found), [&](const Subject* subject) {
    return subject->kind == &kind && !subject->on_request;
  });
  return found;
}

std::vector<const Subject*> Contracts::subjects_without_card(const CacheKind& kind) const {
  std::vector<const Subject*> found;
  std::ranges::copy_if(listed_, std::back_inserter(found), [&](const Subject* subject) {
    return subject->kind == &kind && (!subject->on_request || subject->scheduled);
  });
  return found;
}

std::vector<const Subject*> Contracts::usual_subjects() const {
  std::vector<const Subject*> usual;
  std::ranges::copy_if(listed_, std::back_inserter(usual),
                       [](const Subject* subject) { return !subject->on_request; });
  return usual;
}

const Generator* Contracts::generator_of(const CacheKind& kind) const {
  return row_of(generators_, kind);
}

std::vector<const replay::Lowering*> Contracts::lowerings_of(const CacheKind& kind) const {
  std::vector<const replay::Lowering*> found;
  for (const replay::Lowering& lowering : lowerings_)
    if (lowering.kind == &kind) found.push_back(&lowering);
  return found;
}

MakeOracle Contracts::oracle_of(const CacheKind& kind) const {
  const auto row = std::ranges::find(rows_, kind.contract, &ContractRow::name);
  return row != rows_.end() ? row->oracle : nullptr;
}

std::vector<const Law*> Contracts::laws_of(const CacheKind& kind) const {
  std::vector<const Law*> apply;
  std::ranges::copy_if(laws_, std::back_inserter(apply),
                       [&](const Law* law) { return law->applies_to(kind); });
  return apply;
}

const Law* Contracts::find_law(std::string_view name) const {
  const auto found = std::ranges::find(laws_, name, &Law::name);
  return found != laws_.end() ? *found : nullptr;
}

}  // namespace kvo
