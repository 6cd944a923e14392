#include "traces/io/output_file.hpp"

#include <csignal>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "traces/io/test_files.hpp"

namespace kvo::traces {

namespace {

using test::content_of;
using test::error_text;
using test::TempFolder;

/// Writes a whole file; the first error as text.
std::string write_all(const std::string& path, std::string_view content) {
  auto file = OutputFile::open(path);
  if (!file) return file.error().text();
  const auto written = file->write(content);
  return written ? error_text(file->commit()) : written.error().text();
}

TEST(OutputFile, AppearsWithCommit) {
  const TempFolder folder;
  auto file = OutputFile::open(folder.path("f"));
  ASSERT_EQ(error_text(file), "no error");
  ASSERT_EQ(error_text(file->write("new")), "no error");
  EXPECT_FALSE(std::filesystem::exists(folder.path("f")));
  ASSERT_EQ(error_text(file->commit()), "no error");
  EXPECT_EQ(content_of(folder.path("f")), "new");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(OutputFile, LeavesTheOldFileWithoutCommit) {
  const TempFolder folder;
  const auto path = folder.write("f", "old");
  {
    auto file = OutputFile::open(path);
    ASSERT_EQ(error_text(file->write("new")), "no error");
  }
  EXPECT_EQ(content_of(path), "old");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(OutputFile, TwoAtOnceDoNotMeet) {
  const TempFolder folder;
  const auto path = folder.path("f");
  auto first = OutputFile::open(path);
  auto second = OutputFile::open(path);
  ASSERT_EQ(error_text(first->write("first")), "no error");
  ASSERT_EQ(error_text(second->write("second")), "no error");
  ASSERT_EQ(error_text(second->commit()), "no error");
  ASSERT_EQ(error_text(first->commit()), "no error");
  EXPECT_EQ(content_of(path), "first");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(OutputFile, GoesWhereALinkPoints) {
  const TempFolder folder;
  const auto target = folder.write("target", "old");
  std::filesystem::create_symlink(target, folder.path("link"));
  EXPECT_EQ(write_all(folder.path("link"), "new"), "no error");
  EXPECT_EQ(content_of(target), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
}

TEST(OutputFile, MissingFolderAndFolderAreErrors) {
  const TempFolder folder;
  const auto path = folder.path("none/f");
  EXPECT_EQ(write_all(path, "x"), path + ": cannot write: No such file or directory");
  EXPECT_EQ(write_all(folder.path(""), "x"), folder.path("") + ": cannot write: Is a directory");
}

TEST(OutputFile, FullDeviceIsAnErrorAndStaysADevice) {
  if (!std::filesystem::is_character_file("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  for (const std::size_t size : {std::size_t{1}, std::size_t{1} << 20}) {
    EXPECT_EQ(write_all("/dev/full", std::string(size, 'x')),
              "/dev/full: cannot write: No space left on device");
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

/// Lets files of this process grow to `bytes`, as if the disk were full there.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    (void)::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = old_.rlim_max};
    (void)::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    (void)::setrlimit(RLIMIT_FSIZE, &old_);
    (void)std::signal(SIGXFSZ, old_handler_);
  }

 private:
  void (*old_handler_)(int);
  rlimit old_ = {};
};

TEST(OutputFile, FileThatCannotGrowIsAnErrorAndLeavesTheOldOne) {
  const TempFolder folder;
  const auto path = folder.write("f", "old");
  std::string error;
  {
    const FileSizeLimit limit(1000);
    error = write_all(path, std::string(100'000, 'x'));
  }
  EXPECT_EQ(error, path + ": cannot write: File too large");
  EXPECT_EQ(content_of(path), "old");
  EXPECT_EQ(folder.files(), 1u);
}

}  // namespace

}  // namespace kvo::traces
