#include <functional>
#include <map>
#include <set>

#include "tools/tidy/rules.hpp"

namespace kvo::tidy {
namespace {

// Folders that belong to no contract. Every other folder of a room is one contract's.
const std::string kReferenceContract = "reference/(?!contract/)[a-z0-9_]+/";
const std::string kPropertiesContract = "properties/(?!runner/|replay/|campaign/)[a-z0-9_]+/";

// Headers of a contract by what they hold. A cache that must agree with the reference may not be
// made of it, so `<kind>_cache.hpp` is in none of these.
const std::string kCacheHeader =
    kReferenceContract +
    R"((cache|(?!([a-z0-9_]+_)?(cache|pool|operations|session|subjects|config)\.)[a-z0-9_]+)\.hpp)";
const std::string kRecords = kReferenceContract + R"(([a-z0-9_]+_)?operations\.hpp)";
const std::string kMachine = "reference/contract/.*";
const std::string kTests = R"([a-z0-9_/]+_(test|property)\.(cpp|cu))";

/// Who may include what. The first row that names the including file decides.
struct Arrow {
  std::regex from;
  std::regex to;
};

std::vector<Arrow> make_arrows() {
  const auto row = [](const std::string& from, const std::string& to) {
    return Arrow{.from = std::regex(from), .to = std::regex(to)};
  };
  const std::string contract = kMachine + "|" + kCacheHeader;
  const std::string all_records = contract + "|" + kRecords;
  const std::string machine = kMachine + "|traces/.*|properties/runner/.*";
  return {
      row(kMachine, kMachine),
      // A header that pulled in a cache would hand it to every room.
      row(kCacheHeader, contract),
      row(kRecords, all_records),
      row("reference/.*", "reference/.*"),
      // Subjects name operations and sessions; so do tests that drive one.
      row("optimized/(.*subjects.*|" + kTests + ")", all_records + "|optimized/.*"),
      row("optimized/.*", contract + "|optimized/.*"),
      // A cache on a device may share the bookkeeping of one for a CPU.
      row("cuda/(.*subjects.*|" + kTests + ")", all_records + "|cuda/.*"),
      row("cuda/positional/.*", contract + "|cuda/.*|optimized/positional/.*"),
      row("cuda/.*", contract + "|cuda/.*"),
      row("traces/.*", kMachine + "|traces/.*"),
      // The tests of the machine try it out on every contract.
      row("properties/(runner|replay|campaign)/" + kTests,
          "reference/.*|traces/.*|properties/.*|optimized/subjects\\.hpp|cuda/subjects\\.hpp"),
      row("properties/runner/.*", machine),
      row("properties/replay/.*", machine + "|properties/(replay|campaign)/.*"),
      row("properties/campaign/.*", machine + "|properties/(replay|campaign)/.*"),
      row(kPropertiesContract + ".*", "reference/.*|traces/.*|properties/.*|optimized/.*|cuda/.*"),
      row(R"(properties/contracts\.cpp)",
          R"(reference/.*|traces/.*|properties/.*|optimized/(.*/)?[a-z0-9_]*subjects\.hpp)"
          R"(|cuda/(.*/)?[a-z0-9_]*subjects\.hpp|cuda/device/open\.hpp)"),
      row("properties/[^/]*", machine + "|properties/(replay|campaign)/.*|properties/[^/]*"),
      row("tools/.*|examples/.*", ".*"),
  };
}

bool is_allowed(const std::string& from, const std::string& to) {
  static const std::vector<Arrow> kArrows = make_arrows();
  for (const Arrow& arrow : kArrows) {
    if (std::regex_match(from, arrow.from)) return std::regex_match(to, arrow.to);
  }
  return false;
}

const std::regex& include_line() {
  static const std::regex kInclude(R"re(^\s*#\s*include\s*[<"]([^">]+)[">])re");
  return kInclude;
}

/// What each file includes, by path.
std::map<std::string, std::vector<std::string>> includes_of(const Tree& tree) {
  std::map<std::string, std::vector<std::string>> includes;
  each_match(tree, &Source::code, "include", include_line(),
             [&includes](const Source& from, std::size_t /*line*/, const std::string& to) {
               includes[from.path].push_back(to);
             });
  return includes;
}

}  // namespace

bool is_cache_header(const std::string& path) {
  static const std::regex kHeader(kCacheHeader);
  return std::regex_match(path, kHeader);
}

Complaints includes_against_the_arrows(const Tree& tree) {
  Complaints found;
  each_match(tree, &Source::code, "include", include_line(),
             [&found](const Source& from, std::size_t line, const std::string& to) {
               if (is_in_a_room(to) && !is_allowed(from.path, to)) {
                 found.push_back(complaint(from, line, "may not include " + to));
               }
             });
  return found;
}

Complaints includes_not_from_the_root(const Tree& tree) {
  Complaints found;
  const std::regex include(R"re(^\s*#\s*include\s*([<"][^">]+)[">])re");
  // A project of its own beside the tree: its files are no room's.
  static const std::regex kOutside("examples/[^/]+/.*");
  each_match(tree, &Source::code, "include", include,
             [&found](const Source& from, std::size_t line, const std::string& to) {
               const bool quoted = to.front() == '"';
               const bool dotted = std::regex_search(to, std::regex(R"((^.|/)\.\.?/)"));
               const bool own = quoted && std::regex_match(from.path, kOutside);
               if (dotted || (!own && quoted != is_in_a_room(to.substr(1)))) {
                 found.push_back(complaint(
                     from, line, "include ours as \"room/...\", others in <>: " + to.substr(1)));
               }
             });
  return found;
}

Complaints json_in_cache_headers(const Tree& tree) {
  const auto includes = includes_of(tree);
  std::set<std::string> seen;
  // The way from `path` to a header of JSON, or nothing.
  const std::function<std::string(const std::string&)> way = [&](const std::string& path) {
    // Naming its types brings nothing of it.
    if (path == "boost/json/fwd.hpp") return std::string();
    if (path.starts_with("boost/json")) return path;
    const auto file = includes.find(path);
    if (file == includes.end() || !seen.insert(path).second) return std::string();
    for (const std::string& next : file->second) {
      const std::string rest = way(next);
      if (!rest.empty()) return path + " > " + rest;
    }
    return std::string();
  };
  Complaints found;
  for (const Source& source : tree.sources) {
    if (!is_cache_header(source.path)) continue;
    seen.clear();
    const std::string through = way(source.path);
    if (!through.empty()) found.push_back(complaint(source, 0, "brings JSON: " + through));
  }
  return found;
}

}  // namespace kvo::tidy
