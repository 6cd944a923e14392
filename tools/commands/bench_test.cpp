// `kvoracle bench`: what is timed, and what is said of it.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/testing/campaign_fixture.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class BenchCommand : public Campaign {};

TEST_F(BenchCommand, HasARowForEachOperationThatMovesRows) {
  const Finished done = run(
      {"bench", "provider.contiguous", "--quick", "--rounds", "2", "--json", path("bench.json")});
  EXPECT_EQ(done.status, kExitConforms) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("provider.contiguous@optimized  update, 8.00 KiB"),
                              HasSubstr("update, 256 KiB"), HasSubstr("GB/s"), HasSubstr("view"),
                              Not(HasSubstr("seq_len"))));
  const json::value result = json::parse(read("bench.json"));
  int cold = 0;
  int warm = 0;
  for (const json::value& row : result.at("rows").as_array()) {
    if (row.at("op").as_string() != "update, 8.00 KiB") continue;
    EXPECT_EQ(row.at("load").as_string(), "32x8x128, 1 sequence");
    EXPECT_EQ(row.at("payload_bytes"), 8'192) << "K and V of a token and layer";
    EXPECT_EQ(row.at("calls"), 4 * 8 * 32) << "four passes over eight tokens of 32 layers";
    EXPECT_TRUE(row.at("to_memset").is_null()) << "of what was given, memset can make nothing";
    (row.at("cold").as_bool() ? cold : warm)++;
    EXPECT_GT(row.at("median_nanoseconds").to_number<double>(), 0);
    EXPECT_GT(row.at("to_memcpy").at("median").to_number<double>(), 0);
    EXPECT_EQ(row.at("to_reference").is_null(),
              row.at("subject").as_string() == "provider.contiguous@reference");
  }
  EXPECT_EQ(cold, 2) << "of reference and optimized cache";
  EXPECT_EQ(warm, 2);
}

// What a token writes has its room from the prompt on, or is in blocks that are there.
TEST_F(BenchCommand, CountsAllocationsOfWhichADecodedTokenHasNone) {
  const Finished done = run({"bench", "layered", "provider", "positional.causal", "--quick",
                             "--rounds", "1", "--json", path("bench.json")});
  ASSERT_EQ(done.status, kExitConforms) << done.err;
  const json::value result = json::parse(read("bench.json"));
  std::map<std::string, int> judged;
  bool counted = false;
  for (const json::value& row : result.at("rows").as_array()) {
    const std::string subject(row.at("subject").as_string());
    const std::string op(row.at("op").as_string());
    counted = counted || row.at("allocations").to_number<std::uint64_t>() > 0;
    const bool writes = op == "append, 8.00 KiB" || op == "update, 8.00 KiB" ||
                        op == "put, 8.00 KiB" || op == "advance" || op == "set_layer";
    if (!subject.ends_with("@optimized") || row.at("cold").as_bool() || !writes) continue;
    EXPECT_EQ(row.at("allocations"), 0) << subject << ", " << op;
    ++judged[subject];
  }
  EXPECT_TRUE(counted) << "where nothing counts, nothing is allocated";
  EXPECT_THAT(judged, testing::SizeIs(testing::Ge(4U)));
}

}  // namespace
}  // namespace kvo::tools
