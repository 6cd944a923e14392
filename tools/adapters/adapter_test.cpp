// What adapters do wrong is a verdict, within a time limit, and leaves nothing behind.
#include "tools/adapters/adapter.hpp"

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/contracts.hpp"
#include "reference/layered/operations.hpp"
#include "tools/adapters/greeting.hpp"
#include "tools/commands/usage.hpp"

namespace kvo::tools {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr AdapterDeadlines kDeadlines{.greeting = std::chrono::duration<double>(5),
                                      .open = std::chrono::duration<double>(2),
                                      .operation = std::chrono::duration<double>(2)};

Subject hostile(const std::string& how) {
  return subjects_of_adapter(contracts(), std::string(KVO_HOSTILE_CHILD) + " " + how, kDeadlines)
      .at(0);
}

const Op kNew = Op::of(layered::New{1, 1, 1});
const Op kKeys = Op::of(layered::Keys{0, 0});
const Op kAdvance = Op::of(layered::Advance{0});
const Op kLen = Op::of(layered::Len{0});

// To a first operation, after `new`.
Observation first_answer(const Subject& subject, const Op& op) {
  const auto session = subject.open(kvo::Setup{}).value();
  Probe probe;
  if (op.as<layered::New>() == nullptr) (void)session->apply(kNew, probe);
  return session->apply(op, probe);
}

struct Misdeed {
  const char* how;
  Op op;
  const char* verdict;
};

class Hostile : public testing::TestWithParam<Misdeed> {};

TEST_P(Hostile, IsAVerdict) {
  const Misdeed& misdeed = GetParam();
  const Subject subject = hostile(misdeed.how);
  const auto begin = std::chrono::steady_clock::now();
  const Observation seen = first_answer(subject, misdeed.op);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  ASSERT_TRUE(seen.failed_with(Code::kDied)) << (seen.error ? seen.error->text() : "no error");
  EXPECT_THAT(seen.error->detail, StartsWith(misdeed.verdict));
  // Another case gets a process of its own.
  EXPECT_TRUE(first_answer(subject, misdeed.op).failed_with(Code::kDied));
}

INSTANTIATE_TEST_SUITE_P(
    Misdeeds, Hostile,
    testing::Values(
        Misdeed{"crashes", kNew, "crashed (SIGSEGV)"}, Misdeed{"aborts", kNew, "crashed (SIGABRT)"},
        Misdeed{"exits", kNew, "exited with status 3"},
        Misdeed{"says_why", kNew, "exited with status 1: IndexError: row 7"},
        Misdeed{"hangs", kNew, "hung (no answer for 2 s)"},
        Misdeed{"ignores_sigterm", kNew, "hung (no answer for 2 s)"},
        Misdeed{"writes_garbage", kNew, "its adapter wrote what is no answer: hello, world"},
        Misdeed{"stops_amid_a_line", kNew, "exited with status 0 in the middle of a line"},
        Misdeed{"writes_one_long_line", kNew, "wrote a line of more than 64 MiB"},
        Misdeed{"closes_its_output", kNew, "closed its standard output"},
        Misdeed{"answers_another_request", kNew,
                "its adapter answered request 999 in the place of"},
        Misdeed{"answers_another_operation", kNew,
                "its adapter answered new with {\"len\":3}: has no field"},
        Misdeed{"answers_nothing", kNew, "its adapter answered new with neither ret nor threw"},
        Misdeed{"has_an_infinite_number", kNew,
                "its adapter answered new with cache: \"nan\": is not"},
        Misdeed{"has_a_fraction", kNew, "its adapter answered new with cache: 5E-1: is"},
        Misdeed{"keys_do_not_fit_their_shape", kKeys,
                "its adapter answered k with k.shape: [3]: does not fit 2 elements"},
        Misdeed{"keys_are_outside_of_the_memory", kKeys,
                "its adapter answered k with k.at: 1: is outside of the memory"},
        Misdeed{"is_no_adapter_any_more", kNew, "its adapter says: no such case"},
        Misdeed{"leaves_a_daemon", kNew, "exited with status 5"},
        Misdeed{"dies_when_opened", kNew, "open: exited with status 4"}),
    [](const auto& info) { return std::string(info.param.how); });

TEST(Adapter, RefusalsAndExceptionsAreNoDeaths) {
  const Observation refused = first_answer(hostile("refuses"), kNew);
  ASSERT_TRUE(refused.failed_with(Code::kFull));
  EXPECT_EQ(refused.error->detail, "no space");
  const Observation threw = first_answer(hostile("throws"), kNew);
  ASSERT_TRUE(threw.failed_with(Code::kThrew));
  EXPECT_EQ(threw.error->detail, "KeyError: 3");
  EXPECT_TRUE(first_answer(hostile("pretends_to_have_died"), kNew).failed_with(Code::kThrew));
  EXPECT_FALSE(first_answer(hostile("sound"), kNew).error);
  EXPECT_FALSE(first_answer(hostile("floods_standard_error"), kNew).error);
}

TEST(Adapter, AConfigMayBeRefused) {
  const auto opened = hostile("lacks_the_config").open(kvo::Setup{});
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, Code::kNotSupported);
  EXPECT_EQ(opened.error().detail, "\"f32 alone\"");
}

