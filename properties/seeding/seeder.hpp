// properties/seeding/seeder.hpp: copies of sources in which faults can be switched on.
//
// Source  mutant schemata: Untch, Offutt and Harrold, ISSTA 1993, doi:10.1145/154183.154265.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "properties/seeding/fault.hpp"

namespace kvo::seeding {

/// Where the copies lie: `reference/a.hpp` becomes `properties/seeded/reference/a.hpp`.
inline constexpr std::string_view kCopies = "properties/seeded/";

/// Where copies stand: beside what they were made of, in a namespace of their own, or linked
/// instead of it, under the same names and with its headers.
enum class Housing : std::uint8_t { kBeside, kInstead };

/// A copy, or why there is none.
struct Copy {
  std::string text;
  std::vector<std::string> complaints;  ///< each names the fault and the file; empty: all is well
};

/// The copy of a source of that path. Each edit of the faults that names the path becomes a choice:
/// `(fault_is_on(n) ? (to) : (from))`, or an if with the statements. Edits of the same text share a
/// choice, and a smaller text may be edited inside a larger one. Of a copy that stands beside,
/// what the source declares in namespace kvo::x is moved to an inline namespace kvo::x::seeded, and
/// where it includes one of `copied` it includes the copy.
/// Complaints  `from` or `after` not found or found twice; edits that overlap in part; not exactly
///             one namespace kvo; a header that is to stand instead.
[[nodiscard]] Copy copy_of(std::string_view path, std::string_view source,
                           std::span<const Fault> faults, std::span<const std::string> copied,
                           Housing housing = Housing::kBeside);

/// Edits of files that are not copied, and pairs of faults with one name.
[[nodiscard]] std::vector<std::string> complaints_about(std::span<const Fault> faults,
                                                        std::span<const std::string> copied);

}  // namespace kvo::seeding
