// Files that commands write and continue: run files, corpus folders, reports.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/commands/exit_status.hpp"
#include "tools/testing/campaign_fixture.hpp"

namespace kvo::tools {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RunFiles : public Campaign {
 protected:
  [[nodiscard]] static std::vector<std::string> check(std::vector<std::string> more) {
    more.insert(more.begin(), {"check", "layered", "--cases", "6", "-o", "file"});
    return more;
  }
  // A file that another process writes, as far as locks can tell.
  [[nodiscard]] std::shared_ptr<void> locked(const std::string& name) const {
    const int opened = open(path(name).c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(flock(opened, LOCK_EX | LOCK_NB), 0);
    return {nullptr, [opened](void* /*none*/) { (void)close(opened); }};
  }
};

TEST_F(RunFiles, AreResumedWhereverTheyWereCut) {
  ASSERT_EQ(run({"check", "layered", "--cases", "6", "-o", "whole"}).status, kExitConforms);
  const std::string whole = read("whole");
  const std::vector<std::string> lines = cases_of("whole");
  const std::size_t header = whole.find('\n');
  const std::size_t last = whole.rfind('\n', whole.size() - 2);
  for (const std::size_t cut :
       {std::size_t{0}, std::size_t{1}, header / 2, header, header + 1, header + 2, header + 12,
        last, last + 1, last + 2, last + 11, whole.size() - 2, whole.size() - 1, whole.size()}) {
    (void)file("file", whole.substr(0, cut));
    const Finished finished = run(check({"--resume"}));
    EXPECT_EQ(finished.status, kExitConforms) << "cut at " << cut << ": " << finished.err;
    EXPECT_EQ(cases_of("file"), lines) << "cut at " << cut;
  }
}

TEST_F(RunFiles, OfAFailureAreResumedWithItsScript) {
  const std::vector<std::string> command{
      "check", "layered.vector@mutant:clear_keeps_rows", "--cases", "90", "-o", "file"};
  ASSERT_EQ(run(command).status, kExitDiffers);
  const std::vector<std::string> lines = cases_of("file");
  const std::string whole = read("file");
  (void)file("file", whole.substr(0, whole.size() - 5));
  std::vector<std::string> resume = command;
  resume.emplace_back("--resume");
  EXPECT_EQ(run(resume).status, kExitDiffers);
  EXPECT_EQ(cases_of("file"), lines);
}

TEST_F(RunFiles, ThatAnotherProgramChangedAreNotResumed) {
  ASSERT_EQ(run(check({})).status, kExitConforms);
  const std::string whole = read("file");
  const std::size_t header = whole.find('\n') + 1;
  const std::size_t second = whole.find('\n', header) + 1;
  std::string returns;
  for (const char c : whole) returns += c == '\n' ? "\r\n" : std::string(1, c);
  const auto with = [&](std::size_t at, const std::string& text) {
    return std::string(whole).insert(at, text);
  };
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {returns, "file:1: "},
           {"\xef\xbb\xbf" + whole, "file:1: "},
           {with(header - 1, "\r"), "file:1: "},
           {with(0, "\n"), "file:1: \\x0a: is not the header"},
           {with(header, "\n"), "file:2: is not JSON"},
           {with(second - 1, "\r"), "file:2: "},
           {with(second - 1, " "), "file:2: "},
           {with(second + 1, " "), "file:3: "},
           {whole + "\n", "file:8: is not JSON"},
           {whole + "text", "file:8: text: is not the beginning of a case"},
           {whole + "\r", "file:8: \\x0d: is not the beginning of a case"},
           {std::string("\x1f\x8b\x00", 3), "is not the header of this run, unpacked"},
           {"text", "file:1: text: is not the header of this run"}}) {
    (void)file("file", text);
    expect_refused(check({"--resume"}), why);
    EXPECT_EQ(read("file"), text) << why;
  }
}

TEST_F(RunFiles, AreWrittenByOneProcess) {
  ASSERT_EQ(run(check({})).status, kExitConforms);
  const std::string whole = read("file");
  auto other = locked("file");
  for (const char* how : {"--resume", "--overwrite"}) {
    expect_refused(check({how}), "file: another kvoracle process writes it");
    EXPECT_EQ(read("file"), whole);
  }
  other.reset();
  EXPECT_EQ(run(check({"--resume"})).status, kExitConforms);
}

TEST_F(RunFiles, ThatAreRemovedMeanwhileAreAnError) {
  for (const char* meanwhile : {"rm file", "rm file; touch file"}) {
    const Finished finished = run_program(
        {"/bin/bash", "-c",
         std::string("\"$1\" check layered --time 1.5 -o file --overwrite & sleep 0.5; ") +
             meanwhile + "; wait $!",
         "bash", kvoracle_path()},
        {.folder = folder_.string()});
    EXPECT_EQ(finished.status, kExitUsage) << finished.out;
    EXPECT_THAT(finished.err, HasSubstr("file: was removed or replaced"));
  }
}

