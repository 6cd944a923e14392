#include "properties/seeding/seeder.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "properties/seeding/fault.hpp"

namespace kvo::seeding {
namespace {

/// Characters [begin, end) of a source.
struct Place {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] bool contains(const Place& other) const {
    return begin <= other.begin && other.end <= end;
  }
};

/// The outer one of two places that begin together comes first.
struct OuterFirst {
  bool operator()(const Place& a, const Place& b) const {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  }
};

/// What may replace the text of a place.
struct Choice {
  const FaultRow* fault = nullptr;
  std::string_view to;
};
using Choices = std::map<Place, std::vector<Choice>, OuterFirst>;

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

bool is_statement(std::string_view text) {
  return !text.empty() && text.back() == ';';
}

/// Where `wanted` ends if it begins at `begin`; any white space matches any other.
std::optional<std::size_t> end_of_match(std::string_view text, std::size_t begin,
                                        std::string_view wanted) {
  std::size_t at = begin;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (at >= text.size()) return std::nullopt;
    if (is_space(wanted[i])) {
      if (!is_space(text[at])) return std::nullopt;
      while (i + 1 < wanted.size() && is_space(wanted[i + 1])) ++i;
      while (at < text.size() && is_space(text[at])) ++at;
    } else if (text[at++] != wanted[i]) {
      return std::nullopt;
    }
  }
  return at;
}

std::optional<Place> first_match(std::string_view text, std::size_t from, std::string_view wanted) {
  for (std::size_t begin = from; begin < text.size(); ++begin)
    if (const auto end = end_of_match(text, begin, wanted)) return Place{begin, *end};
  return std::nullopt;
}

/// Replaces numbers by their choices, from the outside in.
class Writer {
 public:
  Writer(std::string_view source, const Choices& choices) : source_(source), choices_(choices) {}

  /// The text of a place with all choices in it but those of the place itself.
  [[nodiscard]] std::string inside(const Place& place, Choices::const_iterator next) const {
    std::string text;
    std::size_t at = place.begin;
    while (next != choices_.end() && next->first.begin < place.end) {
      text += source_.substr(at, next->first.begin - at);
      text += choice(next);
      at = next->first.end;
      while (next != choices_.end() && next->first.begin < at) ++next;
    }
    return text + std::string(source_.substr(at, place.end - at));
  }

 private:
  [[nodiscard]] std::string choice(Choices::const_iterator which) const {
    const auto& [place, choices] = *which;
    const std::string sound = inside(place, std::next(which));
    const bool statement = is_statement(source_.substr(place.begin, place.end - place.begin));
    std::string text = statement ? "{ " : "(";
    for (const Choice& choice : choices) {
      const std::string on = "::kvo::seeding::fault_is_on(" +
                             std::to_string(number_of(choice.fault->kind, choice.fault->name)) +
                             "U)";
      const std::string name = " /* " + choice.fault->name + " */ ";
      const std::string to(choice.to);
      text += statement ? "if (" + on + ") {" + name + to + " } else "
                        : on + name + "? (" + to + ") : ";
    }
    return text + (statement ? "{ " + sound + " } }" : "(" + sound + "))");
  }

  std::string_view source_;
  const Choices& choices_;
};

/// The place of an edit; nothing, and a complaint, where there is not exactly one.
std::optional<Place> place_of(const Edit& edit, std::string_view source,
                              std::vector<std::string>& complaints) {
  const bool anchored = !edit.after.empty();
  const std::string& unique = anchored ? edit.after : edit.from;
  const auto complain = [&](const std::string& where, std::string_view text,
                            std::string_view what) {
    complaints.push_back(where + ": '" + in_one_line(text) + "' " + std::string(what) + " " +
                         edit.file + "; allowed: a text that it has exactly once");
    return std::nullopt;
  };
  const std::string& where = anchored ? edit.after_where : edit.where;
  const auto found = first_match(source, 0, unique);
  if (!found) return complain(where, unique, "is not in");
  if (first_match(source, found->begin + 1, unique))
    return complain(where, unique, "is more than once in");
  if (!anchored) return found;
  if (edit.from.empty()) return Place{found->end, found->end};
  const auto following = first_match(source, found->end, edit.from);
  return following ? following : complain(edit.where, edit.from, "does not follow its 'after' in");
}

/// The source with what faults add to it.
std::string with_additions(std::string_view path, std::string_view source,
                           std::span<const FaultRow> faults, std::vector<std::string>& complaints) {
  std::multimap<std::size_t, const std::string*, std::greater<>> additions;
  for (const FaultRow& fault : faults)
    for (const Edit& edit : fault.edits)
      if (edit.file == path && edit.from.empty())
        if (const auto place = place_of(edit, source, complaints))
          additions.emplace(place->end, &edit.to);
  std::string text(source);
  for (const auto& [at, added] : additions) text.insert(at, " " + *added);
  return text;
}

/// Finds the places of all replacements in a file.
Choices choices_in(std::string_view path, std::string_view source, std::span<const FaultRow> faults,
                   std::vector<std::string>& complaints) {
  Choices choices;
  for (const FaultRow& fault : faults)
    for (const Edit& edit : fault.edits) {
      if (edit.file != path || edit.from.empty()) continue;
      const auto place = place_of(edit, source, complaints);
      if (!place) continue;
      for (const auto& [other, others] : choices)
        if (place->begin < other.end && other.begin < place->end && !place->contains(other) &&
            !other.contains(*place))
          complaints.push_back(edit.where + ": '" + in_one_line(edit.from) +
                               "' overlaps an edit of " + others.front().fault->name +
                               "; allowed: the same text, or one inside or outside of it");
      choices[*place].push_back({&fault, edit.to});
    }
  return choices;
}

