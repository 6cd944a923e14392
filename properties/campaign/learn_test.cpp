// A sound cache of a stranger is green under the conventions that are learned of it; its faults are
// not learned, and are found.
#include "properties/campaign/learn.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/campaign/random_case.hpp"
#include "properties/contracts.hpp"
#include "reference/layered/cache.hpp"
#include "traces/log/conventions_file.hpp"

namespace kvo {
namespace {

enum class Fault {
  kNone,
  kLastElementWrongAtEight,
  kClearLeavesValues,
  kClearLeavesLength,
  kCopyIsShared,
  kSixteenthTokenLost,
  kLayersSwappedFromThree,
  kOldestGoneAtForty,
  kCopiesKeysAlone,
  kAdvanceAfterCopyCountsTwice,
  kKeyRepeatsItsFirstHead,
};
constexpr auto kLastFault = Fault::kKeyRepeatsItsFirstHead;

struct Rows {
  std::vector<float> k;
  std::vector<float> v;
};

// Two vectors a layer. Every refusal is `precondition`; sizes and orders that no engine has are
// taken as they come.
class StrangersCache final : public layered::Cache {
 public:
  StrangersCache(const layered::Geometry& geometry, Fault fault)
      : geometry_(geometry),
        fault_(fault),
        layers_(std::make_shared<std::vector<Rows>>(geometry.num_layers)) {}

  [[nodiscard]] layered::Geometry geometry() const override { return geometry_; }
  [[nodiscard]] Status append(const layered::Append& op) override {
    const std::size_t entry = geometry_.num_kv_heads * geometry_.head_dim;
    if (op.k.floats().size() != entry || op.v.floats().size() != entry)
      return fail(Code::kPrecondition, "size");
    if (op.layer >= layers_->size()) return fail(Code::kPrecondition, "layer");
    Rows& rows = (*layers_)[op.layer];
    const std::size_t held = entry == 0 ? 0 : rows.k.size() / entry;
    if (fault_ == Fault::kSixteenthTokenLost && held == 15) return {};
    rows.k.insert(rows.k.end(), op.k.floats().begin(), op.k.floats().end());
    rows.v.insert(rows.v.end(), op.v.floats().begin(), op.v.floats().end());
    if (entry == 0) return {};
    if (fault_ == Fault::kLastElementWrongAtEight && held == 7) rows.k.back() = 5;
    if (fault_ == Fault::kKeyRepeatsItsFirstHead && geometry_.num_kv_heads > 1)
      std::ranges::copy(op.k.floats().first(geometry_.head_dim),
                        rows.k.end() - static_cast<std::ptrdiff_t>(geometry_.head_dim));
    if (fault_ == Fault::kOldestGoneAtForty && held == 39)
      rows.k.erase(rows.k.begin(), rows.k.begin() + static_cast<std::ptrdiff_t>(entry));
    return {};
  }
  [[nodiscard]] Status advance() override {
    ++len_;
    if (fault_ == Fault::kAdvanceAfterCopyCountsTwice && is_copy_) ++len_;
    return {};
  }
  [[nodiscard]] Result<std::span<const std::byte>> k(const layered::Keys& op) const override {
    if (op.layer >= layers_->size()) return fail(Code::kPrecondition, "layer");
    return std::as_bytes(std::span((*layers_)[read(op.layer)].k));
  }
  [[nodiscard]] Result<std::span<const std::byte>> v(const layered::Values& op) const override {
    if (op.layer >= layers_->size()) return fail(Code::kPrecondition, "layer");
    return std::as_bytes(std::span((*layers_)[op.layer].v));
  }
  [[nodiscard]] std::uint64_t len() const override { return len_; }
  [[nodiscard]] Result<std::uint64_t> entry_size() const override {
    return geometry_.num_kv_heads * geometry_.head_dim;
  }
  void clear() override {
    for (Rows& rows : *layers_) {
      rows.k.clear();
      if (fault_ != Fault::kClearLeavesValues) rows.v.clear();
    }
    if (fault_ != Fault::kClearLeavesLength) len_ = 0;
  }
  [[nodiscard]] std::unique_ptr<Cache> clone() const override {
    auto copy = std::make_unique<StrangersCache>(*this);
    copy->is_copy_ = true;
    if (fault_ == Fault::kCopyIsShared) return copy;
    copy->layers_ = std::make_shared<std::vector<Rows>>(*layers_);
    if (fault_ == Fault::kCopiesKeysAlone)
      for (Rows& rows : *copy->layers_) std::ranges::fill(rows.v, 0.0F);
    return copy;
  }

 private:
  [[nodiscard]] std::size_t read(std::uint64_t layer) const {
    const bool swaps = fault_ == Fault::kLayersSwappedFromThree && layers_->size() > 2 && layer > 0;
    return swaps ? layers_->size() - layer : layer;
  }

