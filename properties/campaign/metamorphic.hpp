// properties/campaign/metamorphic.hpp: laws over two scripts: a changed script must show the same.
//
// Words    drawn     the script as it was drawn, and what a subject observed of it.
//          varied    the script that a transformation made of it.
// Each subject is judged by itself alone: no reference is asked, so a cache whose reference nobody
// has can be checked, too.
// Source   metamorphic testing: Chen, Cheung, Yiu, HKUST-CS98-01, 1998.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "properties/runner/law.hpp"
#include "properties/runner/shrinker.hpp"

namespace kvo {

/// What a transformation is given.
struct Drawn {
  const CacheKind& kind;
  const Setup& setup;
  const Script& script;
  const std::vector<Observation>& seen;  ///< one an operation, of the subject that is judged

  [[nodiscard]] bool succeeded(std::size_t at) const { return !seen[at].error.has_value(); }
};

/// Leaves of an observation only what must agree, in a form that does not depend on the rest.
using Canonical = std::function<Observation(const Observation& seen)>;

/// Two operations whose observations must agree.
struct Pair {
  std::size_t drawn = 0;          ///< index in the script as drawn
  std::size_t varied = 0;         ///< index in the varied script
  Canonical canonical = nullptr;  ///< null: they must agree as they are
};

/// A varied script, and what it must show again.
struct Variation {
  Script script = {};
  std::vector<Pair> pairs = {};  ///< in order of both indices
  Record config = {};            ///< of the varied run; empty: as drawn

  /// Adds an operation that nothing is compared with.
  void insert(Op op) { script.push_back(std::move(op)); }
  /// Adds an operation that must show what operation `drawn` showed.
  void pair(std::size_t drawn, Op op, Canonical canonical = nullptr) {
    pairs.push_back({drawn, script.size(), std::move(canonical)});
    insert(std::move(op));
  }
};

/// Makes the varied script, a function of its arguments alone: whatever it chooses, it chooses by
/// what it is given, so that a recorded script repeats the verdict. A script that it finds nothing
/// to change in has no pairs.
using Transformation = Variation (*)(const Drawn& drawn);

/// Runs each subject on the script, and a fresh session of it on the varied one.
/// Verdicts  kMismatch at an operation of the drawn script; kBroken for what is thrown or broken in
///           either run; kVacuous when there was no pair to compare.
class MetamorphicLaw final : public Law {
 public:
  struct Terms {
    std::string_view how;  ///< the varied script: "the same rows appended in two parts"
    bool (*applies)(const CacheKind& kind) = nullptr;
    Transformation transformation = nullptr;
  };
  MetamorphicLaw(std::string_view name, std::string_view doc, std::uint64_t most_operations,
                 Terms terms)
      : Law(name, doc, most_operations), terms_(terms) {}

  [[nodiscard]] bool applies_to(const CacheKind& kind) const override {
    return terms_.applies(kind);
  }
  [[nodiscard]] bool needs_whole_script() const override { return true; }
  /// The varied script; at the failing operation what both scripts show, as it is compared.
  [[nodiscard]] std::vector<ScriptLine> shown(const CasePlan& plan, const Subject& subject,
                                              const std::vector<Op>& script,
                                              const Verdict& verdict) const override;
  /// The script is drawn by stepping the baseline, without one the first subject.
  [[nodiscard]] LawRun run(const CasePlan& plan, const Subject* baseline,
                           std::span<const Subject* const> subjects, OpStream& ops) const override;

 private:
  [[nodiscard]] Variation vary(const CasePlan& plan, const Script& script,
                               const std::vector<Observation>& seen) const;
  [[nodiscard]] Judgement judge(const CasePlan& plan, const Subject& subject,
                                const Script& script) const;

  Terms terms_;
};

/// An observation without its values: only whether and how it failed.
[[nodiscard]] Observation error_only(const Observation& seen);

/// An integer member of the operation's arguments by name; nothing if it lacks it or it is absent.
[[nodiscard]] std::optional<std::int64_t> integer_of(const Op& op, std::string_view member);
/// The operation with that member changed by `renamed`; as it is if integer_of finds nothing.
[[nodiscard]] Op with_renamed(const Op& op, std::string_view member,
                              const std::function<std::int64_t(std::int64_t)>& renamed);

/// What a contract numbers as it is made has other numbers in a variation: they come in order
/// there.
class NewNumbers {
 public:
  /// `members`: of operations, that name one of them. They must live as long.
  NewNumbers(std::span<const std::string_view> members, std::int64_t first)
      : members_(members), next_(first) {}

  /// Whether all that an operation of the drawn script names has a number.
  [[nodiscard]] bool knows(const Op& op) const;
  /// The operation by the new numbers; what has none is named by a number of nothing in either
  /// script.
  [[nodiscard]] Op named(Op op) const;
  /// What the drawn script made has the next number, unless it has one.
  void made(std::int64_t drawn) {
    if (!numbers_.contains(drawn)) numbers_[drawn] = next_++;
  }
  /// What it made is there as something else.
  void becomes(std::int64_t drawn, std::int64_t number) { numbers_[drawn] = number; }
  /// The next number, of what the variation alone makes.
  [[nodiscard]] std::int64_t skip() { return next_++; }
  [[nodiscard]] std::int64_t of(std::int64_t drawn) const { return numbers_.at(drawn); }

 private:
  std::span<const std::string_view> members_;
  std::map<std::int64_t, std::int64_t> numbers_;
  std::int64_t next_;
};

/// Whom the operations of a script are about: caches, or sequences, that share nothing.
struct Owners {
  /// Nothing where the operation is about none, or about several.
  std::optional<std::int64_t> (*of)(const Op& op) = nullptr;
  /// The number under which an operation can look at the result again (its member `handle`).
  std::optional<std::int64_t> (*handle)(const Observation& seen) = nullptr;
  std::int64_t first_handle = 0;
  Canonical without_handle = nullptr;
};

/// The script owner by owner, the last one first, so that one without any turns is changed, too.
/// An operation on a handle belongs to who was given it; those without an owner are left out.
/// Nothing where all have the same owner.
[[nodiscard]] Variation owner_by_owner(const Drawn& drawn, const Owners& owners);

/// Entries [begin, end) of an axis.
[[nodiscard]] Tensor axis_range(const Tensor& tensor, std::size_t axis, std::int64_t begin,
                                std::int64_t end);

/// Where operation `at` is cut that is `size` > 1 long: 0 < cut < size, another one each time.
[[nodiscard]] inline std::int64_t cut_of(std::size_t at, std::int64_t size) {
  return 1 + static_cast<std::int64_t>(at) % (size - 1);
}

}  // namespace kvo
