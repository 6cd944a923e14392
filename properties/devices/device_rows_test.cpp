// Rows that a caller has on the device go to a cache from there.
#include <array>
#include <iterator>
#include <memory>

#include <gtest/gtest.h>

#include "cuda/block_pool/device_pool.hpp"
#include "cuda/provider/contiguous_device_cache.hpp"
#include "cuda/provider/paged_device_cache.hpp"
#include "reference/contract/device/simulated/simulated_device.hpp"
#include "reference/provider/contiguous_cache.hpp"

namespace kvo::devices {
namespace {

constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kDim = 3;

constexpr QuirkSet<provider::Quirk> kDocumented(Profile::kDocumented);

/// Adds rows whose cells are on the device alone, and expects them as the reference has them.
void expect_rows_of_the_device(SimulatedDevice& device, provider::Provider& cache,
                               std::int64_t batch) {
  const auto reference = *provider::ContiguousCache::make({1, 8}, kDocumented);
  float next = 100;
  for (const std::int64_t seq : {3, 1}) {
    const Tensor shape = make_tensor({batch, seq, kDim});
    std::array<Tensor, 2> rows{shape, shape};
    std::array<DevicePtr, 2> cells = {};
    for (const std::size_t side : {0U, 1U}) {
      for (float& cell : rows[side].floats()) cell = next++;
      cells[side] = *device.alloc(std::ssize(shape.bytes));
      ASSERT_TRUE(device.to_device(cells[side], rows[side].bytes));
    }
    ASSERT_TRUE(reference->update(0, {&rows[0], &rows[1]}));
    ASSERT_TRUE(
        cache.update(0, {.k = &shape, .v = &shape, .k_device = cells[0], .v_device = cells[1]}));
    for (const DevicePtr ptr : cells) ASSERT_TRUE(device.free(ptr));
  }
  const auto held = cache.get(0);
  const auto wanted = reference->get(0);
  ASSERT_TRUE(held && *held && wanted && *wanted);
  EXPECT_EQ(materialize((*held)->k), materialize((*wanted)->k));
  EXPECT_EQ(materialize((*held)->v), materialize((*wanted)->v));
  EXPECT_TRUE(device.reports().empty()) << device.reports().front().text;
}

TEST(DeviceRows, GoToAContiguousCache) {
  for (const std::int64_t batch : {std::int64_t{1}, kBatch}) {
    const auto device = std::make_shared<SimulatedDevice>(SimulatedOptions{});
    const auto cache = cuda::ContiguousDeviceCache::make(device, {1, 8}, kDocumented);
    ASSERT_TRUE(cache);
    expect_rows_of_the_device(*device, **cache, batch);
  }
}

TEST(DeviceRows, GoToAPagedCache) {
  for (const std::int64_t batch : {std::int64_t{1}, kBatch}) {
    const auto device = std::make_shared<SimulatedDevice>(SimulatedOptions{});
    auto pool = cuda::DevicePool::make(
        device, {.num_layers = 1, .block_size = 2, .head_dim = batch * kDim, .max_memory_mb = 1},
        QuirkSet<block_pool::Quirk>(Profile::kDocumented));
    ASSERT_TRUE(pool);
    const auto cache =
        cuda::PagedDeviceCache::make({.pool = std::move(*pool), .num_layers = 1}, kDocumented);
    ASSERT_TRUE(cache);
    expect_rows_of_the_device(*device, **cache, batch);
  }
}

}  // namespace
}  // namespace kvo::devices
