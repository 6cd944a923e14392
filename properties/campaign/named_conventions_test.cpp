// Conventions with names: a cache that needs one is found to have it, a fault that looks alike is
// not.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/campaign/learn.hpp"
#include "properties/campaign/random_case.hpp"
#include "properties/contracts.hpp"
#include "reference/prefix/blocks_cache.hpp"
#include "reference/prefix/radix_cache.hpp"
#include "reference/provider/contiguous.hpp"
#include "reference/snapshot/operations.hpp"

namespace kvo {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr SurveyTerms kTerms{.profile = Profile::kDocumented, .seed = 3, .cases = 150};

/// A session that changes what another one answers.
class Changed final : public Session {
 public:
  using Change = std::function<void(const Op& op, Observation& seen)>;
  Changed(std::unique_ptr<Session> inner, Change change)
      : inner_(std::move(inner)), change_(std::move(change)) {}
  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    Observation seen = inner_->apply(op, probe);
    if (!seen.error) change_(op, seen);
    return seen;
  }

 private:
  std::unique_ptr<Session> inner_;
  Change change_;
};

/// The reference of a kind, whose answers are changed by what `make` gives for each case.
Subject changed(const CacheKind& kind, const std::function<Changed::Change()>& make) {
  const Subject& reference = contracts().reference_of(kind);
  Subject made = reference;
  made.variant = "changed";
  made.open = [&reference, make](const kvo::Setup& setup) -> Result<std::unique_ptr<Session>> {
    auto opened = reference.open(setup);
    if (!opened) return opened.error();
    return std::make_unique<Changed>(std::move(*opened), make());
  };
  return made;
}

void expect_green(Subject subject, const Conventions& conventions) {
  subject.conventions = conventions;
  for (const Law* law : contracts().laws_of(*subject.kind)) {
    for (std::uint64_t index = 0; index < 8; ++index) {
      const CasePlan plan = random_case(contracts(), *law, {&subject}, 11, index,
                                        Profile::kDocumented, Scale::kSmall);
      for (const SubjectResult& one : run_case(plan, {.attempts = 0}).subjects)
        EXPECT_FALSE(one.verdict.failed())
            << law->name() << ", case " << index << ": " << one.verdict.text();
    }
  }
}

std::vector<std::string> names_of(const Survey& survey) {
  return learned_from(survey).conventions().named;
}

// ---- the cache chooses ----

/// Prefers the block that the reference would hand out last.
class LastBlocks final : public prefix::BlockManager {
 public:
  using BlockManager::BlockManager;
  Result<prefix::Allotted> allocate(const prefix::Allocate& op) override {
    prefer_last();
    return BlockManager::allocate(op);
  }
  Result<prefix::Allotted> take(std::int64_t count) override {
    prefer_last();
    return BlockManager::take(count);
  }

 private:
  void prefer_last() {
    prefix::Ids queue = state().queue;
    std::ranges::reverse(queue);
    prefer(std::move(queue));
  }
};

TEST(NamedConventions, ACacheChoosesBlocks) {
  const Subject subject = prefix::make_blocks_subject(
      "last", "the block that was freed last",
      [](const prefix::BlocksOptions& options,
         QuirkSet<prefix::Quirk> quirks) -> Result<std::unique_ptr<prefix::BlockCache>> {
        return std::make_unique<LastBlocks>(options, quirks);
      });
  const Survey survey = survey_of(contracts(), subject, kTerms);
  EXPECT_EQ(survey.differing, 0U);
  EXPECT_THAT(names_of(survey), ElementsAre("own_blocks"));
  expect_green(subject, learned_from(survey).conventions());
}

/// Prefers the slots that the reference would hand out last.
class LastSlots final : public prefix::RadixManager {
 public:
  using RadixManager::RadixManager;
  Result<prefix::IdsView> alloc(std::int64_t count) override {
    const auto& pages = slots().free_pages();
    prefix::Ids last(pages.rbegin(), pages.rend());
    for (std::int64_t& page : last) page *= page_size_;
    prefer(last);
    return RadixManager::alloc(count);
  }
  std::int64_t page_size_ = 1;
};

TEST(NamedConventions, ACacheChoosesSlots) {
  const Subject subject = prefix::make_radix_subject(
      "last", "the slots that were freed last",
      [](const prefix::RadixConfig& config,
         QuirkSet<prefix::Quirk> quirks) -> Result<std::unique_ptr<prefix::RadixCache>> {
        auto made = std::make_unique<LastSlots>(config, quirks);
        made->page_size_ = config.page_size;
        return made;
      });
  const Survey survey = survey_of(contracts(), subject, kTerms);
  EXPECT_EQ(survey.differing, 0U);
  EXPECT_THAT(names_of(survey), ElementsAre("own_slots"));
  expect_green(subject, learned_from(survey).conventions());
}