TEST(Adapter, ADeathAtTheEndOfACaseIsReported) {
  const auto session = hostile("dies_when_closed").open(kvo::Setup{}).value();
  Probe probe;
  EXPECT_FALSE(session->apply(kNew, probe).error);
  EXPECT_EQ(session->end().value_or(""), "exited with status 6");
}

TEST(Adapter, TheOperationThatKillsABatchIsFound) {
  const auto session = hostile("dies_at_len").open(kvo::Setup{}).value();
  const std::vector<Op> ops{kNew, kAdvance, kLen, kAdvance};
  session->expect(ops);
  Probe probe;
  EXPECT_FALSE(session->apply(ops[0], probe).error);
  EXPECT_FALSE(session->apply(ops[1], probe).error);
  const Observation third = session->apply(ops[2], probe);
  ASSERT_TRUE(third.failed_with(Code::kDied));
  EXPECT_EQ(third.error->detail, "exited with status 9");
  EXPECT_TRUE(session->apply(ops[3], probe).failed_with(Code::kDied));
}

// Their answers are in the same memory.
TEST(Adapter, CasesOfOneProcessDoNotReadTensorsOfEachOther) {
  const Subject subject =
      subjects_of_adapter(contracts(), KVO_COMMAND " adapter serve layered.vector@optimized").at(0);
  constexpr std::int64_t kWidth = 256;  // in the shared memory
  const auto row = [](float value) {
    return tensor_of({kWidth}, std::vector<float>(std::size_t{kWidth}, value));
  };
  std::vector<std::unique_ptr<Session>> cases;
  std::vector<std::vector<Op>> scripts;
  for (const float value : {1.0F, 2.0F, 3.0F}) {
    cases.push_back(subject.open(kvo::Setup{}).value());
    scripts.push_back({Op::of(layered::New{1, 1, kWidth}),
                       Op::of(layered::Append{0, 0, row(value), row(-value)}), kKeys, kKeys});
    cases.back()->expect(scripts.back());
  }
  Probe probe;
  for (const std::size_t which : {1U, 0U, 2U}) {
    Observation last;
    for (const Op& op : scripts[which]) last = cases[which]->apply(op, probe);
    ASSERT_FALSE(last.error) << last.error->text();
    EXPECT_EQ(last.returns.as<layered::KeysOfLayer>().k, row(static_cast<float>(which + 1)));
  }
}

TEST(Adapter, MoreAnswersThanQuestionsAreAFault) {
  const auto session = hostile("answers_without_end").open(kvo::Setup{}).value();
  Probe probe;
  (void)session->apply(kNew, probe);
  const Observation second = session->apply(kNew, probe);
  ASSERT_TRUE(second.failed_with(Code::kDied));
  EXPECT_THAT(second.error->detail,
              testing::AnyOf(HasSubstr("bytes without a request"), HasSubstr("in the place of")));
}

std::string refusal_of(const std::string& how) {
  try {
    (void)hostile(how);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Adapter, AGreetingThatIsNoneIsRefused) {
  EXPECT_THAT(refusal_of("says_nothing"), HasSubstr("exited with status 0"));
  EXPECT_THAT(refusal_of("never_greets"), HasSubstr("hung (no answer for 5 s)"));
  EXPECT_THAT(refusal_of("is_of_another_version"),
              HasSubstr("greeting: protocol: 7: this is version 1"));
  EXPECT_THAT(refusal_of("has_an_unknown_kind"),
              HasSubstr("kinds: 'layered.w': is no kind of cache"));
}

TEST(Adapter, OperationsAreMissingByRowsAndByTheListOfAKind) {
  const Greeting greeting{.kinds = {{.kind = "block_pool.stack",
                                     .operations = {"new", "alloc", "free_block"},
                                     .conventions = {"without free_block"}}}};
  const Subject subject = greeted_subjects(contracts(), greeting, "mine").at(0);
  EXPECT_THAT(subject.conventions.without, testing::IsSupersetOf({"free_block", "available"}));
  EXPECT_THAT(subject.conventions.without, testing::Not(testing::Contains("alloc")));
}

}  // namespace
}  // namespace kvo::tools
