#include "tools/reports/json_file.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "tools/commands/usage.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;

TEST(JsonText, PutsPlainListsAndObjectsOnOneLine) {
  const json::value value{{"name", "a \"b\"\n"},
                          {"list", {1, -2, 3.5, true, nullptr}},
                          {"empty", json::array()},
                          {"nested", {{"x", {{"y", 1}}}}}};
  EXPECT_EQ(json_text(value),
            "{\n"
            "  \"name\": \"a \\\"b\\\"\\n\",\n"
            "  \"list\": [1, -2, 3.5, true, null],\n"
            "  \"empty\": [],\n"
            "  \"nested\": {\n"
            "    \"x\": {\"y\": 1}\n"
            "  }\n"
            "}\n");
}

TEST(JsonText, BreaksWhatIsTooLongForALine) {
  json::array list;
  for (int i = 0; i < 60; ++i) list.emplace_back(100 + i);
  const std::string text = json_text(json::object{{"list", list}});
  EXPECT_EQ(text.substr(0, 31), "{\n  \"list\": [\n    100,\n    101,");
  EXPECT_EQ(json::parse(text).at("list"), list);
}

TEST(JsonText, ReadsBackAsWhatWasWritten) {
  const json::value value{
      {"tenth", 0.1}, {"big", std::numeric_limits<std::uint64_t>::max()}, {"small", -1e-300}};
  EXPECT_EQ(json::parse(json_text(value)), value);
  EXPECT_EQ(json_text(1e300), "1e+300\n");
  EXPECT_EQ(json_text(std::numeric_limits<double>::infinity()), "null\n");
}

TEST(JsonFile, IsWrittenWhole) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "kvoracle_json_file_test.json";
  write_json_file(path.string(), json::value{{"a", 1}});
  std::ifstream in(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "{\"a\": 1}\n");
  std::filesystem::remove(path);
  EXPECT_THROW(write_json_file("/no/such/folder/a.json", nullptr), FileError);
}

}  // namespace
}  // namespace kvo::tools
