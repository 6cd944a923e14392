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
using testing::ElementsAreArray;

constexpr auto kOriginal = Profile::kOriginal;
constexpr auto kDocumented = Profile::kDocumented;

Result<std::unique_ptr<TensorBacked>> make_cache(const TensorOptions& options, Profile profile) {
  return TensorCache::make(options, QuirkSet<Quirk>(profile));
}

enum class On : std::uint8_t { kHost, kGpu, kGpuK, kGpuV };

using Pair = Result<std::optional<KvPair>>;

std::vector<float> cells(const TensorView& view) {
  const Tensor copy = materialize(view);
  return {copy.floats().begin(), copy.floats().end()};
}
std::vector<float> keys(const Pair& pair) {
  return cells((*pair)->k);
}
std::vector<float> values(const Pair& pair) {
  return cells((*pair)->v);
}

// One layer of four positions, unless a test says otherwise.
struct TensorCacheTest : testing::Test {
  std::shared_ptr<HostDevice> host = std::make_shared<HostDevice>();
  std::shared_ptr<RecordedDevice> device =
      std::make_shared<RecordedDevice>(host, RecordedDevice::Recording::kOff);
  std::unique_ptr<TensorBacked> cache;

  TensorOptions options(const std::string& dtype = "", std::int64_t layers = 1) const {
    return {layers, 4, dtype, true, device};
  }
  void open(Profile profile, const std::string& dtype = "", std::int64_t layers = 1) {
    cache = std::move(*make_cache(options(dtype, layers), profile));
  }
  // Keys from `first` on, in steps of one, and their negatives as values.
  Status update(const Shape& shape, float first, On on = On::kGpu, std::int64_t layer = 0) {
    Tensor k = make_tensor(shape);
    Tensor v = make_tensor(shape);
    std::iota(k.floats().begin(), k.floats().end(), first);
    for (std::size_t i = 0; i < k.floats().size(); ++i) v.floats()[i] = -k.floats()[i];
    return update(k, &v, on, layer);
  }
  Status update(const Tensor& k, const Tensor* v, On on, std::int64_t layer = 0) {
    using Source = RecordedDevice::Source;
    const bool k_on = on == On::kGpu || on == On::kGpuK;
    const bool v_on = on == On::kGpu || on == On::kGpuV;
    const Source ks = k_on ? Source(*device, ShownPtr::Where::kKSource, k.bytes) : Source();
    const Source vs = v_on ? Source(*device, ShownPtr::Where::kVSource, v->bytes) : Source();
    return cache->update(layer, {&k, v, ks.ptr(), vs.ptr()});
  }
  std::int32_t read(DevicePtr counter) const {
    std::int32_t value = 0;
    EXPECT_TRUE(host->to_host(std::as_writable_bytes(std::span(&value, 1)), counter));
    return value;
  }
  void write(DevicePtr counter, std::int32_t value) const {
    EXPECT_TRUE(host->to_device(counter, std::as_bytes(std::span(&value, 1))));
  }
  static constexpr auto kAlloc = DeviceCallName::kAlloc;
  static constexpr auto kFree = DeviceCallName::kFree;
  static constexpr auto kToFloat = DeviceCallName::kToFloat;
  std::vector<DeviceCallName> calls() const {
    std::vector<DeviceCallName> names;
    for (const DeviceCall& call : device->calls()) names.push_back(call.fn);
    return names;
  }
  /// gpu_counter, kv_seq_len.
  std::vector<std::int32_t> counters() const {
    const CounterPtrs found = cache->counters();
    return {read(found.gpu_counter), read(found.kv_seq_len)};
  }
};

const Error kCpuSource = fail(Code::kNotSupported);
const Error kKernelFailed = fail_other("kernel_failed");

TEST_F(TensorCacheTest, NegativeSizesAreRefused) {  // ZF-53
  EXPECT_EQ(make_cache({-1, 4, "", false, nullptr}, kOriginal).error(), fail(Code::kPrecondition));
  EXPECT_EQ(make_cache({-1, 4, "", false, nullptr}, kDocumented).error().detail, "num_layers");
  EXPECT_EQ(make_cache({1, -4, "", false, nullptr}, kDocumented).error().detail, "max_seq_len");
  EXPECT_TRUE(make_cache({1, -4, "", false, nullptr}, kOriginal));
}