// ---- answers that mean the same ----

void reverse_rows(Tensor& rows) {
  const auto count = static_cast<std::size_t>(rows.shape[2]);
  const std::size_t heads = static_cast<std::size_t>(rows.shape[0] * rows.shape[1]);
  if (count * heads == 0) return;
  const std::size_t bytes = rows.bytes.size() / (count * heads);
  for (std::size_t head = 0; head < heads; ++head)
    for (std::size_t row = 0; row < count / 2; ++row) {
      const auto at = rows.bytes.begin() + std::ptrdiff_t((head * count + row) * bytes);
      const auto other =
          rows.bytes.begin() + std::ptrdiff_t((head * count + count - 1 - row) * bytes);
      std::swap_ranges(at, at + std::ptrdiff_t(bytes), other);
    }
}

Subject ring_backwards(bool k_alone) {
  return changed(snapshot::rotating_kind(), [k_alone]() -> Changed::Change {
    return [k_alone](const Op& op, Observation& seen) {
      if (op.as<snapshot::Update>() == nullptr) return;
      auto returns = seen.as<snapshot::UpdateReturns>();
      reverse_rows(returns.k);
      if (!k_alone) reverse_rows(returns.v);
      seen.returns = Record::of(std::move(returns));
    };
  });
}

TEST(NamedConventions, ARingShowsItsRowsInAnyOrder) {
  const Subject subject = ring_backwards(false);
  const Survey survey = survey_of(contracts(), subject, kTerms);
  EXPECT_EQ(survey.differing, 0U);
  EXPECT_THAT(names_of(survey), ElementsAre("rows_in_any_order"));
}

TEST(NamedConventions, KeysInAnotherOrderThanValuesAreAFault) {
  EXPECT_GT(survey_of(contracts(), ring_backwards(true), kTerms).differing, 100U);
}

// Results as they were when they were returned.
TEST(NamedConventions, ResultsAreCopies) {
  const Subject subject = changed(provider::contiguous_kind(), []() -> Changed::Change {
    return [held = std::map<std::int64_t, provider::Again>()](const Op& op,
                                                              Observation& seen) mutable {
      if (op.as<provider::Get>() != nullptr) {
        const auto& found = seen.as<provider::Found>();
        if (found.handle) held[*found.handle] = {.k = found.k, .v = found.v};
      } else if (const auto* again = op.as<provider::Reread>()) {
        seen.returns = Record::of(held.at(again->handle));
      }
    };
  });
  const Survey survey = survey_of(contracts(), subject, kTerms);
  EXPECT_EQ(survey.differing, 0U);
  EXPECT_THAT(names_of(survey), ElementsAre("copies"));
  expect_green(subject, learned_from(survey).conventions());
}

TEST(NamedConventions, AResultThatForgetsItsRowsIsAFault) {
  const Subject subject = changed(provider::contiguous_kind(), []() -> Changed::Change {
    return [](const Op& op, Observation& seen) {
      if (op.as<provider::Reread>() != nullptr) seen.returns = Record::of(provider::Again());
    };
  });
  EXPECT_GT(survey_of(contracts(), subject, kTerms).differing, 0U);
}

// ---- what a cache lacks ----

TEST(NamedConventions, AnOperationThatIsMissingIsNotDrawn) {
  const Subject& reference = contracts().reference_of(snapshot::kv_kind());
  Subject subject = reference;
  subject.variant = "without";
  subject.open = [&reference](const kvo::Setup& setup) -> Result<std::unique_ptr<Session>> {
    class Without final : public Session {
     public:
      explicit Without(std::unique_ptr<Session> inner) : inner_(std::move(inner)) {}
      [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
        if (op.as<snapshot::Merge>() != nullptr)
          return {.error = fail(Code::kNotSupported), .unsupported = true};
        return inner_->apply(op, probe);
      }

     private:
      std::unique_ptr<Session> inner_;
    };
    auto opened = reference.open(setup);
    if (!opened) return opened.error();
    return std::make_unique<Without>(std::move(*opened));
  };
  const Survey survey = survey_of(contracts(), subject, kTerms);
  const Conventions learned = learned_from(survey).conventions();
  EXPECT_THAT(learned.without, ElementsAre("merge"));
  EXPECT_EQ(survey.differing, 0U);
  subject.conventions = learned;
  const CasePlan plan = random_case(contracts(), *contracts().find_law("agrees_with_reference"),
                                    {&subject}, 5, 0, Profile::kDocumented);
  const auto ops = plan.ops();
  while (const auto op = ops->next()) EXPECT_EQ(op->as<snapshot::Merge>(), nullptr);
}

