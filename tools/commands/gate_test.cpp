// `kvoracle gate` on files that `kvoracle check` wrote.
#include <fstream>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/testing/campaign_fixture.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::StartsWith;

class GateCommand : public Campaign {
 protected:
  // A run file of a few cases.
  std::string made(const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"check",
                                   "layered.vector@reference",
                                   "layered.vector@optimized",
                                   "--law",
                                   "agrees_with_reference",
                                   "--cases",
                                   "40",
                                   "--timings",
                                   "-o",
                                   path(name)};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(run(words).status, kExitConforms);
    return path(name);
  }
  // The file with the times of an operation of a subject multiplied.
  std::string slowed(const std::string& of, const std::string& subject, const std::string& op,
                     std::uint64_t factor) {
    std::istringstream lines(read(of));
    std::string text;
    for (std::string line; std::getline(lines, line); text += line + "\n") {
      json::value record = json::parse(line);
      if (!record.get_object().contains("index")) continue;
      for (json::value& one : record.at("subjects").as_array())
        for (json::value& timing : one.at("timings").as_array())
          if (one.at("subject").as_string() == subject && timing.at("op").as_string() == op)
            timing.at("total_nanoseconds") =
                timing.at("total_nanoseconds").to_number<std::uint64_t>() * factor;
      line = json::serialize(record);
    }
    return file("slowed.jsonl", text);
  }
};

TEST_F(GateCommand, LetsARunPassThatIsNotWorse) {
  made("a.jsonl");
  const Finished same = run({"gate", "a.jsonl", "a.jsonl"});
  EXPECT_EQ(same.status, kExitConforms) << same.out << same.err;
  EXPECT_THAT(same.out, StartsWith("no regression: 2 subjects, "));
}

// A baseline that an earlier program wrote, in version 1 of the format: the same cases, one of
// which fails.
TEST_F(GateCommand, ReadsRunFilesOfVersionOne) {
  (void)file("before.jsonl", read(KVO_SOURCE_ROOT "/tools/testing/run_file_version_1.jsonl"));
  ASSERT_EQ(run({"check", "layered.vector@mutant:values_in_wrong_layer", "--law",
                 "agrees_with_reference", "--cases", "2", "--no-timings", "-o", path("now.jsonl")})
                .status,
            kExitDiffers);
  for (const char* now : {"before.jsonl", "now.jsonl"}) {
    const Finished same = run({"gate", "before.jsonl", now});
    EXPECT_EQ(same.status, kExitConforms) << same.out << same.err;
    EXPECT_THAT(same.out, HasSubstr("1 failing case as before"));
  }
}

TEST_F(GateCommand, NamesWhoIsSlowerInWhatAndByHowMuch) {
  ASSERT_EQ(run({"bench", "layered", "--quick", "-o", path("a.jsonl")}).status, kExitConforms);
  slowed("a.jsonl", "layered.vector@optimized", "append, 8.00 KiB", 2);
  const Finished slower = run({"gate", "a.jsonl", "slowed.jsonl", "--markdown", "a.md", "--junit",
                               "a.xml", "--json", "a.json"});
  EXPECT_EQ(slower.status, kExitDiffers);
  EXPECT_THAT(slower.out, testing::AllOf(HasSubstr("WORSE, slower layered.vector@optimized: "),
                                         HasSubstr("append, 8.00 KiB takes 2.00x")));
  EXPECT_THAT(read("a.md"), HasSubstr("| slower | layered.vector@optimized | append, 8.00 KiB "));
  EXPECT_THAT(read("a.xml"), HasSubstr("2.00x the time of the baseline"));
  EXPECT_EQ(run({"gate", "a.jsonl", "slowed.jsonl", "--no-timings"}).status, kExitConforms);
  EXPECT_EQ(run({"gate", "a.jsonl", "slowed.jsonl", "--slower", "150"}).status, kExitConforms);
}

TEST_F(GateCommand, AFaultyCacheAndFewerCasesAreWorse) {
  const std::vector<std::string> faulty{"check", "layered.vector@reference",
                                        "layered.vector@optimized",
                                        "layered.vector@mutant:clear_keeps_rows"};
  made("a.jsonl");
  std::vector<std::string> words = faulty;
  words.insert(words.end(), {"--law", "agrees_with_reference", "--cases", "40", "--timings", "-o",
                             path("b.jsonl"), "--shrink-attempts", "0"});
  ASSERT_EQ(run(words).status, kExitDiffers);
  const Finished failed = run({"gate", "a.jsonl", "b.jsonl"});
  EXPECT_EQ(failed.status, kExitDiffers);
  EXPECT_THAT(failed.out,
              HasSubstr("WORSE, failure layered.vector@mutant:clear_keeps_rows: fails in case"));
  EXPECT_THAT(run({"gate", "b.jsonl", "a.jsonl"}).out,
              HasSubstr("WORSE, subject gone layered.vector@mutant:clear_keeps_rows"));
  EXPECT_THAT(run({"gate", "b.jsonl", "b.jsonl"}).out, HasSubstr(" as before"));
}

TEST_F(GateCommand, RefusesWhatItCannotCompare) {
  made("a.jsonl");
  made("documented.jsonl", {"--profile", "documented"});
  expect_refused({"gate", "a.jsonl"}, "current is required");
  expect_refused({"gate", "a.jsonl", "none.jsonl"}, "none.jsonl: cannot open: No such file");
  expect_refused({"gate", "a.jsonl", file("text", "no run\n")}, "is not the first line of a run");
  expect_refused({"gate", "a.jsonl", file("empty", "")}, "is not the first line of a run");
  expect_refused({"gate", "a.jsonl", "documented.jsonl"}, "profile");
  expect_refused({"gate", "a.jsonl", "a.jsonl", "--slower", "-1"}, "--slower: -1 is below zero");
  expect_refused({"gate", "a.jsonl", "a.jsonl", "--fewer", "101"}, "101 is not from 0 to 100");
  expect_refused({"gate", "a.jsonl", "a.jsonl", "--error", "x"}, "--error: 'x' is no number");
  expect_refused({"gate", "a.jsonl", "a.jsonl", "--json", "-", "--markdown", "-"},
                 "--json and --markdown name the same file");
  expect_refused({"gate", "a.jsonl", "a.jsonl", "--json", "a.jsonl"}, "it would be overwritten");
  const std::string header = read("a.jsonl").substr(0, read("a.jsonl").find('\n') + 1);
  expect_refused({"gate", "a.jsonl", file("none", header)}, "holds no case");
  expect_refused({"gate", "a.jsonl", file("odd", header + "{\"index\":7}\n")}, "odd:2");
}

}  // namespace
}  // namespace kvo::tools
