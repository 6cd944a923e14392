// properties/campaign/mutant.hpp: subjects with a known fault, which the laws must catch.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "reference/contract/device/device.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo {

/// A cache with one thing done wrong.
struct Mutant {
  Subject subject;     ///< its variant is "mutant:<name>"
  std::string fault;   ///< what it does wrong, in one sentence
  std::string origin;  ///< the real bug it follows: number in the corpus, and its class
  std::optional<Profile> profile = std::nullopt;  ///< the only one that it shows in; absent: both
  /// Operations of the longest script that may be left of one that shows it. More where a length of
  /// life is the point.
  std::size_t longest_script = 10;
  /// Laws that catch it without a reference, each with the number of cases that they need at most:
  /// "a_b_a 100, prefill_in_chunks 200".
  std::string laws = {};
  /// The seeded copy without the fault, which no law may catch: otherwise what catches the mutant
  /// need not be its fault. Absent: the mutant is no such copy.
  std::function<Subject()> sound = nullptr;
};

/// A cache over a device, or the device below it, with one thing done wrong. It may show in few
/// schedules, and as a difference or as a report.
struct DeviceMutant {
  std::string name;                               ///< "increments_on_a_second_stream"
  std::string fault;                              ///< as of Mutant
  std::string origin;                             ///< as of Mutant
  std::function<Subject(OpenDevice)> over;        ///< its variant is "mutant:<name>"
  std::optional<Profile> profile = std::nullopt;  ///< as of Mutant
  std::size_t longest_script = 10;                ///< as of Mutant
};

}  // namespace kvo
