// tools/commands/trace_test.cpp: `kvoracle trace info` and `kvoracle trace generate`.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/commands/exit_status.hpp"
#include "tools/testing/command_runner.hpp"

namespace kvo::tools {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A file in the folder for temporary ones, gone at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text = {}) {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = (fs::path(testing::TempDir()) / (std::string("kvoracle_") + test->name())).string();
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryFile() { fs::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr const char* kTwoRequests =
    R"({"timestamp":0,"input_length":600,"output_length":5,"hash_ids":[1,2]}
{"timestamp":1000,"input_length":700,"output_length":7,"hash_ids":[1,3]}
)";

TEST(TraceInfo, ShowsTheSampleByDefault) {
  const Finished done = run_kvoracle({"trace", "info"});
  EXPECT_EQ(done.status, kExitConforms);
  EXPECT_THAT(done.out, StartsWith("trace               sample\nrequests            300\n"));
  EXPECT_THAT(done.out, HasSubstr("flat lru            1,000 blocks: "));
  EXPECT_THAT(done.out, HasSubstr("flat lru            50,000 blocks: "));
  EXPECT_THAT(done.out, HasSubstr("validation          0 errors, 0 warnings\n"));
  EXPECT_EQ(done.err, "");
}

TEST(TraceInfo, CountsAFilesRequestsAndHits) {
  const TemporaryFile file(kTwoRequests);
  const Finished done =
      run_kvoracle({"trace", "info", file.path(), "--capacity", "1,2", "--json", "-"});
  EXPECT_EQ(done.status, kExitConforms) << done.err;
  const json::value all = json::parse(done.out);
  EXPECT_EQ(all.at("trace").as_string(), file.path());
  EXPECT_EQ(all.at("requests"), 2);
  EXPECT_EQ(all.at("input").at("max"), 700);
  EXPECT_EQ(all.at("prefix_hits"), 1);
  EXPECT_EQ(all.at("prefix_hit_share"), 0.25);
  EXPECT_EQ(all.at("lru").as_array().size(), 2U);
  EXPECT_EQ(all.at("lru").at(1).at("capacity_blocks"), 2);
  EXPECT_EQ(all.at("errors"), 0);
}

TEST(TraceInfo, ReadsStandardInputAsAFile) {
  const Finished done = run_kvoracle({"trace", "info", "/dev/stdin", "--format", "mooncake"},
                                     {.input = kTwoRequests});
  EXPECT_EQ(done.status, kExitConforms) << done.err;
  EXPECT_THAT(done.out, HasSubstr("requests            2\n"));
}

TEST(TraceInfo, ReportsFaultsOnStandardError) {
  const TemporaryFile file(R"({"timestamp":0,"input_length":600,"output_length":5,"hash_ids":[1]}
)");
  const Finished done = run_kvoracle({"trace", "info", file.path()});
  EXPECT_EQ(done.status, kExitDiffers);
  EXPECT_THAT(done.err, StartsWith(file.path() + ":1: error: block-count: "));
  EXPECT_THAT(done.out, HasSubstr("validation          1 error, 0 warnings\n"));
  // With blocks of another size the same file is sound.
  EXPECT_EQ(run_kvoracle({"trace", "info", file.path(), "--block-size", "1024"}).status,
            kExitConforms);
}

TEST(Run, WarnsOfATraceThatInfoFindsErrorsIn) {
  const TemporaryFile file(R"({"timestamp":0,"input_length":600,"output_length":5,"hash_ids":[1]}
{"timestamp":1,"input_length":700,"output_length":5,"hash_ids":[1]}
)");
  std::vector<std::string> words{"run", file.path(), "--subject", "layered", "--no-timings"};
  const Finished done = run_kvoracle(words);
  EXPECT_EQ(done.status, kExitConforms) << done.err;
  const std::string line =
      file.path() + ": block-count in 2 places: prefixes mean nothing; `kvoracle trace info " +
      file.path() + "` shows where\n";
  EXPECT_EQ(done.err, line);
  words.emplace_back("--strict");
  const Finished strict = run_kvoracle(words);
  EXPECT_EQ(strict.status, kExitUsage);
  EXPECT_EQ(strict.out, "");
  EXPECT_EQ(strict.err, "kvoracle: " + line);
  const TemporaryFile good(kTwoRequests);
  words[1] = good.path();
  EXPECT_EQ(run_kvoracle(words).err, "");
}

TEST(WrongFile, IsNamedByConform) {
  const TemporaryFile trace(kTwoRequests);
  const Finished done = run_kvoracle({"conform", trace.path()});
  EXPECT_EQ(done.status, kExitUsage);
  EXPECT_THAT(done.err, HasSubstr(":1: this is a request trace: an operation log is expected"));
  const TemporaryFile run;
  fs::remove(run.path());
  ASSERT_EQ(run_kvoracle({"check", "layered", "--cases", "2", "-o", run.path()}).status,
            kExitConforms);
  EXPECT_THAT(run_kvoracle({"conform", run.path()}).err,
              HasSubstr(":1: this is a run file: an operation log is expected"));
}

TEST(TraceInfo, RefusesWhatItCannotRead) {
  const Finished missing = run_kvoracle({"trace", "info", "/no/such/trace"});
  EXPECT_EQ(missing.status, kExitUsage);
  EXPECT_THAT(missing.err, HasSubstr("/no/such/trace: "));
  EXPECT_THAT(missing.err, Not(HasSubstr("--help")));
  const TemporaryFile file("hello\n");
  const Finished strange = run_kvoracle({"trace", "info", file.path()});
  EXPECT_EQ(strange.status, kExitUsage);
  EXPECT_THAT(strange.err, HasSubstr("not the beginning of any known format"));
  const Finished format = run_kvoracle({"trace", "info", "--format", "mooncak"});
  EXPECT_EQ(format.status, kExitUsage);
  EXPECT_THAT(format.err, HasSubstr("there are mooncake, azure, burstgpt"));
  EXPECT_EQ(run_kvoracle({"trace", "info", "--block-size", "0"}).status, kExitUsage);
  EXPECT_EQ(run_kvoracle({"trace", "info", "--capacity", "-1"}).status, kExitUsage);
}

TEST(TraceGenerate, GivesTheSameTraceForTheSameOptions) {
  const Finished first = run_kvoracle({"trace", "generate", "--requests", "20", "--seed", "7"});
  EXPECT_EQ(first.status, kExitConforms);
  EXPECT_THAT(first.out, StartsWith("{\"timestamp\":"));
  EXPECT_EQ(std::count(first.out.begin(), first.out.end(), '\n'), 20);
  const TemporaryFile file;
  const Finished again = run_kvoracle(
      {"trace", "generate", "--requests", "20", "--seed", "7", "--output", file.path()});
  EXPECT_EQ(again.status, kExitConforms);
  EXPECT_EQ(again.out, "");
  EXPECT_EQ(run_program({"/bin/cat", file.path()}).out, first.out);
}

TEST(TraceGenerate, MakesTracesThatInfoFindsSound) {
  const TemporaryFile file;
  ASSERT_EQ(run_kvoracle({"trace", "generate", "--block-size", "16", "-o", file.path()}).status,
            kExitConforms);
  const Finished info = run_kvoracle({"trace", "info", file.path(), "--block-size", "16"});
  EXPECT_EQ(info.status, kExitConforms) << info.err;
}

TEST(TraceGenerate, ChecksItsOptions) {
  const Finished done = run_kvoracle({"trace", "generate", "--continued-percent", "101"});
  EXPECT_EQ(done.status, kExitUsage);
  EXPECT_THAT(done.err, StartsWith("kvoracle: --continued-percent 101: "));
  EXPECT_THAT(done.err, HasSubstr("Try 'kvoracle trace generate --help'."));
  EXPECT_EQ(run_kvoracle({"trace", "generate", "--seed", "-1"}).status, kExitUsage);
}

}  // namespace
}  // namespace kvo::tools
