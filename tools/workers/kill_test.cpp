// Commands that get a signal at a random moment. No process stays behind, no file is damaged, a run
// file is resumed to the same cases, and a command that is asked to end reports what it found.
//
// KVO_KILLS (environment) is the number of trials of each command, GTEST_RANDOM_SEED their seed.
#include <csignal>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/commands/exit_status.hpp"
#include "tools/testing/command_test.hpp"
#include "tools/testing/environment.hpp"
#include "tools/testing/xml_reader.hpp"

namespace kvo::tools {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using std::chrono::milliseconds;
using testing::IsEmpty;
using Words = std::vector<std::string>;

constexpr std::uint64_t kDefaultKills = 4;
// Before that a command may not have begun to look for signals.
constexpr milliseconds kStart{100};

struct Killing {
  std::string name;
  std::vector<TimedSignal> signals;  ///< `after` is counted from a random moment
};

TimedSignal sent(int number, bool group = false, milliseconds after = {}) {
  return {.after = after, .number = number, .group = group};
}

// In turn.
std::vector<Killing> killings() {
  constexpr milliseconds kPause{150};
  return {{"TERM", {sent(SIGTERM)}},
          {"KILL", {sent(SIGKILL)}},
          {"INT to the group", {sent(SIGINT, true)}},
          {"KILL to the group", {sent(SIGKILL, true)}},
          {"HUP", {sent(SIGHUP)}},
          {"STOP and CONT", {sent(SIGSTOP), sent(SIGCONT, false, kPause)}},
          {"TERM to the group", {sent(SIGTERM, true)}},
          {"QUIT", {sent(SIGQUIT)}},
          {"INT", {sent(SIGINT)}},
          {"HUP to the group", {sent(SIGHUP, true)}},
          {"STOP and CONT to the group", {sent(SIGSTOP, true), sent(SIGCONT, true, kPause)}},
          {"QUIT to the group", {sent(SIGQUIT, true)}}};
}

bool asks_to_end(int number) {
  return number == SIGTERM || number == SIGINT || number == SIGHUP;
}

std::string name_of_signal(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? name : std::to_string(number);
}

struct Job {
  std::string name;
  Words words;
  bool reports = true;    // writes `result` (JSON) and, but for shrink and corpus, `junit`
  bool run_file = false;  // writes `run`
};

// Each writes its files to the current folder.
Job check_job() {
  return {"check",
          words_of("check layered positional.causal --cases 300 --jobs 2 --json result --junit "
                   "junit -o run"),
          true, true};
}
Job run_job() {
  return {"run",
          words_of("run --requests 120 --requests-per-case 2 --scale 64 --subject provider --jobs "
                   "2 --no-timings --json result --junit junit -o run"),
          true, true};
}
Job conform_job() {
  Words words = words_of("conform --jobs 2 --json result --junit junit");
  for (const char* log : {"cells", "layered", "positional", "prefix", "provider", "snapshot"})
    words.push_back(std::string(KVO_LOGS) + "/" + log + ".jsonl.gz");
  return {"conform", words};
}
Job mutants_job() {
  return {"mutants",
          words_of("mutants layered.vector@mutant:c* --jobs 2 --json result --junit junit")};
}
Job corpus_job() {
  return {"corpus",
          words_of("check layered layered.vector@mutant:clear_keeps_rows --cases 40 --jobs 2 "
                   "--shrink-attempts 50 --corpus kept --json result --junit junit")};
}

class Kill : public CommandTest {
 protected:
  [[nodiscard]] Finished start(Words words, std::vector<TimedSignal> signals = {}) const {
    words.insert(words.begin(), kvoracle_path());
    return run_group(std::move(words), {.signals = std::move(signals)});
  }

  // Whole, or not there.
  void expect_whole_reports() const {
    if (fs::exists(path("result"))) {
      boost::system::error_code failed;
      const json::value result = json::parse(read("result"), failed);
      EXPECT_FALSE(failed) << "the JSON file is damaged";
    }
    if (fs::exists(path("junit"))) {
      EXPECT_NO_THROW((void)read_xml(read("junit")));
    }
  }

  [[nodiscard]] json::object result() const {
    json::object all = json::parse(read("result")).as_object();
    all.erase("command");
    return all;
  }

  [[nodiscard]] Words names_with(const std::string& part) const {
    Words found;
    for (const auto& entry : fs::recursive_directory_iterator(folder_))
      if (entry.path().filename().string().find(part) != std::string::npos)
        found.push_back(entry.path().string());
    return found;
  }

  // The cases of a run file whose last line may be torn.
  [[nodiscard]] std::vector<std::string> whole_cases() const {
    if (!fs::exists(path("run"))) return {};
    const std::string text = read("run");
    (void)file("run_whole_lines", text.substr(0, text.rfind('\n') + 1));
    return cases_of("run_whole_lines");
  }

  // A command that was asked to end: status 130 and all reports, unless it was done or had not
  // begun.
  void expect_asked(const Finished& done, const Job& job, milliseconds moment) {
    if (done.signal != 0) {
      EXPECT_LT(moment, kStart) << "ended by the signal instead of status 130";
      EXPECT_THAT(done.out, IsEmpty());
      return;
    }
    EXPECT_TRUE(done.status == kExitInterrupted || done.status == status_) << done.status;
    EXPECT_THAT(names_with(".partial"), IsEmpty());
    if (!job.reports) return;
    ASSERT_TRUE(fs::exists(path("result"))) << done.err;
    EXPECT_TRUE(fs::exists(path("junit"))) << done.err;
    if (!job.run_file) return;
    const auto cases = static_cast<std::size_t>(result().at("cases").to_number<std::uint64_t>());
    EXPECT_EQ(cases + 1, whole_cases().size()) << "the JSON file lacks cases of the run file";
  }

