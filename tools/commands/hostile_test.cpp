// Inputs that no sound program writes. Whatever a file holds, a command ends soon, in bounded
// memory, with status 0, 1 or 2, and status 2 with one short line.
//
// The inputs of traces/hostile, and 1,000 made from good ones by KVO_HOSTILE_SEED (1). Each failure
// names the file and the command that repeat it; KVO_HOSTILE_ONLY runs one of the 1,000.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "properties/contracts.hpp"
#include "tools/commands/exit_status.hpp"
#include "tools/testing/environment.hpp"
#include "tools/testing/forked_main.hpp"
#include "tools/testing/mutator.hpp"
#include "tools/workers/crash_guard.hpp"
#include "traces/formats/sample.hpp"
#include "traces/io/test_files.hpp"
#include "traces/io/text_source.hpp"

namespace kvo::tools {
namespace {

namespace fs = std::filesystem;
using traces::test::TempFolder;
using Words = std::vector<std::string>;

// Three of these programs run at once where the sanitizers' own libraries share two processors.
constexpr unsigned kMostSeconds = kIsSanitized ? 120 : 20;
constexpr std::uint64_t kMostBytes = std::uint64_t{768} << 20U;
constexpr std::size_t kMostError = 2'048;
constexpr std::size_t kMostOutput = std::size_t{64} << 10U;

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const Words kLimits{"--operation-timeout", kIsSanitized ? "60" : "10", "--case-memory", "256"};

// Without what points to --help after bad usage.
std::size_t told_lines(const std::string& err) {
  const auto lines = static_cast<std::size_t>(std::ranges::count(err, '\n'));
  return err.find("\nTry '") != std::string::npos ? lines - 1 : lines;
}

bool steers_terminal(const std::string& text) {
  return std::ranges::any_of(text, [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == '\x7f';
  });
}

// Why a command did not end as it must; empty: it did.
std::string complaint(const Forked& ended) {
  if (!ended.death.empty()) return ended.death;
  if (ended.status < 0 || ended.status > kExitUsage)
    return "status " + std::to_string(ended.status);
  if (ended.peak_bytes > kMostBytes)
    return "took " + std::to_string(ended.peak_bytes >> 20U) + " MiB";
  if (ended.status == kExitUsage && told_lines(ended.err) != 1) return "not one line";
  if (ended.status == kExitUsage && ended.err.size() > kMostError) return "a long line";
  if (ended.err.size() + ended.out.size() > kMostOutput) return "a flood of words";
  if (steers_terminal(ended.err) || steers_terminal(ended.out)) return "what steers a terminal";
  return {};
}

std::string command_text(const Words& words) {
  std::string text = "kvoracle";
  for (const std::string& word : words) text += " " + word;
  return text;
}

// Runs a command on a file. A file that makes it fail stays, and is named. Returns the status.
int expect_sound_end(const std::string& path, const Words& words, const std::string& more = {}) {
  static ForkedMain process;
  const Forked ended = process.run(words, kMostSeconds);
  const std::string wrong = complaint(ended);
  if (wrong.empty()) return ended.status;
  process.end();
  const fs::path kept =
      fs::path(testing::TempDir()) / ("hostile-" + fs::path(path).filename().string());
  fs::copy_file(path, kept, fs::copy_options::overwrite_existing);
  Words again = words;
  std::ranges::replace(again, path, kept.string());
  ADD_FAILURE() << wrong << "\nrepeat with: " << command_text(again) << more << "\n"
                << ended.err.substr(0, 4'000);
  return ended.status;
}

// What `run` takes of any trace: a hundred tokens a prompt, and an answer, at most.
Words run_words(const std::string& path, const std::string& contract, const TempFolder& folder) {
  return joined({"run", path, "--requests", "3", "--scale", "10995116278", "--subject", contract,
                 "--no-timings", "--repros", folder.path("repros")},
                kLimits);
}

std::vector<std::string> corpus(const char* part) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(fs::path(KVO_HOSTILE) / part))
    paths.push_back(entry.path().string());
  std::ranges::sort(paths);
  EXPECT_GT(paths.size(), 50U);
  return paths;
}

// The kind that a log's first header names, else one of them.
const CacheKind& kind_in(const std::string& text) {
  for (const CacheKind* kind : contracts().kinds()) {
    const auto has = [&](std::string_view key, std::string_view value) {
      const std::string member = "\"" + std::string(key) + "\":\"" + std::string(value) + "\"";
      return text.find(member) != std::string::npos;
    };
    if (has("contract", kind->contract) && has("cache", kind->cache)) return *kind;
  }
  return *contracts().kinds().front();
}

Words shrink_words(const std::string& path, const Subject& subject) {
  return joined({"shrink", path, "--subject", subject.name(), "--attempts", "20"}, kLimits);
}

// Under a sanitizer a file gets one of the commands, another one with another seed.
void expect_sound_ends(const std::string& path, std::uint64_t turn, std::vector<Words> commands) {
  if (kIsSanitized) commands = {commands[turn % commands.size()]};
  for (const Words& words : commands) expect_sound_end(path, words);
}

TEST(Hostile, LogsOfTheCorpus) {
  std::uint64_t turn = number_in_environment("KVO_HOSTILE_SEED", 1);
  for (const std::string& path : corpus("logs")) {
    const CacheKind& kind = kind_in(traces::test::content_of(path));
    const std::vector<const Law*> laws = contracts().laws_of(kind);
    const std::string law(laws[++turn % laws.size()]->name());
    expect_sound_ends(path, turn,
                      {joined({"conform", path}, kLimits),
                       joined({"conform", path, "--profile", "documented"}, kLimits),
                       shrink_words(path, *contracts().subjects_of(kind).back()),
                       joined({"conform", path, "--law", law}, kLimits),
                       {"why", path}});
  }
}

TEST(Hostile, TracesOfTheCorpus) {
  const TempFolder folder;
  std::uint64_t turn = number_in_environment("KVO_HOSTILE_SEED", 1);
  for (const std::string& path : corpus("traces"))
    expect_sound_ends(path, ++turn,
                      {{"trace", "info", path},
                       {"probe", "answers", path},
                       {"why", path, "--requests", "20"},
                       run_words(path, "layered", folder),
                       run_words(path, "positional.causal", folder)});
}

TEST(Hostile, LinesLongerThanAnyMayBe) {
  const TempFolder folder;
  const std::string header = R"({"kvlog":1,"contract":"layered","cache":"vector","case":")";
  const std::string filler(traces::kMaxLineBytes - 100, 'x');
  const std::string too_long(traces::kMaxLineBytes, 'x');
  const auto both = [&](const std::string& name, const std::string& text) {
    for (const std::string& path :
         {folder.write(name, text), folder.write(name + ".gz", traces::test::gzipped(text))}) {
      expect_sound_end(path, joined({"conform", path}, kLimits));
      expect_sound_end(path, {"trace", "info", path});
      expect_sound_end(path, {"probe", "answers", path});
    }
  };
  both("name", header + filler + "\"}\n" + R"({"op":"len","args":{"cache":0},"ret":{"len":1}})");
  both("long", header + too_long + "\"}\n");
  both("member", header + "x\",\"" + filler + "\":1}\n{\"op\":\"new\",\"" + filler + "\":1}");
  both("argument", header + "x\"}\n{\"op\":\"len\",\"args\":{\"" + filler + "\":1}}");
  both("list", header + "x\"}\n[" + std::string(traces::kMaxLineBytes / 2, ','));
}

