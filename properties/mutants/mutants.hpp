// properties/mutants/mutants.hpp: subjects with a known fault, which the laws must catch.
//
// A mutant is its own file, which gives one Mutant, and one line in mutants.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/subject.hpp"

namespace kvo {

/// A reference cache with one thing done wrong.
struct Mutant {
  Subject subject;          ///< its engine is "mutant:<name>"
  std::string_view fault;   ///< what it does wrong, in one sentence
  std::string_view origin;  ///< the real bug it follows: number in the corpus, and its class
};

[[nodiscard]] const std::vector<Mutant>& mutants();

/// The mutant that every run of the tests must catch: if it gets away, the harness is broken.
[[nodiscard]] const Mutant& canary();

}  // namespace kvo