TEST(NamedConventions, AWindowMayCountTheTokenItself) {
  const CacheKind& swa = *contracts().find_kind("positional", "swa");
  const Subject& reference = contracts().reference_of(swa);
  Subject subject = reference;
  subject.variant = "counts_itself";
  subject.open = [&reference, &swa](const kvo::Setup& setup) {
    return reference.open(setup_of_cache({.configs = {{"window", {}, -1}}}, swa, setup));
  };
  const Law& law = *contracts().find_law("agrees_with_reference");
  const auto failures = [&](const Subject& judged) {
    int failed = 0;
    for (std::uint64_t index = 0; index < 20; ++index) {
      const CasePlan plan =
          random_case(contracts(), law, {&judged}, 11, index, Profile::kDocumented, Scale::kSmall);
      for (const SubjectResult& one : run_case(plan, {.attempts = 0}).subjects)
        failed += one.verdict.failed() ? 1 : 0;
    }
    return failed;
  };
  EXPECT_GT(failures(subject), 0);
  EXPECT_EQ(failures(with_conventions(subject, {.configs = {{"window", {}, 1}}})), 0);
}

TEST(NamedConventions, ConfigsThatACacheRefusesAreNotDrawn) {
  const Subject& reference = contracts().reference_of(prefix::blocks_kind());
  Subject subject = reference;
  subject.variant = "full";
  subject.open = [&reference](const kvo::Setup& setup) -> Result<std::unique_ptr<Session>> {
    const auto config = setup.config_as<prefix::BlocksConfig>();
    if (config.attention != prefix::Attention::kFull || config.eagle)
      return fail(Code::kNotSupported, "full attention alone");
    return reference.open(setup);
  };
  const Conventions learned = learned_from(survey_of(contracts(), subject, kTerms)).conventions();
  ASSERT_EQ(learned.configs.size(), 2U);
  EXPECT_EQ(learned.configs[0].member, "attention");
  EXPECT_EQ(learned.configs[1].member, "eagle");
  subject.conventions = learned;
  for (std::uint64_t index = 0; index < 40; ++index) {
    const CasePlan plan = random_case(contracts(), *contracts().find_law("agrees_with_reference"),
                                      {&subject}, 5, index, Profile::kDocumented);
    EXPECT_THAT(plan.subjects, Contains(&subject));
    EXPECT_TRUE(subject.open(plan.setup).has_value());
  }
}

// ---- failed allocations ----

/// Allocates when the work is done already.
class Careless final : public Session {
 public:
  explicit Careless(std::unique_ptr<Session> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    Observation seen = inner_->apply(op, probe);
    try {
      probe([&] {
        log_.emplace_back(op.kind().name);
        log_.shrink_to_fit();
      });
    } catch (const std::bad_alloc&) {
      return {.error = fail(Code::kOutOfMemory)};
    }
    return seen;
  }

 private:
  std::unique_ptr<Session> inner_;
  std::vector<std::string> log_;
};

TEST(NamedConventions, APromiseAfterFailedAllocationsIsMissed) {
  const Subject& reference = contracts().reference_of(snapshot::kv_kind());
  Subject subject = reference;
  subject.variant = "careless";
  subject.open = [&reference](const kvo::Setup& setup) -> Result<std::unique_ptr<Session>> {
    auto opened = reference.open(setup);
    if (!opened) return opened.error();
    return std::make_unique<Careless>(std::move(*opened));
  };
  EXPECT_TRUE(failed_allocation_shows(contracts(), subject, {}, kTerms).has_value());
  subject.open = reference.open;
  EXPECT_FALSE(failed_allocation_shows(contracts(), subject, {}, kTerms).has_value());
}

// ---- what is declared ----

TEST(NamedConventions, ARefusalMayEndACase) {
  Subject subject = contracts().reference_of(snapshot::kv_kind());
  subject.variant = "declared";
  subject.conventions.named = {std::string(kEndsAfterRefusal)};
  std::size_t ended = 0;
  for (std::uint64_t index = 0; index < 20; ++index) {
    const CasePlan plan = random_case(contracts(), *contracts().find_law("agrees_with_reference"),
                                      {&subject}, 5, index, Profile::kDocumented);
    for (const SubjectResult& one : run_case(plan, {.attempts = 0}).subjects)
      ended += one.verdict.outcome == Outcome::kEnded ? 1 : 0;
  }
  EXPECT_GT(ended, 0U);
  EXPECT_THAT(names_of(survey_of(
                  contracts(),
                  changed(snapshot::kv_kind(),
                          []() -> Changed::Change { return [](const Op&, Observation&) {}; }),
                  kTerms)),
              IsEmpty());
}

}  // namespace
}  // namespace kvo
