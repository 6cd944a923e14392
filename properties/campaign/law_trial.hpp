// properties/campaign/law_trial.hpp: what a law that needs no reference must catch by itself.
//
// Each contract instantiates EachLaw with its own; properties/campaign/metamorphic_test.cpp says
// what is asked of them.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

namespace kvo {

/// A law, and a mutant that it must catch alone within so many cases.
struct LawTrial {
  std::string law;
  std::string mutant;
  std::uint64_t cases;

  friend void PrintTo(const LawTrial& trial, std::ostream* out) {  // NOLINT: GoogleTest's name
    *out << trial.law << " on " << trial.mutant;
  }
};

class EachLaw : public testing::TestWithParam<LawTrial> {};

}  // namespace kvo
