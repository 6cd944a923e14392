#include "properties/runner/shrinker.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "properties/contracts.hpp"
#include "properties/runner/run_case.hpp"
#include "reference/contract/describe/shrink.hpp"
#include "reference/contract/values/tags.hpp"
#include "reference/layered/cache.hpp"
#include "reference/positional/operations.hpp"
#include "reference/snapshot/trie.hpp"

namespace kvo {
namespace {

Op append(std::uint64_t layer, std::int64_t elements) {
  Tagger tagger;
  auto [k, v] = tagger.pair({elements});
  return Op::of(layered::Append{0, layer, std::move(k), std::move(v)});
}

bool has_append_to(const Script& script, std::uint64_t layer) {
  for (const Op& op : script)
    if (const auto* found = op.as<layered::Append>())
      if (found->layer == layer) return true;
  return false;
}

TEST(Shrinker, DropsEverythingThatIsNotNeeded) {
  Script script;
  for (std::uint64_t i = 0; i < 40; ++i) script.push_back(append(i, 3));
  const Script small = shrink_script(script, [](const Script& s) { return has_append_to(s, 17); });
  ASSERT_EQ(small.size(), 1U);
  EXPECT_TRUE(has_append_to(small, 17));
}

TEST(Shrinker, MakesNumbersAndTensorsSmaller) {
  const Script script{append(9, 64)};
  const Script small = shrink_script(script, [](const Script& s) {
    const auto* op = s.empty() ? nullptr : s.front().as<layered::Append>();
    return op != nullptr && op->layer >= 3 && op->k.elements() >= 5;
  });
  ASSERT_EQ(small.size(), 1U);
  EXPECT_EQ(small.front().as<layered::Append>()->layer, 3U);
  EXPECT_EQ(small.front().as<layered::Append>()->k.elements(), 5);
  EXPECT_EQ(small.front().as<layered::Append>()->v.elements(), 5) << "keys and values together";
}

TEST(Shrinker, CutsAnAxisOfAllRowsThatMustFit) {
  const Script script{Op::of(layered::New{1, 4, 3}), append(0, 12), append(0, 12)};
  const Script small = shrink_script(script, [](const Script& s) {
    if (s.size() != 3) return false;
    const auto* made = s[0].as<layered::New>();
    const auto* one = s[1].as<layered::Append>();
    const auto* two = s[2].as<layered::Append>();
    return made != nullptr && made->num_kv_heads * made->head_dim == 3 * made->num_kv_heads &&
           one->k.elements() == two->k.elements() && made->num_kv_heads >= 1 &&
           static_cast<std::uint64_t>(one->k.elements()) == made->num_kv_heads * made->head_dim;
  });
  EXPECT_EQ(small[0].as<layered::New>()->num_kv_heads, 1U);
  EXPECT_EQ(small[2].as<layered::Append>()->k.elements(), 3);
}

TEST(Shrinker, ElementsBecomeCountingNumbers) {
  Tensor odd = tensor_of({2}, std::vector<float>{std::numeric_limits<float>::quiet_NaN(), 1e6F});
  const Script script{Op::of(layered::Append{0, 0, odd, odd}), append(0, 2)};
  const Script small = shrink_script(script, [](const Script& s) {
    return s.size() == 2 && s[1].as<layered::Append>()->v.elements() == 2;
  });
  EXPECT_EQ(small[1].as<layered::Append>()->k.floats()[1], 3) << "after the one element before";
  EXPECT_EQ(small[1].as<layered::Append>()->v.floats()[1], -3);
  const Script needed =
      shrink_script({Op::of(layered::Append{0, 0, odd, odd})}, [](const Script& s) {
        return s.size() == 1 && std::isnan(s[0].as<layered::Append>()->k.floats()[0]);
      });
  EXPECT_TRUE(std::isnan(needed[0].as<layered::Append>()->k.floats()[0])) << "where it matters";
}

TEST(Shrinker, KeepsTwoOperationsThatNeedEachOther) {
  Script script;
  for (std::uint64_t i = 0; i < 31; ++i) script.push_back(append(i, 1));
  const Script small = shrink_script(
      script, [](const Script& s) { return has_append_to(s, 0) && has_append_to(s, 30); });
  EXPECT_EQ(small.size(), 2U);
}

TEST(Shrinker, AsksNoMoreThanItMay) {
  Script script;
  for (std::uint64_t i = 0; i < 64; ++i) script.push_back(append(i, 8));
  std::uint64_t asked = 0;
  (void)shrink_script(
      script,
      [&](const Script& s) {
        ++asked;
        return has_append_to(s, 63);
      },
      10);
  EXPECT_LE(asked, 10U);
}

TEST(Shrinker, EndsWithoutAnyOperation) {
  EXPECT_TRUE(shrink_script({}, [](const Script&) { return true; }).empty());
}

TEST(Shrinker, CutsAnAxisOfATensor) {
  Tensor tensor = make_tensor({2, 3, 2});
  for (std::size_t i = 0; i < 12; ++i) tensor.floats()[i] = static_cast<float>(i);
  const Tensor cut = cut_axis(tensor, 1, 2);
  EXPECT_EQ(cut, tensor_of({2, 2, 2}, std::vector<float>{0, 1, 2, 3, 6, 7, 8, 9}));
}

TEST(Shrinker, CutsListsOfEqualLengthTogether) {
  positional::StartForward start;
  for (std::int32_t i = 0; i < 23; ++i) {
    start.positions.push_back(i);
    start.seqs.push_back(100 + i);
  }
  const auto batch_of = [](const Script& script) -> const positional::StartForward* {
    const auto* found = script.empty() ? nullptr : script.front().as<positional::StartForward>();
    return found != nullptr && found->positions.size() == found->seqs.size() ? found : nullptr;
  };
  const Script small = shrink_script({Op::of(start)}, [&](const Script& script) {
    const auto* batch = batch_of(script);
    return batch != nullptr && std::ranges::count(batch->seqs, 113) == 1;
  });
  const auto* batch = batch_of(small);
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->positions, std::vector<std::int32_t>{0});
  EXPECT_EQ(batch->seqs, std::vector<std::int64_t>{113});
}

TEST(Shrinker, CutsAListOfItsOwnLengthAlone) {
  const positional::StartForward start{.positions = {1, 2, 3}, .seqs = {7, 8}};
  const Script small = shrink_script({Op::of(start)}, [](const Script& script) {
    const auto* batch = script.empty() ? nullptr : script.front().as<positional::StartForward>();
    return batch != nullptr && batch->positions.size() >= 2;
  });
  ASSERT_EQ(small.size(), 1U);
  EXPECT_EQ(small.front().as<positional::StartForward>()->positions.size(), 2U);
  EXPECT_TRUE(small.front().as<positional::StartForward>()->seqs.empty());
}

// What counts is that 1, 2 and 3 come in this order, and who is last.
TEST(Shrinker, JoinsListsThatCameInParts) {
  using snapshot::Feed;
  using snapshot::Output;
  const Script script{Op::of(Feed{{1}}), Op::of(Output{{9}}), Op::of(Feed{{2}}),
                      Op::of(Output{{9}}), Op::of(Feed{{3}})};
  const Script small = shrink_script(script, [](const Script& s) {
    snapshot::Tokens fed;
    bool output = false;
    for (const Op& op : s) {
      if (const auto* feed = op.as<Feed>())
        fed.insert(fed.end(), feed->tokens.begin(), feed->tokens.end());
      else
        output = true;
    }
    return output && fed == snapshot::Tokens{1, 2, 3} && s.back().as<Feed>() != nullptr;
  });
  ASSERT_EQ(small.size(), 2U);
  ASSERT_NE(small.back().as<Feed>(), nullptr);
  EXPECT_EQ(small.back().as<Feed>()->tokens, (snapshot::Tokens{1, 2, 3}));
}

// What counts is how many tokens there are, each with its row in the next operation.
TEST(Shrinker, MakesOneOfTwoRounds) {
  const auto pass = [](std::int32_t first) {
    return Op::of(positional::StartForward{.positions = {first, first + 1}, .seqs = {0, 1}});
  };
  const auto rows = [] { return Op::of(positional::Put{make_tensor({2, 1, 1}), Tensor()}); };
  const Script script{pass(0), rows(), pass(5), rows(), pass(9), rows(), Op::of(positional::Get{})};
  const Script small = shrink_script(script, [](const Script& s) {
    std::size_t tokens = 0;
    for (std::size_t i = 0; i + 1 < s.size(); i += 2) {
      const auto* start = s[i].as<positional::StartForward>();
      const auto* put = s[i + 1].as<positional::Put>();
      if (start == nullptr || put == nullptr || start->seqs.size() != start->positions.size() ||
          put->k.shape.at(0) != std::ssize(start->seqs))
        return false;
      tokens += start->seqs.size();
    }
    return tokens == 6 && s.back().as<positional::Get>() != nullptr;
  });
  ASSERT_EQ(small.size(), 3U);
  EXPECT_EQ(small[0].as<positional::StartForward>()->seqs, std::vector<std::int64_t>(6));
  EXPECT_EQ(small[1].as<positional::Put>()->k.shape, (Shape{6, 1, 1}));
}

TEST(Shrinker, EndsSoonWhereItMayAskNoMore) {
  constexpr std::size_t kLong = 60'000;
  const Script script(kLong, Op::of(layered::Clear{9}));
  const Script small = shrink_script(
      script, [](const Script& s) { return s.size() == kLong; }, 5'000);
  EXPECT_EQ(small.size(), kLong);
}

TEST(Shrinker, ALongScriptIsRunAFewTimesOnly) {
  constexpr std::size_t kLong = 60'000;
  Script script(kLong, Op::of(layered::Len{0}));
  script.front() = Op::of(layered::New{1, 1, 1});
  script[kLong - 40] = Op::of(layered::Advance{0});
  std::size_t operations = 0;
  const auto fails = [&](const Script& s) {
    operations += s.size();
    return s.size() > 1 && s.front().as<layered::New>() != nullptr &&
           std::ranges::any_of(s,
                               [](const Op& op) { return op.as<layered::Advance>() != nullptr; });
  };
  EXPECT_EQ(shrink_script(script, fails).size(), 2U);
  EXPECT_LT(operations, 2 * kLong);
}

struct Ratio {
  double ratio = 0;
};
KVO_DESCRIBE(Ratio, (ratio, "of 64 bits"))

TEST(Shrinker, MakesDoublesSimpler) {
  Record smallest = Record::of(Ratio{17.25});
  const auto at_least_one = [&](const Record& tried) {
    const bool fails = tried.as<Ratio>().ratio >= 1;
    if (fails) smallest = tried;
    return fails;
  };
  while (shrink_record(smallest, at_least_one)) {
  }
  EXPECT_EQ(smallest.as<Ratio>().ratio, 1);
}

TEST(Shrinker, FindsTheBoundOfAHugeNumberInFewSteps) {
  constexpr std::uint64_t kBound = 123'456'789;
  constexpr std::uint64_t kFew = 2'000;
  const Script script{Op::of(layered::Clear{std::uint64_t{1} << 60U})};
  const auto fails = [](const Script& s) {
    return s.size() == 1 && s.front().as<layered::Clear>()->cache >= kBound;
  };
  const Script small = shrink_script(script, fails, kFew);
  ASSERT_EQ(small.size(), 1U);
  EXPECT_EQ(small.front().as<layered::Clear>()->cache, kBound);
}

TEST(Shrinker, EndsEarlierWithAQuery) {
  const Script script{append(3, 1), append(4, 1), append(5, 1), Op::of(layered::Clear{0})};
  const auto fails = [](const Script& s) {
    if (s.empty() || !has_append_to(s, 3)) return false;
    return s.size() == 4 || s.back().as<layered::Len>() != nullptr;
  };
  const Script small =
      shrink_script(script, fails, 1'000, simplest_queries(layered::vector_kind().operations));
  ASSERT_EQ(small.size(), 2U);
  EXPECT_NE(small.back().as<layered::Len>(), nullptr);
}

TEST(Shrinker, RenumbersWhatSeveralOperationsName) {
  const Script script{Op::of(layered::Clear{7}), Op::of(layered::Len{7})};
  const Script small = shrink_script(script, [](const Script& s) {
    if (s.size() != 2) return false;
    const auto* clear = s.front().as<layered::Clear>();
    const auto* len = s.back().as<layered::Len>();
    return clear != nullptr && len != nullptr && clear->cache == len->cache;
  });
  ASSERT_EQ(small.size(), 2U);
  EXPECT_EQ(small.front().as<layered::Clear>()->cache, 0U);
}

TEST(Shrinker, MakesTheConfigSimpler) {
  const Subject& reference = contracts().reference_of(layered::vector_kind());
  Subject fails_in_release = reference;
  fails_in_release.variant = "test";
  fails_in_release.open = [&](const kvo::Setup& setup) {
    kvo::Setup other = setup;
    if (setup.config_as<layered::Config>().build == layered::Build::kRelease)
      other.config = Record::of(layered::Config{.build = layered::Build::kDebug});
    return reference.open(other);
  };
  const CasePlan plan{
      .kind = &layered::vector_kind(),
      .setup = {.config = Record::of(layered::Config{.build = layered::Build::kRelease,
                                                     .constructor = layered::Constructor::kNew,
                                                     .num_layers = 3,
                                                     .head_dim = 5})},
      .baseline = &reference,
      .subjects = {&fails_in_release}};
  // An entry of a wrong length is stored in release and refused in debug.
  const Smaller repro =
      smaller_case(plan, fails_in_release, {Op::of(layered::New{1, 1, 1}), append(0, 2)}, {});
  ASSERT_TRUE(repro.verdict.failed());
  const auto& config = repro.plan.setup.config.as<layered::Config>();
  EXPECT_EQ(config.build, layered::Build::kRelease) << "without it nothing fails";
  EXPECT_EQ(config.constructor, std::nullopt);
  EXPECT_EQ(config.num_layers, std::nullopt);
  EXPECT_EQ(config.head_dim, std::nullopt);
}

// The reference, but rows that are appended are lost, and a clear is refused.
class RefusingSession final : public Session {
 public:
  explicit RefusingSession(std::unique_ptr<Session> sound) : sound_(std::move(sound)) {}
  Observation apply(const Op& op, Probe& probe) override {
    if (op.as<layered::Append>() != nullptr) return {};
    if (op.as<layered::Clear>() != nullptr) return {.error = fail(Code::kClosed)};
    return sound_->apply(op, probe);
  }

 private:
  std::unique_ptr<Session> sound_;
};

TEST(ShrinkCase, PrefersWhatIsReadToAnError) {
  const Subject& sound = contracts().reference_of(layered::vector_kind());
  Subject subject = sound;
  subject.variant = "refusing";
  subject.open = [&](const kvo::Setup& setup) -> Result<std::unique_ptr<Session>> {
    return std::make_unique<RefusingSession>(sound.open(setup).value());
  };
  const CasePlan plan{.kind = &layered::vector_kind(),
                      .law = contracts().find_law("agrees_with_reference"),
                      .baseline = &sound};
  const Script script{Op::of(layered::New{1, 1, 1}), append(0, 1), Op::of(layered::Advance{0}),
                      Op::of(layered::Clear{0})};
  const Smaller repro = smaller_case(plan, subject, script, {});
  EXPECT_EQ(repro.before.text(), "op 3 clear: error: want no error, got closed");
  EXPECT_TRUE(repro.verdict.failed());
  EXPECT_FALSE(repro.verdict.differs_in_error()) << repro.verdict.text();
  const Smaller kept = smaller_case(plan, subject, {script[0], script[3]}, {});
  EXPECT_EQ(kept.verdict.text(), "op 1 clear: error: want no error, got closed")
      << "nothing else shows";
}

}  // namespace
}  // namespace kvo
