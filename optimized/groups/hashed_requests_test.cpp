// Contents with the same hash: no script of a campaign has them (PX-10 to PX-13).
#include "optimized/groups/hashed_requests.hpp"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "reference/contract/values/random.hpp"
#include "reference/prefix/requests.hpp"

namespace kvo::optimized {
namespace {

prefix::Tokens drawn_tokens(traces::Random& random, std::uint64_t longest) {
  prefix::Tokens tokens(random.below(longest + 1));
  for (prefix::Token& token : tokens) token = static_cast<prefix::Token>(random.below(2));
  return tokens;
}

// Requests of few tokens, so that contents are shared and collide. Every third one is made anew by
// an operation that is taken back.
TEST(HashedRequests, HaveTheKeysOfTheReferenceWithAHashOfOneBit) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    traces::Random random(seed);
    prefix::Requests want(2, 1, true);
    HashedRequests got(2, 1, true, 1);
    for (int step = 0; step < 300; ++step) {
      const auto number = static_cast<std::int64_t>(random.below(6));
      if (const std::int64_t row = want.find(number); row >= 0 && random.below(3) > 0) {
        const prefix::Tokens tokens = drawn_tokens(random, 3);
        for (prefix::RequestTable* one : {static_cast<prefix::RequestTable*>(&want),
                                          static_cast<prefix::RequestTable*>(&got)}) {
          one->append(row, tokens);
          step % 3 == 0 ? one->roll_back() : one->commit();
        }
      } else {
        prefix::MakeRequest made{.request = number, .tokens = drawn_tokens(random, 16)};
        if (random.below(2) == 0) made.salt = "ab";
        if (random.below(2) == 0) made.lora = random.below(2) == 0 ? "a" : "b";
        for (prefix::RequestTable* one : {static_cast<prefix::RequestTable*>(&want),
                                          static_cast<prefix::RequestTable*>(&got)}) {
          (void)one->make(number, prefix::RequestTable::text_of(made));
          step % 3 == 0 ? one->roll_back() : one->commit();
        }
      }
      ASSERT_EQ(got.rows(), want.rows());
      ASSERT_EQ(got.keys(), want.keys());
      for (const auto& [request, row] : want.rows()) {
        ASSERT_EQ(got.text(row).tokens, want.text(row).tokens) << "seed " << seed;
        ASSERT_EQ(got.text(row).keys, want.text(row).keys) << "seed " << seed << " step " << step;
        for (const prefix::Key& key : want.text(row).keys)
          ASSERT_EQ(got.depth(prefix::number_of(key)), want.depth(prefix::number_of(key)));
      }
    }
    EXPECT_GT(got.keys(), 100);
  }
}

}  // namespace
}  // namespace kvo::optimized
