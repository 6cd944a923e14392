#include <algorithm>
#include <functional>
#include <map>
#include <regex>
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
  Arrow(const std::string& including, const std::string& included)
      : from(including), to(included) {}
  std::regex from;
  std::regex to;
};

const std::vector<Arrow>& arrows() {
  static const std::string kContract = kMachine + "|" + kCacheHeader;
  static const std::string kAllRecords = kContract + "|" + kRecords;
  static const std::string kLawMachine = kMachine + "|traces/.*|properties/runner/.*";
  static const std::vector<Arrow> kArrows{
      {kMachine, kMachine},
      // A header that pulled in a cache would hand it to every room.
      {kCacheHeader, kContract},
      {kRecords, kAllRecords},
      {"reference/.*", "reference/.*"},
      // Subjects name operations and sessions; so do tests that drive one.
      {"optimized/(.*subjects.*|" + kTests + ")", kAllRecords + "|optimized/.*"},
      {"optimized/.*", kContract + "|optimized/.*"},
      // A cache on a device may share the bookkeeping of one for a CPU.
      {"cuda/(.*subjects.*|" + kTests + ")", kAllRecords + "|cuda/.*"},
      {"cuda/positional/.*", kContract + "|cuda/.*|optimized/positional/.*"},
      {"cuda/.*", kContract + "|cuda/.*"},
      {"traces/.*", kMachine + "|traces/.*"},
      // The tests of the machine try it out on every contract.
      {"properties/(runner|replay|campaign)/" + kTests,
       R"(reference/.*|traces/.*|properties/.*|(optimized|cuda)/subjects\.hpp)"},
      {"properties/runner/.*", kLawMachine},
      {"properties/(replay|campaign)/.*", kLawMachine + "|properties/(replay|campaign)/.*"},
      {kPropertiesContract + ".*", "(reference|traces|properties|optimized|cuda)/.*"},
      {R"(properties/contracts\.cpp)",
       R"((reference|traces|properties)/.*|(optimized|cuda)/(.*/)?[a-z0-9_]*subjects\.hpp)"
       R"(|cuda/device/open\.hpp)"},
      {"properties/[^/]*", kLawMachine + "|properties/(replay|campaign)/.*|properties/[^/]*"},
      {"(tools|examples)/.*", ".*"},
  };
  return kArrows;
}

bool is_allowed(const std::string& from, const std::string& to) {
  const auto arrow = std::ranges::find_if(
      arrows(), [&from](const Arrow& row) { return std::regex_match(from, row.from); });
  return arrow != arrows().end() && std::regex_match(to, arrow->to);
}

}  // namespace

bool is_cache_header(const std::string& path) {
  static const std::regex kHeader(kCacheHeader);
  return std::regex_match(path, kHeader);
}

Complaints includes_against_the_arrows(const Tree& tree) {
  Complaints found;
  for (const Source& source : tree.sources)
    for (const Include& include : source.includes)
      if (is_in_a_room(include.path) && !is_allowed(source.path, include.path))
        found.push_back(complaint(source, include.line_index, "may not include " + include.path));
  return found;
}

Complaints includes_not_from_the_root(const Tree& tree) {
  static const std::regex kDotted(R"((^|/)\.\.?/.*)");
  // A project of its own beside the tree: its files are no room's.
  static const std::regex kOutside("examples/[^/]+/.*");
  Complaints found;
  for (const Source& source : tree.sources) {
    const bool outside = std::regex_match(source.path, kOutside);
    for (const auto& [line_index, quoted, path] : source.includes)
      if (std::regex_search(path, kDotted) ||
          (quoted != is_in_a_room(path) && !(quoted && outside)))
        found.push_back(
            complaint(source, line_index, "include ours as \"room/...\", others in <>: " + path));
  }
  return found;
}

Complaints json_in_cache_headers(const Tree& tree) {
  std::map<std::string, const Source*> files;
  for (const Source& source : tree.sources) files[source.path] = &source;
  std::set<std::string> seen;
  // The way from `path` to a header of JSON, or nothing.
  const std::function<std::string(const std::string&)> way = [&](const std::string& path) {
    // Naming its types brings nothing of it.
    if (path == "boost/json/fwd.hpp") return std::string();
    if (path.starts_with("boost/json")) return path;
    if (!files.contains(path) || !seen.insert(path).second) return std::string();
    for (const Include& next : files[path]->includes) {
      const std::string rest = way(next.path);
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
