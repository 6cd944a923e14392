#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/judged_cases.hpp"
#include "properties/contract_parts.hpp"
#include "properties/contracts.hpp"
#include "reference/positional/operations.hpp"

namespace kvo::positional {
namespace {

// A script on a reference, judged; what get shows can be spoilt before the oracle sees it.
class Judged {
 public:
  Judged(const CacheKind& kind, const CacheConfig& config)
      : Judged(kind, Setup{.config = Record::of(config)}) {}
  Judged(const CacheKind& kind, const Setup& setup)
      : session_(contracts().reference_of(kind).open(setup).value()),
        oracle_(history_oracle(kind, setup)) {}

  template <class T>
  std::optional<std::string> observe(T arguments) {
    const Op op = Op::of(std::move(arguments));
    return oracle_->check(op, session_->apply(op, probe_));
  }
  // start_forward and put of rows that hold their tags; one head, one element.
  std::optional<std::string> pass(std::vector<std::int32_t> positions,
                                  std::vector<std::int64_t> sequences) {
    const Shape shape{std::ssize(positions), 1, 1};
    Put put{make_tensor(shape), make_tensor(shape)};
    for (float& key : put.k.floats()) key = ++tag_;
    for (float& value : put.v.floats()) value = -++tag_;
    StartForward start;
    start.positions = std::move(positions);
    start.seqs = std::move(sequences);
    auto words = observe(start);
    return words ? words : observe(std::move(put));
  }
  template <class Spoil>
  std::optional<std::string> get(Spoil spoil) {
    const Op op = Op::of(Get{});
    Get::Returns shown = session_->apply(op, probe_).as<Get::Returns>();
    spoil(*shown.k.value, *shown.v.value, *shown.mask.value);
    return oracle_->check(op, {.returns = Record::of(std::move(shown))});
  }
  [[nodiscard]] OracleCounts counts() const { return oracle_->counts(); }

 private:
  std::unique_ptr<Session> session_;
  std::unique_ptr<Oracle> oracle_;
  Probe probe_;
  float tag_ = 0;
};

const CacheKind& causal() {
  return kind_of(MemberKind::kCausal);
}

CacheConfig shifting() {
  return {.shift = ShiftConfig{.kind = ShiftKind::kAdd, .scale = 1}};
}

constexpr auto kAsShown = [](Tensor& /*k*/, Tensor& /*v*/, Tensor& /*mask*/) {};

// Two sequences, the second a copy of a prefix of the first, which has lost its middle.
Judged shifted() {
  Judged judged(causal(), shifting());
  EXPECT_EQ(judged.observe(Init{2, 8, 4, StorageType::kF32}), std::nullopt);
  EXPECT_EQ(judged.pass({0, 1, 2, 3}, {0, 0, 0, 0}), std::nullopt);
  EXPECT_EQ(judged.observe(CopyPrefix{0, 1, 1}), std::nullopt);
  EXPECT_EQ(judged.observe(Remove{0, 1, 2}), std::nullopt);
  EXPECT_EQ(judged.pass({3, 1}, {0, 1}), std::nullopt);
  return judged;
}

TEST(PositionalHistory, AgreesWithWhatAReferenceShows) {
  Judged judged = shifted();
  EXPECT_EQ(judged.get(kAsShown), std::nullopt);
  EXPECT_EQ(judged.counts().judged, 2U);
  EXPECT_EQ(judged.counts().skipped, 0U);
}

TEST(PositionalHistory, FindsWhatIsSpoilt) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  using Spoil = void (*)(Tensor & k, Tensor & v, Tensor & mask);
  const std::map<std::string_view, Spoil> spoils{
      {"a row missing", [](Tensor&, Tensor&, Tensor& mask) { mask.floats()[0] = -kInf; }},
      {"a row too many",
       [](Tensor&, Tensor&, Tensor& mask) { std::ranges::fill(mask.floats(), 0.0F); }},
      {"a key that was not moved", [](Tensor& k, Tensor&, Tensor&) { k.floats()[2] += 1; }},
      {"another value", [](Tensor&, Tensor& v, Tensor&) { v.floats()[0] -= 1; }},
      {"a NaN", [](Tensor&, Tensor& v, Tensor&) { v.floats()[0] = std::nanf(""); }},
      {"another shape", [](Tensor&, Tensor&, Tensor& mask) {
         mask = make_tensor({1, 1});
       }}};
  for (const auto& [name, spoil] : spoils) EXPECT_TRUE(shifted().get(spoil)) << name;
}

TEST(PositionalHistory, SkipsASequenceThatAFailedRemoveLeft) {
  Judged judged(causal(), CacheConfig{});
  EXPECT_EQ(judged.observe(Init{1, 8, 4, StorageType::kF32}), std::nullopt);
  EXPECT_EQ(judged.pass({0, 1, 2}, {0, 0, 0}), std::nullopt);
  EXPECT_EQ(judged.observe(Remove{0, 0, 1}), std::nullopt);
  EXPECT_EQ(judged.observe(Get{}), std::nullopt);
  EXPECT_EQ(judged.counts().skipped, 3U);
  EXPECT_EQ(judged.observe(Remove{0, 0, kMaxPosition}), std::nullopt);
  EXPECT_EQ(judged.pass({0}, {0}), std::nullopt);
  EXPECT_EQ(judged.observe(Get{}), std::nullopt);
  EXPECT_EQ(judged.counts().judged, 1U);
}

TEST(PositionalHistory, JudgesTheLastPutOfAnEncoder) {
  Judged judged(kind_of(MemberKind::kEncoder), CacheConfig{});
  EXPECT_EQ(judged.observe(Init{1, 8, 4, StorageType::kF32}), std::nullopt);
  EXPECT_EQ(judged.pass({0}, {0}), std::nullopt);
  EXPECT_EQ(judged.observe(Get{}), std::nullopt);
  EXPECT_EQ(judged.counts().judged, 1U);
}

TEST(PositionalHistory, JudgesMostRowsOfRandomCases) {
  constexpr std::uint64_t kCases = 240;
  constexpr int kOperations = 60;
  for (const CacheKind* kind : contracts().kinds()) {
    if (kind->contract != "positional") continue;
    for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
      const OracleCounts sum =
          judged_in_random_cases(contracts(), *kind, profile, 1, kCases, kOperations);
      EXPECT_GT(sum.judged, 3 * sum.skipped) << kind->name();
      EXPECT_GT(sum.judged, kCases) << kind->name();
    }
  }
}

TEST(PositionalHistory, IsForPositionalKindsOnly) {
  for (const CacheKind* kind : contracts().kinds())
    EXPECT_EQ(history_oracle(*kind, {}) != nullptr, kind->contract == "positional") << kind->name();
}

}  // namespace
}  // namespace kvo::positional
