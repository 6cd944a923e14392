#include "reference/provider/tracing_cache.hpp"

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace kvo::provider {
namespace {

TEST(SlotShape, IsAPairInLogs) {
  SlotShape read;
  ASSERT_TRUE(read.from_json(boost::json::parse("[3,[1,2]]")));
  EXPECT_EQ(read, (SlotShape{3, {1, 2}}));
  EXPECT_EQ(boost::json::serialize(read.to_json()), "[3,[1,2]]");
  for (const char* text : {"3", "[3]", "[3,4]", R"(["a",[1]])"})
    EXPECT_FALSE(read.from_json(boost::json::parse(text))) << text;
}

}  // namespace
}  // namespace kvo::provider
