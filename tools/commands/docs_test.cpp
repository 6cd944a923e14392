// What README.md, CONTRIBUTING.md and docs say, against what the command prints.
//
// A fenced block after one of these marks is compared with the output of a command. Its lines, or
// the named columns of its table, must be in the output in the same order; other lines may be
// between. Times, rates and ratios count as equal.
//   <!-- output of: kvoracle WORDS -->
//   <!-- columns subject; cases of: kvoracle WORDS -->
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

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
using testing::IsEmpty;
using Lines = std::vector<std::string>;

std::string page_text(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

Lines parts_of(const std::string& text, const std::string& separator) {
  Lines parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  return parts;
}

std::vector<fs::path> pages() {
  const fs::path root(KVO_SOURCE_ROOT);
  std::vector<fs::path> all{root / "README.md", root / "CONTRIBUTING.md"};
  for (const auto& entry : fs::directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  return all;
}

/// A fenced block and the command that prints it.
struct Sample {
  std::string where;
  Lines columns;  ///< none: whole lines
  Lines command;
  Lines lines;
};

std::vector<Sample> samples_of(const std::string& name, const std::string& page) {
  static const std::regex kMark("<!-- (?:output|columns (.+)) of: kvoracle (.+) -->");
  std::vector<Sample> samples;
  bool waits = false;
  bool fenced = false;
  for (const std::string& line : parts_of(page, "\n")) {
    std::smatch mark;
    if (line.starts_with("```")) {
      waits = waits && !fenced;
      fenced = !fenced;
    } else if (std::regex_match(line, mark, kMark)) {
      samples.push_back({name, {}, parts_of(mark[2], " "), {}});
      if (mark[1].matched) samples.back().columns = parts_of(mark[1], "; ");
      waits = true;
    } else if (waits && fenced) {
      samples.back().lines.push_back(line);
    }
  }
  return samples;
}

// Without what depends on the machine, and with single spaces.
std::string masked(const std::string& line) {
  static const std::regex kTimes(
      R"(\[[0-9.]+\.\.[0-9.]+x\]|[0-9][0-9.,]*( (ns|us|ms|s|[KMGT]?B/s)|x)(?![a-zA-Z]))");
  static const std::regex kSpaces(" +");
  const std::string once = std::regex_replace(std::regex_replace(line, kTimes, ""), kSpaces, " ");
  return once.ends_with(' ') ? once.substr(0, once.size() - 1) : once;
}

struct Cell {
  std::size_t begin;
  std::size_t end;
  std::string text;
};

std::vector<Cell> cells_of(const std::string& line) {
  static const std::regex kCell("[^ ]+(?: [^ ]+)*");
  std::vector<Cell> cells;
  for (std::sregex_iterator found(line.begin(), line.end(), kCell), end; found != end; ++found) {
    const auto begin = static_cast<std::size_t>(found->position());
    cells.push_back({begin, begin + found->str().size(), found->str()});
  }
  return cells;
}

// The rows of the table whose header has these columns: these columns only, a line each.
Lines rows_of(const Lines& lines, const Lines& columns) {
  Lines rows;
  std::vector<Cell> header;
  for (const std::string& line : lines) {
    const std::vector<Cell> cells = cells_of(line);
    if (header.empty()) {
      for (const Cell& cell : cells)
        if (std::ranges::count(columns, cell.text) > 0) header.push_back(cell);
      if (header.size() != columns.size()) header.clear();
      continue;
    }
    if (cells.empty()) break;
    std::string row;
    for (const Cell& column : header) {
      for (const Cell& cell : cells)
        if (cell.begin < column.end && column.begin < cell.end) row += cell.text;
      row += " | ";
    }
    rows.push_back(row);
  }
  return rows;
}

// The first line of a sample that the output lacks; none if it has all.
std::string lacking(const Sample& sample, const std::string& output) {
  Lines want = sample.lines;
  Lines have = parts_of(output, "\n");
  if (sample.columns.empty()) {
    for (Lines* lines : {&want, &have})
      for (std::string& line : *lines) line = masked(line);
  } else {
    want = rows_of(want, sample.columns);
    have = rows_of(have, sample.columns);
  }
  if (want.empty()) return "the sample is empty, or lacks a column";
  auto at = have.begin();
  for (const std::string& line : want) {
    at = std::find(at, have.end(), line);
    if (at == have.end()) return line;
    ++at;
  }
  return "";
}

TEST(Documents, SamplesAreWhatTheCommandPrints) {
  std::set<std::string> with_samples;
  std::map<Lines, Finished> outputs;
  for (const fs::path& page : pages())
    for (const Sample& sample : samples_of(page.filename(), page_text(page))) {
      const auto [done, fresh] = outputs.try_emplace(sample.command);
      if (fresh) done->second = run_kvoracle(sample.command, {.folder = testing::TempDir()});
      EXPECT_EQ(lacking(sample, done->second.out), "")
          << sample.where << ": not in the output of kvoracle "
          << testing::PrintToString(sample.command) << done->second.err;
      with_samples.insert(sample.where);
    }
  EXPECT_THAT(with_samples, testing::IsSupersetOf({"README.md", "performance.md"}));
}

TEST(Documents, AStaleSampleIsFound) {
  const std::string page =
      "<!-- columns subject; cases of: kvoracle run -->\n`run`:\n\n```\n"
      "subject  cases  time\na            4  2.00x\nlonger     123      -\n```\n"
      "<!-- output of: kvoracle list -->\n```\na takes 2.00 us, 3 calls\n```\n";
  std::vector<Sample> samples = samples_of("page", page);
  ASSERT_EQ(samples.size(), 2U);
  const std::string table = "head\nsubject    cases     time\na              4   1.234x\n";
  EXPECT_EQ(lacking(samples[0], table + "longer       123        -\n"), "");
  EXPECT_EQ(lacking(samples[0], table + "longer       124        -\n"), "longer | 123 | ");
  EXPECT_EQ(lacking(samples[0], "subject  time\na  1\n"), "a | 4 | ") << "no such columns";
  EXPECT_EQ(lacking(samples[1], "x\na takes 17.3 ns,  3 calls\ny\n"), "");
  EXPECT_EQ(lacking(samples[1], "a takes 17.3 ns, 4 calls\n"), "a takes , 3 calls");
}

// The defaults that `help` shows in brackets, of all commands that have the option.
std::map<std::string, std::set<std::string>> defaults_of_options() {
  static const std::regex kOption(R"(\n  (?:-., )?(--[a-z-]+)[^\n]*((?:\n {8}[^\n]*)*))");
  static const std::regex kDefault(R"(\[([^\]]*)\]\s*$)");
  std::map<std::string, std::set<std::string>> defaults;
  for (const std::string command : {"run", "check", "conform", "mutants", "shrink", "bench", "gate",
                                    "trace info", "trace generate"}) {
    Lines words = parts_of("help " + command, " ");
    const std::string help = run_kvoracle(words).out;
    for (std::sregex_iterator option(help.begin(), help.end(), kOption), end; option != end;
         ++option) {
      const std::string text = option->str();
      std::smatch found;
      if (std::regex_search(text, found, kDefault)) defaults[option->str(1)].insert(found[1]);
    }
  }
  return defaults;
}

TEST(Documents, OptionsHaveTheDefaultsThatHelpShows) {
  static const std::regex kSaid(R"(`(--[a-z-]+)` \(([0-9][0-9, ]*))");
  const auto defaults = defaults_of_options();
  int compared = 0;
  for (const fs::path& page : pages()) {
    const std::string text = page_text(page);
    for (std::sregex_iterator said(text.begin(), text.end(), kSaid), end; said != end; ++said) {
      const auto known = defaults.find(said->str(1));
      if (known == defaults.end() || known->second.contains("by case")) continue;
      std::string list = said->str(2);
      std::erase(list, ' ');
      std::string number = list;
      std::erase(number, ',');
      EXPECT_TRUE(known->second.contains(list) || known->second.contains(number))
          << page.filename() << ": " << said->str() << "), help says "
          << testing::PrintToString(known->second);
      ++compared;
    }
  }
  EXPECT_GE(compared, 8);
}

TEST(Documents, TheReadmeNamesAllContractsCachesAndCommands) {
  const std::string readme = page_text(KVO_SOURCE_ROOT "/README.md");
  std::map<std::string, std::set<std::string>> listed;
  const json::value all = json::parse(run_kvoracle({"list", "--json", "-"}).out);
  for (const json::value& cache : all.at("caches").as_array()) {
    const Lines name = parts_of(std::string(cache.at("name").as_string()), ".");
    listed[name.front()].insert(name.back());
  }
  static const std::regex kWord("`([a-z_]+)`");
  for (const auto& [contract, caches] : listed) {
    // A row an engine: a contract may have several, and share one.
    const std::regex row("\n\\|[^|\n]*\\|[^|\n]*`" + contract + "`[^|\n]*\\|([^|\n]*)\\|");
    std::set<std::string> said;
    for (std::sregex_iterator found(readme.begin(), readme.end(), row), end; found != end;
         ++found) {
      const std::string cell = found->str(1);
      for (std::sregex_iterator word(cell.begin(), cell.end(), kWord), last; word != last; ++word)
        said.insert(word->str(1));
    }
    EXPECT_TRUE(std::ranges::includes(said, caches)) << contract;
  }
  const std::string help = run_kvoracle({"help"}).out;
  static const std::regex kCommand("\n  ([a-z]+) {2,}");
  const std::string commands = help.substr(help.find("Commands:"));
  int named = 0;
  for (std::sregex_iterator word(commands.begin(), commands.end(), kCommand), end; word != end;
       ++word, ++named)
    EXPECT_THAT(readme, HasSubstr("\nkvoracle " + word->str(1) + " "));
  EXPECT_GE(named, 10);
}

TEST(Documents, TheReadmeLinksEveryPage) {
  const std::string readme = page_text(KVO_SOURCE_ROOT "/README.md");
  for (const auto& entry : fs::directory_iterator(KVO_SOURCE_ROOT "/docs"))
    EXPECT_THAT(readme, HasSubstr("(docs/" + entry.path().filename().string()));
  for (const char* page : {"CHANGELOG.md", "CONTRIBUTING.md"})
    EXPECT_THAT(readme, HasSubstr(std::string("(") + page + ")"));
}

TEST(Documents, TheExampleOfAContractIsAsShortAsSaid) {
  std::smatch said;
  const std::string text = page_text(KVO_SOURCE_ROOT "/CONTRIBUTING.md");
  ASSERT_TRUE(std::regex_search(text, said, std::regex("under ([0-9]+) lines")));
  std::ptrdiff_t lines = 0;
  for (const auto& entry : fs::directory_iterator(KVO_SOURCE_ROOT "/examples/own_contract"))
    if (entry.path().extension() == ".cpp" || entry.path().extension() == ".hpp") {
      const std::string code = page_text(entry.path());
      lines += std::ranges::count(code, '\n');
    }
  EXPECT_LT(lines, std::stoi(said[1]));
  EXPECT_GT(lines, std::stoi(said[1]) * 3 / 4);
}

class Figures : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* folder : {"tools", "docs", "optimized"})
      fs::create_directories(root_ / folder);
    fs::copy_file(KVO_SOURCE_ROOT "/tools/figures", root_ / "tools/figures",
                  fs::copy_options::overwrite_existing);
    write("optimized/a.cpp", "int a = 1;  // as measured\n");
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const char* path, const std::string& text) const {
    std::ofstream(root_ / path) << text;
  }
  [[nodiscard]] Finished figures(const std::vector<std::string>& words) const {
    std::vector<std::string> all{"/usr/bin/env", "python3", (root_ / "tools/figures").string()};
    all.insert(all.end(), words.begin(), words.end());
    return run_program(all);
  }

 private:
  // Tests of one program run side by side: each has a folder of its own.
  fs::path root_ = fs::path(testing::TempDir()) /
                   (std::string("kvoracle_figures_") +
                    testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(Figures, ATableIsStaleWhenCodeChangesThatItDependsOn) {
  const std::string mark = figures({"--hash", "optimized"}).out;
  EXPECT_THAT(mark, HasSubstr(" of optimized -->"));
  const std::string table = "| a | b |\n| --- | --- |\n| 1 | 2 |\n";
  write("docs/performance.md", mark + "`tools/x`:\n\n" + table);
  EXPECT_THAT(figures({"--check"}).out, IsEmpty());
  write("optimized/a.cpp", "// another comment\nint a  =  1;\n");
  write("optimized/a_test.cpp", "int b = 2;\n");
  EXPECT_THAT(figures({"--check"}).out, IsEmpty()) << "no code changed that is measured";
  write("optimized/a.cpp", "int a = 2;\n");
  const Finished stale = figures({"--check"});
  EXPECT_THAT(stale.out, HasSubstr("performance.md:1: stale"));
  EXPECT_EQ(stale.status, 0) << "a warning";
  write("docs/performance.md", mark + "\n" + table + "\nmore\n" + table);
  const Finished unmarked = figures({"--check"});
  EXPECT_THAT(unmarked.out, HasSubstr("performance.md:8: a table without a mark"));
  EXPECT_EQ(unmarked.status, 1);
}

TEST_F(Figures, EveryTableOfThePageHasAMark) {
  const Finished done =
      run_program({"/usr/bin/env", "python3", KVO_SOURCE_ROOT "/tools/figures", "--check"});
  EXPECT_EQ(done.status, 0) << done.out << done.err;
}

}  // namespace
}  // namespace kvo::tools
