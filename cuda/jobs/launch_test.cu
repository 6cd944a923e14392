// The same jobs on a device: what a kernel leaves in memory is what the host leaves.
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "cuda/jobs/launch.cuh"

namespace kvo::cuda {
namespace {

// Device memory of one array, filled from the host.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : count_(values.size()) {
    EXPECT_EQ(cudaMalloc(&data_, count_ * sizeof(T)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  ~DeviceArray() { (void)cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return data_; }
  std::vector<T> read() const {
    std::vector<T> out(count_);
    EXPECT_EQ(cudaMemcpy(out.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return out;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
      GTEST_SKIP() << "no CUDA device on this machine";
  }
  template <class Job>
  static void finish(const Job& job) {
    ASSERT_EQ(launch(job, nullptr), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
};

TEST_F(OnDevice, EveryHalfConvertsAsOnTheHost) {
  std::vector<std::uint16_t> halves(0x10000);
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  std::vector<std::uint32_t> wide(halves.size());
  for (std::size_t i = 0; i < halves.size(); ++i) wide[i] = float_of_half_bits(halves[i]);
  DeviceArray<std::uint16_t> from(halves);
  DeviceArray<std::uint32_t> to(std::vector<std::uint32_t>(halves.size(), 0xDEADU));
  finish(ToFloatJob{to.data(), from.data(), static_cast<std::int64_t>(halves.size())});
  EXPECT_EQ(to.read(), wide);
}

TEST_F(OnDevice, RoundingIsThatOfTheHost) {
  std::vector<std::uint32_t> bits(std::size_t{1} << 22U);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint32_t>(i * 1021U);
  std::vector<std::uint16_t> wanted(bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) wanted[i] = half_of_float_bits(bits[i]);
  DeviceArray<std::uint32_t> from(bits);
  DeviceArray<std::uint16_t> to(std::vector<std::uint16_t>(bits.size(), 0xFFFFU));
  finish(ToHalfJob{to.data(), from.data(), static_cast<std::int64_t>(bits.size())});
  EXPECT_EQ(to.read(), wanted);
}

TEST_F(OnDevice, RowsGoWhereTheCounterSaysAndTheCounterMoves) {
  constexpr std::int64_t kDim = 1000;
  constexpr std::int64_t kRows = 6;
  DeviceArray<std::uint32_t> buffer(std::vector<std::uint32_t>(kDim * kRows, 0xDEADU));
  DeviceArray<std::int32_t> counter(std::vector<std::int32_t>{0});
  std::vector<std::uint32_t> wanted(kDim * kRows, 0xDEADU);
  // Two steps more than there is room: they write nothing.
  for (std::uint32_t step = 0; step < kRows + 2; ++step) {
    std::vector<std::uint32_t> row(kDim);
    std::iota(row.begin(), row.end(), step * 10'000U);
    if (step < kRows) std::copy(row.begin(), row.end(), wanted.begin() + step * kDim);
    DeviceArray<std::uint32_t> source(row);
    finish(OffsetCopyJob{buffer.data(), source.data(), counter.data(), kDim, kRows});
    finish(IncrementJob{counter.data(), 1});
  }
  EXPECT_EQ(buffer.read(), wanted);
  EXPECT_EQ(counter.read().front(), kRows + 2);
}

// Offsets beyond 2^32 cells: 17 GB of the card, skipped where it has less.
TEST_F(OnDevice, OffsetsBeyondFourGigacellsAreNotCut) {
  constexpr std::int64_t kDim = std::int64_t{1} << 20U;
  constexpr std::int64_t kRows = 4100;
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  const std::size_t bytes = static_cast<std::size_t>(kDim * kRows) * sizeof(std::uint32_t);
  if (free < bytes + (std::size_t{1} << 30U)) GTEST_SKIP() << "needs 18 GB of free device memory";
  std::uint32_t* buffer = nullptr;
  ASSERT_EQ(cudaMalloc(&buffer, bytes), cudaSuccess);
  std::vector<std::uint32_t> row(kDim);
  std::iota(row.begin(), row.end(), 7U);
  DeviceArray<std::uint32_t> source(row);
  DeviceArray<std::int32_t> counter(std::vector<std::int32_t>{kRows - 1});
  finish(OffsetCopyJob{buffer, source.data(), counter.data(), kDim, kRows});
  std::vector<std::uint32_t> last(kDim);
  ASSERT_EQ(cudaMemcpy(last.data(), buffer + (kRows - 1) * kDim, kDim * sizeof(std::uint32_t),
                       cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(last, row);
  (void)cudaFree(buffer);
}

}  // namespace
}  // namespace kvo::cuda
