#include "reference/provider/device_cache.hpp"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/contract/device/host_device.hpp"
#include "reference/contract/device/recorded_device.hpp"

namespace kvo::provider {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kOriginal = Profile::kOriginal;
constexpr auto kDocumented = Profile::kDocumented;

Result<std::unique_ptr<DeviceKv>> make_cache(const DeviceOptions& options, Profile profile) {
  return DeviceCache::make(options, QuirkSet<Quirk>(profile));
}

// Two layers of three positions of one cell, unless a test says otherwise.
struct DeviceCacheTest : testing::Test {
  std::shared_ptr<HostDevice> host = std::make_shared<HostDevice>();
  std::shared_ptr<RecordedDevice> device = std::make_shared<RecordedDevice>(host);
  std::unique_ptr<DeviceKv> cache;

  DeviceOptions options(std::int64_t layers = 2, std::int64_t max_seq_len = 3) {
    return {device, layers, max_seq_len, 1, 1};
  }
  void open(Profile profile, std::int64_t layers = 2, std::int64_t max_seq_len = 3) {
    cache = std::move(*make_cache(options(layers, max_seq_len), profile));
  }
  Status append(std::int64_t layer, std::int64_t pos, float value = 1) {
    const float negative = -value;
    return cache->append(layer, {&value, 1}, {&negative, 1}, pos);
  }
  Status append_gpu(std::int64_t layer, float value = 1) {
    using Source = RecordedDevice::Source;
    const float negative = -value;
    const Source k(*device, ShownPtr::Where::kKSource, std::as_bytes(std::span(&value, 1)));
    const Source v(*device, ShownPtr::Where::kVSource, std::as_bytes(std::span(&negative, 1)));
    return cache->append_gpu(layer, k.ptr(), v.ptr());
  }
  std::vector<float> keys(std::int64_t layer) {
    std::vector<float> cells(3);
    EXPECT_TRUE(host->to_host(std::as_writable_bytes(std::span(cells)), cache->pointers(layer).k));
    return cells;
  }
  std::int32_t counter() {
    std::int32_t value = 0;
    EXPECT_TRUE(host->to_host(std::as_writable_bytes(std::span(&value, 1)), cache->counter()));
    return value;
  }
  void set_counter(std::int32_t value) {
    EXPECT_TRUE(host->to_device(cache->counter(), std::as_bytes(std::span(&value, 1))));
  }
  std::vector<DeviceCallName> calls() {
    std::vector<DeviceCallName> names;
    for (const DeviceCall& call : device->calls()) names.push_back(call.fn);
    return names;
  }
};

TEST_F(DeviceCacheTest, SizesMustBePositiveAndTheAllocatorThere) {  // ZF-42
  EXPECT_EQ(make_cache({nullptr, 0, 0, 0, 0}, kOriginal).error(), fail_other("nil_allocator"));
  EXPECT_EQ(make_cache({device, 0, 0, 0, 0}, kOriginal).error().detail, "num_layers");
  EXPECT_EQ(make_cache({device, 1, 0, 0, 0}, kOriginal).error().detail, "max_seq_len");
  EXPECT_EQ(make_cache({device, 1, 1, -1, 0}, kOriginal).error().detail, "num_heads");
  EXPECT_EQ(make_cache({device, 1, 1, 1, 0}, kOriginal).error().detail, "head_dim");
  EXPECT_THAT(device->calls(), IsEmpty());
}

TEST_F(DeviceCacheTest, ASizeThatOverflowsIsRefusedBeforeAnyCall) {  // ZF-1
  const DeviceOptions huge{device, 1, std::int64_t{1} << 40U, 1 << 20U, 1 << 10U};
  EXPECT_EQ(make_cache(huge, kOriginal).error(), fail(Code::kPrecondition));
  EXPECT_EQ(make_cache(huge, kDocumented).error(), fail(Code::kOutOfRange));
  EXPECT_THAT(device->calls(), IsEmpty());
}

TEST_F(DeviceCacheTest, WhateverFailsAtConstructionEverythingIsGivenBack) {  // ZF-43
  for (std::int64_t n = 1; n <= 5; ++n) {
    device->set_faults({.alloc = n});
    EXPECT_EQ(make_cache(options(), kOriginal).error(), fail_other("alloc_failed"));
    EXPECT_EQ(host->live(), 0U) << n;
  }
  device->set_faults({.memcpy = 1});
  EXPECT_EQ(make_cache(options(), kOriginal).error(), fail_other("memcpy_failed"));
  EXPECT_EQ(host->live(), 0U);
  EXPECT_EQ(device->calls()[device->calls().size() - 5].ptr->buf,
            device->calls().back().ptr->buf + 1)
      << "the counter goes first";
}

TEST_F(DeviceCacheTest, OriginalAdvancesWithTheLastLayerAlone) {  // ZF-45
  open(kOriginal);
  EXPECT_TRUE(append(1, 0));
  EXPECT_EQ(cache->seq_len(), 1);
  EXPECT_EQ(append(0, 0).error(), fail(Code::kBadPosition));
}

TEST_F(DeviceCacheTest, DocumentedAdvancesWhenEveryLayerHasThePosition) {  // ZF-45
  open(kDocumented);
  EXPECT_TRUE(append(1, 0));
  EXPECT_EQ(cache->seq_len(), 0);
  EXPECT_EQ(append(1, 0, 9).error(), fail(Code::kBadPosition));
  EXPECT_EQ(append_gpu(1, 9).error(), fail(Code::kBadPosition));
  EXPECT_TRUE(append_gpu(0));
  EXPECT_EQ(cache->seq_len(), 1);
  EXPECT_EQ(counter(), 1);
  EXPECT_THAT(keys(1), ElementsAre(1, 0, 0));
}

TEST_F(DeviceCacheTest, AFullCacheTakesNoMore) {  // ZF-44, ZF-46
  for (const Profile profile : {kOriginal, kDocumented}) {
    open(profile, 1, 1);
    EXPECT_TRUE(append(0, 0));
    EXPECT_EQ(append(0, 1).error(), fail(Code::kFull));
    EXPECT_EQ(append_gpu(0).error(), fail(Code::kFull));
  }
}

TEST_F(DeviceCacheTest, OriginalHostAppendsLeaveTheCounterBehind) {  // ZF-45, ZF-48
  open(kOriginal, 1);
  EXPECT_TRUE(append(0, 0, 1));
  EXPECT_TRUE(append_gpu(0, 2));
  EXPECT_THAT(keys(0), ElementsAre(2, 0, 0));
  EXPECT_EQ(cache->seq_len(), 2);
  EXPECT_TRUE(cache->sync_counter());
  EXPECT_EQ(cache->seq_len(), 1);
}

TEST_F(DeviceCacheTest, DocumentedBringsTheCounterUpBeforeItIsUsed) {  // ZF-45, ZF-48
  open(kDocumented, 1);
  EXPECT_TRUE(append(0, 0, 1));
  EXPECT_EQ(counter(), 0);
  device->begin();
  EXPECT_TRUE(append_gpu(0, 2));
  EXPECT_THAT(calls(),
              ElementsAre(DeviceCallName::kMemcpy, DeviceCallName::kOffsetMemcpy,
                          DeviceCallName::kOffsetMemcpy, DeviceCallName::kIncrementCounter));
  EXPECT_THAT(keys(0), ElementsAre(1, 2, 0));
  EXPECT_TRUE(append(0, 2, 3));
  EXPECT_TRUE(cache->sync_counter());
  EXPECT_EQ(cache->seq_len(), 3);
}

TEST_F(DeviceCacheTest, DocumentedKeepsAStaleCounterStaleWhenItsCopyFails) {  // ZF-48
  open(kDocumented, 1);
  EXPECT_TRUE(append(0, 0, 1));
  device->set_faults({.memcpy = 1});
  EXPECT_EQ(append_gpu(0, 2).error(), fail_other("memcpy_failed"));
  EXPECT_EQ(cache->seq_len(), 1);
  EXPECT_TRUE(append_gpu(0, 2));
  EXPECT_THAT(keys(0), ElementsAre(1, 2, 0));
}

TEST_F(DeviceCacheTest, AFailedKernelCountsNothing) {  // ZF-46
  for (const Profile profile : {kOriginal, kDocumented}) {
    open(profile, 1);
    for (std::int64_t n = 1; n <= 3; ++n) {
      device->set_faults({.kernel = n});
      EXPECT_EQ(append_gpu(0, 5).error(), fail_other("kernel_failed"));
      EXPECT_EQ(cache->seq_len(), 0);
      EXPECT_EQ(counter(), 0);
    }
    EXPECT_TRUE(append_gpu(0, 6));
    EXPECT_THAT(keys(0), ElementsAre(6, 0, 0));
  }
}

TEST_F(DeviceCacheTest, OriginalSyncTakesAnyCounter) {  // ZF-48
  open(kOriginal, 1);
  set_counter(77);
  EXPECT_TRUE(cache->sync_counter());
  EXPECT_EQ(cache->seq_len(), 77);
}

TEST_F(DeviceCacheTest, DocumentedSyncRefusesACounterOutsideOfTheBuffer) {  // ZF-48
  open(kDocumented, 1);
  for (const std::int32_t value : {-1, 4}) {
    set_counter(value);
    EXPECT_EQ(cache->sync_counter().error(), fail(Code::kBadPosition));
    EXPECT_EQ(cache->seq_len(), 0);
  }
  set_counter(3);
  EXPECT_TRUE(cache->sync_counter());
  EXPECT_EQ(cache->seq_len(), 3);
}

TEST_F(DeviceCacheTest, OriginalMakesNewPointerArraysEachTimeAndForgetsThem) {  // ZF-50
  open(kOriginal);
  EXPECT_NE(cache->pointer_arrays()->k, cache->pointer_arrays()->k);
  EXPECT_TRUE(cache->close());
  EXPECT_EQ(host->live(), 4U);
}

TEST_F(DeviceCacheTest, DocumentedMakesPointerArraysOnceAndFreesThem) {  // ZF-50
  open(kDocumented);
  const PointerArrays made = *cache->pointer_arrays();
  device->begin();
  EXPECT_EQ(cache->pointer_arrays()->k, made.k);
  EXPECT_EQ(cache->pointer_arrays()->v, made.v);
  EXPECT_THAT(device->calls(), IsEmpty());
  const ShownPtr last = device->shown(made.v);
  EXPECT_TRUE(cache->close());
  EXPECT_EQ(device->calls().back().ptr, last);
  EXPECT_EQ(host->live(), 0U);
}

TEST_F(DeviceCacheTest, FailedPointerArraysAreGivenBack) {  // ZF-50
  for (const Profile profile : {kOriginal, kDocumented}) {
    open(profile);
    const std::size_t before = host->live();
    for (const Faults& faults :
         {Faults{.alloc = 1}, Faults{.memcpy = 1}, Faults{.alloc = 2}, Faults{.memcpy = 2}}) {
      device->set_faults(faults);
      EXPECT_FALSE(cache->pointer_arrays());
      EXPECT_EQ(host->live(), before);
    }
    EXPECT_TRUE(cache->pointer_arrays());
  }
}

TEST_F(DeviceCacheTest, ResetKeepsTheCells) {  // ZF-51
  open(kOriginal, 1);
  EXPECT_TRUE(append_gpu(0, 4));
  cache->reset();
  EXPECT_EQ(cache->seq_len(), 0);
  EXPECT_EQ(counter(), 0);
  EXPECT_THAT(keys(0), ElementsAre(4, 0, 0));
}

TEST_F(DeviceCacheTest, AFailedZeroingIsMadeGoodOnlyInDocumented) {  // ZF-47, ZF-51
  for (const Profile profile : {kOriginal, kDocumented}) {
    open(profile, 1);
    EXPECT_TRUE(append_gpu(0, 4));
    device->set_faults({.memcpy = 1});
    cache->reset();
    EXPECT_EQ(counter(), 1);
    EXPECT_TRUE(append_gpu(0, 5));
    EXPECT_EQ(cache->seq_len(), 1);
    EXPECT_EQ(keys(0)[0], profile == kOriginal ? 4 : 5);
  }
}

TEST_F(DeviceCacheTest, CloseGoesOnAfterAnErrorAndReturnsTheFirst) {  // ZF-52
  open(kOriginal);
  device->set_faults({.free = 2});
  EXPECT_EQ(cache->close().error(), fail_other("free_failed"));
  EXPECT_EQ(host->live(), 1U);
  EXPECT_FALSE(cache->counter());
  device->begin();
  EXPECT_TRUE(cache->close());
  EXPECT_THAT(device->calls(), IsEmpty());
}

TEST_F(DeviceCacheTest, OriginalClosedAppendReachesTheDevice) {  // ZF-52
  open(kOriginal);
  EXPECT_TRUE(cache->close());
  EXPECT_EQ(append(0, 0).error(), fail_other("bad_pointer"));
  EXPECT_EQ(append_gpu(0).error(), fail_other("bad_pointer"));
  EXPECT_EQ(cache->sync_counter().error(), fail(Code::kClosed));
}

TEST_F(DeviceCacheTest, DocumentedClosedCacheMakesNoCalls) {  // ZF-52
  open(kDocumented);
  EXPECT_TRUE(append(0, 0));
  EXPECT_TRUE(append(1, 0));
  EXPECT_TRUE(cache->close());
  device->begin();
  EXPECT_EQ(append(0, 1).error(), fail(Code::kClosed));
  EXPECT_EQ(append_gpu(0).error(), fail(Code::kClosed));
  EXPECT_EQ(cache->sync_counter().error(), fail(Code::kClosed));
  EXPECT_EQ(cache->pointer_arrays().error(), fail(Code::kClosed));
  cache->reset();
  EXPECT_THAT(device->calls(), IsEmpty());
  EXPECT_FALSE(cache->pointers(0).k);
}

}  // namespace
}  // namespace kvo::provider
