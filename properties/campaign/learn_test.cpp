// What is learned of caches that differ from a reference in one way; examples/own_caches has whole
// ones, with faults.
#include "properties/campaign/learn.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "properties/campaign/random_case.hpp"
#include "properties/contracts.hpp"
#include "traces/log/conventions_file.hpp"

namespace kvo {
namespace {

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
      "refuses append out_of_range as precondition\n"
      "refuses k \"other:no such layer\" as precondition\n";
  const auto read =
      traces::read_conventions("c.txt", "# of a test\n\n" + text, contracts().kind_finder());
  ASSERT_TRUE(read.has_value()) << read.error().text();
  EXPECT_EQ(traces::conventions_text(read->front()), text);
}

TEST(ConventionsFile, AMemberOfAConfigIsLimitedOrCountedOtherwise) {
  const auto read_rows = [](const std::string& rows, const char* kind = "positional.swa") {
    const std::string text = fmt::format("kind {}\n{}", kind, rows);
    const auto read = traces::read_conventions("c.txt", text, contracts().kind_finder());
    return read ? traces::conventions_text(read->front()) : read.error().text();
  };
  const std::string rows =
      "config cache only default \"swa\"\nconfig shift only default\nconfig window plus -1\n";
  EXPECT_EQ(read_rows(rows), "kind positional.swa\n" + rows);
  EXPECT_EQ(read_rows("config page_size only 1 2\n", "prefix.radix"),
            "kind prefix.radix\nconfig page_size only default 2\n");
  EXPECT_EQ(read_rows("config window only wide\n"),
            "c.txt:2: window: wide: is neither 'default' nor JSON without spaces");
  EXPECT_EQ(read_rows("config window only \"wide\"\n"),
            "c.txt:2: window: wide: is no value of this member");
  EXPECT_EQ(read_rows("config window plus 0\n"),
            "c.txt:2: window: 0: is no whole number from -1000 to 1000 but 0");
  EXPECT_EQ(read_rows("config window plus 1x\n"),
            "c.txt:2: window: 1x: is no whole number from -1000 to 1000 but 0");
  EXPECT_EQ(read_rows("config shift plus 1\n"),
            "c.txt:2: config: shift: is no number of something");
  EXPECT_EQ(read_rows("config window plus 1\nconfig window only 4\n"),
            "c.txt:3: config: window: has an earlier row");
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
            "CODE, without OPERATION, config MEMBER only VALUE .., config MEMBER plus NUMBER, "
            "copies, ends_after_refusal, no_promise_after_failed_allocation, "
            "arguments_in_bounds");
  EXPECT_EQ(refusal_of_row("own_blocks"),
            "c.txt:2: own_blocks: is no convention of layered.vector: copies, ends_after_refusal, "
            "no_promise_after_failed_allocation, arguments_in_bounds");
  EXPECT_EQ(refusal_of_row("without fly"),
            "c.txt:2: operation: fly: is no operation of layered.vector");
  EXPECT_EQ(refusal_of_row("without append\nrefuses append bad_shape as closed"),
            "c.txt:3: refuses append bad_shape as closed: contradicts an earlier row: without "
            "append");
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
