// properties/runner/lockstep.hpp: one script, any number of subjects, every observation compared.
//
// Words    baseline    the subject whose observations the others must make: the reference. It is
//                      itself only judged by what was recorded, and by its invariants.
//          participant a subject that is judged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "properties/runner/oracle.hpp"
#include "properties/runner/timings.hpp"
#include "properties/runner/verdict.hpp"
#include "reference/contract/describe/operation.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo {

/// Copies of the operations of one case, one after the other.
class LentArguments {
 public:
  LentArguments() = default;
  LentArguments(const LentArguments&) = delete;
  LentArguments& operator=(const LentArguments&) = delete;
  ~LentArguments() { lift_guards(); }

  /// The operation in place of `op`, which must live until the next call. Only tensors and lists
  /// are copied: without any it is `op` itself.
  [[nodiscard]] const Op& lend(const Op& op);
  /// What was done to the operation that was lent last, in words, or nothing; it is undone.
  [[nodiscard]] std::optional<std::string> damage();

 private:
  // Memory that one kind of operation uses again and again.
  struct Copy {
    const OpKind* kind;
    std::shared_ptr<void> arguments;  // null: nothing to copy
    Op op;
  };
  struct Guard {
    std::span<std::byte> bytes;
    std::string_view field;
  };
  Copy& copy_of(const OpKind& kind, const Op& op);
  void fill();
  void guard(const Type& type, void* value, std::string_view field);
  void lift_guards();

  std::vector<std::unique_ptr<Copy>> copies_;
  std::vector<Guard> guards_;
  const Op* original_ = nullptr;
  Copy* lent_ = nullptr;  // null: the original itself was
};

enum class Allocations : std::uint8_t {
  kSucceed,
  kFailEach,  ///< each operation is first tried with its 1st, 2nd, ... allocation failing, and
              ///< repeated at once
};

struct LockstepOptions {
  Allocations allocations = Allocations::kSucceed;  ///< of the participants
  /// Operations between two looks at the invariants; at least 32 beyond the thousandth operation.
  std::uint64_t invariants_every = 1;
  std::size_t fill_bytes = std::size_t{1} << 20U;  ///< of each allocation; 0 where time is measured
  MakeOracle oracle = nullptr;                     ///< one for each participant
  bool compare = true;                             ///< with the baseline or the record
  /// step() returns what the last participant observed, with its conventions applied.
  bool returns_answers = false;
};

/// Sessions of several subjects, driven through one script.
class Lockstep {
 public:
  struct Participant {
    const Subject* subject = nullptr;
    std::unique_ptr<Session> session = nullptr;
    std::unique_ptr<Oracle> oracle = nullptr;
    std::unique_ptr<Settlement> settlement = nullptr;  ///< by its conventions; null: it has none
    Probe probe = {};
    Timings timings = {};
    Verdict verdict = {};
    Evidence evidence = {};
    [[nodiscard]] bool live() const { return session != nullptr; }
  };

  /// Opens a session of each subject; `baseline` may be null, and may be among the subjects, too.
  /// One that does not support the setup is out at once.
  Lockstep(const Subject* baseline, std::span<const Subject* const> subjects, const Setup& setup,
           LockstepOptions options = {});
  Lockstep(const Lockstep&) = delete;
  Lockstep& operator=(const Lockstep&) = delete;
  ~Lockstep();

  /// Tells those who take batches what follows (Session::expect).
  void expect(std::span<const Op> ops);
  /// The case is over for those who are live (Session::end).
  void end();
  /// Carries out one operation on everybody who is live and judges what they observe: by
  /// `recorded`, else by the baseline, else by the first participant. Who fails is out.
  /// Returns what had to be observed, but for returns_answers.
  const Observation& step(const Op& op, const Observation* recorded = nullptr);

  /// Tries an operation on the one participant with its `allocation`-th allocation, from 0,
  /// failing. True where that made it fail: it is as if nobody had been asked, and whether it is
  /// repeated is the caller's affair. False where the participant carried it out, and so did
  /// everybody, or where it is out. Requires  one participant, beside a baseline.
  [[nodiscard]] bool fails(const Op& op, std::int64_t allocation);

  /// The number that the next operation has in verdicts; without this, one more than the last.
  void number_next(std::uint64_t number) { operations_ = number; }

  /// Whether a further operation could change a verdict. `recorded`: observations are at hand, so
  /// that no baseline is needed.
  [[nodiscard]] bool worthwhile(bool recorded = false) const;
  [[nodiscard]] std::uint64_t operations() const { return operations_; }
  [[nodiscard]] const std::vector<Participant>& participants() const { return participants_; }
  /// Null when there is none.
  [[nodiscard]] const Participant* baseline() const { return baseline_ ? &*baseline_ : nullptr; }

 private:
  [[nodiscard]] static Participant opened(const Subject& subject, const Setup& setup,
                                          MakeOracle oracle);
  /// The operation with arguments of its own.
  const Op& lend(const Op& op);
  /// What a participant observes; one that harms what it was lent is out.
  Observation observe(Participant& participant, const Op& op, Allocations allocations);
  /// The same, with that allocation failing; -1: none. `failed`: it came to that, and the operation
  /// failed of it.
  Observation attempt(Participant& participant, const Op& op, std::int64_t allocation,
                      bool& failed);
  /// Observes and judges the baseline. False where there is none left.
  bool lead(const Op& op, const Op& lent, const Observation* recorded);
  /// Puts what conventions allow in the promised form. A participant that lawfully carried out what
  /// had to be refused is out.
  void settle(Participant& participant, const Op& op, const Observation& want, Observation& got);
  void judge(Participant& participant, const Op& op, const Observation* want,
             const Observation& got);
  [[nodiscard]] bool may_want_memory(const Participant& participant, const Observation* want);
  [[nodiscard]] bool invariants_are_due() const;
  void look_at_invariants(Participant& participant, const Op& op) const;
  void out(Participant& participant, const Op& op, Verdict verdict) const;
  void close(Participant& participant) const;

  LockstepOptions options_;
  LentArguments arguments_;
  std::size_t payload_bytes_ = 0;  ///< of the arguments
  std::optional<Participant> baseline_;
  std::vector<Participant> participants_;
  std::uint64_t operations_ = 0;
  Wanted wanted_ = Wanted::kComputed;  ///< what want_ is
  Observation want_;
  bool reference_wants_memory_ = false;  // at the operation under way
};

}  // namespace kvo
