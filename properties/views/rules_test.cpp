// Rules of contract `views` whose tests compute something. The others: reference/views/cases.
#include <thread>

#include "properties/campaign/rules_case.hpp"
#include "properties/contracts.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/contract/values/strided_view.hpp"
#include "reference/views/operations.hpp"

namespace kvo::views {
namespace {

using Seen = std::vector<float>;

// Two layers of two heads of one element, blocks of two tokens, values the keys again.
Config small() {
  return {.num_layers = 2,
          .block_size = 2,
          .num_kv_heads = 2,
          .head_dim = 1,
          .max_seq_len = 8,
          .blocks = 8};
}

Append rows(std::int64_t layer, float first, std::int64_t tokens) {
  const Tensor given = counting({tokens, 2}, first);
  return {.layer = layer, .k = given, .v = given};
}

// The keys of views, in their order.
Seen keys(const std::vector<ShownView>& views) {
  Seen all;
  for (const ShownView& view : views) {
    const Seen some = elements_of(view.k);
    all.insert(all.end(), some.begin(), some.end());
    EXPECT_EQ(view.k.shape[0], view.length);
    EXPECT_EQ(elements_of(view.v), some);
  }
  return all;
}

class ViewsRules : public testing::TestWithParam<const Subject*> {
 protected:
  static RulesCase fresh(Config config = small()) {
    RulesCase made(*GetParam(), Profile::kDocumented, Record::of(std::move(config)));
    EXPECT_EQ(made.code(New{}), "ok");
    return made;
  }
  static Seen held(RulesCase& views, std::int64_t layer) {
    return keys(views.values(ShowViews{.layer = layer}).views);
  }
  // Appends and commits tokens of both layers.
  static void step(RulesCase& views, float first, std::int64_t tokens) {
    EXPECT_EQ(views.code(rows(0, first, tokens)), "ok");
    EXPECT_EQ(views.code(rows(1, first + 100, tokens)), "ok");
    EXPECT_EQ(views.code(Commit{0, tokens}), "ok");
  }
};

TEST_P(ViewsRules, EachHeadIsStoredByItselfMK29) {
  // Heads of 40: the second group has 8 elements, and its maximum is not that of the next head.
  constexpr std::int64_t kHeads = 2;
  constexpr std::int64_t kDim = 40;
  std::vector<float> cells;
  for (std::int64_t i = 0; i < 2 * kHeads * kDim; ++i)
    cells.push_back(static_cast<float>(i * i) / 3 - 700);
  const Tensor given = tensor_of({2, kHeads * kDim}, cells);
  for (const StorageFormat format :
       {StorageFormat(), StorageFormat{StorageType::kF16}, StorageFormat{StorageType::kBf16},
        StorageFormat{StorageType::kF8E4m3}, StorageFormat{StorageType::kF8E5m2},
        StorageFormat{StorageType::kQ8}, StorageFormat{StorageType::kQ4, 64},
        StorageFormat{StorageType::kQ8, 32, true}, StorageFormat{StorageType::kQ4, 128, true}}) {
    Config config = small();
    config.num_kv_heads = kHeads;
    config.head_dim = kDim;
    config.rows.storage = format.type;
    config.rows.group = format.group;
    config.rows.offset = format.offset;
    Tensor want = make_tensor({2, kHeads * kDim}, dtype_of(format.type));
    for (std::size_t row = 0; row < 4; ++row)
      show_stored(format, given.floats().subspan(row * kDim, kDim),
                  &want.bytes[row * kDim * dtype_bytes(want.dtype)]);
    RulesCase views(*GetParam(), Profile::kDocumented, Record::of(config));
    const std::string made = views.code(New{});
    if (made == "not_supported") continue;  // on a device
    EXPECT_EQ(made, "ok");
    EXPECT_EQ(views.values(Append{0, 0, given, given}).views[0].k, want);
    const auto packed = views.values(ShowPacked{0, 0}).views;
    Seen by_head;
    for (const std::size_t row : {0U, 2U, 1U, 3U})
      for (std::size_t i = row * kDim; i < (row + 1) * kDim; ++i)
        by_head.push_back(load_element(want.dtype, &want.bytes[i * dtype_bytes(want.dtype)]));
    EXPECT_EQ(elements_of(packed[0].k), by_head);
    EXPECT_EQ(elements_of(packed[0].v), by_head);
  }
}

// Calls come one at a time, from several threads.
TEST_P(ViewsRules, ACacheGoesFromThreadToThreadMK30) {
  RulesCase views = fresh();
  for (const float first : {1.0F, 11.0F, 21.0F}) std::thread([&] { step(views, first, 1); }).join();
  EXPECT_EQ(held(views, 0), Seen({1, 2, 11, 12, 21, 22}));
  EXPECT_EQ(views.values(FreeBlocks{}).n, 4);
}

TEST_P(ViewsRules, BlocksOfAllSizesAndLayersDoNotOverlapMK19) {
  for (const std::int64_t size : {1, 2, 16, 64}) {
    Config config = small();
    config.block_size = size;
    config.max_seq_len = 130;
    config.blocks = 260;
    RulesCase views = fresh(config);
    Seen want;
    for (std::int64_t tokens = 0; tokens < 130; tokens += 13) {
      step(views, static_cast<float>(want.size()), 13);
      for (int i = 0; i < 26; ++i) want.push_back(static_cast<float>(want.size()));
    }
    EXPECT_EQ(held(views, 0), want);
    for (float& cell : want) cell += 100;
    EXPECT_EQ(held(views, 1), want);
  }
}

INSTANTIATE_TEST_SUITE_P(Views, ViewsRules,
                         testing::ValuesIn(contracts().subjects_without_card(paged_kind())),
                         variant_name);

}  // namespace
}  // namespace kvo::views
