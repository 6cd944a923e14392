// properties/runner/verdict.hpp: how a subject came out of a case, and on what evidence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/describe/difference.hpp"

namespace kvo {

enum class Outcome : std::uint8_t {
  kAgrees,
  kMismatch,      ///< an observation differed
  kBroken,        ///< it threw, an invariant no longer held, or it contradicted its own history
  kNotSupported,  ///< it does not offer the setup or an operation; not a fault
  kOutOfMemory,   ///< the environment ran out; says nothing about the subject
  kVacuous,       ///< the law found nothing to judge
  kDied,          ///< its process crashed, ended or hung
  kEnded,         ///< a convention lets its state differ from here on; it agreed before
};
BOOST_DESCRIBE_ENUM(Outcome, kAgrees, kMismatch, kBroken, kNotSupported, kOutOfMemory, kVacuous,
                    kDied, kEnded)

/// Whether a subject is at fault.
[[nodiscard]] constexpr bool failed(Outcome outcome) {
  return outcome == Outcome::kMismatch || outcome == Outcome::kBroken || outcome == Outcome::kDied;
}

struct Verdict {
  static constexpr bool kLean = true;
  Outcome outcome = Outcome::kAgrees;
  std::uint64_t op_index = 0;  ///< operation at which it was decided, from 0
  std::string op = {};         ///< that operation's name
  Difference difference = {};
  std::string reason = {};  ///< for outcomes without a difference
  /// Of a failure: what the subject had drawn of its schedule by then.
  std::vector<std::uint32_t> choices = {};

  [[nodiscard]] bool failed() const { return kvo::failed(outcome); }
  /// "op 12 update: k[batch 0, position 3, dim 1]: want 7, got 9"
  [[nodiscard]] std::string text() const;
  /// The same without the operation.
  [[nodiscard]] std::string problem() const;
  /// What failures of one fault have in common, wherever in a script they show: outcome, operation
  /// and field. "mismatch update k", "died".
  [[nodiscard]] std::string signature() const;
  /// The signature, and of an error which one was wanted and which one came, of what is broken in
  /// which words, of a death whether it repeats: what must not change while a script is made
  /// smaller.
  [[nodiscard]] std::string symptom() const;
  /// Whether an error differs: it tells less of a fault than what is read.
  [[nodiscard]] bool differs_in_error() const {
    return outcome == Outcome::kMismatch && difference.place == "error";
  }
  /// Whether there was too little memory: in a process that others used before, that may be their
  /// doing.
  [[nodiscard]] bool lacks_memory() const;
};
BOOST_DESCRIBE_STRUCT(Verdict, (), (outcome, op_index, op, difference, reason, choices))

/// The end of the reason of a death that did not repeat.
inline constexpr std::string_view kNotRepeated = "; died, not repeated: run again, it did not die";
/// Reasons of kOutOfMemory: in all, and in one request.
inline constexpr const char* kNeedsMemory =
    "needs more memory than a case may have (--case-memory)";
inline constexpr const char* kAsksForMore =
    "asks for more memory at once, or for more threads, than a case may have";

/// What a verdict rests on. Without any a law has said nothing.
struct Evidence {
  std::uint64_t compared = 0;      ///< observations that were compared
  std::uint64_t rows_judged = 0;   ///< rows that an oracle judged
  std::uint64_t rows_skipped = 0;  ///< rows that it could not judge
  std::uint64_t failures = 0;      ///< allocations that were made to fail
  std::uint64_t retried = 0;       ///< operations that were repeated at once after such failures
  std::uint64_t deferred = 0;      ///< operations that were repeated after the next one
  std::uint64_t skipped = 0;       ///< operations that were not repeated

  void add(const Evidence& more);
};
BOOST_DESCRIBE_STRUCT(Evidence, (),
                      (compared, rows_judged, rows_skipped, failures, retried, deferred, skipped))

}  // namespace kvo