TEST_F(TensorCacheTest, OneCounterAloneIsUsedOnlyInOriginal) {  // ZF-53
  device->set_faults({.next_allocs = 1});
  open(kOriginal);
  EXPECT_FALSE(cache->counters().gpu_counter);
  EXPECT_TRUE(cache->counters().kv_seq_len);
  device->set_faults({.next_allocs = 1});
  open(kDocumented);
  EXPECT_FALSE(cache->counters().gpu_counter);
  EXPECT_FALSE(cache->counters().kv_seq_len);
  EXPECT_EQ(cache->sync_counter().error(), fail(Code::kNotSupported));
}

TEST_F(TensorCacheTest, OriginalAcceptsAnyLaterShape) {  // ZF-54
  open(kOriginal);
  EXPECT_TRUE(update({1, 1, 2}, 1, On::kHost));
  EXPECT_TRUE(update({1, 1, 4}, 3, On::kHost));
  EXPECT_THAT(keys(cache->get(0)), ElementsAre(1, 2, 0, 0));
  EXPECT_EQ(update({1, 1, 4}, 9, On::kHost).error(), fail(Code::kPrecondition));
  EXPECT_EQ(cache->seq_len(), 2);
}

TEST_F(TensorCacheTest, DocumentedChecksEveryShapeInOrder) {  // ZF-54
  open(kDocumented);
  EXPECT_TRUE(update({2, 1, 2}, 1));
  EXPECT_EQ(update({2, 1, 2}, 1, On::kGpu, 1).error().detail, "layer");
  EXPECT_EQ(update({2, 2}, 1).error().detail, "rank");
  EXPECT_EQ(update({3, 9, 3}, 1).error().detail, "batch");
  EXPECT_EQ(update({2, 9, 3}, 1).error().detail, "dim");
  const Tensor k = make_tensor({2, 1, 2});
  const Tensor v = make_tensor({2, 1, 1});
  const Tensor long_k = make_tensor({2, 4, 2});
  EXPECT_EQ(update(long_k, &v, On::kHost).error(), fail(Code::kFull));
  EXPECT_EQ(update(k, &v, On::kHost).error().detail, "v");
  EXPECT_EQ(update(k, nullptr, On::kHost).error().detail, "v");
  EXPECT_EQ(cache->update(0, {}).error().detail, "rank");
  EXPECT_EQ(cache->seq_len(), 1);
}

TEST_F(TensorCacheTest, OriginalNullRowsAreAPrecondition) {  // ZF-3
  open(kOriginal);
  const Tensor k = make_tensor({1, 1, 1});
  EXPECT_EQ(cache->update(0, {}).error(), fail(Code::kPrecondition));
  EXPECT_EQ(cache->update(0, {.k = &k}).error(), fail(Code::kPrecondition));
  EXPECT_EQ(cache->seq_len(), 0);
}

TEST_F(TensorCacheTest, OriginalBatchZeroAdvancesAnUnallocatedLayer) {  // ZF-55
  open(kOriginal);
  EXPECT_TRUE(update({0, 2, 3}, 1, On::kHost));
  EXPECT_EQ(cache->seq_len(), 2);
  EXPECT_EQ(*cache->get(0), std::nullopt);
  EXPECT_TRUE(update({1, 1, 1}, 7, On::kHost));
  EXPECT_THAT(keys(cache->get(0)), ElementsAre(0, 0, 7));
}

TEST_F(TensorCacheTest, DocumentedBatchZeroIsPinned) {  // ZF-55
  open(kDocumented);
  EXPECT_TRUE(update({0, 2, 3}, 1, On::kHost));
  EXPECT_EQ((*cache->get(0))->k.shape, Shape({0, 2, 3}));
  EXPECT_EQ(update({1, 1, 3}, 1, On::kHost).error().detail, "batch");
}

