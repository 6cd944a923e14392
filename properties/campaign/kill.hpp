// properties/campaign/kill.hpp: how long it takes the laws to kill a mutant.
//
// Source  mutation testing: DeMillo, Lipton, Sayward, Hints on test data selection, 1978.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "properties/campaign/contracts.hpp"
#include "properties/runner/run_case.hpp"

namespace kvo {

/// How a subject was told from a sound one.
struct Kill {
  std::string law;               ///< the simplest one that the script fails
  std::uint64_t cases = 0;       ///< tried, the last one included
  std::uint64_t operations = 0;  ///< carried out until then
  SubjectResult result;          ///< with the shrunk script that shows it
};

/// What a hunt came to.
struct Hunt {
  std::uint64_t cases = 0;                  ///< tried
  std::uint64_t operations = 0;             ///< carried out
  std::optional<Kill> kill = std::nullopt;  ///< nothing: the subject got away
};

/// Case `index` of a hunt: laws take turns.
[[nodiscard]] CasePlan hunted_case(const Contracts& contracts, const Subject& subject,
                                   std::uint64_t seed, std::uint64_t index, Profile profile);

/// Tries random cases, law by law in turns, until one kills `subject` or `most_cases` are tried.
[[nodiscard]] Hunt hunt(const Contracts& contracts, const Subject& subject, std::uint64_t seed,
                        std::uint64_t most_cases, Profile profile,
                        const ShrinkOptions& shrink = {});

/// The kill of such a hunt.
[[nodiscard]] std::optional<Kill> find_kill(const Contracts& contracts, const Subject& subject,
                                            std::uint64_t seed, std::uint64_t most_cases,
                                            Profile profile, const ShrinkOptions& shrink = {});

}  // namespace kvo
