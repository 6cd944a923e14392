// properties/seeding/fault.hpp: a fault as a row of a table, and the switch that turns it on.
//
// The seeder copies the sources of a contract's caches. In the copies every place that a fault
// edits holds both texts and asks the switch which of them counts, so that all faults are compiled
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/values/quirk.hpp"

namespace kvo::seeding {

/// One place that a fault changes. The texts are an expression, or whole statements when `from`
/// ends with a semicolon or a brace; in both any white space stands for any other.
struct Edit {
  std::string_view file;  ///< from the root: "reference/positional/causal_cache.cpp"
  std::string_view from;  ///< occurs once in the file, or is looked for behind `after`
  std::string_view to;
  std::string_view after = {};  ///< occurs once in the file; empty where `from` does
};

/// Something done wrong in a cache. Its subject is `kind@mutant:name`.
struct Fault {
  std::string_view kind;    ///< "positional.swa"
  std::string_view name;    ///< "window_one_short"
  std::string_view fault;   ///< what is done wrong, in one sentence
  std::string_view origin;  ///< number and class of the real bug, and what happened there
  std::vector<Edit> edits;  ///< of one room: all in reference/, in optimized/, or in cuda/
  std::optional<Profile> profile = std::nullopt;  ///< the only one that it shows in; absent: both
  std::size_t longest_script = 10;                ///< as of Mutant
};

/// What the switch calls a fault; no two names in use have the same number, and none has 0.
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
