// Hostile subjects (tools/testing/evil_program.cpp), each beside a sound one. Each gets its own
// verdict, its neighbours none, the campaign goes on to its last case, the printed command repeats
// the verdict, and no process stays behind.
//
// Subjects that take long are skipped without KVO_EVIL_ALL=1 (environment).
#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/testing/command_test.hpp"
#include "tools/testing/environment.hpp"
#include "tools/testing/xml_reader.hpp"

namespace kvo::tools {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using testing::ContainsRegex;
using testing::HasSubstr;

constexpr std::uintmax_t kMostReport = 1U << 20U;   // bytes of any report
constexpr std::uint64_t kMostPeak = 1'000'000'000;  // bytes of memory, for kSmall
constexpr std::chrono::seconds kLimit{40};          // then a command is killed

const std::set<std::string> kMarks{"-",     "long",   "many",       "once",   "slow",
                                   "small", "varies", "without_op", "unlinks"};

/// A row of evil_rows.txt, which describes its columns.
struct Row {
  std::string name = {};
  std::string statuses = {};  ///< a digit each
  std::set<std::string> marks = {};
  std::string verdict = {};

  [[nodiscard]] bool is(const std::string& mark) const {
    EXPECT_TRUE(kMarks.contains(mark)) << mark;
    return marks.contains(mark);
  }
  [[nodiscard]] std::uint64_t cases() const { return is("slow") ? 2 : is("many") ? 100 : 6; }
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

std::vector<Row> rows() {
  std::vector<Row> all;
  std::ifstream file(KVO_EVIL_ROWS);
  if (!file) throw std::runtime_error("no file " KVO_EVIL_ROWS);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with("#")) continue;
    std::istringstream words(line);
    Row& row = all.emplace_back();
    std::string marks;
    words >> row.name >> row.statuses >> marks >> std::ws;
    std::getline(words, row.verdict);
    boost::split(row.marks, marks, boost::is_any_of(","));
  }
  return all;
}

class Evil : public CommandTest, public testing::WithParamInterface<Row> {
 protected:
  Evil() { fs::create_directories(folder_ / "marks"); }

 public:
  ~Evil() override {
    // A subject may have left files that their owner must not touch.
    std::error_code failed;
    fs::permissions(folder_ / "kvoracle-failures", fs::perms::owner_all, failed);
  }

 protected:
  [[nodiscard]] Finished run(std::vector<std::string> words, const std::string& name = "",
                             std::vector<TimedSignal> signals = {}) const {
    words.insert(words.begin(), KVO_EVIL_PROGRAM);
    words.insert(words.end(), {"--case-memory", "128"});
    if (signals.empty()) words.insert(words.end(), {"--operation-timeout", "1"});
    return run_group(std::move(words),
                     {.limit = kLimit,
                      .environment = {"EVIL_DIR=" + path("marks"), "EVIL_NAME=" + name},
                      .signals = std::move(signals)});
  }
  [[nodiscard]] Finished check(const std::string& subject, std::uint64_t cases,
                               const std::string& name = "") const {
    const std::vector<std::string> words =
        words_of("check " + subject + " layered.vector@optimized --law agrees_with_reference " +
                 "--jobs 2 --shrink-attempts 10 --json result --junit junit -o run --cases " +
                 std::to_string(cases));
    return run(words, name);
  }

  // The same number of cases for each, none of them failed but those of the subject itself.
  void expect_json(const std::string& subject, std::uint64_t cases, bool fails) const {
    EXPECT_NO_THROW((void)read_xml(read("junit")));
    ASSERT_TRUE(fs::exists(folder_ / "result"));
    EXPECT_LE(fs::file_size(folder_ / "result"), kMostReport);
    boost::system::error_code failed;
    const json::value result = json::parse(read("result"), failed);
    ASSERT_FALSE(failed) << "the JSON file is not JSON";
    EXPECT_EQ(result.at("cases").as_int64(), static_cast<std::int64_t>(cases));
    const json::array& subjects = result.at("subjects").as_array();
    EXPECT_EQ(subjects.size(), 3U) << subjects;
    for (const json::value& row : subjects) {
      const bool own = row.at("subject").as_string() == subject;
      std::int64_t faults = 0;
      for (const char* fault : {"mismatches", "broken", "died"}) faults += row.at(fault).as_int64();
      EXPECT_EQ(row.at("cases").as_int64(), static_cast<std::int64_t>(cases)) << row;
      EXPECT_EQ(faults > 0, own && fails) << row;
      if (own) continue;
      EXPECT_EQ(row.at("out_of_memory").as_int64(), 0) << row;
      EXPECT_EQ(row.at("not_supported").as_int64(), 0) << row;
    }
  }

  // A header and all cases in their order, with the failures of the subject alone.
  void expect_run_file(const std::string& subject, std::uint64_t cases, bool fails) const {
    std::ifstream lines(folder_ / "run");
    std::int64_t index = -1;
    bool failed = false;
    for (std::string line; std::getline(lines, line); ++index) {
      boost::system::error_code no_json;
      const json::value record = json::parse(line, no_json);
      ASSERT_FALSE(no_json) << "line " << index + 2 << " of the run file is not JSON";
      if (index < 0) continue;
      ASSERT_EQ(record.at("index").as_int64(), index);
      for (const json::value& row : record.at("subjects").as_array()) {
        const json::value* verdict = row.as_object().if_contains("verdict");
        if (verdict == nullptr) continue;  // it agrees
        const auto outcome = std::string(verdict->at("outcome").as_string());
        if (outcome == "vacuous" || outcome == "out_of_memory") continue;
        EXPECT_EQ(row.at("subject").as_string(), subject) << outcome << " in case " << index;
        failed = true;
      }
    }
    EXPECT_EQ(index, static_cast<std::int64_t>(cases)) << "cases in the run file";
    EXPECT_EQ(failed, fails) << "in the run file";
  }

