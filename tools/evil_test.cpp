// Subjects that crash, end the process, hang, or take all memory: each is a verdict, the campaign
// goes on, and the printed command repeats it.
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/exit_status.hpp"
#include "tools/testing/command_runner.hpp"

namespace kvo::tools {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

struct Deed {
  std::string name;
  std::string verdict;  // what is said of it; a regular expression
  int status;
};

void PrintTo(const Deed& deed, std::ostream* out) {
  *out << deed.name;
}

// A sanitizer ends the process by itself, and says how.
#if defined(__SANITIZE_ADDRESS__)
constexpr const char* kCrashed = "exited with status 1|crashed \\(SIG";
#else
constexpr const char* kCrashed = "crashed \\(SIG(SEGV|ABRT)\\)";
#endif

std::vector<Deed> deeds() {
  return {{"crash", kCrashed, kExitCrashed},
          {"abort", kCrashed, kExitCrashed},
          {"exit", "exited with status 0", kExitCrashed},
          {"hang", "hung \\(no answer for 0.5 s", kExitCrashed},
          {"overflow_stack", kCrashed, kExitCrashed},
          {"corrupt_heap", kCrashed, kExitCrashed},
          {"say_out_of_memory", "out_of_memory", kExitDiffers},
          {"take_memory", "out_of_memory", kExitDiffers},
          {"lie", "want \\[.*got \\[1099511627776\\]", kExitDiffers}};
}

class Evil : public testing::TestWithParam<Deed> {
 protected:
  Evil() : folder_(std::filesystem::path(testing::TempDir()) / ("evil_" + GetParam().name)) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~Evil() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] Finished run(std::vector<std::string> words) const {
    words.insert(words.begin(), KVO_EVIL_PROGRAM);
    // A machine with much to do takes a while to hand out memory, too.
    const std::string seconds = GetParam().name == "hang" ? "0.5" : "30";
    words.insert(words.end(), {"--operation-timeout", seconds, "--case-memory", "256"});
    return run_program(std::move(words), {.folder = folder_.string()});
  }

 private:
  std::filesystem::path folder_;
};

// The words of the first command that is said to repeat something.
std::vector<std::string> repeat_words(const std::string& out) {
  const std::string marker = "repeat with: evil_program ";
  const std::size_t at = out.find(marker);
  if (at == std::string::npos) return {};
  std::istringstream line(out.substr(at + marker.size(), out.find('\n', at) - at - marker.size()));
  std::vector<std::string> words;
  for (std::string word; line >> word;) words.push_back(word);
  return words;
}

TEST_P(Evil, IsAVerdictAndTheCampaignGoesOn) {
  const Deed& deed = GetParam();
  const std::string subject = "layered.vector@" + deed.name;
  const Finished done = run({"check", subject, "layered.vector@optimized", "--law",
                             "agrees_with_reference", "--cases", "3", "--jobs", "2"});
  EXPECT_EQ(done.status, deed.status) << done.out << done.err;
  EXPECT_THAT(done.out, ContainsRegex("FAILED " + subject + " in case"));
  EXPECT_THAT(done.out, ContainsRegex(deed.verdict));
  EXPECT_THAT(done.out, ContainsRegex("layered.vector@optimized +3 +[0-9,]+ +0 +0 +0 "));
  EXPECT_THAT(done.out, HasSubstr("3 cases, "));

  const std::vector<std::string> words = repeat_words(done.out);
  ASSERT_FALSE(words.empty()) << done.out;
  const Finished repeated = run(words);
  EXPECT_EQ(repeated.status, deed.status) << repeated.out << repeated.err;
  EXPECT_THAT(repeated.out, ContainsRegex(deed.verdict));
}

std::string name_of(const testing::TestParamInfo<Deed>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Each, Evil, testing::ValuesIn(deeds()), name_of);

}  // namespace
}  // namespace kvo::tools
