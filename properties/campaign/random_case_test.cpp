// Which subjects take part in a random case, and what their wishes change of it.
#include "properties/campaign/random_case.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "properties/contracts.hpp"
#include "reference/contract/describe/json.hpp"
#include "reference/contract/subject/inner.hpp"
#include "reference/layered/cache.hpp"

namespace kvo {
namespace {

constexpr std::uint64_t kCases = 60;

bool stores_f32(const Setup& setup) {
  return setup.config_as<layered::Config>().rows.format().type == StorageType::kF32;
}

// A copy of the optimized cache with the limits of one's own.
Subject guest() {
  Subject own = *contracts().find_subject("layered.vector@optimized");
  own.variant = "own";
  own.refuses = [](const Setup& setup) { return !stores_f32(setup); };
  return own;
}

CasePlan drawn(const std::vector<const Subject*>& subjects, std::uint64_t index,
               const std::string& law = "agrees_with_reference") {
  std::vector<const Subject*> all{&contracts().reference_of(layered::vector_kind())};
  all.insert(all.end(), subjects.begin(), subjects.end());
  return random_case(contracts(), *contracts().find_law(law), all, 1, index, Profile::kOriginal);
}

std::string config_of(const CasePlan& plan) {
  return boost::json::serialize(write_record(plan.setup.config));
}

bool takes_part(const CasePlan& plan, const Subject& subject) {
  return std::ranges::find(plan.subjects, &subject) != plan.subjects.end();
}

TEST(RandomCase, IsDrawnAgainForASubjectThatRefusesIt) {
  const Subject own = guest();
  std::uint64_t others = 0;
  for (std::uint64_t index = 0; index < kCases; ++index) {
    const CasePlan plan = drawn({&own}, index);
    EXPECT_TRUE(stores_f32(plan.setup)) << index;
    EXPECT_TRUE(takes_part(plan, own)) << index;
    EXPECT_EQ(config_of(plan), config_of(drawn({&own}, index))) << "the same each time";
    others += config_of(plan) == config_of(drawn({}, index)) ? 0 : 1;
  }
  EXPECT_GT(others, 0U) << "no case was refused: this proves nothing";
}

TEST(RandomCase, IsTheSameForTheOthers) {
  const Subject own = guest();
  const Subject& other = *contracts().find_subject("layered.vector@optimized");
  std::uint64_t refused = 0;
  for (std::uint64_t index = 0; index < kCases; ++index) {
    const CasePlan plan = drawn({&other, &own}, index);
    EXPECT_EQ(config_of(plan), config_of(drawn({&other}, index))) << index;
    EXPECT_TRUE(takes_part(plan, other));
    EXPECT_EQ(takes_part(plan, own), stores_f32(plan.setup)) << index;
    refused += takes_part(plan, own) ? 0 : 1;
  }
  EXPECT_GT(refused, 0U);
}

TEST(RandomCase, ASubjectThatRefusesAllTakesPartInNone) {
  Subject own = guest();
  own.refuses = [](const auto&) { return true; };
  for (std::uint64_t index = 0; index < 3; ++index)
    EXPECT_FALSE(takes_part(drawn({&own}, index), own));
}

TEST(RandomCase, WithoutAPromiseTheLawOfFailedAllocationsLeavesItOut) {
  Subject own = guest();
  own.survives_failed_allocation = false;
  EXPECT_FALSE(takes_part(drawn({&own}, 0, "failed_allocation_changes_nothing"), own));
  EXPECT_TRUE(takes_part(drawn({&own}, 0), own));
  own.survives_failed_allocation = true;
  EXPECT_TRUE(takes_part(drawn({&own}, 0, "failed_allocation_changes_nothing"), own));
}

TEST(RandomCase, ACacheInsideLimitsTheOneAroundIt) {
  const Subject& outer = *contracts().find_subject("generation.contiguous@reference");
  Subject inner = guest();
  inner.survives_failed_allocation = false;
  ASSERT_TRUE(can_stand_over(outer, inner));
  EXPECT_FALSE(over_cache(outer, inner).survives_failed_allocation);
  EXPECT_EQ(over_cache(outer, inner).refuses, nullptr) << "the config of another kind";
  inner.refuses = [](const auto&) { return true; };
  const ProbeSlot slot;
  const auto opened = Inner::open(inner, {}, slot);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), fail(Code::kNotSupported));
}

