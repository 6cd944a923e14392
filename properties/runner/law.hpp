// properties/runner/law.hpp: what must hold of every subject, and how a case is judged by it.
//
// A law runs a plan's operations on subjects and gives each a verdict with what it rests on. Ways
// to build one: compared with the baseline and judged by an oracle (LockstepLaw), metamorphic
// (properties/campaign/metamorphic.hpp), and with allocations that fail
// (properties/campaign/laws.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "properties/runner/case_result.hpp"
#include "properties/runner/lockstep.hpp"
#include "reference/contract/subject/op_stream.hpp"

namespace kvo {

struct CasePlan;

/// How one subject came out of a case.
struct Judgement {
  const Subject* subject = nullptr;
  Verdict verdict = {};
  Evidence evidence = {};
  Timings timings = {};
};

/// What a law found out in one case.
struct LawRun {
  std::uint64_t operations = 0;
  Labels labels = {};
  std::vector<Figure> figures = {};
  std::vector<Judgement> judgements = {};  ///< the baseline's first, unless it is a subject too
};

class Law {
 public:
  /// `most_operations`: the longest script worth trying.
  Law(std::string_view name, std::string_view doc, std::uint64_t most_operations)
      : name_(name), doc_(doc), most_operations_(most_operations) {}
  Law(const Law&) = delete;
  Law& operator=(const Law&) = delete;
  virtual ~Law() = default;

  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] std::string_view doc() const { return doc_; }
  [[nodiscard]] std::uint64_t most_operations() const { return most_operations_; }

  /// Whether scripts of that kind can refute it.
  [[nodiscard]] virtual bool applies_to(const CacheKind& kind) const = 0;
  /// Whether it concerns a subject of such a kind: others take no part.
  [[nodiscard]] virtual bool concerns(const Subject& /*subject*/) const { return true; }
  /// Whether the reference must keep it as well: it is then one of the subjects.
  [[nodiscard]] virtual bool judges_reference() const { return true; }
  /// Whether a verdict rests on operations behind the one that it names, too.
  [[nodiscard]] virtual bool needs_whole_script() const { return false; }
  /// Whether it draws from the schedule of the setup what it does to a subject that does not draw
  /// from it. A script that fails then keeps its schedule.
  [[nodiscard]] virtual bool draws() const { return false; }
  /// Whether it judges each operation once, so that scripts of any length are worth their time.
  [[nodiscard]] virtual bool lives_long() const { return false; }
  /// The script as the law gives it to a subject, with what it adds, changes and makes fail: lines
  /// for reports. `verdict`: of this script. Requires  the subject lives through it, and there are
  /// at most kMostScriptLines operations.
  [[nodiscard]] virtual std::vector<ScriptLine> shown(const CasePlan& plan, const Subject& subject,
                                                      const std::vector<Op>& script,
                                                      const Verdict& verdict) const;
  /// Runs `ops` on `baseline`, if there is one, and `subjects`, and judges the subjects.
  [[nodiscard]] virtual LawRun run(const CasePlan& plan, const Subject* baseline,
                                   std::span<const Subject* const> subjects,
                                   OpStream& ops) const = 0;

 private:
  std::string_view name_;
  std::string_view doc_;
  std::uint64_t most_operations_;
};

/// Scripts of no more operations are shown whole, and as the law runs them.
inline constexpr std::size_t kMostScriptLines = 24;

/// The operations of a script up to that of the verdict, which is marked; at most so many.
[[nodiscard]] std::vector<ScriptLine> lines_of(const std::vector<Op>& script,
                                               const Verdict& verdict);

/// What a lock-step says of one of its subjects.
[[nodiscard]] Judgement judgement_of(const Lockstep::Participant& participant);

/// All subjects in lock-step, by the plan's options with those of the law in place of its defaults.
class LockstepLaw final : public Law {
 public:
  struct Terms {
    MakeOracle oracle = nullptr;
    bool compare = true;
  };
  LockstepLaw(std::string_view name, std::string_view doc, std::uint64_t most_operations,
              Terms terms)
      : Law(name, doc, most_operations), terms_(terms) {}

  /// With an oracle: for kinds that have one.
  [[nodiscard]] bool applies_to(const CacheKind& kind) const override {
    return terms_.oracle == nullptr || terms_.oracle(kind, {}) != nullptr;
  }
  /// Where it is only compared, the reference agrees with itself.
  [[nodiscard]] bool judges_reference() const override { return terms_.oracle != nullptr; }
  /// Where it only compares: an oracle may look at a whole history.
  [[nodiscard]] bool lives_long() const override { return terms_.oracle == nullptr; }
  [[nodiscard]] LawRun run(const CasePlan& plan, const Subject* baseline,
                           std::span<const Subject* const> subjects, OpStream& ops) const override;

 private:
  Terms terms_;
};

/// The law of replays and plain comparisons: whatever is observed agrees with the baseline, and
/// with the plan's oracle where it has one.
[[nodiscard]] const Law& agreement();

}  // namespace kvo
