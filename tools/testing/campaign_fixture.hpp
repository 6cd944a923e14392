// tools/testing/campaign_fixture.hpp: a folder of a test's own, and the command run in it.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/commands/exit_status.hpp"
#include "tools/testing/command_runner.hpp"

namespace kvo::tools {

/// What the command is told and leaves behind, in a folder that goes with the test.
class Campaign : public testing::Test {
 protected:
  Campaign()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("kvoracle_" +
                 std::string(testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~Campaign() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  [[nodiscard]] Finished run(std::vector<std::string> arguments) const {
    return run_kvoracle(arguments, {.folder = folder_.string()});
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