TEST_F(TensorCacheTest, PromotionKeepsTheTypeOnlyInDocumented) {  // ZF-56
  for (const Profile profile : {kOriginal, kDocumented}) {
    open(profile, "fp16");
    EXPECT_TRUE(update({1, 1, 1}, 2049, On::kHost));
    const auto before = cache->get(0);
    EXPECT_TRUE(update({1, 2, 1}, 2050));
    if (profile == kOriginal) {
      EXPECT_THAT(keys(cache->get(0)), ElementsAre(2049, 2050, 2051));
    } else {
      EXPECT_THAT(keys(cache->get(0)), ElementsAre(2048, 2050, 2052));
    }
    EXPECT_THAT(keys(before), ElementsAre(2049)) << "views on host memory stay";
  }
}

TEST_F(TensorCacheTest, AFailedAllocationIsTriedAgainAtOnce) {  // ZF-55, ZF-56
  for (const Profile profile : {kOriginal, kDocumented}) {
    open(profile, "fp16");
    device->set_faults({.next_allocs = 1});
    EXPECT_TRUE(update({1, 1, 1}, 2049));
    EXPECT_THAT(keys(cache->full_buffer(0)),
                ElementsAre(profile == kOriginal ? 2049 : 2048, 0, 0, 0));
  }
}

TEST_F(TensorCacheTest, WithoutMemoryALayerStaysOnTheHost) {  // ZF-56
  for (const Profile profile : {kOriginal, kDocumented}) {
    open(profile, "fp16");
    device->set_faults({.next_allocs = 2});
    EXPECT_TRUE(update({1, 1, 1}, 2049));
    EXPECT_EQ(*cache->full_buffer(0), std::nullopt);
    EXPECT_THAT(keys(cache->get(0)), ElementsAre(2049));
  }
}

TEST_F(TensorCacheTest, OriginalKvSeqLenCountsFailedStepsAndHostSteps) {  // ZF-57
  open(kOriginal);
  EXPECT_TRUE(update({1, 1, 1}, 1, On::kHost));
  EXPECT_THAT(counters(), ElementsAre(0, 1));
  EXPECT_TRUE(update({1, 1, 1}, 2));
  EXPECT_THAT(counters(), ElementsAre(1, 2));
  device->set_faults({.kernel = 2});
  EXPECT_EQ(update({1, 1, 1}, 3).error(), kKernelFailed);
  EXPECT_THAT(counters(), ElementsAre(1, 3));
}

TEST_F(TensorCacheTest, DocumentedCountersAreTheLengthsWhateverThePath) {  // ZF-57 to ZF-59
  open(kDocumented, "", 2);
  for (const On on : {On::kHost, On::kGpu, On::kGpuK}) {
    const auto length = static_cast<std::int32_t>(cache->seq_len());
    EXPECT_TRUE(update({1, 1, 1}, 1, on, 0));
    EXPECT_THAT(counters(), ElementsAre(length, length + 1));
    EXPECT_TRUE(update({1, 1, 1}, 1, on, 1));
    EXPECT_THAT(counters(), ElementsAre(length + 1, length + 1));
  }
}

TEST_F(TensorCacheTest, DocumentedFailedStepRestoresBothCounters) {  // ZF-57, ZF-58
  open(kDocumented);
  EXPECT_TRUE(update({1, 1, 1}, 1));
  for (std::int64_t n = 1; n <= 4; ++n) {
    device->set_faults({.kernel = n});
    EXPECT_EQ(update({1, 1, 1}, 9).error(), kKernelFailed) << n;
    EXPECT_THAT(counters(), ElementsAre(1, 1));
    EXPECT_THAT(keys(cache->get(0)), ElementsAre(1));
  }
}

TEST_F(TensorCacheTest, DocumentedFailedFirstUpdatePinsNothing) {  // ZF-55
  open(kDocumented, "fp16");
  device->set_faults({.kernel = 2});
  EXPECT_EQ(update({1, 2, 1}, 9).error(), kKernelFailed);
  EXPECT_EQ(*cache->full_buffer(0), std::nullopt);
  EXPECT_TRUE(update({2, 1, 3}, 1));
}

