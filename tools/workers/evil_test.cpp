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
#include "tools/testing/environment.hpp"
#include "tools/testing/xml_reader.hpp"

namespace kvo::tools {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using testing::ContainsRegex;
using testing::HasSubstr;

constexpr std::uint64_t kFewCases = 6;
constexpr std::uint64_t kMany = 100;
constexpr std::uintmax_t kMostReport = 1U << 20U;   // bytes of any report
constexpr std::uint64_t kMostPeak = 1'000'000'000;  // bytes of memory, for kSmall
constexpr std::chrono::seconds kLimit{40};          // then a command is killed

// How a row is judged.
constexpr unsigned kOnce = 1;       // its death does not repeat
constexpr unsigned kUnlinks = 2;    // the run file may be missing, with status 2
constexpr unsigned kSmall = 4;      // no process may take more than kMostPeak
constexpr unsigned kWithoutOp = 8;  // the verdict may lack the name of the operation
constexpr unsigned kLong = 16;      // only with KVO_EVIL_ALL
constexpr unsigned kVaries = 32;    // its death repeats or does not

struct Row {
  std::string name;
  std::vector<int> statuses;  // each of them is right
  std::string verdict = {};   // a regular expression; only looked for after a failure
  unsigned marks = 0;
  std::uint64_t cases = kFewCases;
  double most_seconds = 30;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

const std::vector<int> kDied{kExitCrashed};
const std::vector<int> kDiffers{kExitDiffers};
const std::vector<int> kSound{kExitConforms};
const std::vector<int> kSoundOrDied{kExitConforms, kExitCrashed};
const std::vector<int> kFailed{kExitDiffers, kExitCrashed};
const std::vector<int> kAnyVerdict{kExitConforms, kExitDiffers, kExitCrashed};

const std::string kSegv = "crashed \\(SIGSEGV\\)";
const std::string kAbort = "crashed \\(SIGABRT\\)";
const std::string kHung = "hung \\(no answer for 1 s\\)";
const std::string kLie = "want no error, got precondition \\(a lie\\)";
const std::string kAny = ".";
const std::string kPipe = "wrote to the answer pipe";
const std::string kMemory = "out_of_memory|memory";

// Subjects that end their process, and those that deceive, alter or throw.
std::vector<Row> deadly_rows() {
  return {{"crash", kDied, kSegv},
          {"abort", kDied, kAbort},
          {"trap", kDied, "crashed \\(SIGTRAP\\)"},
          {"sys", kDied, "crashed \\(SIGSYS\\)"},
          {"exit", kDied, "exited with status 0"},
          {"quick_exit", kDied, "exited with status 0"},
          {"_exit", kDied, "exited with status 7"},
          {"kill_self", kDied, "was killed \\(SIGKILL\\)"},
          {"term_self", kDied, "SIGTERM"},
          {"overflow_stack", kDied, kSegv},
          {"corrupt_heap", kDied, "crashed \\(SIG(SEGV|ABRT)\\)"},
          {"double_free", kDied, kAbort},
          {"use_after_free", kDied, kSegv},
          {"throw_in_thread", kDied, kAbort},
          {"terminate", kDied, kAbort},
          {"longjmp", kDied, "crashed \\(SIG(SEGV|ABRT)\\)"},
          {"pthread_exit", kDied, "crashed \\(SIGABRT\\)|exited with status"},
          {"crash_always", kDied, kSegv, kWithoutOp},
          {"open_crash", kDied, kSegv, kWithoutOp},
          {"dtor_crash", kDied, kSegv, kWithoutOp},
          {"crash_once", kDied, kSegv, kOnce},
          {"crash_twice", kDied, kSegv, kOnce},
          {"exit_once", kDied, "exited with status 7", kOnce},
          {"hang_once", kDied, kHung, kOnce, 2, 10},
          {"delayed_thread", kDied, kSegv, kOnce | kWithoutOp, kMany},
          {"delayed_always", kDied, kSegv, kVaries | kWithoutOp, kMany},
          {"crash_random", kDied, kSegv, kVaries, kMany},
          {"hang", kDied, kHung, 0, 2, 10},
          {"throw_int", kDiffers, "threw: what is no std::exception"},
          {"throw_null_what", kDiffers, "threw: an exception without words"},
          {"throw_bad_utf8", kDiffers, "threw: bad .*text"},
          {"throw_escape", kDiffers, "threw: .*FAILED all"},
          {"throw_long_what", kDiffers, "threw: w{20}", kSmall},
          {"write_behind", kDiffers, "wrote behind its arguments: k", kWithoutOp},
          {"alter_arguments", kDiffers, "changed its arguments: k", kWithoutOp},
          {"say_out_of_memory", kDiffers, "out_of_memory"},
          {"lie", kDiffers, "want \\[.*got \\[1099511627776\\]", kWithoutOp}};
}

// Subjects that harm what their process shares with the harness, and those that use it up.
std::vector<Row> sly_rows() {
  return {{"close_hang", kDied, kAny, 0, 2, 10},
          {"close_all", kDied, "closed the answer pipe", kWithoutOp},
          {"fork_return", kSoundOrDied, kAny},
          {"fork", kSoundOrDied, kAny},
          {"fork_daemon", kSoundOrDied, kAny},
          {"fork_crash", kDied, kSegv},
          {"fork_mem", kAnyVerdict, kMemory},
          {"kill_group", kDied, "was killed \\(SIGKILL\\)"},
          {"pipe_text", kDied, kPipe, kWithoutOp},
          {"pipe_forge", kDied, kPipe, kWithoutOp},
          {"pipe_empty", kDied, kPipe, kWithoutOp},
          {"pipe_json", kDied, kPipe, kWithoutOp},
          {"pipe_fault", kDied, kPipe, kWithoutOp},
          {"write_fds", kSoundOrDied, kAny},
          {"trunc_fds", kSoundOrDied, kAny},
          {"seek_fds", kSoundOrDied, kAny},
          {"flood_stderr", kSound},
          {"flood_stdout", kSound},
          {"unlink_all", {kExitConforms, kExitUsage}, "", kUnlinks},
          {"shm_mem", kAnyVerdict, kMemory},
          {"eat_all", kFailed, kMemory, kWithoutOp},
          {"eat_leak", kFailed, kMemory, kWithoutOp},
          {"take_memory", kDiffers, "out_of_memory"},
          {"raise_as", kFailed, kMemory},
          {"scribble", kDied, kSegv, kWithoutOp},
          {"fd_leak", kDiffers, kLie},
          {"nofile", kDiffers, kLie},
          {"fsize0", kDiffers, kLie},
          {"chdir_lie", kDiffers, kLie},
          {"umask_lie", kDiffers, kLie},
          {"nice_lie", kDiffers, kLie},
          {"block_signals", kDiffers, kLie}};
}

// What takes long and differs little from a row above.
std::vector<Row> long_rows() {
  return {{"loop", kDied, kHung, kLong, 2, 10},
          {"open_hang", kDied, kHung, kLong | kWithoutOp, 2, 10},
          {"dtor_loop", kDied, kHung, kLong | kWithoutOp, 2, 10},
          {"close_loop", kDied, kAny, kLong, 2, 10},
          {"exec_sleep", kDied, kAny, kLong, 2, 10},
          {"pipe_flood", kSoundOrDied, kAny, kLong | kSmall}};
}

std::string contents(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// A folder of its own, and a mark in the environment of all processes.
class Evil : public testing::TestWithParam<Row> {
 protected:
  Evil() {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::ranges::replace(name, '/', '_');
    name += "_" + std::to_string(getpid());
    folder_ = fs::path(testing::TempDir()) / ("evil_" + name);
    mark_ = "EVIL_RUN=" + name;
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "marks");
  }
  ~Evil() override {
    // A subject may have left files that their owner must not touch.
    std::error_code failed;
    fs::permissions(folder_ / "kvoracle-failures", fs::perms::owner_all, failed);
    fs::remove_all(folder_, failed);
  }

  [[nodiscard]] Finished run(std::vector<std::string> words, const std::string& name = "",
                             std::vector<TimedSignal> signals = {}) const {
    words.insert(words.begin(), KVO_EVIL_PROGRAM);
    words.insert(words.end(), {"--case-memory", "512"});
    if (signals.empty()) words.insert(words.end(), {"--operation-timeout", "1"});
    Finished done = run_program(
        std::move(words),
        {.folder = folder_.string(),
         .limit = kLimit,
         .environment = {mark_, "EVIL_DIR=" + (folder_ / "marks").string(), "EVIL_NAME=" + name},
         .own_group = true,
         .signals = std::move(signals)});
    EXPECT_THAT(left_behind(mark_), testing::IsEmpty()) << "processes were left behind";
    return done;
  }
  [[nodiscard]] Finished check(const std::string& subject, std::uint64_t cases,
                               const std::string& name = "") const {
    return run({"check", subject, "layered.vector@optimized", "--law", "agrees_with_reference",
                "--cases", std::to_string(cases), "--jobs", "2", "--shrink-attempts", "30",
                "--json", "result", "--junit", "junit", "-o", "run"},
               name);
  }

  // The same number of cases for each, none of them failed but those of the subject itself.
  void expect_json(const std::string& subject, std::uint64_t cases, bool fails) const {
    EXPECT_NO_THROW((void)read_xml(contents(folder_ / "junit")));
    ASSERT_TRUE(fs::exists(folder_ / "result"));
    EXPECT_LE(fs::file_size(folder_ / "result"), kMostReport);
    boost::system::error_code failed;
    const json::value result = json::parse(contents(folder_ / "result"), failed);
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
    std::istringstream line(out.substr(begin, out.find('\n', at) - begin));
    std::vector<std::string> words;
    for (std::string word; line >> word;) words.push_back(word);
    if (words.front() == "conform") {
      const fs::path script = folder_ / words[1];
      EXPECT_TRUE(fs::is_regular_file(script)) << script;
      const auto may = fs::status(script).permissions() & fs::perms::owner_read;
      EXPECT_NE(may, fs::perms::none) << script << " cannot be read by its owner";
    }
    return run(words);
  }

  fs::path folder_;
  std::string mark_;
};

bool steers_terminal(const std::string& text) {
  return std::ranges::any_of(
      text, [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0 && c != '\n'; });
}

TEST_P(Evil, HasAVerdictOfItsOwnAndTheCampaignGoesOn) {
  const Row& row = GetParam();
  if ((row.marks & kLong) != 0 && number_in_environment("KVO_EVIL_ALL", 0) == 0)
    GTEST_SKIP() << "takes long: KVO_EVIL_ALL=1 runs it";
  const std::string subject = "layered.vector@" + row.name;
  const Finished done = check(subject, row.cases);
  ASSERT_EQ(done.signal, 0) << "after " << done.seconds.count() << " s\n" << done.out;
  EXPECT_THAT(row.statuses, testing::Contains(done.status))
      << done.out << done.err.substr(0, 2'000);
  EXPECT_LE(done.seconds.count(), row.most_seconds);
  EXPECT_LE(done.out.size(), kMostReport);
  EXPECT_FALSE(steers_terminal(done.out));
  if ((row.marks & kSmall) != 0) {
    EXPECT_LE(done.peak_bytes, kMostPeak);
  }
  const bool fails = done.status == kExitDiffers || done.status == kExitCrashed;
  expect_json(subject, row.cases, fails);
  if ((row.marks & kUnlinks) == 0 || fs::exists(folder_ / "run"))
    expect_run_file(subject, row.cases, fails);
  else
    EXPECT_EQ(done.status, kExitUsage) << "the run file is missing";
  if (!fails) return;

  EXPECT_THAT(done.out, ContainsRegex("FAILED " + subject + " in [0-9]+ case"));
  const std::string place = (row.marks & kWithoutOp) != 0 ? "" : "op [0-9]{1,6}, advance: .*";
  EXPECT_THAT(done.out, ContainsRegex(place + "(" + row.verdict + ")"));
  if ((row.marks & kOnce) != 0) {
    EXPECT_THAT(done.out, HasSubstr("not repeated"));
  }
  if ((row.marks & (kOnce | kVaries)) != 0) return;
  const Finished repeated = repeat(done.out);
  EXPECT_EQ(repeated.status, done.status) << repeated.out << repeated.err.substr(0, 2'000);
  EXPECT_THAT(repeated.out, ContainsRegex(row.verdict));
}

std::string name_of(const testing::TestParamInfo<Row>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Deadly, Evil, testing::ValuesIn(deadly_rows()), name_of);
INSTANTIATE_TEST_SUITE_P(Sly, Evil, testing::ValuesIn(sly_rows()), name_of);
INSTANTIATE_TEST_SUITE_P(Long, Evil, testing::ValuesIn(long_rows()), name_of);

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
