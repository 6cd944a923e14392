// properties/hunt.hpp: how long it takes the laws to catch a subject.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "properties/laws.hpp"
#include "properties/run_case.hpp"

namespace kvo {

/// How a subject was caught.
struct Catch {
  std::string_view law;
  std::uint64_t cases = 0;       ///< tried, the last one included
  std::uint64_t operations = 0;  ///< carried out until it was caught
  Repro repro;                   ///< the script that shows it, shrunk
};

/// Tries random cases, law by law in turns, until one catches `subject` or `most_cases` are tried.
[[nodiscard]] std::optional<Catch> hunt(const Subject& subject, std::uint64_t seed,
                                        std::uint64_t most_cases, Profile profile);

}  // namespace kvo
