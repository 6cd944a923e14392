// What a card may answer that is no success.
#include <array>
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/device/open.hpp"
#include "cuda/jobs/launchers.hpp"
#include "cuda/standin/opened_card.hpp"
#include "reference/contract/device/device_suite.hpp"

namespace kvo::cuda {
namespace {

using testing::HasSubstr;

TEST(BadCard, AMachineWithoutOne) {
  const auto opened = open_device();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), fail(Code::kNotSupported));
  EXPECT_THAT(opened.error().text(), HasSubstr("no CUDA device"));
  EXPECT_EQ(card_name().error(), fail(Code::kNotSupported));
}

TEST(BadCard, ACardIsNamed) {
  const Card card;
  EXPECT_EQ(*card_name(), "simulated card, compute capability 9.0");
}

TEST(BadCard, OneOfAnOlderArchitecture) {
  const Card card({.major = 7, .minor = 5});
  const auto opened = open_device();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), fail(Code::kNotSupported));
  EXPECT_THAT(opened.error().text(), HasSubstr("compute capability 7.5; 8.0 is needed"));
}

TEST(BadCard, OneThatNoKernelIsCompiledFor) {
  auto opened = *OpenedCard::open({.no_kernel_image = true});
  const DevicePtr counter = *opened->device->alloc(4);
  const Status done = opened->device->run(increment(counter));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error(), fail(Code::kNotSupported));
  EXPECT_THAT(done.error().text(), HasSubstr("cudaErrorNoKernelImageForDevice"));
  EXPECT_TRUE(opened->device->synchronize(Stream())) << "the device goes on";
}

/// A job that no kernel was compiled of.
struct HostOnlyJob {
  static constexpr std::string_view kName = "host_only";
  [[nodiscard]] std::int64_t items() const { return 1; }
  template <class Memory>
  void run(std::int64_t /*i*/, Memory& /*memory*/) const {}
  [[nodiscard]] bool touch(JobMemory& /*memory*/) { return true; }
  [[nodiscard]] JobArguments arguments() const { return {}; }
};

TEST(BadCard, AJobWithoutAKernel) {
  auto opened = *OpenedCard::open();
  const Status done = opened->device->run(HostOnlyJob());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error(), fail(Code::kNotSupported));
  EXPECT_THAT(done.error().text(), HasSubstr("host_only"));
}

/// A little of everything; the first error.
Status play(Device& device) {
  const auto buffer = device.alloc(64);
  if (!buffer) return buffer.error();
  const auto counter = device.alloc(4);
  if (!counter) return counter.error();
  const auto stream = device.create_stream();
  if (!stream) return stream.error();
  const auto event = device.create_event();
  if (!event) return event.error();
  const std::array<std::byte, 64> bytes = {};
  if (Status done = device.to_device_async(*buffer, bytes, *stream); !done) return done;
  if (Status done = device.record(*event, *stream); !done) return done;
  if (Status done = device.wait({}, *event); !done) return done;
  if (Status done = device.begin_capture(*stream); !done) return done;
  const Status queued = device.launch(increment(*counter), *stream);
  const auto graph = device.end_capture(*stream);
  if (!queued) return queued;
  if (!graph) return graph.error();
  for (int i = 0; i < 3; ++i)
    if (Status done = device.replay(*graph, *stream); !done) return done;
  if (Status done = device.synchronize(*stream); !done) return done;
  if (Status done = device.destroy(*graph); !done) return done;
  if (Status done = device.synchronize(*event); !done) return done;
  const auto value = read_counter(device, *counter);
  if (!value) return value.error();
  EXPECT_EQ(*value, 3);
  for (const DevicePtr ptr : {*buffer, *counter})
    if (Status done = device.free(ptr); !done) return done;
  if (Status done = device.destroy(*event); !done) return done;
  return device.destroy(*stream);
}

/// Opens a card with these options and plays; the first error.
Status play_on(const CardOptions& options) {
  auto opened = OpenedCard::open(options);
  if (!opened) return opened.error();
  return play(*(*opened)->device);
}

TEST(BadCard, OneWhoseMemoryFailsAtAnyAlloc) {
  std::int64_t failed = 0;
  for (std::int64_t k = 1;; ++k) {
    const Status done = play_on({.device = {.fail_alloc = k}});
    if (done) break;
    EXPECT_EQ(done.error(), fail_other("alloc_failed")) << k;
    ++failed;
  }
  EXPECT_EQ(failed, 2);
}

TEST(BadCard, OneThatIsLostAtAnyCall) {
  std::int64_t lost = 0;
  for (std::int64_t k = 1;; ++k) {
    const Status done = play_on({.device = {.lose_at = k}});
    if (done) break;
    EXPECT_EQ(done.error(), fail_other("device_lost")) << k << ": " << done.error().text();
    EXPECT_THAT(done.error().text(), HasSubstr("cudaErrorDevicesUnavailable")) << k;
    ++lost;
  }
  EXPECT_GE(lost, 20);
}

TEST(BadCard, SizesThatItDoesNotHave) {
  auto opened = *OpenedCard::open();
  const Error failed = fail_other("alloc_failed");
  EXPECT_EQ(opened->device->alloc(-1).error(), failed);
  EXPECT_EQ(opened->device->alloc((std::int64_t{1} << 40U) + 1).error(), failed);
  EXPECT_EQ(opened->device->alloc(std::numeric_limits<std::int64_t>::max()).error(), failed);
  const DevicePtr large = *opened->device->alloc(std::int64_t{1} << 39U);
  EXPECT_EQ(opened->device->fill_async(large, {}, (std::int64_t{1} << 39U) + 1, {}).error(),
            fail_other("bad_pointer"));
  EXPECT_TRUE(opened->device->free(large));
}

TEST(BadCard, AKernelOutsideOfItsMemory) {
  auto opened = *OpenedCard::open();
  const DevicePtr cells = *opened->device->alloc(4);
  EXPECT_TRUE(opened->device->run(to_float(cells, cells, 2)));
  const Status done = opened->device->synchronize(Stream());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error(), fail_other("bad_pointer"));
  EXPECT_THAT(done.error().text(), HasSubstr("cudaErrorIllegalAddress"));
}

// ---- launches that the runtime refuses ----

cudaError_t launch_as(const dim3& grid, const dim3& block) {
  IncrementJob job{nullptr, 0};
  void* arguments = &job;
  return cudaLaunchKernel(find_launcher(kJobType<IncrementJob>)->kernel, grid, block, &arguments, 0,
                          nullptr);
}

TEST(BadCard, GridsThatCannotBe) {
  const Card card;
  for (const auto& [grid, block] :
       {std::pair(dim3(0), dim3(1)), std::pair(dim3(1), dim3(0)), std::pair(dim3(1), dim3(1025)),
        std::pair(dim3(0x80000000U), dim3(1))}) {
    EXPECT_EQ(launch_as(grid, block), cudaErrorInvalidConfiguration) << grid.x << " " << block.x;
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "it is said once";
  }
  EXPECT_EQ(launch_as(dim3(1, 2), dim3(1)), cudaErrorNotSupported);
  int unknown = 0;
  EXPECT_EQ(cudaLaunchKernel(&unknown, dim3(1), dim3(1), nullptr, 0, nullptr),
            cudaErrorInvalidDeviceFunction);
}

TEST(BadCard, StreamsThatWaitByThemselvesAreNotSimulated) {
  const Card card;
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamDefault), cudaErrorNotSupported);
}

}  // namespace
}  // namespace kvo::cuda
