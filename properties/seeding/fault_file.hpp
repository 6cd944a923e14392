// properties/seeding/fault_file.hpp: the faults of a contract, as text.
//
//   # A line of comment.
//   kinds: views.paged
//
//   views.paged@holders_counted_in_one_byte
//     fault: a block that 256 caches hold counts as free
//     origin: B093, F10: Mooncake kept a size in too few bits
//     profile: original
//     longest_script: 300
//     file: optimized/views/block_store.hpp
//     after: void hold(
//     from: ++blocks_[block].holders;
//     to: blocks_[block].holders =
//         (blocks_[block].holders + 1) & 0xFFU;
//
// A row is a heading `kind@name` and members, each after two spaces. A member goes on in lines that
// begin with at least four spaces. `kinds` lists the kinds that headings may have.
//   fault, origin     as of Fault; required.
//   profile           original or documented; absent: both.
//   longest_script    as of Mutant; absent: 10.
//   laws              as of Mutant; absent: none.
//   file              from the root. Further edits without a `file` are of the same one.
//   after             occurs once in the file; optional where `from` occurs once.
//   from, to          the text that is replaced: an expression, or whole statements when it ends
//                     with a semicolon. Any white space stands for any other. `to` may be empty.
//   add               instead of from and to: a declaration that the fault needs. The copy has it
//                     right after `after`, whatever fault is on.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/values/quirk.hpp"

namespace kvo::seeding {

/// One place that a fault changes.
struct Edit {
  std::string where;  ///< file and line of `from` or `add`: "properties/views/faults.txt:12"
  std::string file;
  std::string after = {};
  std::string after_where = {};
  std::string from = {};  ///< empty: `to` is added
  std::string to = {};
};

struct FaultRow {
  std::string where;  ///< file and line of the heading
  std::string kind = {};
  std::string name = {};
  std::string fault = {};
  std::string origin = {};
  std::optional<Profile> profile = std::nullopt;
  std::size_t longest_script = 10;
  std::string laws = {};
  std::vector<Edit> edits = {};  ///< all in one directory of the root
};

/// The rows of a file, or why there are none.
struct FaultFile {
  std::vector<FaultRow> rows = {};
  std::vector<std::string> complaints = {};  ///< each with file, line and word; empty: all is well
};

/// Reads a file of that path.
/// Complaints  a kind that `kinds` does not list; an unknown, repeated or missing member; a value
///             that is not allowed; an edit without its parts.
[[nodiscard]] FaultFile parse_faults(std::string_view path, std::string_view text);

/// Text without the white space around it.
[[nodiscard]] std::string_view trimmed(std::string_view text);
/// Text of several lines as one line.
[[nodiscard]] std::string in_one_line(std::string_view text);

/// The header that has the rows of a file as `kvo::<its folder>::kFaults`.
[[nodiscard]] std::string table_of(std::string_view path, std::span<const FaultRow> rows);

}  // namespace kvo::seeding
