// properties/seeding/fault.hpp: a fault as the command lists it, and the switch that turns it on.
//
// The seeder reads the faults of a contract from text (fault_file.hpp) and copies the sources of
// its caches. In the copies every edited place holds both texts and asks the switch which of them
// counts, so that all faults are compiled once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "reference/contract/values/quirk.hpp"

namespace kvo::seeding {

/// One thing done wrong in a cache: a row of a faults.txt without its edits. The seeder writes
/// these. The subject is `kind@mutant:name`.
struct Fault {
  std::string_view kind;           ///< "positional.swa"
  std::string_view name;           ///< "window_one_short"
  std::string_view fault;          ///< what is done wrong, in one sentence
  std::string_view origin;         ///< number and class of the real bug, and what happened there
  std::string_view room;           ///< which copies are edited: "reference", "optimized", "cuda"
  std::optional<Profile> profile;  ///< the only one that it shows in; absent: both
  std::size_t longest_script;      ///< as of Mutant
  std::string_view laws;           ///< as of Mutant
};

/// The number of a fault for the switch; no two names in use have the same number, and none has 0.
/// Source  FNV-1a, 64 bits.
[[nodiscard]] constexpr std::uint64_t number_of(std::string_view kind, std::string_view name) {
  std::uint64_t number = 0xCBF29CE484222325U;
  for (const std::string_view part : {kind, std::string_view("@"), name})
    for (const char c : part) number = (number ^ static_cast<std::uint8_t>(c)) * 0x100000001B3U;
  return number;
}

/// The fault that is on in this thread; 0 for none.
inline thread_local std::uint64_t fault_on = 0;

/// What the copies ask.
[[nodiscard]] inline bool fault_is_on(std::uint64_t number) {
  return fault_on == number;
}

/// Turns a fault on until it goes out of scope.
class FaultScope {
 public:
  explicit FaultScope(std::uint64_t number) : before_(fault_on) { fault_on = number; }
  FaultScope(const FaultScope&) = delete;
  FaultScope& operator=(const FaultScope&) = delete;
  ~FaultScope() { fault_on = before_; }

 private:
  std::uint64_t before_;
};

}  // namespace kvo::seeding
