// properties/lockstep.hpp: one script, any number of subjects, every observation compared.
//
// Words    judge     the first subject of a run; what it observes is what the others must observe.
//                    With recorded observations the record judges every subject, the first too.
//          verdict   how a subject came out of a case.
//          watch     judges each participant by its own history; then nothing is compared.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "properties/timings.hpp"
#include "properties/watch.hpp"
#include "reference/contract/subject.hpp"

namespace kvo {

enum class Outcome : std::uint8_t {
  kAgrees,
  kMismatch,      ///< an observation differed
  kBroken,        ///< it threw, an invariant no longer held, or it contradicted its own history
  kNotSupported,  ///< it does not offer the setup or an operation; not a fault
  kOutOfMemory,   ///< the environment ran out; says nothing about the subject
};
BOOST_DESCRIBE_ENUM(Outcome, kAgrees, kMismatch, kBroken, kNotSupported, kOutOfMemory)

struct Verdict {
  Outcome outcome = Outcome::kAgrees;
  std::uint64_t op_index = 0;  ///< operation at which it was decided, from 0
  std::string op = {};         ///< that operation's name
  Difference difference = {};
  std::string reason = {};  ///< for outcomes without a difference

  [[nodiscard]] bool failed() const {
    return outcome == Outcome::kMismatch || outcome == Outcome::kBroken;
  }
  /// "op 12 update: k[batch 0, position 3, dim 1]: want 7, got 9"
  [[nodiscard]] std::string text() const;
};

enum class Allocations : std::uint8_t {
  kSucceed,
  kFailEach,  ///< each operation is first tried with its 1st, 2nd, ... allocation failing
};

struct LockstepOptions {
  Allocations allocations = Allocations::kSucceed;
  std::uint64_t invariants_every = 1;  ///< operations between two looks at the invariants
  MakeWatch watch = nullptr;           ///< one for each participant, which is then not compared
};

/// Sessions of several subjects, driven through one script.
class Lockstep {
 public:
  struct Participant {
    const Subject* subject = nullptr;
    std::unique_ptr<Session> session = nullptr;
    std::unique_ptr<Watch> watch = nullptr;
    Probe probe = {};
    Timings timings = {};
    Verdict verdict = {};
    [[nodiscard]] bool live() const { return session != nullptr; }
  };

  /// Opens a session of each subject. One that does not support the setup is out at once.
  Lockstep(std::span<const Subject* const> subjects, const Setup& setup,
           LockstepOptions options = {});

  /// Carries out one operation on every live participant and compares what they observe with
  /// `recorded`, or with what the judge observes. A participant that fails is out.
  /// Returns what the judge observed (the record, if there is one).
  const Observation& step(const Op& op, const Observation* recorded = nullptr);

  /// Whether anybody is left to compare: two participants, or one against a record. A lone judge is
  /// watched for broken invariants.
  [[nodiscard]] bool worthwhile(bool recorded) const;
  [[nodiscard]] std::uint64_t operations() const { return operations_; }
  [[nodiscard]] const std::vector<Participant>& participants() const { return participants_; }

 private:
  Observation observe(Participant& participant, const Op& op, bool judged) const;
  void judge(Participant& participant, const Op& op, const Observation& want,
             const Observation& got);
  void look_at_invariants(Participant& participant, const Op& op);
  void out(Participant& participant, Verdict verdict);

  LockstepOptions options_;
  std::vector<Participant> participants_;
  std::uint64_t operations_ = 0;
  Observation want_;
};

}  // namespace kvo
