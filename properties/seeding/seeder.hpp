// properties/seeding/seeder.hpp: copies of sources in which faults can be switched on.
//
// Source  mutant schemata: Untch, Offutt and Harrold, ISSTA 1993, doi:10.1145/154183.154265.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "properties/seeding/fault_file.hpp"

namespace kvo::seeding {

/// Where the copies are stored: `reference/a.hpp` becomes `properties/seeded/reference/a.hpp`.
inline constexpr std::string_view kCopies = "properties/seeded/";

/// How copies are linked: beside their originals, in a namespace of their own, or instead of them,
/// under the same names and with the headers of the originals.
enum class Housing : std::uint8_t { kBeside, kInstead };

/// A copy, or why there is none.
struct Copy {
  std::string text;
  std::vector<std::string> complaints;  ///< each with the row's file and line; empty: all is well
};

/// The copy of a source of that path. Each edit of the faults that names the path becomes a choice:
/// `(fault_is_on(n) ? (to) : (from))`, or an if with the statements. Edits of the same text share a
/// choice, and a smaller text may be edited inside a larger one. A copy beside its original moves
/// what the source declares in namespace kvo::x to an inline namespace kvo::x::seeded, and includes
/// the copies of `copied` instead of the originals.
/// Complaints  `from` or `after` not found or found twice; edits that overlap in part; not exactly
///             one namespace kvo; a header that is to be linked instead of its original.
[[nodiscard]] Copy copy_of(std::string_view path, std::string_view source,
                           std::span<const FaultRow> faults, std::span<const std::string> copied,
                           Housing housing = Housing::kBeside);

/// Edits of files that are not copied, and rows with the name of another.
[[nodiscard]] std::vector<std::string> complaints_about(std::span<const FaultRow> faults,
                                                        std::span<const std::string> copied);

/// Those of `files` that end with .txt have faults; of the others the copies are made.
/// OUT/properties/seeded/ gets the copy of each FILE as FILE, and the table of a
/// properties/x/faults.txt as x/faults.hpp. A file that holds its text already is left alone.
/// Returns  the complaints of all of them; with any of them nothing is written.
[[nodiscard]] std::vector<std::string> seed(Housing housing, const std::filesystem::path& root,
                                            const std::filesystem::path& out,
                                            const std::vector<std::string>& files);

}  // namespace kvo::seeding