TEST_F(TensorCacheTest, OriginalDecodeWritesWhereTheSharedCounterSays) {  // ZF-58
  open(kOriginal, "", 2);
  EXPECT_TRUE(update({1, 2, 1}, 1, On::kGpu, 0));
  EXPECT_TRUE(update({1, 1, 1}, 8, On::kGpu, 0));
  EXPECT_THAT(keys(cache->get(0)), ElementsAre(8, 2, 0));
}

TEST_F(TensorCacheTest, DocumentedDecodeWritesAtTheLayersOwnLength) {  // ZF-58
  for (const char* dtype : {"", "fp16"}) {
    open(kDocumented, dtype, 2);
    EXPECT_TRUE(update({1, 2, 1}, 1, On::kGpu, 0));
    EXPECT_TRUE(update({1, 1, 1}, 8, On::kGpu, 0));
    EXPECT_THAT(keys(cache->get(0)), ElementsAre(1, 2, 8));
    EXPECT_THAT(counters(), ElementsAre(0, 3));
    EXPECT_TRUE(update({1, 1, 1}, 9, On::kGpu, 1));
    EXPECT_THAT(counters(), ElementsAre(1, 3));
  }
}

TEST_F(TensorCacheTest, OriginalFp16TakesKBeforeItLooksAtV) {  // ZF-59
  open(kOriginal, "fp16");
  EXPECT_EQ(update({1, 1, 1}, 5, On::kGpuK).error(), kCpuSource);
  EXPECT_THAT(counters(), ElementsAre(0, 1));
  EXPECT_THAT(keys(cache->full_buffer(0)), ElementsAre(5, 0, 0, 0));
}

TEST_F(TensorCacheTest, DocumentedFp16RefusesHostRowsBeforeAnythingElse) {  // ZF-59
  open(kDocumented, "fp16");
  EXPECT_EQ(update({1, 1, 1}, 5, On::kGpuK).error(), kCpuSource);
  EXPECT_THAT(counters(), ElementsAre(0, 0));
  EXPECT_EQ(*cache->full_buffer(0), std::nullopt);
  EXPECT_TRUE(update({1, 1, 1}, 6, On::kGpuV)) << "a layer on the host takes both";
}

TEST_F(TensorCacheTest, OriginalShortVLeavesOldCellsAndALongOneIsCut) {  // ZF-59
  open(kOriginal);
  EXPECT_TRUE(update({1, 4, 1}, 1, On::kHost));
  EXPECT_TRUE(cache->truncate(0));
  const Tensor k = make_tensor({1, 2, 1});
  const Tensor short_v = tensor_of({1}, std::vector<float>{50});
  const Tensor long_v = tensor_of({3}, std::vector<float>{60, 61, 62});
  EXPECT_TRUE(update(k, &short_v, On::kHost));
  EXPECT_THAT(values(cache->get(0)), ElementsAre(50, -2));
  EXPECT_TRUE(update(k, &long_v, On::kHost));
  EXPECT_THAT(values(cache->get(0)), ElementsAre(50, -2, 60, 61));
}

TEST_F(TensorCacheTest, OriginalVThatWouldLeaveABufferIsAPrecondition) {  // ZF-59
  open(kOriginal);
  EXPECT_TRUE(update({1, 3, 1}, 1));
  const Tensor k = make_tensor({1, 1, 1});
  const Tensor long_v = make_tensor({2});
  const Tensor no_v = make_tensor({0});
  EXPECT_EQ(update(k, &long_v, On::kGpuK).error(), fail(Code::kPrecondition));
  EXPECT_EQ(update(k, &no_v, On::kGpu).error(), fail(Code::kPrecondition));
  EXPECT_THAT(counters(), ElementsAre(3, 3)) << "nothing was launched";
}

TEST_F(TensorCacheTest, OriginalScramblesTheBatch) {  // ZF-60
  for (const On on : {On::kHost, On::kGpu}) {
    open(kOriginal);
    EXPECT_TRUE(update({2, 1, 1}, 1, on));
    EXPECT_TRUE(update({2, 1, 1}, 3, on));
    EXPECT_THAT(keys(cache->get(0)), ElementsAre(1, 2, 3, 4));
  }
}