// ---- Inputs made afresh ----

// Single cases of the embedded logs, and the short logs of the corpus.
std::vector<std::string> good_logs() {
  constexpr std::size_t kMost = 12'000;
  std::vector<std::string> all;
  for (const auto& entry : fs::directory_iterator(KVO_LOGS)) {
    auto log = traces::TextSource::open(entry.path().string());
    std::string text;
    const auto keep = [&] {
      if (!text.empty() && text.size() < kMost) all.push_back(text);
      text.clear();
    };
    while (const auto line = log->next_line().value()) {
      if (line->starts_with("{\"kvlog\"")) keep();
      text += std::string(*line) + "\n";
    }
    keep();
  }
  std::ranges::sort(all);
  EXPECT_GT(all.size(), 50U);
  for (const std::string& path : corpus("logs"))
    if (fs::file_size(path) < 2'000) all.push_back(traces::test::content_of(path));
  return all;
}

std::vector<std::string> good_traces() {
  constexpr std::size_t kMost = 4'000;
  const std::string_view sample = traces::sample_trace();
  std::vector<std::string> all{
      std::string(sample.substr(0, sample.find('\n', kMost) + 1)),
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n"
      "2023-11-16 18:17:04.0319600,3180,8\n",
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,ChatGPT,472,18,490,Conversation log\n45.5,GPT-4,1087,230,1317,API log\n"};
  const std::size_t good = all.size();
  for (const std::string& path : corpus("traces"))
    if (fs::file_size(path) < kMost) all.push_back(traces::test::content_of(path));
  // Half of what is made comes from the good ones.
  while (all.size() < 70) all.push_back(all[all.size() % good]);
  return all;
}

constexpr std::uint64_t kInputs = 1'000;
constexpr std::uint64_t kShards = 4;  // tests that run side by side

class HostileMade : public testing::TestWithParam<std::uint64_t> {
 protected:
  int expect_sound_end_of(std::uint64_t index) {
    Mutator mutator(seed_ * kInputs + index);
    const bool is_log = mutator.below(10) < 7;
    const std::vector<std::string>& good = is_log ? logs_ : traces_;
    const std::string& base = good[mutator.below(good.size())];
    const std::string name = "input-" + std::to_string(seed_) + "-" + std::to_string(index);
    const std::string path = folder_.write(name, mutator.mutated(base));
    const Words words = is_log ? log_words(path, base, mutator) : trace_words(path, mutator);
    const int status = expect_sound_end(path, words,
                                        "\nor with: KVO_HOSTILE_SEED=" + std::to_string(seed_) +
                                            " KVO_HOSTILE_ONLY=" + std::to_string(index) + " " +
                                            KVO_HOSTILE_PROGRAM);
    fs::remove(path);
    return status;
  }

  [[nodiscard]] static Words log_words(const std::string& path, const std::string& base,
                                       Mutator& mutator) {
    const CacheKind& kind = kind_in(base);
    const std::vector<const Law*> laws = contracts().laws_of(kind);
    switch (mutator.below(6)) {
      case 0:
        return joined({"conform", path, "--profile", "documented"}, kLimits);
      case 1:
        return joined(
            {"conform", path, "--law", std::string(laws[mutator.below(laws.size())]->name())},
            kLimits);
      case 3:
        return {"why", path};
      case 2:
        return shrink_words(path, *contracts().subjects_of(kind).back());
      default:
        return joined({"conform", path}, kLimits);
    }
  }
  [[nodiscard]] Words trace_words(const std::string& path, Mutator& mutator) const {
    if (mutator.below(3) > 0) return {"trace", "info", path};
    const auto& kinds = contracts().lowerings();
    return run_words(path, kinds[mutator.below(kinds.size())].kind->name(), folder_);
  }

  std::uint64_t seed_ = number_in_environment("KVO_HOSTILE_SEED", 1);
  TempFolder folder_;
  std::vector<std::string> logs_ = good_logs();
  std::vector<std::string> traces_ = good_traces();
};

TEST_P(HostileMade, EveryInputEndsSoundly) {
  const std::uint64_t only = number_in_environment("KVO_HOSTILE_ONLY", kInputs);
  std::map<int, int> ends;
  for (std::uint64_t index = GetParam(); index < kInputs; index += kShards)
    if (only == kInputs || only == index) ++ends[expect_sound_end_of(index)];
  fmt::print("KVO_HOSTILE_SEED={}, inputs by status: {}\n", seed_, ends);
  if (only != kInputs) return;
  for (const int status : {kExitConforms, kExitDiffers, kExitUsage})
    EXPECT_GT(ends[status], 20) << "inputs are hostile in many ways";
}

INSTANTIATE_TEST_SUITE_P(Shard, HostileMade, testing::Range<std::uint64_t>(0, kShards));

}  // namespace
}  // namespace kvo::tools
