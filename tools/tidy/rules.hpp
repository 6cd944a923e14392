// tools/tidy/rules.hpp: the rules of the tree that a program can check. Each is a function from a
// tree to the places that break it.
#pragma once

#include "tools/tidy/tree.hpp"

namespace kvo::tidy {

// includes.cpp

/// Who may include whom: the table of docs/architecture.md.
[[nodiscard]] Complaints includes_against_the_arrows(const Tree& tree);
/// Ours are included as "room/...", others in <>.
[[nodiscard]] Complaints includes_not_from_the_root(const Tree& tree);
/// What the author of a cache includes (reference/<contract>/cache.hpp and the headers of kinds
/// beside it) reaches no <boost/json...>, however indirectly.
[[nodiscard]] Complaints json_in_cache_headers(const Tree& tree);

// functions.cpp

/// No function has more than 70 lines between its braces.
[[nodiscard]] Complaints long_functions(const Tree& tree);
/// In the same headers every virtual that changes the cache and can fail says which errors it has
/// and what they leave unchanged: `Errors` stands in its comment or in that of its class. One that
/// returns neither a Status nor a Result has none to tell.
[[nodiscard]] Complaints errors_not_told(const Tree& tree);

// files.cpp

/// At most 100 columns.
[[nodiscard]] Complaints long_lines(const Tree& tree);
/// At most 500 lines.
[[nodiscard]] Complaints long_files(const Tree& tree);
[[nodiscard]] Complaints sources_in_no_target(const Tree& tree);
[[nodiscard]] Complaints banned_words(const Tree& tree);

// not_yet.cpp

/// A place that breaks a rule today and is to be put right: its file, and what the complaint says.
struct NotYet {
  std::string path;
  std::string what;
};

/// All of them. The list may only become shorter.
[[nodiscard]] const std::vector<NotYet>& not_yet();
/// The complaints that no row of the list excuses.
[[nodiscard]] Complaints without(const std::vector<NotYet>& excused, Complaints complaints);
/// The rows of the list that excuse none of the complaints.
[[nodiscard]] Complaints unused(const std::vector<NotYet>& excused, const Complaints& complaints);

/// Whether the path is of a header that the author of a cache includes: cache.hpp, quirks.hpp or
/// that of a kind, in the folder of a contract.
[[nodiscard]] bool is_cache_header(const std::string& path);

}  // namespace kvo::tidy
