// properties/campaign/mutant.hpp: subjects with a known fault, which the laws must catch.
#pragma once

#include <string>

#include "reference/contract/subject/subject.hpp"

namespace kvo {

/// A cache with one thing done wrong.
struct Mutant {
  Subject subject;     ///< its variant is "mutant:<name>"
  std::string fault;   ///< what it does wrong, in one sentence
  std::string origin;  ///< the real bug it follows: number in the corpus, and its class
};

}  // namespace kvo
