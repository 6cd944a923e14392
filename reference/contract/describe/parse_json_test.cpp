// Documents are read as Boost reads them, and their numbers to the last bit.
#include "reference/contract/describe/parse_json.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "reference/contract/values/random.hpp"

namespace kvo {
namespace {

namespace json = boost::json;

json::value read(std::string_view text) {
  boost::system::error_code failure;
  json::value value = parse_json(text, failure);
  EXPECT_FALSE(failure) << text << ": " << failure.message();
  return value;
}

TEST(ParseJson, ReadsEveryDoubleToTheLastBit) {
  EXPECT_EQ(read("0.9615384615384615").as_double(), 1.25 / 1.3);
  EXPECT_TRUE(std::signbit(read("-0.0").as_double()));
  EXPECT_EQ(read("[5e-324]").at(0).as_double(), std::numeric_limits<double>::denorm_min());
  traces::Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    const double value = std::ldexp(static_cast<double>(random.below(std::uint64_t{1} << 53U)),
                                    -static_cast<int>(random.below(120)));
    const std::string text = json::serialize(json::value(value));
    ASSERT_EQ(read("{\"a\": [" + text + "]}").at("a").at(0).to_number<double>(), value) << text;
  }
}

TEST(ParseJson, ReadsDocumentsAsBoostDoes) {
  for (const char* text :
       {"{}", "[]", " {\"a\":[1,-2,18446744073709551615,true,false,null,\"x\\n\\u00e9\"]} \n",
        R"({"a":1,"A":2,"b":{"a":3}})", R"("text")", "1e5", "-0.5", R"([1.5,[2.25,{"b":{}}]])",
        "1e-400"})
    EXPECT_EQ(read(text), json::parse(text)) << text;
}

TEST(ParseJson, RefusesWhatBoostRefuses) {
  const std::string deep(100, '[');
  for (const std::string& text : {std::string("{"), std::string("{} x"), std::string("[1,]"),
                                  std::string("01"), std::string("nan"), std::string(), deep}) {
    boost::system::error_code failure;
    boost::system::error_code boosts;
    EXPECT_TRUE(parse_json(text, failure).is_null());
    (void)json::parse(text, boosts);
    EXPECT_TRUE(failure) << text;
    EXPECT_EQ(failure, boosts) << text;
  }
}

TEST(ParseJson, RefusesAMemberThatIsThereTwice) {
  std::string many;
  for (int i = 0; i < 50; ++i) many += "\"m" + std::to_string(i) + "\":0,";
  for (const auto& [text, name] : std::vector<std::pair<std::string, std::string>>{
           {R"({"ret":{"cache":5},"ret":{"cache":0}})", "ret"},
           {R"([1,{"a":1,"b":{"a":2,"c":3,"\u0063":4}}])", "c"},
           {R"({"a\n":1,"b":2,"a\u000a":3})", "a\n"},
           {R"({"":1,"":2})", ""},
           {R"({"\u0061bc":1,"x\u0061bc":2,"bc":3,"abc":4})", "abc"},
           {"{" + many + "\"m7\":1}", "m7"}}) {
    boost::system::error_code failure;
    std::optional<std::string> twice;
    EXPECT_TRUE(parse_json(text, failure, &twice).is_null());
    EXPECT_TRUE(failure) << text;
    EXPECT_EQ(twice, name) << text;
  }
}

}  // namespace
}  // namespace kvo