/// Each line with its end.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

/// The lines of a copy: one include more, and of one that stands beside other includes and one more
/// namespace.
std::string rehoused(std::string_view path, std::string_view source,
                     std::span<const std::string> copied, Housing housing,
                     std::vector<std::string>& complaints) {
  const bool beside = housing == Housing::kBeside;
  if (!beside && path.ends_with(".hpp"))
    complaints.push_back(std::string(path) + ": others include the header itself");
  std::string text = "// A copy of " + std::string(path) + " with faults to switch on.\n";
  int opened = 0;
  int closed = 0;
  bool has_switch = false;
  for (const std::string_view line : lines_of(source)) {
    if (line.starts_with("#include") && !std::exchange(has_switch, true))
      text += "#include \"properties/seeding/fault.hpp\"\n";
    if (beside && line.starts_with("#include \"")) {
      std::string included(line.substr(10, line.find('"', 10) - 10));
      if (std::ranges::find(copied, included) != copied.end()) included.insert(0, kCopies);
      text += "#include \"" + included + "\"\n";
    } else if (line.starts_with("namespace kvo") && trimmed(line).ends_with("{")) {
      ++opened;
      text +=
          beside ? std::string(trimmed(line)) + " inline namespace seeded {\n" : std::string(line);
    } else if (line.starts_with("}  // namespace kvo")) {
      ++closed;
      text += (beside ? "}\n" : "") + std::string(line);
    } else {
      text += line;
    }
  }
  if (opened != 1 || closed != 1 || !has_switch)
    complaints.push_back(std::string(path) + ": not one namespace kvo, or no include");
  return text;
}

std::string read(const std::filesystem::path& file, std::vector<std::string>& complaints) {
  std::ifstream in(file, std::ios::binary);
  if (!in) complaints.push_back(file.string() + ": cannot be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

/// False if the file cannot be written. Leaves one alone that holds the text already.
bool write(const std::filesystem::path& file, const std::string& text) {
  std::vector<std::string> ignored;
  if (read(file, ignored) == text && ignored.empty()) return true;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out << text;
  return static_cast<bool>(out.flush());
}

/// "x/faults.hpp" of "properties/x/faults.txt".
std::filesystem::path table_path(const std::string& faults) {
  return std::filesystem::path(faults).lexically_relative("properties").replace_extension(".hpp");
}

}  // namespace

Copy copy_of(std::string_view path, std::string_view source, std::span<const FaultRow> faults,
             std::span<const std::string> copied, Housing housing) {
  Copy copy;
  const std::string text = with_additions(path, source, faults, copy.complaints);
  const Choices choices = choices_in(path, text, faults, copy.complaints);
  if (!copy.complaints.empty()) return copy;
  const std::string chosen = Writer(text, choices).inside({0, text.size()}, choices.begin());
  copy.text = rehoused(path, chosen, copied, housing, copy.complaints);
  return copy;
}

std::vector<std::string> complaints_about(std::span<const FaultRow> faults,
                                          std::span<const std::string> copied) {
  std::vector<std::string> complaints;
  std::map<std::uint64_t, std::string> places;
  std::string allowed;
  for (const std::string& file : copied) allowed += (allowed.empty() ? "" : ", ") + file;
  for (const FaultRow& fault : faults) {
    const auto [same, is_new] = places.emplace(number_of(fault.kind, fault.name), fault.where);
    if (!is_new)
      complaints.push_back(fault.where + ": '" + fault.kind + "@" + fault.name +
                           "' is the name of " + same->second + "; allowed: a name of its own");
    for (const Edit& edit : fault.edits)
      if (std::ranges::find(copied, edit.file) == copied.end())
        complaints.push_back(edit.where + ": '" + edit.file +
                             "' is not copied; allowed: " + allowed);
  }
  return complaints;
}

std::vector<std::string> seed(Housing housing, const std::filesystem::path& root,
                              const std::filesystem::path& out,
                              const std::vector<std::string>& files) {
  std::vector<std::string> complaints;
  const auto complain = [&](const std::vector<std::string>& more) {
    complaints.insert(complaints.end(), more.begin(), more.end());
  };
  std::map<std::filesystem::path, std::string> written;
  std::vector<FaultRow> faults;
  std::vector<std::string> sources;
  for (const std::string& file : files) {
    if (!file.ends_with(".txt")) {
      sources.push_back(file);
      continue;
    }
    const FaultFile parsed = parse_faults(file, read(root / file, complaints));
    complain(parsed.complaints);
    if (!complaints.empty()) continue;
    written[table_path(file)] = table_of(file, parsed.rows);
    faults.insert(faults.end(), parsed.rows.begin(), parsed.rows.end());
  }
  if (complaints.empty()) complain(complaints_about(faults, sources));
  if (!complaints.empty()) return complaints;
  for (const std::string& file : sources) {
    Copy copy = copy_of(file, read(root / file, complaints), faults, sources, housing);
    complain(copy.complaints);
    written[file] = std::move(copy.text);
  }
  if (!complaints.empty()) return complaints;
  for (const auto& [file, text] : written)
    if (!write(out / kCopies / file, text))
      complaints.push_back((out / kCopies / file).string() + ": cannot be written");
  return complaints;
}

}  // namespace kvo::seeding
