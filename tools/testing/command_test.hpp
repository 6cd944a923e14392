// tools/testing/command_test.hpp: a folder of a test's own, and the command run in it.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tools/commands/exit_status.hpp"
#include "tools/testing/command_runner.hpp"

namespace kvo::tools {

/// The words of a command line, which has blanks between them and nothing quoted.
[[nodiscard]] inline std::vector<std::string> words_of(const std::string& line) {
  std::istringstream text(line);
  return {std::istream_iterator<std::string>(text), {}};
}

/// Runs commands in a folder that is removed after the test.
class CommandTest : public testing::Test {
 public:
  ~CommandTest() override { std::filesystem::remove_all(folder_); }

 protected:
  CommandTest() {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::ranges::replace(name, '/', '_');
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("kvoracle_" + name + "_" + std::to_string(getpid()));
    empty_folder();
  }

  void empty_folder() const {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  [[nodiscard]] Finished run(const std::vector<std::string>& arguments) const {
    return run_kvoracle(arguments, {.folder = folder_.string()});
  }
  [[nodiscard]] Finished run(const std::string& line) const { return run(words_of(line)); }
  /// Runs a program as the leader of a group. A process that it leaves behind is a failure.
  [[nodiscard]] Finished run_group(std::vector<std::string> words, ProgramOptions options) const {
    const std::string mark = "KVO_TEST_RUN=" + folder_.filename().string();
    options.folder = folder_.string();
    options.environment.push_back(mark);
    options.own_group = true;
    Finished done = run_program(std::move(words), options);
    EXPECT_THAT(left_behind(mark), testing::IsEmpty()) << "processes were left behind";
    return done;
  }
  [[nodiscard]] std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path(name), std::ios::binary).rdbuf();
    return text.str();
  }
  // The lines of a run file without their timings.
  [[nodiscard]] std::vector<std::string> cases_of(const std::string& name) const {
    std::vector<std::string> lines;
    std::istringstream text(read(name));
    for (std::string line; std::getline(text, line);) {
      boost::json::value record = boost::json::parse(line);
      if (auto* subjects = record.get_object().if_contains("subjects"))
        for (boost::json::value& subject : subjects->get_array())
          if (subject.is_object()) subject.get_object().erase("timings");
      lines.push_back(boost::json::serialize(record));
    }
    return lines;
  }

  std::filesystem::path folder_;
};

}  // namespace kvo::tools