TEST(RandomCase, ALongLifeAsksAtItsEndWhatItAskedFirst) {
  const auto text = [](const Op& op) {
    return std::string(op.kind().name) + boost::json::serialize(write_record(op.arguments()));
  };
  for (const char* name : {"layered.vector", "prefix.blocks", "snapshot.kv"}) {
    const Subject& reference = *contracts().find_subject(std::string(name) + "@reference");
    const CasePlan plan = random_case(contracts(), *contracts().find_law("agrees_with_reference"),
                                      {&reference}, 1, 0, Profile::kOriginal, Scale::kLong);
    std::vector<Op> all;
    const auto ops = plan.ops();
    while (auto op = ops->next()) all.push_back(std::move(*op));
    ASSERT_GT(all.size(), kLongLife / 2) << name;
    std::vector<std::string> first;
    std::vector<std::string> last;
    for (std::uint64_t i = 0; i < kAskedAgain; ++i) {
      first.push_back(text(all[i]));
      last.push_back(text(all[all.size() - 1 - i]));
    }
    EXPECT_THAT(last, testing::UnorderedElementsAreArray(first)) << name;
  }
}

std::vector<std::string> plain_script(const CacheKind& kind, std::uint64_t seed) {
  GeneratedCase made = plain_generator(kind).make({.seed = seed});
  made.ops->follow(contracts().reference_of(kind), made.setup, Scale::kSmall);
  std::vector<std::string> script;
  while (script.size() < kCases) {
    const auto op = made.ops->next();
    if (!op) break;
    script.push_back(op_text(*op));
  }
  return script;
}

// What a contract without generators gets. Here for all kinds, whose records have members of all
// types.
class PlainScripts : public testing::TestWithParam<const CacheKind*> {};

TEST_P(PlainScripts, AreDrawnFromTheDeclarationsOfAnyKind) {
  const CacheKind& kind = *GetParam();
  std::set<std::string> kinds;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const std::vector<std::string> script = plain_script(kind, seed);
    EXPECT_EQ(script, plain_script(kind, seed)) << "the same each time";
    for (const std::string& op : script) kinds.insert(op.substr(0, op.find(',')));
  }
  // A config that the reference refuses has no script.
  if (!kinds.empty()) EXPECT_GT(kinds.size() * 2, kind.operations.size());
}
INSTANTIATE_TEST_SUITE_P(Each, PlainScripts, testing::ValuesIn(contracts().kinds()),
                         [](const auto& info) {
                           std::string name = info.param->name();
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

TEST(PlainGenerator, FindsConfigsThatMostReferencesTake) {
  const auto has_script = [](const CacheKind* kind) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed)
      if (!plain_script(*kind, seed).empty()) return true;
    return false;
  };
  const auto& kinds = contracts().kinds();
  EXPECT_GT(std::ranges::count_if(kinds, has_script) * 4, std::ssize(kinds) * 3);
}

TEST(PlainGenerator, DrawsFewArgumentsOutsideTheirDomains) {
  const CacheKind& kind = *contracts().find_kind("prefix", "radix");
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    GeneratedCase made = plain_generator(kind).make({.seed = seed});
    made.ops->follow(contracts().reference_of(kind), made.setup, Scale::kSmall);
    for (std::uint64_t at = 0; at < kCases; ++at)
      if (const auto op = made.ops->next()) ++(argument_error(*op) ? outside : inside);
  }
  EXPECT_GT(outside, 0U);
  EXPECT_GT(inside, 10 * outside);
}

}  // namespace
}  // namespace kvo
