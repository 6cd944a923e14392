#include "tools/tidy/tree.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <utility>

namespace kvo::tidy {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kRooms{"reference",  "optimized", "cuda",    "traces",
                                                 "properties", "tools",     "examples"};

Lines split(const std::string& text) {
  Lines lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// Tells code from comments and literals, character by character.
class Scanner {
 public:
  explicit Scanner(const std::string& text)
      : text_(text), code_(blank(text)), bare_(code_), words_(code_) {
    while (at_ < text_.size()) step();
  }

  [[nodiscard]] Lines code() const { return split(code_); }
  [[nodiscard]] Lines bare() const { return split(bare_); }
  [[nodiscard]] Lines words() const { return split(words_); }

 private:
  static std::string blank(std::string text) {
    for (char& c : text) {
      if (c != '\n') c = ' ';
    }
    return text;
  }

  void step() {
    if (starts("//")) {
      comment_until(std::min(text_.find('\n', at_), text_.size()));
    } else if (starts("/*")) {
      comment_until(after("*/", at_ + 2));
    } else if (text_[at_] == '"' && at_ > 0 && text_[at_ - 1] == 'R') {
      const std::size_t open = std::min(text_.find('(', at_), text_.size());
      literal_until(after(")" + text_.substr(at_ + 1, open - at_ - 1) + "\"", open));
    } else if (text_[at_] == '"' || (text_[at_] == '\'' && !inside_number())) {
      literal_until(closing_quote());
    } else {
      code_[at_] = bare_[at_] = words_[at_] = text_[at_];
      ++at_;
    }
  }

  [[nodiscard]] bool starts(std::string_view what) const {
    return text_.compare(at_, what.size(), what) == 0;
  }

  [[nodiscard]] std::size_t after(std::string_view what, std::size_t from) const {
    const std::size_t found = text_.find(what, from);
    return found == std::string::npos ? text_.size() : found + what.size();
  }

  /// Whether the quote here separates digits, as in 1'000.
  [[nodiscard]] bool inside_number() const {
    std::size_t begin = at_;
    while (begin > 0 && is_word(text_[begin - 1])) --begin;
    return begin < at_ && std::isdigit(static_cast<unsigned char>(text_[begin])) != 0;
  }

  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '\'' || c == '.';
  }

  [[nodiscard]] std::size_t closing_quote() const {
    for (std::size_t i = at_ + 1; i < text_.size() && text_[i] != '\n'; ++i) {
      if (text_[i] == text_[at_]) return i + 1;
      if (text_[i] == '\\') ++i;
    }
    return at_ + 1;  // Not a literal after all, such as an apostrophe behind #error.
  }

  void comment_until(std::size_t end) {
    for (; at_ < end; ++at_) words_[at_] = text_[at_];
  }

  void literal_until(std::size_t end) {
    bare_[at_] = words_[at_] = text_[at_];
    bare_[end - 1] = words_[end - 1] = text_[end - 1];
    for (; at_ < end; ++at_) code_[at_] = text_[at_];
  }

  const std::string& text_;
  std::string code_;
  std::string bare_;
  std::string words_;
  std::size_t at_ = 0;
};

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool is_source(const fs::path& file) {
  static constexpr std::array<std::string_view, 4> kEndings{".hpp", ".cpp", ".cuh", ".cu"};
  return std::find(kEndings.begin(), kEndings.end(), file.extension().string()) != kEndings.end();
}

}  // namespace

Source source(std::string path, const std::string& text) {
  const Scanner scanner(text);
  return {.path = std::move(path),
          .lines = split(text),
          .code = scanner.code(),
          .bare = scanner.bare(),
          .words = scanner.words()};
}

Build build(std::string folder, const std::string& text) {
  return {.folder = std::move(folder), .text = std::regex_replace(text, std::regex("#.*"), "")};
}

Tree read_tree(const fs::path& root) {
  Tree tree;
  if (fs::exists(root / "CMakeLists.txt")) {
    tree.builds.push_back(build("", read(root / "CMakeLists.txt")));
  }
  for (const std::string_view room : kRooms) {
    if (!fs::is_directory(root / room)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / room)) {
      if (!entry.is_regular_file()) continue;
      const fs::path path = entry.path().lexically_relative(root);
      if (is_source(path)) {
        tree.sources.push_back(source(path.generic_string(), read(entry.path())));
      } else if (path.filename() == "CMakeLists.txt") {
        tree.builds.push_back(build(path.parent_path().generic_string() + "/", read(entry.path())));
      }
    }
  }
  const auto by_path = [](const Source& a, const Source& b) { return a.path < b.path; };
  std::sort(tree.sources.begin(), tree.sources.end(), by_path);
  return tree;
}

std::string complaint(const Source& source, std::size_t line_index, std::string_view what) {
  return source.path + ":" + std::to_string(line_index + 1) + ": " + std::string(what);
}

bool is_in_a_room(const std::string& path) {
  return std::any_of(kRooms.begin(), kRooms.end(), [&path](std::string_view room) {
    return path.starts_with(std::string(room) + "/");
  });
}

}  // namespace kvo::tidy