  // As if nothing had happened.
  void expect_resumed(const Job& job) {
    Words words = job.words;
    if (job.run_file && fs::exists(path("run"))) words.emplace_back("--resume");
    const Finished done = start(words);
    EXPECT_EQ(done.status, status_) << done.err;
    EXPECT_EQ(done.err, errors_);
    if (job.run_file) {
      EXPECT_EQ(cases_of("run"), cases_);
    }
    if (job.reports && job.name != "corpus") {
      EXPECT_EQ(result(), result_);
    }
  }

  void trial(const Job& job, const Killing& killing, milliseconds moment) {
    empty_folder();
    std::vector<TimedSignal> signals = killing.signals;
    for (TimedSignal& signal : signals) signal.after += moment;
    const Finished done = start(job.words, signals);
    expect_whole_reports();
    const std::vector<std::string> cases = whole_cases();
    ASSERT_LE(cases.size(), cases_.size());
    EXPECT_TRUE(std::equal(cases.begin(), cases.end(), cases_.begin()))
        << "a case of the run file differs from that of an undisturbed run";
    const int first = signals.front().number;
    if (asks_to_end(first)) expect_asked(done, job, moment);
    if (first == SIGSTOP) {
      EXPECT_EQ(done.status, status_) << done.err;
    }
    if (!asks_to_end(first) && first != SIGSTOP) {
      EXPECT_TRUE(done.signal == first || done.status == status_)
          << "status " << done.status << ", signal " << done.signal;
    }
    expect_resumed(job);
  }

  // Undisturbed once, then disturbed at moments of that time and a little more.
  void try_out(const Job& job) {
    const Finished whole = start(job.words);
    status_ = whole.status;
    errors_ = whole.err;
    ASSERT_TRUE(status_ == kExitConforms || status_ == kExitDiffers) << whole.err;
    if (job.run_file) cases_ = cases_of("run");
    if (job.reports) result_ = result();
    const auto time = std::chrono::ceil<milliseconds>(whole.seconds).count();
    const auto seed = static_cast<std::uint64_t>(GTEST_FLAG_GET(random_seed));
    std::mt19937_64 engine(seed);
    const std::vector<Killing> all = killings();
    const std::uint64_t trials = number_in_environment("KVO_KILLS", kDefaultKills);
    for (std::uint64_t nth = 0; nth < trials && !HasFailure(); ++nth) {
      const Killing& killing = all[(seed + nth) % all.size()];
      const milliseconds moment(std::uniform_int_distribution<long>(0, time + time / 8)(engine));
      SCOPED_TRACE(job.name + ", " + killing.name + " after " + std::to_string(moment.count()) +
                   " of " + std::to_string(time) + " ms, GTEST_RANDOM_SEED=" +
                   std::to_string(seed) + ", trial " + std::to_string(nth));
      trial(job, killing, moment);
    }
  }

  // Of the undisturbed run.
  int status_ = 0;
  std::string errors_ = {};
  std::vector<std::string> cases_ = {};
  json::object result_ = {};
};

TEST_F(Kill, OfCheck) {
  try_out(check_job());
}

TEST_F(Kill, OfRun) {
  try_out(run_job());
}

TEST_F(Kill, OfConform) {
  try_out(conform_job());
}

TEST_F(Kill, OfMutants) {
  try_out(mutants_job());
}

TEST_F(Kill, OfACampaignWithACorpus) {
  try_out(corpus_job());
}

TEST_F(Kill, OfShrink) {
  const std::string mutant = "layered.vector@mutant:clear_keeps_rows";
  ASSERT_EQ(start(words_of("check " + mutant +
                           " --law agrees_with_reference --cases 120 "
                           "--shrink-attempts 0 --repros scripts"))
                .status,
            kExitDiffers);
  std::string longest;
  for (const std::string& name : names_with(".jsonl"))
    if (longest.empty() || fs::file_size(name) > fs::file_size(longest)) longest = name;
  ASSERT_FALSE(longest.empty());
  const std::string script =
      (fs::path(testing::TempDir()) / (folder_.filename().string() + ".jsonl")).string();
  fs::copy_file(longest, script, fs::copy_options::overwrite_existing);
  try_out({"shrink",
           {"shrink", script, "--subject", mutant, "-o", "run_shrunk", "--json", "result"},
           false});
  fs::remove(script);
}

// When the last case is in the run file, tables and reports are still to be written.
TEST_F(Kill, AfterTheLastCaseLosesNothing) {
  Job job = run_job();
  std::erase(job.words, "--no-timings");
  ASSERT_EQ(start(job.words).status, kExitConforms);
  const auto lines = std::ranges::count(read("run"), '\n');
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    SCOPED_TRACE(name_of_signal(number));
    empty_folder();
    const auto is_whole = [&] { return std::ranges::count(read("run"), '\n') == lines; };
    const Finished done = start(job.words, {{.number = number, .when = is_whole}});
    EXPECT_EQ(done.signal, 0);
    EXPECT_TRUE(done.status == kExitInterrupted || done.status == kExitConforms) << done.status;
    EXPECT_THAT(done.out, testing::HasSubstr(" no difference\n"));
    expect_whole_reports();
    EXPECT_TRUE(fs::exists(path("result")));
    EXPECT_TRUE(fs::exists(path("junit")));
  }
}

}  // namespace
}  // namespace kvo::tools
