// What no operation shows of `provider.device`: which size an error names, a counter that others
// set.
#include "reference/provider/device_cache.hpp"

#include <gtest/gtest.h>

#include "reference/contract/device/host_device.hpp"
#include "reference/contract/device/recorded_device.hpp"

namespace kvo::provider {
namespace {

constexpr auto kOriginal = Profile::kOriginal;
constexpr auto kDocumented = Profile::kDocumented;

Result<std::unique_ptr<DeviceKv>> make_cache(const DeviceOptions& options, Profile profile) {
  return DeviceCache::make(options, QuirkSet<Quirk>(profile));
}

struct DeviceCacheTest : testing::Test {
  std::shared_ptr<HostDevice> host = std::make_shared<HostDevice>();
  std::shared_ptr<RecordedDevice> device = std::make_shared<RecordedDevice>(host);
  std::unique_ptr<DeviceKv> cache;

  // One layer of three positions of one cell.
  void open(Profile profile) { cache = *make_cache({device, 1, 3, 1, 1}, profile); }
  void set_counter(std::int32_t value) {
    EXPECT_TRUE(host->to_device(cache->counter(), std::as_bytes(std::span(&value, 1))));
  }
};

TEST_F(DeviceCacheTest, SizesMustBePositiveAndTheAllocatorThere) {  // ZF-42
  EXPECT_EQ(make_cache({nullptr, 0, 0, 0, 0}, kOriginal).error(), fail_other("nil_allocator"));
  EXPECT_EQ(make_cache({device, 0, 0, 0, 0}, kOriginal).error().detail, "num_layers");
  EXPECT_EQ(make_cache({device, 1, 0, 0, 0}, kOriginal).error().detail, "max_seq_len");
  EXPECT_EQ(make_cache({device, 1, 1, -1, 0}, kOriginal).error().detail, "num_heads");
  EXPECT_EQ(make_cache({device, 1, 1, 1, 0}, kOriginal).error().detail, "head_dim");
  EXPECT_TRUE(device->calls().empty());
}

TEST_F(DeviceCacheTest, OriginalSyncTakesAnyCounter) {  // ZF-48
  open(kOriginal);
  set_counter(77);
  EXPECT_TRUE(cache->sync_counter());
  EXPECT_EQ(cache->seq_len(), 77);
}

TEST_F(DeviceCacheTest, DocumentedSyncRefusesACounterOutsideOfTheBuffer) {  // ZF-48
  open(kDocumented);
  for (const std::int32_t value : {-1, 4}) {
    set_counter(value);
    EXPECT_EQ(cache->sync_counter().error(), fail(Code::kBadPosition));
    EXPECT_EQ(cache->seq_len(), 0);
  }
  set_counter(3);
  EXPECT_TRUE(cache->sync_counter());
  EXPECT_EQ(cache->seq_len(), 3);
}

}  // namespace
}  // namespace kvo::provider