  layered::Geometry geometry_;
  Fault fault_;
  std::shared_ptr<std::vector<Rows>> layers_;
  std::uint64_t len_ = 0;
  bool is_copy_ = false;
};

Subject stranger(Fault fault) {
  Subject made = layered::make_subject(
      "stranger", "two vectors a layer",
      [fault](const layered::Geometry& geometry, std::optional<std::uint64_t> /*most*/,
              const layered::Behaviour& behaviour) -> Result<std::unique_ptr<layered::Cache>> {
        if (behaviour.storage.type != StorageType::kF32) return fail(Code::kNotSupported);
        return std::make_unique<StrangersCache>(geometry, fault);
      });
  made.survives_failed_allocation = false;
  made.refuses = [](const Setup& setup) {
    const auto storage = setup.config_as<layered::Config>().rows.storage;
    return storage.value_or(StorageType::kF32) != StorageType::kF32;
  };
  return made;
}

constexpr SurveyTerms kTerms{.profile = Profile::kDocumented, .seed = 5, .cases = 600};

constexpr SurveyTerms kFewer{.profile = Profile::kDocumented, .seed = 6, .cases = 200};

const Survey& survey_of_sound() {
  static const Survey kSurvey = survey_of(contracts(), stranger(Fault::kNone), kTerms);
  return kSurvey;
}

/// What the law of comparison says of a subject in random cases.
struct Judged {
  std::uint64_t operations = 0;  ///< up to the first failure, or all
  std::uint64_t ended = 0;
  std::optional<Verdict> failure = std::nullopt;
};
Judged judged(const Subject& subject, std::uint64_t seed, std::uint64_t cases) {
  Judged found;
  const Law& law = *contracts().find_law("agrees_with_reference");
  const std::vector<const Subject*> both{&contracts().reference_of(*subject.kind), &subject};
  for (std::uint64_t index = 0; index < cases && !found.failure; ++index) {
    const CasePlan plan = random_case(contracts(), law, both, seed, index, Profile::kDocumented,
                                      scale_of(law, index));
    const CaseResult result = run_case(plan, {.attempts = 0});
    for (const SubjectResult& one : result.subjects) {
      if (one.subject != subject.name()) continue;
      found.operations += one.verdict.failed() ? one.verdict.op_index + 1 : result.operations;
      found.ended += one.verdict.outcome == Outcome::kEnded ? 1 : 0;
      if (one.verdict.failed()) found.failure = one.verdict;
    }
  }
  return found;
}

TEST(Learn, ASoundStrangerIsGreenUnderItsConventions) {
  Subject subject = stranger(Fault::kNone);
  EXPECT_TRUE(judged(subject, 7, 100).failure.has_value());
  const Learned learned = learned_from(survey_of_sound());
  EXPECT_EQ(survey_of_sound().differing, 0U);
  EXPECT_TRUE(learned.copies);
  for (const SurveyedRefusal& undecided : learned.undecided)
    ADD_FAILURE() << undecided.operation << " " << undecided.wanted << " " << undecided.because;
  subject.conventions = learned.conventions();
  const Judged green = judged(subject, 7, 300);
  EXPECT_FALSE(green.failure.has_value()) << green.failure->text();
  EXPECT_EQ(green.ended, 0U);
}

TEST(Learn, FaultsAreNotLearnedAndAreFoundSoon) {
  std::vector<std::string> lawful;
  for (const LearnedConvention& one : learned_from(survey_of_sound()).refusals)
    lawful.push_back(traces::convention_text(one.row));
  std::vector<std::uint64_t> operations;
  for (int number = 1; number <= static_cast<int>(kLastFault); ++number) {
    Subject faulty = stranger(static_cast<Fault>(number));
    const Survey survey = survey_of(contracts(), faulty, kFewer);
    faulty.conventions = learned_from(survey).conventions();
    faulty.conventions.copies = true;
    for (const RefusalConvention& row : faulty.conventions.refusals)
      EXPECT_THAT(lawful, testing::Contains(traces::convention_text(row))) << "fault " << number;
    const Judged found = judged(faulty, 7, 300);
    EXPECT_TRUE(found.failure.has_value()) << "fault " << number;
    if (found.failure) {
      EXPECT_FALSE(found.failure->differs_in_error()) << found.failure->text();
    }
    operations.push_back(found.operations);
  }
  std::ranges::sort(operations);
  EXPECT_LE(operations[operations.size() / 2], 2'000U);
  RecordProperty("median_operations", static_cast<int>(operations[operations.size() / 2]));
}

// A session whose errors have other classes: most are `precondition`, and that one is `closed`.
class RenamingSession final : public Session {
 public:
  explicit RenamingSession(std::unique_ptr<Session> renamed) : renamed_(std::move(renamed)) {}
  [[nodiscard]] Observation apply(const Op& op, Probe& probe) override {
    Observation seen = renamed_->apply(op, probe);
    if (!seen.error || seen.unsupported) return seen;
    const Code code = seen.error->code;
    if (code != Code::kOutOfMemory && code != Code::kThrew && code != Code::kNotSupported)
      seen.error = fail(code == Code::kPrecondition ? Code::kClosed : Code::kPrecondition);
    return seen;
  }
  [[nodiscard]] std::optional<std::string> broken_invariant() const override {
    return renamed_->broken_invariant();
  }

 private:
  std::unique_ptr<Session> renamed_;
};

Subject with_other_classes(const Subject& renamed) {
  Subject made = renamed;
  made.variant = "renamed";
  made.over = nullptr;
  made.open = [&renamed](const Setup& setup) -> Result<std::unique_ptr<Session>> {
    auto opened = renamed.open(setup);
    if (!opened) return opened.error();
    return std::make_unique<RenamingSession>(std::move(*opened));
  };
  return made;
}

class OtherClasses : public testing::TestWithParam<const CacheKind*> {};

TEST_P(OtherClasses, AreLearnedAndKeepEveryLaw) {
  const CacheKind& kind = *GetParam();
  Subject subject = with_other_classes(contracts().reference_of(kind));
  const SurveyTerms terms{.profile = Profile::kDocumented, .seed = 3, .cases = 120};
  const Survey survey = survey_of(contracts(), subject, terms);
  const Learned learned = learned_from(survey);
  EXPECT_EQ(survey.differing, 0U);
  EXPECT_TRUE(learned.undecided.empty());
  subject.conventions = learned.conventions();
  for (const Law* law : contracts().laws_of(kind)) {
    // Results of a batch contain codes, which are not renamed.
    if (!law->concerns(subject) || law->name() == "batch_does_not_show") continue;
    for (std::uint64_t index = 0; index < 4; ++index) {
      const CasePlan plan = random_case(contracts(), *law, {&subject}, terms.seed, index,
                                        Profile::kDocumented, Scale::kSmall);
      for (const SubjectResult& one : run_case(plan, {.attempts = 0}).subjects)
        EXPECT_FALSE(one.verdict.failed())
            << law->name() << ", case " << index << ": " << one.verdict.text();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, OtherClasses, testing::ValuesIn(contracts().kinds()),
                         [](const auto& info) {
                           std::string name = info.param->name();
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

std::string refusal_of_file(const std::string& text) {
  const auto read = traces::read_conventions("c.txt", text, contracts().kind_finder());
  return read ? "no error" : read.error().text();
}

TEST(ConventionsFile, ReadsWhatItWrites) {
  const std::string text =
      "kind layered.vector\n"
      "accepts new out_of_range: the sizes overflow\n"
      "copies\n"
      "refuses append out_of_range as bad_shape\n"
      "refuses append out_of_range as precondition\n";
  const auto read =
      traces::read_conventions("c.txt", "# of a test\n\n" + text, contracts().kind_finder());
  ASSERT_TRUE(read.has_value()) << read.error().text();
  EXPECT_EQ(traces::conventions_text(read->front()), text);
}

TEST(ConventionsFile, NamesFileLineAndFieldOfWhatItRefuses) {
  const auto refusal_of_row = [](const std::string& row) {
    return refusal_of_file("kind layered.vector\n" + row + "\n");
  };
  EXPECT_EQ(refusal_of_file("copies\n"),
            "c.txt:1: kind: copies: must come before the first convention");
  EXPECT_EQ(refusal_of_file("kind layered.wing\n"),
            "c.txt:1: kind: layered.wing: is no known contract and cache");
  EXPECT_EQ(refusal_of_row("kind layered.vector"), "c.txt:2: kind: layered.vector: is there twice");
  EXPECT_EQ(refusal_of_row("flies high"),
            "c.txt:2: flies: is no convention: refuses OPERATION CODE as CODE, accepts OPERATION "
            "CODE, copies");
  EXPECT_EQ(refusal_of_row("accepts fly full"),
            "c.txt:2: operation: fly: is no operation of layered.vector");
  EXPECT_EQ(refusal_of_row("accepts append wrong"), "c.txt:2: code: wrong: is no error code");
  EXPECT_EQ(refusal_of_row("refuses append full as threw"),
            "c.txt:2: code: threw: is no class that a cache may choose");
  EXPECT_EQ(refusal_of_row("accepts append bad_shape\nrefuses append bad_shape as closed"),
            "c.txt:3: refuses append bad_shape as closed: contradicts an earlier row: accepts "
            "append bad_shape");
  EXPECT_EQ(refusal_of_row("accepts append exhausted"),
            "c.txt:2: code: exhausted: is no error that a cache may ignore: out_of_range, "
            "bad_shape, bad_position, precondition");
}

}  // namespace
}  // namespace kvo
