// A pool of `positional` that holds more elements than 32 bits count.
#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "cuda/subjects.hpp"
#include "properties/devices/device_caches.hpp"
#include "properties/devices/mutants/device_mutant.hpp"
#include "reference/contract/values/strided_view.hpp"
#include "reference/positional/operations.hpp"

namespace kvo::devices {
namespace {

// Rows so wide that cell 2^14 begins at element 2^32; those before it are taken, but not written.
constexpr std::int64_t kWidth = std::int64_t{1} << 18U;
constexpr std::int64_t kTaken = std::int64_t{1} << 14U;
constexpr std::int64_t kBatch = 64;

Tensor wide_row(std::int64_t width) {
  Tensor row = make_tensor({1, 1, width});
  for (std::int64_t i = 0; i < width; ++i)
    row.floats()[static_cast<std::size_t>(i)] = static_cast<float>(1 + i % 2000);
  return row;
}

// What a get shows of a row that was put behind 2^32 elements; broken invariants are failures.
Tensor shown_behind_the_taken(const std::function<Subject(OpenDevice)>& over) {
  const Subject subject = watched_subject(over, [](const kvo::Setup&) { return open_schedule(1); });
  auto session = *subject.open(Setup{});
  Probe probe;
  const auto apply = [&](auto op) {
    Observation seen = session->apply(Op::of(std::move(op)), probe);
    EXPECT_FALSE(seen.error) << seen.error->text();
    EXPECT_EQ(session->broken_invariant(), std::nullopt);
    return seen;
  };
  apply(positional::Init{1, kTaken + 1, kBatch, StorageType::kF16});
  for (std::int64_t sequence = 1; sequence <= kTaken / kBatch; ++sequence) {
    positional::StartForward start;
    for (std::int32_t position = 0; position < kBatch; ++position) {
      start.positions.push_back(position);
      start.seqs.push_back(sequence);
    }
    apply(std::move(start));
  }
  apply(positional::StartForward{.positions = {0}, .seqs = {0}});
  apply(positional::Put{wide_row(kWidth), wide_row(1)});
  const Observation seen = apply(positional::Get{});
  return seen.error ? Tensor() : seen.as<positional::Get::Returns>().k.value.value_or(Tensor());
}

std::vector<float> halves_as_floats(const Tensor& shown) {
  std::vector<float> values;
  for (std::size_t at = 0; at < shown.bytes.size(); at += 2)
    values.push_back(load_element(DType::kF16, shown.bytes.data() + at));
  return values;
}

TEST(HugePool, IsWrittenAndReadBehindElement2To32) {
  const auto sound = [](const OpenDevice& open) {
    return cuda::positional_subjects("scheduled", open).front();
  };
  const Tensor row = wide_row(kWidth);
  const std::vector<float> want(row.floats().begin(), row.floats().end());
  EXPECT_EQ(halves_as_floats(shown_behind_the_taken(sound)), want);
  EXPECT_NE(halves_as_floats(shown_behind_the_taken(far_mutant("positional.causal").over)), want)
      << far_mutant("positional.causal").fault;
}

}  // namespace
}  // namespace kvo::devices