TEST_F(TensorCacheTest, DocumentedKeepsEachBatchRowTogether) {  // ZF-60
  for (const char* dtype : {"", "fp16"}) {
    for (const On on : {On::kHost, On::kGpu}) {
      open(kDocumented, dtype);
      EXPECT_TRUE(update({2, 2, 1}, 1, on));
      EXPECT_TRUE(update({2, 1, 1}, 5, on));
      EXPECT_EQ((*cache->get(0))->k.shape, Shape({2, 3, 1}));
      EXPECT_THAT(keys(cache->get(0)), ElementsAre(1, 2, 5, 3, 4, 6));
      EXPECT_THAT(values(cache->get(0)), ElementsAre(-1, -2, -5, -3, -4, -6));
      EXPECT_TRUE(update({2, 1, 1}, 7, on));
      EXPECT_THAT(keys(cache->get(0)), ElementsAre(1, 2, 5, 7, 3, 4, 6, 8));
    }
  }
}

TEST_F(TensorCacheTest, ASingleBatchRowIsAView) {  // ZF-61
  for (const Profile profile : {kOriginal, kDocumented}) {
    for (const On on : {On::kHost, On::kGpu}) {
      open(profile);
      EXPECT_TRUE(update({1, 1, 1}, 1, on));
      const auto seen = cache->get(0);
      (*seen)->k.storage->write(0, 42);
      EXPECT_THAT(keys(cache->get(0)), ElementsAre(42));
    }
  }
}

TEST_F(TensorCacheTest, OriginalFp16ResultsShareOneScratch) {  // ZF-61
  open(kOriginal, "fp16", 2);
  EXPECT_TRUE(update({1, 2, 1}, 1, On::kGpu, 0));
  EXPECT_TRUE(update({1, 2, 1}, 5, On::kGpu, 1));
  const auto first = cache->get(0);
  const auto second = cache->get(1);
  EXPECT_THAT(keys(first), ElementsAre(5, 6));
  EXPECT_TRUE(cache->full_buffer(0).has_value());
  EXPECT_TRUE((*first)->k.dangling());
  EXPECT_TRUE((*second)->v.dangling());
}

// A growth with failing allocations leaves no scratch, so that even a smaller result needs memory.
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

TEST_F(TensorCacheTest, DocumentedFp16ResultsStayAsTheyAre) {  // ZF-61
  open(kDocumented, "fp16", 2);
  EXPECT_TRUE(update({1, 2, 1}, 1, On::kGpu, 0));
  EXPECT_TRUE(update({1, 2, 1}, 5, On::kGpu, 1));
  const auto first = cache->get(0);
  EXPECT_TRUE(cache->get(1).has_value());
  EXPECT_TRUE(cache->full_buffer(1).has_value());
  device->set_faults({.kernel = 2});
  EXPECT_EQ(*cache->get(0), std::nullopt);
  EXPECT_THAT(keys(first), ElementsAre(1, 2));
  cache->free();
  EXPECT_TRUE((*first)->k.dangling()) << "ZF-66";
}

TEST_F(TensorCacheTest, ResetKeepsBatchDimAndCells) {  // ZF-62, ZF-63
  for (const Profile profile : {kOriginal, kDocumented}) {
    open(profile);
    EXPECT_TRUE(update({1, 2, 1}, 1));
    EXPECT_TRUE(cache->reset());
    EXPECT_EQ(*cache->get(0), std::nullopt);
    EXPECT_THAT(counters(), ElementsAre(0, 0));
    EXPECT_THAT(keys(cache->full_buffer(0)), ElementsAre(1, 2, 0, 0));
  }
}

TEST_F(TensorCacheTest, OriginalTruncateSetsTheCountersToAnything) {  // ZF-64
  open(kOriginal);
  EXPECT_TRUE(update({1, 2, 1}, 1));
  EXPECT_TRUE(cache->truncate(9));
  EXPECT_THAT(counters(), ElementsAre(9, 9));
  EXPECT_TRUE(cache->truncate(-3));
  EXPECT_EQ(cache->seq_len(), -3);
  EXPECT_EQ(cache->get(0).error(), fail(Code::kPrecondition));
  EXPECT_EQ(update({1, 1, 1}, 1).error(), fail(Code::kPrecondition));
  EXPECT_THAT(counters(), ElementsAre(-3, -3));
}

