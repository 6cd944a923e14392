// What no operation shows of `provider.tensor`: what an error names, device calls, counters set by
// others.
#include "reference/provider/tensor_cache.hpp"

#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/contract/device/host_device.hpp"
#include "reference/contract/device/recorded_device.hpp"

namespace kvo::provider {
namespace {

using testing::ElementsAre;

constexpr auto kOriginal = Profile::kOriginal;
constexpr auto kDocumented = Profile::kDocumented;

Result<std::unique_ptr<TensorBacked>> make_cache(const TensorOptions& options, Profile profile) {
  return TensorCache::make(options, QuirkSet<Quirk>(profile));
}

using Pair = Result<std::optional<KvPair>>;

std::vector<float> keys(const Pair& pair) {
  const Tensor copy = materialize((*pair)->k);
  return {copy.floats().begin(), copy.floats().end()};
}

// One layer of four positions, unless a test says otherwise.
struct TensorCacheTest : testing::Test {
  std::shared_ptr<HostDevice> host = std::make_shared<HostDevice>();
  std::shared_ptr<RecordedDevice> device =
      std::make_shared<RecordedDevice>(host, RecordedDevice::Recording::kOff);
  std::unique_ptr<TensorBacked> cache;

  void open(Profile profile, const std::string& dtype = "", std::int64_t layers = 1) {
    cache = *make_cache({layers, 4, dtype, true, device}, profile);
  }
  // Keys on the device, from `first` on in steps of one. They are the values, too.
  Status update(const Shape& shape, float first, std::int64_t layer = 0) {
    Tensor rows = make_tensor(shape);
    std::iota(rows.floats().begin(), rows.floats().end(), first);
    const RecordedDevice::Source source(*device, ShownPtr::Where::kKSource, rows.bytes);
    return cache->update(layer, {&rows, &rows, source.ptr(), source.ptr()});
  }
  void write(DevicePtr counter, std::int32_t value) const {
    EXPECT_TRUE(host->to_device(counter, std::as_bytes(std::span(&value, 1))));
  }
  static constexpr auto kAlloc = DeviceCallName::kAlloc;
  static constexpr auto kFree = DeviceCallName::kFree;
  static constexpr auto kToFloat = DeviceCallName::kToFloat;
  [[nodiscard]] std::vector<DeviceCallName> calls() const {
    std::vector<DeviceCallName> names;
    for (const DeviceCall& call : device->calls()) names.push_back(call.fn);
    return names;
  }
};

TEST_F(TensorCacheTest, NegativeSizesAreRefused) {  // ZF-53
  EXPECT_EQ(make_cache({-1, 4, "", false, nullptr}, kDocumented).error().detail, "num_layers");
  EXPECT_EQ(make_cache({1, -4, "", false, nullptr}, kDocumented).error().detail, "max_seq_len");
}

TEST_F(TensorCacheTest, DocumentedChecksEveryShapeInOrder) {  // ZF-54
  open(kDocumented);
  EXPECT_TRUE(update({2, 1, 2}, 1));
  EXPECT_EQ(update({2, 1, 2}, 1, 1).error().detail, "layer");
  EXPECT_EQ(update({2, 2}, 1).error().detail, "rank");
  EXPECT_EQ(update({3, 9, 3}, 1).error().detail, "batch");
  EXPECT_EQ(update({2, 9, 3}, 1).error().detail, "dim");
  const Tensor k = make_tensor({2, 1, 2});
  const Tensor v = make_tensor({2, 1, 1});
  const Tensor long_k = make_tensor({2, 4, 2});
  EXPECT_EQ(cache->update(0, {.k = &long_k, .v = &v}).error(), fail(Code::kFull));
  EXPECT_EQ(cache->update(0, {.k = &k, .v = &v}).error().detail, "v");
  EXPECT_EQ(cache->update(0, {.k = &k}).error().detail, "v");
  EXPECT_EQ(cache->update(0, {}).error().detail, "rank");
  EXPECT_EQ(cache->seq_len(), 1);
}

// After a failed growth there is no scratch. A smaller result allocates one, too.
TEST_F(TensorCacheTest, OriginalFreesTheScratchBeforeItTakesALargerOne) {  // ZF-61, ZF-62
  device = std::make_shared<RecordedDevice>(host);
  open(kOriginal, "fp16");
  EXPECT_TRUE(update({1, 1, 1}, 1));
  EXPECT_THAT(keys(cache->get(0)), ElementsAre(1));
  EXPECT_TRUE(update({1, 1, 1}, 2));
  device->begin();
  const auto grown = cache->get(0);
  EXPECT_THAT(calls(), ElementsAre(kFree, kFree, kAlloc, kAlloc, kToFloat, kToFloat));
  EXPECT_THAT(keys(grown), ElementsAre(1, 2));
  EXPECT_TRUE(update({1, 1, 1}, 3));

  device->set_faults({.next_allocs = 1});
  device->begin();
  EXPECT_EQ(*cache->get(0), std::nullopt);
  EXPECT_THAT(calls(), ElementsAre(kFree, kFree, kAlloc)) << "K's failed, V's is not tried";
  EXPECT_TRUE(cache->truncate(1));
  device->set_faults({.next_allocs = 1});
  EXPECT_EQ(*cache->get(0), std::nullopt) << "there is no scratch left, not even for less";
  device->begin();
  const auto anew = cache->get(0);
  EXPECT_THAT(calls(), ElementsAre(kAlloc, kAlloc, kToFloat, kToFloat));
  EXPECT_THAT(keys(anew), ElementsAre(1));
}

TEST_F(TensorCacheTest, DocumentedSyncStaysInsideOfWhatIsAllocated) {  // ZF-65
  open(kDocumented, "", 2);
  EXPECT_TRUE(update({1, 1, 1}, 1, 1));
  for (const std::int32_t value : {-1, 5}) {
    write(cache->counters().gpu_counter, value);
    EXPECT_EQ(cache->sync_counter().error(), fail(Code::kBadPosition));
  }
  write(cache->counters().gpu_counter, 3);
  EXPECT_TRUE(cache->sync_counter());
  EXPECT_EQ(cache->seq_len(), 0);
  EXPECT_THAT(keys(cache->get(1)), ElementsAre(1, 0, 0));
}

TEST_F(TensorCacheTest, NothingStaysAllocatedAfterACache) {
  open(kDocumented, "fp16", 2);
  EXPECT_TRUE(update({2, 1, 1}, 1));
  EXPECT_TRUE(cache->get(0).has_value());
  cache.reset();
  EXPECT_EQ(host->live(), 0U);
}

}  // namespace
}  // namespace kvo::provider
