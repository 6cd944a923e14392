// Everything that is asked of the subjects over a card; skipped where there is none.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cuda/device/open.hpp"
#include "properties/campaign/conform.hpp"
#include "properties/campaign/random_case.hpp"
#include "properties/contracts.hpp"
#include "properties/replay/replay.hpp"
#include "traces/figures/generate.hpp"

namespace kvo {
namespace {

constexpr std::uint64_t kCases = 50;

std::vector<const Subject*> on_card() {
  std::vector<const Subject*> found;
  for (const Subject* subject : contracts().subjects())
    if (subject->variant == "cuda") found.push_back(subject);
  return found;
}

class OnCard : public testing::TestWithParam<const Subject*> {
 protected:
  void SetUp() override {
    const auto card = cuda::card_name();
    if (!card) GTEST_SKIP() << "skipped: " << card.error().text();
  }
};

TEST_P(OnCard, LawsHoldInRandomCases) {
  const Subject& subject = *GetParam();
  for (const Law* law : contracts().laws_of(*subject.kind))
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented})
      for (std::uint64_t index = 0; index < kCases; ++index) {
        const CasePlan plan = random_case(contracts(), *law, {&subject}, 1, index, profile);
        const CaseResult result = run_case(plan, {});
        const Verdict& verdict = result.subjects.back().verdict;
        EXPECT_FALSE(verdict.failed())
            << law->name() << ", " << plan.name << ": " << verdict.text();
      }
}

TEST_P(OnCard, TheEmbeddedLogsReplay) {
  const Subject& subject = *GetParam();
  for (const auto& entry : std::filesystem::directory_iterator(KVO_LOGS)) {
    if (entry.path().extension() != ".gz") continue;
    auto log = traces::LogReader::open(entry.path().string(), contracts().kind_finder());
    ASSERT_TRUE(log.has_value());
    const auto choose = [&](const CacheKind& kind) {
      return subject.kind == &kind ? std::vector<const Subject*>{&subject}
                                   : std::vector<const Subject*>{};
    };
    while (true) {
      const auto result = conform_next(contracts(), *log, choose);
      ASSERT_TRUE(result.has_value());
      if (!*result) break;
      for (const SubjectResult& judged : (*result)->subjects)
        EXPECT_EQ(judged.verdict.outcome, Outcome::kAgrees)
            << (*result)->name << ": " << judged.verdict.text();
    }
  }
}

TEST_P(OnCard, ATraceReplays) {
  traces::GenerateOptions options;
  options.requests = 24;
  options.mean_turn_tokens = 60;
  options.mean_output_tokens = 40;
  const replay::Replay replay(contracts(), traces::generate(options).value(),
                              {{.kind = GetParam()->kind, .subjects = {GetParam()}}}, {});
  for (std::uint64_t index = 0; index < replay.cases(); ++index)
    for (const SubjectResult& judged : run_case(replay.plan(index), {}).subjects)
      EXPECT_FALSE(judged.verdict.failed()) << judged.verdict.text();
}

std::string name_of(const testing::TestParamInfo<const Subject*>& info) {
  return std::string(info.param->kind->contract) + "_" + std::string(info.param->kind->cache);
}

INSTANTIATE_TEST_SUITE_P(Cuda, OnCard, testing::ValuesIn(on_card()), name_of);

}  // namespace
}  // namespace kvo