TEST_F(TensorCacheTest, DocumentedTruncateNeverRaisesACounter) {  // ZF-64
  open(kDocumented);
  EXPECT_TRUE(update({1, 2, 1}, 1));
  EXPECT_TRUE(cache->truncate(9));
  EXPECT_THAT(counters(), ElementsAre(2, 2));
  EXPECT_TRUE(cache->truncate(-3));
  EXPECT_EQ(cache->seq_len(), 0);
  EXPECT_THAT(counters(), ElementsAre(0, 0));
}

TEST_F(TensorCacheTest, OriginalSyncGivesLengthsToEmptyLayers) {  // ZF-65
  open(kOriginal, "", 2);
  EXPECT_TRUE(update({1, 1, 1}, 1, On::kGpu, 1));
  write(cache->counters().gpu_counter, 7);
  EXPECT_TRUE(cache->sync_counter());
  EXPECT_EQ(cache->seq_len(), 7);
  EXPECT_EQ(*cache->get(0), std::nullopt);
  EXPECT_EQ(cache->get(1).error(), fail(Code::kPrecondition));
}

TEST_F(TensorCacheTest, DocumentedSyncStaysInsideOfWhatIsAllocated) {  // ZF-65
  open(kDocumented, "", 2);
  EXPECT_TRUE(update({1, 1, 1}, 1, On::kGpu, 1));
  for (const std::int32_t value : {-1, 5}) {
    write(cache->counters().gpu_counter, value);
    EXPECT_EQ(cache->sync_counter().error(), fail(Code::kBadPosition));
  }
  write(cache->counters().gpu_counter, 3);
  EXPECT_TRUE(cache->sync_counter());
  EXPECT_EQ(cache->seq_len(), 0);
  EXPECT_THAT(keys(cache->get(1)), ElementsAre(1, 0, 0));
}

TEST_F(TensorCacheTest, FreeDropsEverythingAndTheCountersForGood) {  // ZF-66
  for (const Profile profile : {kOriginal, kDocumented}) {
    open(profile, "", 2);
    EXPECT_TRUE(update({1, 1, 1}, 1, On::kGpu, 0));
    EXPECT_TRUE(update({1, 1, 1}, 1, On::kHost, 1));
    const auto on_gpu = cache->get(0);
    const auto on_host = cache->get(1);
    cache->free();
    EXPECT_EQ(host->live(), 0U);
    EXPECT_TRUE((*on_gpu)->k.dangling());
    EXPECT_THAT(keys(on_host), ElementsAre(1));
    EXPECT_FALSE(cache->counters().gpu_counter);
    EXPECT_TRUE(update({2, 1, 2}, 1));
    EXPECT_THAT(keys(cache->get(0)), ElementsAreArray({1, 2, 3, 4}));
  }
}

TEST_F(TensorCacheTest, OnlyExactlyFp16StoresHalves) {  // ZF-67
  for (const char* dtype : {"", "fp32", "FP16", "fp16 "}) {
    open(kOriginal, dtype);
    EXPECT_TRUE(update({1, 1, 1}, 2049));
    EXPECT_THAT(keys(cache->get(0)), ElementsAre(2049)) << dtype;
  }
}

TEST_F(TensorCacheTest, ASizeThatOverflowsIsRefused) {  // ZF-1
  for (const Profile profile : {kOriginal, kDocumented}) {
    cache = std::move(*make_cache({1, std::int64_t{1} << 62U, "", true, device}, profile));
    EXPECT_EQ(update({1, 1, 4}, 1).error(),
              fail(profile == kOriginal ? Code::kPrecondition : Code::kOutOfRange));
    EXPECT_EQ(cache->seq_len(), 0);
  }
}

TEST_F(TensorCacheTest, NothingStaysAllocatedBehindACache) {
  open(kDocumented, "fp16", 2);
  EXPECT_TRUE(update({2, 1, 1}, 1, On::kGpu, 0));
  EXPECT_TRUE(cache->get(0).has_value());
  cache.reset();
  EXPECT_EQ(host->live(), 0U);
}

}  // namespace
}  // namespace kvo::provider
