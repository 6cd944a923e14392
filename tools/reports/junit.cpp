#include "tools/reports/junit.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include <boost/algorithm/string/replace.hpp>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <fmt/format.h>

#include "reference/contract/describe/utf8.hpp"
#include "tools/reports/console.hpp"

namespace kvo::tools {
namespace {

namespace xml = boost::property_tree;
using State = JunitTest::State;

constexpr std::size_t kMostOfAName = 300;
constexpr std::size_t kMostOfALine = 4'000;
constexpr std::size_t kMostLines = 400;

// One line as XML 1.0 may hold it: no control characters, U+FFFE or U+FFFF.
std::string line_text(std::string_view line, std::size_t most = kMostOfAName) {
  const bool cut = line.size() > most && !line.starts_with(kRepeatWith);
  std::string text =
      valid_utf8(printable_command(cut ? line.substr(0, most) : line)) + (cut ? "..." : "");
  for (const char* none : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"})
    boost::replace_all(text, none, "\xEF\xBF\xBD");
  return text;
}

std::string lines_text(const std::vector<std::string>& lines) {
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i)
    text += line_text(lines[i], kMostOfALine) + "\n";
  if (lines.size() > kMostLines) text += fmt::format("{} more lines\n", lines.size() - kMostLines);
  return text;
}

void put(xml::ptree& element, const std::string& attribute, const std::string& value) {
  element.put("<xmlattr>." + attribute, value);
}

xml::ptree test_element(const JunitSuite& suite, const JunitTest& test) {
  xml::ptree element;
  put(element, "classname", line_text(suite.name));
  put(element, "name", line_text(test.name));
  if (test.seconds) put(element, "time", fmt::format("{:.6f}", *test.seconds));
  if (test.state == State::kPassed) return element;
  xml::ptree why(lines_text(test.details));
  put(why, "message", line_text(test.message));
  const char* name = test.state == State::kFailed  ? "failure"
                     : test.state == State::kError ? "error"
                                                   : "skipped";
  if (test.state != State::kSkipped) put(why, "type", name);
  element.add_child(name, why);
  return element;
}

void put_counts(xml::ptree& element, const std::vector<JunitSuite>& suites) {
  std::map<State, std::size_t> counts;
  std::size_t all = 0;
  for (const JunitSuite& suite : suites) {
    all += suite.tests.size();
    for (const JunitTest& test : suite.tests) ++counts[test.state];
  }
  put(element, "tests", std::to_string(all));
  put(element, "failures", std::to_string(counts[State::kFailed]));
  put(element, "errors", std::to_string(counts[State::kError]));
  put(element, "skipped", std::to_string(counts[State::kSkipped]));
}

}  // namespace

std::string junit_text(const std::string& title, const std::vector<JunitSuite>& suites) {
  xml::ptree root;
  put(root, "name", line_text(title));
  put_counts(root, suites);
  for (const JunitSuite& suite : suites) {
    xml::ptree element;
    put(element, "name", line_text(suite.name));
    put_counts(element, {suite});
    for (const JunitTest& test : suite.tests)
      element.add_child("testcase", test_element(suite, test));
    root.add_child("testsuite", element);
  }
  xml::ptree document;
  document.add_child("testsuites", root);
  std::ostringstream out;
  xml::write_xml(out, document, xml::xml_writer_make_settings<std::string>(' ', 2));
  return out.str();
}

void write_junit(const std::string& path, const std::string& title,
                 const std::vector<JunitSuite>& suites) {
  write_text_file(path, junit_text(title, suites));
}

}  // namespace kvo::tools
