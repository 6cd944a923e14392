// Sizes of window halves and masks stay below their limits.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "reference/cells/operations.hpp"
#include "reference/subjects.hpp"

namespace kvo::cells {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 31;

TEST(CellsBadInput, WindowHalvesOfAnyConfigHaveCellsInRange) {
  for (const std::int64_t size : {std::int64_t{1}, kMostCells})
    for (const std::int64_t n_ubatch : {-kHuge, std::int64_t{0}, kHuge})
      for (const std::int32_t n_swa : {1, kMaxPosition}) {
        const kvo::Setup setup{.profile = Profile::kDocumented,
                               .config = Record::of(IswaConfig{.size = size,
                                                               .n_seq_max = 256,
                                                               .n_swa = n_swa,
                                                               .swa_type = WindowType::kStandard,
                                                               .n_ubatch = n_ubatch})};
        const KvOptions options = kv_options(iswa_kind(), setup, {});
        EXPECT_TRUE(check_options(options).has_value()) << *options.size_window;
      }
}

TEST(CellsBadInput, MasksAreBounded) {
  std::unique_ptr<Session> session;
  for (const Subject& subject : references())
    if (subject.kind == &kv_kind())
      session = *subject.open(
          {.profile = Profile::kDocumented, .config = Record::of(KvConfig{.size = kMostCells})});
  Probe probe;
  const auto decoded = [&](std::int64_t tokens) {
    Decode batch;
    batch.seqs.assign(static_cast<std::size_t>(tokens), {0});
    batch.n_ubatch = 64;
    return session->apply(Op::of(std::move(batch)), probe);
  };
  ASSERT_FALSE(session->apply(Op::of(New()), probe).error);
  EXPECT_TRUE(decoded(kMostMaskEntries / kMostCells + 1).failed_with(Code::kPrecondition));
  EXPECT_FALSE(decoded(kMostMaskEntries / kMostCells).error);
}

}  // namespace
}  // namespace kvo::cells