  // Runs the first printed command; a script that it names is there and can be read.
  [[nodiscard]] Finished repeat(const std::string& out) const {
    const std::string marker = "repeat with: evil_program ";
    const std::size_t at = out.find(marker);
    if (at == std::string::npos) {
      ADD_FAILURE() << "no command to repeat it:\n" << out;
      return {};
    }
    const std::size_t begin = at + marker.size();
    const std::vector<std::string> words = words_of(out.substr(begin, out.find('\n', at) - begin));
    if (words.front() == "conform") {
      const fs::path script = folder_ / words[1];
      EXPECT_TRUE(fs::is_regular_file(script)) << script;
      const auto may = fs::status(script).permissions() & fs::perms::owner_read;
      EXPECT_NE(may, fs::perms::none) << script << " cannot be read by its owner";
    }
    return run(words);
  }
};

bool steers_terminal(const std::string& text) {
  return std::ranges::any_of(
      text, [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0 && c != '\n'; });
}

TEST_P(Evil, HasAVerdictOfItsOwnAndTheCampaignGoesOn) {
  const Row& row = GetParam();
  EXPECT_TRUE(std::ranges::includes(kMarks, row.marks));
  if (row.is("long") && number_in_environment("KVO_EVIL_ALL", 0) == 0)
    GTEST_SKIP() << "takes long: KVO_EVIL_ALL=1 runs it";
  const std::string subject = "layered.vector@" + row.name;
  const Finished done = check(subject, row.cases());
  ASSERT_EQ(done.signal, 0) << "after " << done.seconds.count() << " s\n" << done.out;
  EXPECT_THAT(row.statuses, HasSubstr(std::to_string(done.status)))
      << done.out << done.err.substr(0, 2'000);
  EXPECT_LE(done.seconds.count(), row.is("slow") ? 10 : 30);
  EXPECT_LE(done.out.size(), kMostReport);
  EXPECT_FALSE(steers_terminal(done.out));
  if (row.is("small")) {
    EXPECT_LE(done.peak_bytes, kMostPeak);
  }
  const bool fails = done.status == kExitDiffers || done.status == kExitCrashed;
  expect_json(subject, row.cases(), fails);
  if (!row.is("unlinks") || fs::exists(folder_ / "run"))
    expect_run_file(subject, row.cases(), fails);
  else
    EXPECT_EQ(done.status, kExitUsage) << "the run file is missing";
  if (!fails) return;

  EXPECT_THAT(done.out, ContainsRegex("FAILED " + subject + " in [0-9]+ case"));
  const std::string place = row.is("without_op") ? "" : "op [0-9]{1,6}, advance: .*";
  EXPECT_THAT(done.out, ContainsRegex(place + "(" + row.verdict + ")"));
  if (row.is("once")) {
    EXPECT_THAT(done.out, HasSubstr("not repeated"));
  }
  if (row.is("once") || row.is("varies")) return;
  const Finished repeated = repeat(done.out);
  EXPECT_EQ(repeated.status, done.status) << repeated.out << repeated.err.substr(0, 2'000);
  EXPECT_THAT(repeated.out, ContainsRegex(row.verdict));
}

std::string name_of(const testing::TestParamInfo<Row>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Each, Evil, testing::ValuesIn(rows()), name_of);

// A subject that blocks, with or without its descriptors, does not delay the end.
using EvilInterrupted = Evil;

TEST_F(EvilInterrupted, EndsAtOnceWithReports) {
  constexpr std::chrono::milliseconds kBegun{500};
  constexpr double kMostSeconds = 5;
  for (const char* subject : {"layered.vector@hang", "layered.vector@close_hang"}) {
    for (const int number : {SIGINT, SIGTERM}) {
      SCOPED_TRACE(std::string(subject) + ", signal " + std::to_string(number));
      fs::remove(folder_ / "result");
      const Finished done = run({"check", subject, "--law", "agrees_with_reference", "--cases", "2",
                                 "--operation-timeout", "60", "--json", "result"},
                                "", {{.after = kBegun, .number = number}});
      EXPECT_EQ(done.status, kExitInterrupted) << "signal " << done.signal << "\n" << done.err;
      EXPECT_LE(done.seconds.count(), kMostSeconds);
      EXPECT_TRUE(fs::exists(folder_ / "result"));
    }
  }
}

// Names are those that the program gives its subjects.
using EvilName = Evil;

TEST_F(EvilName, IsBounded) {
  const std::string name(400, 'n');
  const Finished done = check("layered.vector@" + name, 3, name);
  EXPECT_EQ(done.status, kExitUsage) << done.out << done.err;
  EXPECT_THAT(done.err, HasSubstr("a name is 1 to 100"));
  EXPECT_LT(done.err.size(), 300U);
}

// Refused, or shown so that it steers no terminal and forges no line.
TEST_F(EvilName, IsNotPrintedRaw) {
  const std::string name = "x\x1b[2J\nFAILED y|";
  const Finished done = check("layered.vector@x*", 3, name);
  EXPECT_THAT((std::vector<int>{kExitDiffers, kExitUsage}), testing::Contains(done.status));
  EXPECT_FALSE(steers_terminal(done.out + done.err)) << done.out << done.err;
  EXPECT_THAT(done.out + done.err, testing::Not(HasSubstr("\nFAILED y")));
}

}  // namespace
}  // namespace kvo::tools
