#include "properties/seeding/seeder.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

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

/// What may stand in a place instead.
struct Choice {
  const Fault* fault = nullptr;
  std::string_view to;
};
using Choices = std::map<Place, std::vector<Choice>, OuterFirst>;

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool is_statement(std::string_view text) {
  return !text.empty() && text.back() == ';';
}

/// Where `wanted` ends if it stands at `begin`; any white space matches any other.
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
      const std::string name = " /* " + std::string(choice.fault->name) + " */ ";
      const std::string to(choice.to);
      text += statement ? "if (" + on + ") {" + name + to + " } else "
                        : on + name + "? (" + to + ") : ";
    }
    return text + (statement ? "{ " + sound + " } }" : "(" + sound + "))");
  }

  std::string_view source_;
  const Choices& choices_;
};

/// Finds the places of all edits of a file.
Choices choices_in(std::string_view path, std::string_view source, std::span<const Fault> faults,
                   std::vector<std::string>& complaints) {
  Choices choices;
  for (const Fault& fault : faults)
    for (const Edit& edit : fault.edits) {
      if (edit.file != path) continue;
      const auto complain = [&](std::string_view text, std::string_view what) {
        complaints.push_back(std::string(fault.kind) + "@mutant:" + std::string(fault.name) + ": " +
                             std::string(path) + ": " + std::string(what) + ": " +
                             std::string(text));
      };
      std::size_t start = 0;
      const std::string_view unique = trimmed(edit.after.empty() ? edit.from : edit.after);
      auto place = unique.empty() ? std::nullopt : first_match(source, 0, unique);
      if (place && first_match(source, place->begin + 1, unique)) complain(unique, "found twice");
      if (place && !edit.after.empty()) {
        start = place->end;
        place = first_match(source, start, trimmed(edit.from));
      }
      if (!place) {
        complain(edit.from, "not found");
        continue;
      }
      for (const auto& [other, others] : choices)
        if (place->begin < other.end && other.begin < place->end && !place->contains(other) &&
            !other.contains(*place))
          complain(edit.from, "overlaps an edit of " + std::string(others.front().fault->name));
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

}  // namespace

Copy copy_of(std::string_view path, std::string_view source, std::span<const Fault> faults,
             std::span<const std::string> copied, Housing housing) {
  Copy copy;
  const Choices choices = choices_in(path, source, faults, copy.complaints);
  if (!copy.complaints.empty()) return copy;
  const std::string chosen = Writer(source, choices).inside({0, source.size()}, choices.begin());
  copy.text = rehoused(path, chosen, copied, housing, copy.complaints);
  return copy;
}

std::vector<std::string> complaints_about(std::span<const Fault> faults,
                                          std::span<const std::string> copied) {
  std::vector<std::string> complaints;
  std::set<std::uint64_t> numbers;
  for (const Fault& fault : faults) {
    const std::string who = std::string(fault.kind) + "@mutant:" + std::string(fault.name) + ": ";
    if (!numbers.insert(number_of(fault.kind, fault.name)).second)
      complaints.push_back(who + "there is another of this name");
    if (fault.edits.empty()) complaints.push_back(who + "edits nothing");
    for (const Edit& edit : fault.edits)
      if (std::ranges::find(copied, edit.file) == copied.end())
        complaints.push_back(who + std::string(edit.file) + " is not among the copied files");
  }
  return complaints;
}

}  // namespace kvo::seeding
