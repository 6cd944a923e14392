// Rows of contract `snapshot` in each storage type. Other rules: reference/snapshot/cases.
#include <array>

#include "properties/campaign/rules_case.hpp"
#include "properties/contracts.hpp"
#include "reference/snapshot/operations.hpp"

namespace kvo::snapshot {
namespace {

const std::array kNarrow{
    StorageFormat{StorageType::kF16},          StorageFormat{StorageType::kBf16},
    StorageFormat{StorageType::kF8E4m3},       StorageFormat{StorageType::kF8E5m2},
    StorageFormat{StorageType::kQ8},           StorageFormat{StorageType::kQ4, 64},
    StorageFormat{StorageType::kQ8, 32, true}, StorageFormat{StorageType::kQ4, 128, true}};

// Two heads of 40 different elements.
Tensor wide_rows(std::int64_t count, float first) {
  Tensor rows = counting({1, 2, count, 40}, first);
  for (float& cell : rows.floats()) cell = cell * 1.37F - 60;
  return rows;
}

// The rows as a cache returns them that stores each row by itself.
Tensor stored_and_shown(const StorageFormat& format, const Tensor& rows) {
  Tensor shown = make_tensor(rows.shape, dtype_of(format.type));
  for (std::size_t at = 0; at < rows.floats().size(); at += 40)
    show_stored(format, rows.floats().subspan(at, 40),
                shown.bytes.data() + at * dtype_bytes(shown.dtype));
  return shown;
}

TEST(SnapshotRules, RowsAreStoredAsTheConfigSays) {
  for (const Profile profile : {Profile::kOriginal, Profile::kDocumented})
    for (const StorageFormat& format : kNarrow)
      for (const CacheKind* kind : {&kv_kind(), &rotating_kind()}) {
        RulesCase cache(
            contracts().reference_of(*kind), profile,
            Record::of(RowsConfig{
                .max_size = 3,
                .rows = {.storage = format.type, .group = format.group, .offset = format.offset}}));
        EXPECT_EQ(cache.code(New{}), "ok");
        const Tensor k = wide_rows(3, 1);
        const Tensor v = wide_rows(3, 300);
        EXPECT_EQ(cache.values(Update{k, v}).k, stored_and_shown(format, k));
        EXPECT_EQ(*(*cache.values(ShowState{}).state)[1], stored_and_shown(format, v));
        const Numbered taken = cache.values(Take{0});
        EXPECT_EQ(*taken.shown.k, stored_and_shown(format, k));
        EXPECT_EQ(*taken.shown.size,
                  2L * 2 * 3 * static_cast<std::int64_t>(stored_bytes(format, 40)));
        EXPECT_EQ(cache.code(Free{}), "ok");
        EXPECT_TRUE(cache.values(Restore{1, 3}).ok);
        EXPECT_EQ(*(*cache.values(ShowState{}).state)[0], stored_and_shown(format, k));
      }
}

}  // namespace
}  // namespace kvo::snapshot
