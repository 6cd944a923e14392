// tools/tidy/documents_test.cpp: README links every page, and links of pages lead somewhere.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/rules.hpp"

namespace kvo::tidy {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

// A page without its examples.
Lines prose_of(const fs::path& page) {
  Lines prose;
  std::ifstream in(page, std::ios::binary);
  bool example = false;
  for (std::string line; std::getline(in, line);) {
    const bool fence = line.starts_with("```");
    if (!fence && !example) prose.push_back(line);
    if (fence) example = !example;
  }
  return prose;
}

// The anchor that GitHub gives a heading.
std::string anchor(std::string_view heading) {
  std::string made;
  for (const char c : heading.substr(std::min(heading.find(' ') + 1, heading.size()))) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '_' || c == '-')
      made += static_cast<char>(std::tolower(byte));
    if (c == ' ') made += '-';
  }
  return made;
}

const std::set<std::string>& anchors_of(const fs::path& page) {
  static std::map<fs::path, std::set<std::string>> known;
  const auto [found, is_new] = known.try_emplace(page.lexically_normal());
  if (is_new)
    for (const std::string& line : prose_of(page))
      if (line.starts_with('#')) found->second.insert(anchor(line));
  return found->second;
}

// The links of a page to files or headings that are not there.
Complaints broken_links(const fs::path& page) {
  static const std::regex kLink(R"(\]\(([^)#\s]*)(#([^)\s]+))?\))");
  Complaints found;
  for (const std::string& line : prose_of(page))
    for (std::sregex_iterator match(line.begin(), line.end(), kLink), end; match != end; ++match) {
      const std::string path = match->str(1);
      if (path.find("://") != std::string::npos) continue;
      const fs::path target = path.empty() ? page : page.parent_path() / path;
      const std::string name = match->str(3);
      if (!fs::exists(target) || (!name.empty() && !anchors_of(target).contains(name)))
        found.push_back(page.filename().string() + ": " + path + match->str(2));
    }
  return found;
}

TEST(Documents, AreAllLinkedFromReadme) {
  const fs::path root(KVO_SOURCE_ROOT);
  const std::string readme = fmt::format("{}", fmt::join(prose_of(root / "README.md"), "\n"));
  Complaints missing;
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "docs")) {
    const std::string path = "docs/" + entry.path().filename().string();
    if (readme.find("](" + path + ")") == std::string::npos) missing.push_back(path);
  }
  EXPECT_THAT(missing, IsEmpty());
}

TEST(Documents, HaveNoBrokenLinks) {
  const fs::path root(KVO_SOURCE_ROOT);
  Complaints broken;
  for (const char* folder : {"", "docs", "docs/rules"})
    for (const fs::directory_entry& entry : fs::directory_iterator(root / folder))
      if (entry.path().extension() == ".md")
        for (std::string& link : broken_links(entry.path())) broken.push_back(std::move(link));
  EXPECT_THAT(broken, IsEmpty());
}

TEST(Documents, AreRefusedWithABrokenLink) {
  const fs::path folder = fs::path(testing::TempDir()) / "documents_test";
  fs::create_directories(folder);
  std::ofstream(folder / "other.md") << "# Other\n## `a_b` (PX-1, PX-2)\n";
  std::ofstream(folder / "page.md") << "# A page\n[1](other.md) [2](#a-page) [3](https://x.y/z)\n"
                                       "[4](other.md#a_b-px-1-px-2)\n```\n[5](example.md)\n```\n"
                                       "[6](gone.md) [7](other.md#gone) [8](#gone)\n";
  EXPECT_THAT(broken_links(folder / "page.md"),
              ElementsAre("page.md: gone.md", "page.md: other.md#gone", "page.md: #gone"));
}

}  // namespace
}  // namespace kvo::tidy
