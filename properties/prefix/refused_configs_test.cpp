// Configs that profile original takes and profile documented refuses.
#include <gtest/gtest.h>

#include "properties/contracts.hpp"
#include "reference/prefix/operations.hpp"

namespace kvo::prefix {
namespace {

void expect_refused_where_documented(const CacheKind& kind, const Record& config) {
  for (const Subject* subject : contracts().subjects_of(kind)) {
    SCOPED_TRACE(subject->name());
    EXPECT_TRUE(subject->open({.profile = Profile::kOriginal, .config = config}));
    const auto refused = subject->open({.profile = Profile::kDocumented, .config = config});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code_text(), "not_supported");
  }
}

TEST(PrefixRules, PX48_DraftHeadsInChunksAreRefused) {
  expect_refused_where_documented(blocks_kind(),
                                  Record::of(BlocksConfig{.num_blocks = 8,
                                                          .block_size = 2,
                                                          .attention = Attention::kChunkedLocal,
                                                          .chunk = 4,
                                                          .max_model_len = 64,
                                                          .eagle = true}));
}

TEST(PrefixRules, PX71_PX79_APolicyWithoutAnOrderIsRefused) {
  expect_refused_where_documented(radix_kind(),
                                  Record::of(RadixConfig{.policy = Policy::kTlru, .slots = 16}));
}

}  // namespace
}  // namespace kvo::prefix
