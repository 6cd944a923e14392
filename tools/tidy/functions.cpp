#include <algorithm>
#include <cctype>

#include "tools/tidy/rules.hpp"

namespace kvo::tidy {
namespace {

constexpr std::size_t kMaxBody = 70;

bool is_blank(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

/// The code with preprocessor lines left blank: their braces need not match.
std::string without_directives(const Lines& bare) {
  std::string text;
  bool goes_on = false;
  for (const std::string& line : bare) {
    const std::size_t first = line.find_first_not_of(" \t");
    if (goes_on || (first != std::string::npos && line[first] == '#')) {
      goes_on = !line.empty() && line.back() == '\\';
    } else {
      text += line;
    }
    text += '\n';
  }
  return text;
}

/// Without the parameters of templates, whose `class` is not that of a class.
std::string without_template_parameters(std::string head) {
  static const std::regex kTemplate(R"(\btemplate\s*<)");
  std::smatch match;
  while (std::regex_search(head, match, kTemplate)) {
    const auto begin = static_cast<std::size_t>(match.position(0));
    std::size_t end = begin + static_cast<std::size_t>(match.length(0));
    for (int depth = 1; end < head.size() && depth > 0; ++end) {
      depth += head[end] == '<' ? 1 : 0;
      depth -= head[end] == '>' ? 1 : 0;
    }
    head.erase(begin, end - begin);
  }
  return head;
}

/// Without macros that describe, which need no semicolon and so stand before what follows them.
std::string without_macros(std::string head) {
  static const std::regex kMacro(R"(\b(BOOST|KVO)_[A-Z_]+\s*\()");
  std::smatch match;
  while (std::regex_search(head, match, kMacro)) {
    const auto begin = static_cast<std::size_t>(match.position(0));
    std::size_t end = begin + static_cast<std::size_t>(match.length(0));
    for (int depth = 1; end < head.size() && depth > 0; ++end) {
      depth += head[end] == '(' ? 1 : 0;
      depth -= head[end] == ')' ? 1 : 0;
    }
    head.erase(begin, end - begin);
  }
  return head;
}

/// Whether what stands before a brace begins a function (or a lambda outside any).
bool begins_a_function(const std::string& whole_head) {
  static const std::regex kType(R"(^[^(]*\b(class|struct|union|enum|namespace)\b)");
  const std::string head = without_template_parameters(without_macros(whole_head));
  return head.find(')') != std::string::npos && !std::regex_search(head, kType);
}

/// Goes through the braces of a file and calls visit(line index of the first brace, lines between
/// the braces) for every function; functions and lambdas inside are part of it.
template <class Visit>
class Functions {
 public:
  Functions(const Source& source, const Visit& visit)
      : text_(without_directives(source.bare)), visit_(visit) {
    for (at_ = 0; at_ < text_.size(); ++at_) step(text_[at_]);
  }

 private:
  struct Scope {
    std::string head;  ///< what stood before the brace
    std::size_t line;
    int round;  ///< round brackets open around the brace
    bool function;
  };

  void step(char c) {
    if (c == '\n') ++line_;
    if (c == '{') {
      open();
    } else if (c == '}') {
      close();
    } else if (c == ';' && round_ == 0) {
      head_.clear();
    } else {
      round_ += c == '(' ? 1 : 0;
      round_ -= c == ')' ? 1 : 0;
      head_ += c;
    }
  }

  void open() {
    const bool function = round_ == 0 && !inside_ && begins_a_function(head_);
    scopes_.push_back({.head = head_, .line = line_, .round = round_, .function = function});
    inside_ = inside_ || function;
    head_.clear();
    round_ = 0;
  }

  void close() {
    if (scopes_.empty()) return;
    const Scope scope = scopes_.back();
    scopes_.pop_back();
    round_ = scope.round;
    head_.clear();
    if (scope.function) inside_ = false;
    if (scope.round > 0 || is_initializer()) {
      head_ = scope.head;  // `f(int a = {}) {` and `C() : a_{1}, b_{2} {` go on behind the brace.
    } else if (scope.function) {
      visit_(scope.line, line_ > scope.line ? line_ - scope.line - 1 : 0);
    }
  }

  /// Whether the brace that closes here was one of a constructor's initializers.
  [[nodiscard]] bool is_initializer() const {
    const auto next = std::find_if_not(text_.begin() + static_cast<std::ptrdiff_t>(at_) + 1,
                                       text_.end(), is_blank);
    return next != text_.end() && (*next == ',' || *next == '{');
  }

  std::string text_;
  const Visit& visit_;
  std::size_t at_ = 0;
  std::size_t line_ = 0;
  std::string head_;  ///< since the last brace or semicolon
  int round_ = 0;
  bool inside_ = false;  ///< of a function
  std::vector<Scope> scopes_;
};

/// The comment that ends in the line above, one string.
std::string comment_above(const Source& source, std::size_t line) {
  std::string comment;
  for (; line > 0; --line) {
    const std::string& above = source.lines[line - 1];
    const std::size_t first = above.find_first_not_of(' ');
    if (first == std::string::npos || above.compare(first, 2, "//") != 0) break;
    comment.insert(0, above + "\n");
  }
  return comment;
}

/// The declaration that begins in the line, up to its semicolon or brace.
std::string declaration(const Source& source, std::size_t line) {
  std::string text;
  for (; line < source.bare.size(); ++line) {
    const std::string& more = source.bare[line];
    const std::size_t end = more.find_first_of(";{");
    text += more.substr(0, end) + " ";
    if (end != std::string::npos) break;
  }
  return text;
}

bool can_fail_and_change(const std::string& declared) {
  static const std::regex kCanFail(R"(\bvirtual\s+(kvo::)?(Status|Result)\b)");
  static const std::regex kConst(R"(\)\s*const\b)");
  return std::regex_search(declared, kCanFail) && !std::regex_search(declared, kConst);
}

void errors_not_told_in(const Source& source, Complaints& found) {
  static const std::regex kClass(R"(^\s*class\s+\w+[^;]*$)");
  static const std::regex kSection(R"(^\s*(public|protected|private):)");
  static const std::regex kVirtual(R"(\bvirtual\b)");
  bool class_tells = false;
  bool is_public = false;
  for (std::size_t i = 0; i < source.bare.size(); ++i) {
    const std::string& line = source.bare[i];
    std::smatch section;
    if (std::regex_search(line, kClass)) {
      class_tells = comment_above(source, i).find("Errors") != std::string::npos;
      is_public = false;
    } else if (std::regex_search(line, section, kSection)) {
      is_public = section[1] == "public";
    } else if (is_public && !class_tells && std::regex_search(line, kVirtual) &&
               can_fail_and_change(declaration(source, i)) &&
               comment_above(source, i).find("Errors") == std::string::npos) {
      found.push_back(complaint(source, i, "a virtual that may fail does not tell its Errors"));
    }
  }
}

}  // namespace

Complaints long_functions(const Tree& tree) {
  Complaints found;
  for (const Source& source : tree.sources) {
    const auto visit = [&](std::size_t line, std::size_t lines) {
      if (lines <= kMaxBody) return;
      found.push_back(complaint(source, line, "a function of " + std::to_string(lines) + " lines"));
    };
    Functions<decltype(visit)>(source, visit);
  }
  return found;
}

Complaints errors_not_told(const Tree& tree) {
  Complaints found;
  for (const Source& source : tree.sources) {
    if (is_cache_header(source.path)) errors_not_told_in(source, found);
  }
  return found;
}

}  // namespace kvo::tidy