TEST_F(RunFiles, FoldersThatCannotBeMadeAreToldWithTheReason) {
  const Finished finished = run({"check", "layered.vector@mutant:clear_keeps_rows", "--cases", "90",
                                 "--repros", "/sys/kvoracle"});
  EXPECT_EQ(finished.status, kExitUsage) << finished.out;
  EXPECT_THAT(finished.err, HasSubstr("/sys/kvoracle: cannot make it: "));
  EXPECT_THAT(finished.err, testing::Not(HasSubstr("No such file")));
}

TEST_F(RunFiles, AreNotOtherOutputsByAnotherName) {
  const std::string trace = run({"trace", "generate", "--requests", "3"}).out;
  (void)file("t", trace);
  fs::create_directories(path("a"));
  fs::create_symlink("t", path("link"));
  fs::create_symlink("new", path("dangling"));
  fs::create_hard_link(path("t"), path("hard"));
  const std::string twice = "name the same file";
  const std::string input = "is read, too: it would be overwritten";
  const std::string log = std::string(KVO_LOGS) + "/layered.jsonl.gz";
  fs::copy_file(log, path("log.gz"));
  ASSERT_EQ(run(check({})).status, kExitConforms);
  const std::string whole = read("file");
  for (const char* other : {"./new", "a/../new", "dangling", "none/../new"}) {
    expect_refused({"check", "layered", "--cases", "2", "-o", "new", "--json", other}, twice);
    expect_refused({"bench", "layered", "-o", "new", "--json", other}, twice);
    expect_refused({"mutants", "layered", "--junit", "new", "--json", other}, twice);
    expect_refused({"gate", "file", "file", "--markdown", "new", "--junit", other}, twice);
    expect_refused(
        {"shrink", "log.gz", "--subject", "layered.vector@optimized", "-o", "new", "--json", other},
        twice);
  }
  for (const char* other : {"t", "./t", "link", "hard", "a/../t"}) {
    expect_refused({"trace", "info", "t", "--json", other}, input);
    expect_refused({"run", "t", "-o", other, "--overwrite"}, input);
    EXPECT_EQ(read("t"), trace);
  }
  expect_refused({"conform", "log.gz", "--json", "./log.gz"}, input);
  expect_refused({"shrink", "log.gz", "--subject", "layered.vector@optimized", "-o", "./log.gz"},
                 input);
  expect_refused({"gate", "file", "file", "--json", "a/../file"}, input);
  expect_refused({"check", "layered", "--corpus", "a", "--json", "a/corpus.json"}, input);
  EXPECT_EQ(read("file"), whole);
  EXPECT_FALSE(fs::exists(path("new")));
  EXPECT_EQ(run({"trace", "info", "t", "--json", "/dev/null"}).status, kExitConforms);
}

TEST_F(RunFiles, HaveNamesInUtf8) {
  for (const char* option : {"--output", "--json", "--junit", "--repros", "--corpus"})
    expect_refused({"check", "layered", "--cases", "1", option, "r\xff"},
                   std::string(option) + " r\\xff: must be valid UTF-8");
  EXPECT_TRUE(fs::is_empty(folder_));
}

class CorpusFolder : public RunFiles {
 protected:
  CorpusFolder() { fs::create_directories(path("kept")); }
  const std::vector<std::string> command_{"check",   "layered", "--law",    "agrees_with_reference",
                                          "--cases", "4",       "--corpus", "kept"};
};

TEST_F(CorpusFolder, HoldsRegularFilesOnly) {
  (void)file("outside.jsonl", "");
  fs::create_directories(path("kept/folder.jsonl"));
  const auto refused = [&](const std::string& name) {
    expect_refused(command_, "kept/" + name + ": is no regular file in the corpus folder");
    fs::remove(path("kept/" + name));
  };
  refused("folder.jsonl");
  for (const char* name : {"a.jsonl", "a.jsonl.gz", "corpus.json"}) {
    ASSERT_EQ(mkfifo(path(std::string("kept/") + name).c_str(), 0600), 0);
    refused(name);
    for (const char* target : {"/dev/zero", "../outside.jsonl", "nowhere", "a.jsonl"}) {
      fs::create_symlink(target, path(std::string("kept/") + name));
      refused(name);
    }
  }
  EXPECT_EQ(read("outside.jsonl"), "");
}

TEST_F(CorpusFolder, MayHaveLinksInside) {
  (void)file("kept/text", "");
  fs::create_symlink("text", path("kept/a.jsonl"));
  EXPECT_EQ(run(command_).status, kExitConforms);
}

TEST_F(CorpusFolder, IsWrittenByOneProcess) {
  ASSERT_EQ(run(command_).status, kExitConforms);
  const std::string state = read("kept/corpus.json");
  const auto other = locked("kept");
  expect_refused(command_, "kept: another kvoracle process writes it");
  EXPECT_EQ(read("kept/corpus.json"), state);
}

}  // namespace
}  // namespace kvo::tools
