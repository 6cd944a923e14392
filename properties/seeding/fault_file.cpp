#include "properties/seeding/fault_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iomanip>
#include <map>
#include <sstream>
#include <utility>

namespace kvo::seeding {
namespace {

constexpr std::string_view kSpace = " \t\n";
constexpr std::size_t kMemberIndent = 2;
constexpr std::size_t kContinuedIndent = 4;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!(text = trimmed(text)).empty()) {
    const std::size_t end = std::min(text.find_first_of(kSpace), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

/// What is between the marks: nothing of an empty text.
std::vector<std::string_view> parts_of(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  if (text.empty()) return parts;
  for (std::size_t end = text.find(mark); end != text.npos; end = text.find(mark)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

/// A number of 1 or more.
std::optional<std::size_t> number_of_text(std::string_view text) {
  std::size_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || number == 0) return {};
  return number;
}

std::string list_of(const auto& words) {
  std::string list;
  for (const auto& word : words) list += (list.empty() ? "" : ", ") + std::string(word);
  return list;
}

/// Reads the lines of a file into rows.
class Reader {
 public:
  explicit Reader(std::string_view path) : path_(path) {}

  void read(std::string_view line) {
    ++line_;
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    if (trimmed(line).empty() || (indent <= kMemberIndent && line[indent] == '#')) return;
    if (indent == 0) return head(trimmed(line));
    if (indent == kMemberIndent) return begin_member(line.substr(indent));
    if (indent < kContinuedIndent || member_.empty())
      return complain(line_, line, "a member begins after 2 spaces and goes on after 4 or more");
    text_ += '\n' + std::string(line.substr(kContinuedIndent));
  }

  FaultFile finish() && {
    end_row();
    return std::move(file_);
  }

 private:
  [[nodiscard]] std::string at(std::size_t line) const {
    return std::string(path_) + ":" + std::to_string(line);
  }
  void complain(std::size_t line, std::string_view word, const std::string& what) {
    file_.complaints.push_back(at(line) + ": '" + std::string(trimmed(word)) + "': " + what);
  }

  void head(std::string_view line) {
    end_row();
    constexpr std::string_view kKinds = "kinds:";
    if (line.starts_with(kKinds)) {
      kinds_ = words_of(line.substr(kKinds.size()));
      return;
    }
    const std::size_t middle = std::min(line.find('@'), line.size());
    const std::string kind(line.substr(0, middle));
    const std::string name(line.substr(std::min(middle + 1, line.size())));
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
    if (std::ranges::find(kinds_, kind) == kinds_.end())
      complain(line_, kind, "not among the kinds of this file; allowed: " + list_of(kinds_));
    if (name.empty() || name.find_first_not_of(kLetters) != std::string::npos)
      complain(line_, line, "a heading is kind@name, the name of a-z, 0-9 and _");
    file_.rows.push_back({.where = at(line_), .kind = kind, .name = name});
    row_line_ = line_;
  }

  void begin_member(std::string_view line) {
    end_member();
    const std::size_t colon = std::min(line.find(':'), line.size());
    member_ = trimmed(line.substr(0, colon));
    text_ = trimmed(line.substr(std::min(colon + 1, line.size())));
    member_line_ = line_;
    if (row_line_ == 0) complain(line_, member_, "a heading kind@name comes first");
  }

  void end_member() {
    if (member_.empty() || row_line_ == 0) return;
    constexpr std::array kOnce{"fault", "origin", "profile", "longest_script", "laws"};
    constexpr std::array kOfEdits{"file", "after", "from", "to", "add"};
    const std::string text(trimmed(text_));
    if (std::ranges::find(kOnce, member_) != kOnce.end()) {
      if (!once_.emplace(member_, in_one_line(text)).second)
        complain(member_line_, member_, "the row has this member already");
      if (member_ == "profile" && text != "original" && text != "documented")
        complain(member_line_, text, "no profile; allowed: original, documented");
    } else if (std::ranges::find(kOfEdits, member_) != kOfEdits.end()) {
      add_to_edit(text);
    } else {
      complain(member_line_, member_,
               "no member; allowed: " + list_of(kOnce) + ", " + list_of(kOfEdits));
    }
    member_.clear();
  }

  void add_to_edit(const std::string& text) {
    std::vector<Edit>& edits = file_.rows.back().edits;
    if (text.empty() && member_ != "to") return complain(member_line_, member_, "it is empty");
    const bool begins =
        member_ == "file" || (!is_open_ && (member_ == "after" || member_ == "from"));
    if (begins) {
      end_edit();
      if (member_ != "file" && edits.empty())
        return complain(member_line_, member_, "a file comes first");
      edits.push_back({.where = at(member_line_),
                       .file = member_ == "file" ? text : std::string(edits.back().file)});
      is_open_ = true;
      if (member_ == "file") return;
    }
    Edit* edit = edits.empty() || !is_open_ ? nullptr : &edits.back();
    const bool has_from = edit != nullptr && !edit->from.empty();
    const bool has_after = edit != nullptr && !edit->after.empty();
    if (member_ == "after" && edit != nullptr && !has_after && !has_from) {
      edit->after = text;
      edit->after_where = at(member_line_);
    } else if (member_ == "from" && edit != nullptr && !has_from) {
      edit->from = text;
    } else if ((member_ == "to" && has_from) || (member_ == "add" && has_after && !has_from)) {
      edit->to = text;
      is_open_ = false;
    } else {
      return complain(member_line_, member_,
                      "out of order; an edit is file, after, from and to, or file, after and add");
    }
    if (member_ != "to") edit->where = at(member_line_);
  }

  void end_edit() {
    if (std::exchange(is_open_, false))
      file_.complaints.push_back(file_.rows.back().edits.back().where +
                                 ": the edit ends without 'to' or 'add'");
  }

  void end_row() {
    end_member();
    if (row_line_ == 0) return;
    end_edit();
    FaultRow& row = file_.rows.back();
    const std::string heading = row.kind + "@" + row.name;
    for (const auto& [name, value] : {std::pair("fault", &row.fault), {"origin", &row.origin}}) {
      *value = once_[name];
      if (value->empty()) complain(row_line_, heading, std::string("it has no ") + name);
    }
    if (const std::string& profile = once_["profile"]; !profile.empty())
      row.profile = profile == "original" ? Profile::kOriginal : Profile::kDocumented;
    if (const std::string& longest = once_["longest_script"]; !longest.empty()) {
      const auto read = number_of_text(longest);
      row.longest_script = read.value_or(0);
      if (!read)
        complain(row_line_, longest, "longest_script is a number of operations, 1 or more");
    }
    row.laws = once_["laws"];
    for (const std::string_view part : parts_of(row.laws, ',')) {
      const std::vector<std::string> words = words_of(part);
      if (words.size() != 2 || !number_of_text(words.back()))
        complain(row_line_, row.laws, "laws are names with a number of cases: \"a_b_a 100, ..\"");
    }
    if (row.edits.empty()) complain(row_line_, heading, "it has no edits");
    const auto room = [](const Edit& edit) { return edit.file.substr(0, edit.file.find('/')); };
    for (const Edit& edit : row.edits)
      if (room(edit) != room(row.edits.front()))
        file_.complaints.push_back(edit.where + ": '" + edit.file +
                                   "': edits of a row are all in " + room(row.edits.front()) + "/");
    once_.clear();
    row_line_ = 0;
  }

  std::string_view path_;
  std::size_t line_ = 0;
  FaultFile file_;
  std::vector<std::string> kinds_;
  std::size_t row_line_ = 0;  ///< 0: outside of rows
  std::map<std::string, std::string> once_;
  bool is_open_ = false;  ///< the last edit lacks `to` or `add`
  std::string member_;    ///< that further lines belong to; empty: none
  std::string text_;
  std::size_t member_line_ = 0;
};

std::string literal_of(std::string_view text) {
  std::ostringstream literal;
  literal << std::quoted(text);
  return literal.str();
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string in_one_line(std::string_view text) {
  std::string line;
  for (const std::string_view part : parts_of(text, '\n'))
    if (const auto words = trimmed(part); !words.empty())
      line += (line.empty() ? "" : " ") + std::string(words);
  return line;
}

FaultFile parse_faults(std::string_view path, std::string_view text) {
  Reader reader(path);
  for (const std::string_view line : parts_of(text, '\n')) reader.read(line);
  return std::move(reader).finish();
}

std::string table_of(std::string_view path, std::span<const FaultRow> rows) {
  const std::string_view folder = path.substr(0, path.rfind('/'));
  std::string text = "// The rows of " + std::string(path) +
                     ", without their edits.\n#pragma once\n"
                     "#include \"properties/seeding/fault.hpp\"\nnamespace kvo::" +
                     std::string(folder.substr(folder.rfind('/') + 1)) +
                     " {\nconstexpr ::kvo::seeding::Fault kFaults[] = {\n";
  for (const FaultRow& row : rows) {
    const std::string& file = row.edits.front().file;
    text += "{";
    for (const std::string& part :
         {row.kind, row.name, row.fault, row.origin, file.substr(0, file.find('/'))})
      text += literal_of(part) + ", ";
    text += !row.profile                         ? "std::nullopt"
            : *row.profile == Profile::kOriginal ? "::kvo::Profile::kOriginal"
                                                 : "::kvo::Profile::kDocumented";
    text += ", " + std::to_string(row.longest_script) + ", " + literal_of(row.laws) + "},\n";
  }
  return text + "};\n}\n";
}

}  // namespace kvo::seeding
