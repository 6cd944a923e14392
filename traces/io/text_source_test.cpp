#include "traces/io/text_source.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/io/test_files.hpp"

namespace kvo::traces {

namespace {

using test::error_text;
using test::gzipped;
using test::TempFolder;

struct Lines {
  std::vector<std::string> lines;
  std::string error;  // "no error" at the end of the file
};

Lines all_lines(TextSource source) {
  Lines all;
  for (;;) {
    const auto line = source.next_line();
    all.error = error_text(line);
    if (!line || !*line) return all;
    all.lines.emplace_back(**line);
    EXPECT_EQ(source.line_number(), all.lines.size());
  }
}

Lines lines_in(std::string_view text, std::size_t max_line_bytes = kMaxLineBytes) {
  return all_lines(TextSource::in_memory("m", text, max_line_bytes));
}

std::string open_error(const std::string& path) {
  return error_text(TextSource::open(path));
}

TEST(TextSource, GivesLinesWithoutTheirEnds) {
  EXPECT_EQ(lines_in("a\r\nb\n\n c \nlast").lines,
            (std::vector<std::string>{"a", "b", "", " c ", "last"}));
}

TEST(TextSource, HasNoLineBehindTheLastEnd) {
  EXPECT_TRUE(lines_in("").lines.empty());
  EXPECT_EQ(lines_in("a\n").lines, std::vector<std::string>{"a"});
}

TEST(TextSource, PassesOverAByteOrderMarkInTheFirstLineOnly) {
  EXPECT_EQ(lines_in("\xef\xbb\xbfone\n\xef\xbb\xbftwo").lines,
            (std::vector<std::string>{"one", "\xef\xbb\xbftwo"}));
}

TEST(TextSource, PassesOverBlankLinesInOneGo) {
  auto source = TextSource::in_memory("m", "\xef\xbb\xbf \n\r\n\t\n  a \n\n \nb\n \n ");
  const auto next = [&] {
    EXPECT_EQ(error_text(source.pass_blank_lines()), "no error");
    const auto line = source.next_line().value();
    return line ? std::to_string(source.line_number()) + std::string(*line) : "end";
  };
  EXPECT_EQ(next(), "4  a ");
  EXPECT_EQ(next(), "7b");
  EXPECT_EQ(next(), "end");
}

TEST(TextSource, BlankLinesAreRefusedWhereTheyAreTooLong) {
  const std::string text = std::string(100, ' ') + "\na";
  auto source = TextSource::in_memory("m", text, 50);
  EXPECT_EQ(error_text(source.pass_blank_lines()), "no error");
  EXPECT_EQ(error_text(source.next_line()).substr(0, 10), "m:1: line:");
}

TEST(TextSource, PeekingDoesNotMove) {
  auto source = TextSource::in_memory("m", "a\nb\n");
  EXPECT_EQ(source.peek_line()->value(), "a");
  EXPECT_EQ(source.line_number(), 0u);
  EXPECT_EQ(source.next_line()->value(), "a");
  EXPECT_EQ(source.peek_line()->value(), "b");
  EXPECT_EQ(source.next_line()->value(), "b");
  EXPECT_FALSE(source.peek_line()->has_value());
  EXPECT_EQ(source.line_number(), 2u);
}

TEST(TextSource, GivesLinesThatCrossTheBordersOfItsBuffer) {
  std::string text;
  std::vector<std::string> want;
  for (std::size_t i = 0; i < 400; ++i) {
    want.emplace_back(i * 37 % 3001, static_cast<char>('a' + i % 26));
    text += want.back() + '\n';
  }
  want.emplace_back(200'000, 'x');
  text += want.back() + '\n';
  EXPECT_EQ(lines_in(text).lines, want);
  EXPECT_EQ(lines_in(gzipped(text)).lines, want);
}

TEST(TextSource, ReadsGzipWhateverTheFileIsCalled) {
  const TempFolder folder;
  const auto path = folder.write("plain.txt", gzipped("a\nb\n"));
  auto source = TextSource::open(path);
  ASSERT_EQ(error_text(source), "no error");
  EXPECT_EQ(all_lines(std::move(*source)).lines, (std::vector<std::string>{"a", "b"}));
}

TEST(TextSource, ReadsGzipMembersOneAfterTheOther) {
  const auto all = lines_in(gzipped("a\nb") + gzipped("c\n") + gzipped("") + gzipped("d"));
  EXPECT_EQ(all.lines, (std::vector<std::string>{"a", "bc", "d"}));
  EXPECT_EQ(all.error, "no error");
}

TEST(TextSource, AllowsZerosBehindGzip) {
  const auto all = lines_in(gzipped("a\n") + std::string(100'000, '\0'));
  EXPECT_EQ(all.lines, std::vector<std::string>{"a"});
  EXPECT_EQ(all.error, "no error");
}

TEST(TextSource, TruncatedGzipIsAnErrorWhereverItIsCut) {
  const auto packed = gzipped("one\ntwo\nthree\n");
  for (std::size_t size = 2; size < packed.size(); ++size) {
    const auto all = lines_in(packed.substr(0, size));
    EXPECT_EQ(all.error, "m:" + std::to_string(all.lines.size() + 1) +
                             ": gzip: the packed data end too early; the file is truncated")
        << "cut to " << size << " bytes";
  }
}

TEST(TextSource, TruncatedSecondMemberIsAnError) {
  const auto packed = gzipped("a\n");
  const auto all = lines_in(packed + packed.substr(0, packed.size() - 1));
  EXPECT_NE(all.error, "no error");
}

TEST(TextSource, GarbledGzipIsAnError) {
  auto packed = gzipped("one\ntwo\n");
  packed[packed.size() - 8] ^= 1;  // The checksum.
  EXPECT_EQ(lines_in(packed).error, "m:1: gzip: the packed data are damaged: incorrect data check");
}

TEST(TextSource, NoFlippedBitOfPackedDataChangesLinesUnseen) {
  constexpr std::size_t kHeaderBytes = 10;
  const auto packed = gzipped("one\ntwo\nthree\nfour\n");
  const auto want = lines_in(packed).lines;
  for (std::size_t bit = kHeaderBytes * 8; bit < packed.size() * 8; ++bit) {
    auto flipped = packed;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto got = lines_in(flipped);
    // A few bits only fill up a byte.
    EXPECT_TRUE(got.error != "no error" || got.lines == want) << "bit " << bit;
  }
}

TEST(TextSource, SomethingElseBehindGzipIsAnError) {
  const auto all = lines_in(gzipped("a\n") + "b\n");
  EXPECT_EQ(all.lines, std::vector<std::string>{"a"});
  EXPECT_EQ(all.error, "m:2: gzip: the packed data are followed by something else");
}

TEST(TextSource, LineOfTheLimitIsReadAndALongerOneIsAnError) {
  EXPECT_EQ(lines_in("12345\n12345", 5).error, "no error");
  EXPECT_EQ(lines_in("1\n123456\n", 5).error, "m:2: line: 123456\\x0a: longer than 5 bytes");
  EXPECT_EQ(lines_in("1\n123456", 5).error, "m:2: line: 123456: longer than 5 bytes");
}

TEST(TextSource, EndlessLineIsAnErrorAlsoIfItIsPackedSmall) {
  const auto packed = gzipped(std::string(std::size_t{40} << 20, 'x'));
  EXPECT_EQ(lines_in(packed).error,
            "m:1: line: " + std::string(60, 'x') + "...: longer than 16777216 bytes");
}

TEST(TextSource, GivesTheSameErrorAgain) {
  auto source = TextSource::in_memory("m", "123456\n1\n", 5);
  const auto first = error_text(source.next_line());
  EXPECT_EQ(error_text(source.next_line()), first);
  EXPECT_EQ(error_text(source.peek_line()), first);
  EXPECT_NE(first, "no error");
}

TEST(TextSource, MissingFileAndFolderAreErrors) {
  const TempFolder folder;
  EXPECT_EQ(open_error(folder.path("none")),
            folder.path("none") + ": cannot open: No such file or directory");
  EXPECT_EQ(open_error(folder.path("")), folder.path("") + ": cannot open: Is a directory");
}

TEST(TextSource, UnreadableFileIsAnError) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const TempFolder folder;
  const auto path = folder.write("secret", "a\n");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  EXPECT_EQ(open_error(path), path + ": cannot open: Permission denied");
}

TEST(TextSource, ReadThatFailsIsAnError) {
  const std::string path = "/proc/self/mem";  // Opens, but nothing is mapped at its beginning.
  auto source = TextSource::open(path);
  if (!source) GTEST_SKIP() << source.error().text();
  EXPECT_EQ(all_lines(std::move(*source)).error, path + ":1: cannot read: Input/output error");
}

}  // namespace

}  // namespace kvo::traces
