// Rules of contract `provider` whose tests compute something. The others: reference/provider/cases.
#include <limits>
#include <optional>
#include <vector>

#include "properties/campaign/metamorphic.hpp"
#include "properties/campaign/rules_case.hpp"
#include "properties/contracts.hpp"
#include "reference/provider/contiguous.hpp"
#include "reference/provider/paged.hpp"

namespace kvo::provider {
namespace {

using Floats = std::vector<float>;

// Each row of a tensor as it is read after it was stored by itself.
Floats stored_alone(const StorageFormat& format, const Tensor& rows) {
  const auto dim = static_cast<std::size_t>(rows.shape.back());
  Floats shown(static_cast<std::size_t>(rows.elements()));
  std::vector<std::byte> bytes(stored_bytes(format, dim));
  for (std::size_t at = 0; at < shown.size(); at += dim) {
    encode(format, rows.floats().subspan(at, dim), bytes.data());
    decode(format, bytes.data(), std::span(shown).subspan(at, dim));
  }
  return shown;
}

class ContiguousRules : public testing::TestWithParam<const Subject*> {};

TEST_P(ContiguousRules, RowsAreStoredEachByItselfInItsType) {
  constexpr std::int64_t kDim = 40;  // a group and a short one
  for (const StorageFormat& format : std::vector<StorageFormat>{{StorageType::kF16},
                                                                {StorageType::kBf16},
                                                                {StorageType::kF8E4m3},
                                                                {StorageType::kF8E5m2},
                                                                {StorageType::kQ8},
                                                                {StorageType::kQ4, 64},
                                                                {StorageType::kQ8, 32, true},
                                                                {StorageType::kQ4, 32, true}}) {
    ContiguousConfig config{.rows = {.storage = format.type}};
    if (in_groups(format.type)) {
      config.rows.group = format.group;
      config.rows.offset = format.offset;
    }
    RulesCase cache(*GetParam(), Profile::kDocumented, Record::of(config));
    const std::string made = cache.code(NewContiguous{{}, 1, 4});
    if (made == "not_supported") continue;  // on a device
    EXPECT_EQ(made, "ok");
    const Tensor k = counting({2, 3, kDim}, 0.3F);
    const Tensor v = counting({2, 3, kDim}, 1000.3F);
    for (const auto& [begin, end] : {std::pair{0, 2}, {2, 3}})
      EXPECT_EQ(
          cache.code(Update{{}, 0, axis_range(k, 1, begin, end), axis_range(v, 1, begin, end)}),
          "ok");
    const Found found = cache.values(Get{{}, 0, {}});
    EXPECT_EQ(elements_of(found.k), stored_alone(format, k));
    EXPECT_EQ(elements_of(found.v), stored_alone(format, v));
    EXPECT_NE(elements_of(found.v), elements_of(v));
  }
}

TEST_P(ContiguousRules, ASizeWithoutMemoryIsAnErrorZF1) {
  RulesCase cache(*GetParam(), Profile::kDocumented);
  EXPECT_EQ(cache.code(NewContiguous{{}, 1, std::numeric_limits<std::int64_t>::max()}), "ok");
  const Tensor row = counting({1, 1, 1}, 1);
  EXPECT_EQ(cache.code(Update{{}, 0, row, row}), "out_of_memory");
}

class PagedRules : public testing::TestWithParam<const Subject*> {};

TEST_P(PagedRules, EachChannelOfAPositionIsARow) {
  for (const StorageType type : {StorageType::kF8E4m3, StorageType::kQ8, StorageType::kQ4}) {
    RulesCase cache(*GetParam(), Profile::kDocumented,
                    Record::of(PagedConfig{.rows = {.storage = type}}));
    const std::string made = cache.code(NewPool{1, 2, 64, 1});
    if (made == "not_supported") continue;  // on a device
    EXPECT_EQ(made, "ok");
    EXPECT_EQ(cache.code(NewPaged{{}, 1}), "ok");
    const Tensor k = counting({2, 3, 32}, 0.3F);
    EXPECT_EQ(cache.code(Update{{}, 0, k, counting({2, 3, 32}, 500)}), "ok");
    const Floats want = stored_alone({type}, k);
    EXPECT_EQ(elements_of(cache.values(Get{{}, 0, {}}).k), want);
    const auto block = cache.values(block_pool::ReadBlock{*cache.values(Table{}).blocks.front()});
    // [position][channel][dim], where the tensor is [channel][position][dim].
    EXPECT_EQ(Floats(block.k.begin(), block.k.begin() + 32),
              Floats(want.begin(), want.begin() + 32));
    EXPECT_EQ(Floats(block.k.begin() + 32, block.k.begin() + 64),
              Floats(want.begin() + 96, want.begin() + 128));
  }
}

INSTANTIATE_TEST_SUITE_P(Every, ContiguousRules,
                         testing::ValuesIn(contracts().subjects_without_card(contiguous_kind())),
                         variant_name);
INSTANTIATE_TEST_SUITE_P(Every, PagedRules,
                         testing::ValuesIn(contracts().subjects_without_card(paged_kind())),
                         variant_name);

}  // namespace
}  // namespace kvo::provider
