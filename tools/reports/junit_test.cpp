#include "tools/reports/junit.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/testing/xml_reader.hpp"

namespace kvo::tools {
namespace {

using State = JunitTest::State;
using testing::EndsWith;
using testing::HasSubstr;

TEST(XmlReader, RefusesWhatIsNotWellFormed) {
  EXPECT_EQ(read_xml("<a><b c='d'>e</b></a>").children.at(0).attributes.at("c"), "d");
  for (const char* wrong : {"<a><b></a>", "<a>\x1b</a>", "<a>\xe9</a>", "<a>&</a>", "<a b='<'/>",
                            "<a>\xEF\xBF\xBF</a>"})
    EXPECT_THROW((void)read_xml(wrong), std::runtime_error) << wrong;
}

TEST(Junit, HoldsSuitesTestsAndCounts) {
  const XmlElement root = read_xml(
      junit_text("kvoracle check",
                 {{"cache@a", {{.name = "law"}, {.name = "other", .seconds = 1.5}}},
                  {"cache@b",
                   {{.name = "law", .state = State::kFailed, .message = "m", .details = {"1", "2"}},
                    {.name = "other", .state = State::kError, .message = "e"},
                    {.name = "third", .state = State::kSkipped, .message = "s"}}}}));
  EXPECT_EQ(root.name, "testsuites");
  EXPECT_EQ(root.attributes.at("name"), "kvoracle check");
  EXPECT_EQ(root.attributes.at("tests"), "5");
  ASSERT_EQ(root.children.size(), 2U);
  const XmlElement& first = root.children[0];
  EXPECT_EQ(first.attributes.at("failures"), "0");
  EXPECT_EQ(first.children.at(0).attributes.at("classname"), "cache@a");
  EXPECT_FALSE(first.children.at(0).attributes.contains("time"));
  EXPECT_EQ(first.children.at(1).attributes.at("time"), "1.500000");
  const XmlElement& second = root.children[1];
  for (const char* count : {"failures", "errors", "skipped"})
    EXPECT_EQ(second.attributes.at(count), "1") << count;
  const XmlElement& failure = second.children.at(0).children.at(0);
  EXPECT_EQ(failure.name, "failure");
  EXPECT_EQ(failure.attributes.at("message"), "m");
  EXPECT_EQ(failure.text, "1\n2\n");
  EXPECT_EQ(second.children.at(1).children.at(0).name, "error");
  EXPECT_EQ(second.children.at(2).children.at(0).name, "skipped");
}

TEST(Junit, AnyBytesGiveXml) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  all += "]]> <!-- \xEF\xBF\xBE \xEF\xBF\xBF \xED\xA0\x80 &amp; \"'";
  const XmlElement root = read_xml(junit_text(
      all, {{all, {{.name = all, .state = State::kFailed, .message = all, .details = {all}}}}}));
  const XmlElement& test = root.children.at(0).children.at(0);
  EXPECT_THAT(test.attributes.at("name"), HasSubstr("\\x1b"));
  EXPECT_THAT(test.children.at(0).attributes.at("message"), EndsWith(" &amp; \"'"));
  EXPECT_THAT(test.children.at(0).text, EndsWith(" &amp; \"'\n"));
}

TEST(Junit, IsBounded) {
  JunitTest test{.name = "law", .state = State::kFailed, .message = std::string(1'000'000, 'x')};
  test.details.assign(1'000, std::string(5'000, 'y'));
  const std::string text = junit_text("title", {{"subject", {test}}});
  EXPECT_LT(text.size(), 2'000'000U);
  EXPECT_THAT(read_xml(text).children.at(0).children.at(0).children.at(0).text,
              EndsWith("600 more lines\n"));
}

}  // namespace
}  // namespace kvo::tools
