// Rows that a caller has on the device go to a cache from there.
#include <array>
#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "cuda/block_pool/device_pool.hpp"
#include "cuda/provider/contiguous_device_cache.hpp"
#include "cuda/provider/paged_device_cache.hpp"
#include "reference/contract/device/simulated/simulated_device.hpp"

namespace kvo::devices {
namespace {

constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kDim = 3;

/// Adds rows whose cells are on the device alone, and expects them back.
void expect_rows_of_the_device(SimulatedDevice& device, provider::Provider& cache,
                               std::int64_t batch) {
  std::vector<std::vector<float>> wanted(2, std::vector<float>());
  for (const std::int64_t seq : {3, 1}) {
    const Tensor shape = make_tensor({batch, seq, kDim});
    std::array<DevicePtr, 2> cells = {};
    for (const std::size_t side : {0U, 1U}) {
      std::vector<float> rows(static_cast<std::size_t>(shape.elements()));
      std::iota(rows.begin(), rows.end(), static_cast<float>(100 * (seq + 10 * side)));
      cells[side] = *device.alloc(static_cast<std::int64_t>(shape.bytes.size()));
      ASSERT_TRUE(device.to_device(cells[side], std::as_bytes(std::span(rows))));
      std::vector<float> joined;  // [batch, position, dim]
      const std::size_t before = wanted[side].size() / static_cast<std::size_t>(batch);
      const std::size_t added = rows.size() / static_cast<std::size_t>(batch);
      for (std::size_t lane = 0; lane < static_cast<std::size_t>(batch); ++lane) {
        const auto old = wanted[side].begin() + static_cast<std::ptrdiff_t>(lane * before);
        const auto fresh = rows.begin() + static_cast<std::ptrdiff_t>(lane * added);
        joined.insert(joined.end(), old, old + static_cast<std::ptrdiff_t>(before));
        joined.insert(joined.end(), fresh, fresh + static_cast<std::ptrdiff_t>(added));
      }
      wanted[side] = joined;
    }
    ASSERT_TRUE(
        cache.update(0, {.k = &shape, .v = &shape, .k_device = cells[0], .v_device = cells[1]}));
    for (const DevicePtr ptr : cells) ASSERT_TRUE(device.free(ptr));
  }
  const auto held = cache.get(0);
  ASSERT_TRUE(held && *held);
  EXPECT_EQ(materialize((*held)->k), tensor_of({batch, 4, kDim}, wanted[0]));
  EXPECT_EQ(materialize((*held)->v), tensor_of({batch, 4, kDim}, wanted[1]));
  EXPECT_TRUE(device.reports().empty()) << device.reports().front().text;
}

constexpr QuirkSet<provider::Quirk> kDocumented(Profile::kDocumented);

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
