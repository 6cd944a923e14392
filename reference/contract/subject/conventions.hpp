// reference/contract/subject/conventions.hpp: in what a cache lawfully differs from its contract.
//
// Caches refuse the same calls with other classes of errors, and carry out calls that no engine
// makes. Some return copies, gather rows in another order, or hand out other blocks. A convention
// says so, one row each; what it does not say is compared as ever. Conventions are a closed list:
// lost or foreign rows, lengths and counts are not in it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/describe/operation.hpp"

namespace kvo {

struct CacheKind;
struct Setup;

/// How answers are compared under a convention, in one case.
class Relation {
 public:
  Relation() = default;
  Relation(const Relation&) = delete;
  Relation& operator=(const Relation&) = delete;
  virtual ~Relation() = default;
  /// `want`, the answer of the rules, if `got` means the same under the convention; else `got`. To
  /// be called at each operation of the case, in order.
  [[nodiscard]] virtual Observation settled(const Op& op, const Observation& want,
                                            Observation got) = 0;
  /// Whether the case ends here for the cache, as the two may hold other things from now on. Called
  /// behind settled().
  [[nodiscard]] virtual bool ends(const Op& /*op*/, const Observation& /*want*/,
                                  const Observation& /*got*/) const {
    return false;
  }
};

/// A convention that has a name. Where all members behind the sentence are their defaults, it only
/// says something of the subject as a whole.
struct ConventionInfo {
  std::string_view name;      ///< "own_blocks", as a file says it
  std::string_view rules;     ///< those that it relaxes: "PX-14, PX-35"
  std::string_view sentence;  ///< what the cache does
  /// How answers are compared; null: as ever.
  std::unique_ptr<Relation> (*relation)(const CacheKind& kind, const Setup& setup) = nullptr;
  /// Where the rules leave a choice under the convention, the reference makes that of the cache
  /// (Session::follow).
  bool chooses = false;
  /// Operations that such a cache does not take: they are not drawn, and end a case. Null: none.
  bool (*outside)(const Op& op) = nullptr;
};

/// Conventions that caches of all kinds may have.
[[nodiscard]] std::span<const ConventionInfo> general_conventions();
/// Those that caches of a kind may have, its own first.
[[nodiscard]] std::vector<const ConventionInfo*> named_conventions(const CacheKind& kind);
/// That of them with the name, or null.
[[nodiscard]] const ConventionInfo* find_convention(const CacheKind& kind, std::string_view name);

/// A Relation that compares what `canonical` makes of both answers, a function of the operation and
/// an answer without error.
template <Observation (*kCanonical)(const Op& op, const Observation& seen)>
class CanonicalRelation final : public Relation {
 public:
  [[nodiscard]] Observation settled(const Op& op, const Observation& want,
                                    Observation got) override {
    if (want.error || got.error || !observation_difference(want, got)) return got;
    return observation_difference(kCanonical(op, want), kCanonical(op, got)) ? got : want;
  }
  [[nodiscard]] static std::unique_ptr<Relation> make(const CacheKind& /*kind*/,
                                                      const Setup& /*setup*/) {
    return std::make_unique<CanonicalRelation>();
  }
};

/// How an operation that the rules refuse may end in a cache.
KVO_RECORD(RefusalConvention, (std::string, operation, "name of the operation"),
           (std::string, wanted, "code of the error that the rules give"),
           (std::string, because, "text of that error, numbers as #; empty: any"),
           (std::optional<std::string>, given,
            "code that the cache gives; absent: it carries the operation out"))

/// With which configs of a case a cache can be opened, or what it counts in a member.
KVO_RECORD(ConfigConvention, (std::string, member, "of the config"),
           (std::vector<std::string>, only,
            "its values, as JSON; 'default' for that of a config without the member; empty: any"),
           (std::int64_t, plus,
            "what the cache counts beyond the rules: a value above 0 is that much larger for it"))

/// The conventions of a cache.
KVO_RECORD_WITH((bool any() const {
                  return !refusals.empty() || !named.empty() || !without.empty() ||
                         !configs.empty();
                } bool has(std::string_view name) const;),
                Conventions,
                (std::vector<RefusalConvention>, refusals, "how refused operations may end"),
                (std::vector<std::string>, named, "names of a ConventionInfo"),
                (std::vector<std::string>, without, "operations that the cache lacks"),
                (std::vector<ConfigConvention>, configs, "members whose values are limited"))

/// The value of each member of a config as ConfigConvention says it, in their order.
[[nodiscard]] std::vector<std::string> config_values(const CacheKind& kind, const Setup& setup);

/// `setup` as the cache is opened with it: ConfigConvention::plus is added to its members.
[[nodiscard]] Setup setup_of_cache(const Conventions& conventions, const CacheKind& kind,
                                   Setup setup);

/// Whether the conventions let the cache refuse the setup, or leave it no value above 0.
[[nodiscard]] bool may_refuse(const Conventions& conventions, const CacheKind& kind,
                              const Setup& setup);

/// After a call that the rules refuse the cache is not asked again: the case ends.
inline constexpr std::string_view kEndsAfterRefusal = "ends_after_refusal";
/// As Subject::survives_failed_allocation where that is false.
inline constexpr std::string_view kNoPromiseAfterFailedAllocation =
    "no_promise_after_failed_allocation";

/// The text of an error with each number as '#'.
[[nodiscard]] std::string because_of(const Error& error);

/// Whether a cache may answer `given`, a code, or carry the operation out where that is absent, in
/// the place of an error of the rules.
[[nodiscard]] bool may_answer(const Conventions& conventions, std::string_view operation,
                              const Error& wanted, const std::optional<std::string>& given);

/// Whether a cache of the kind does not take the operation, whatever its arguments or for them.
[[nodiscard]] bool is_outside(const Conventions& conventions, const CacheKind& kind, const Op& op);

/// Applies conventions to the answers of one cache in one case.
class Settlement {
 public:
  /// Without effect where there are none. The arguments must outlive it.
  Settlement(const Conventions& conventions, const CacheKind& kind, const Setup& setup);

  /// `got` as a cache without conventions would have answered, where they allow the answer. To be
  /// called at each operation, in order.
  [[nodiscard]] Observation settled(const Op& op, const Observation& want, Observation got);
  /// Why the case ends for the cache at this operation though it agrees; null: it does not.
  [[nodiscard]] const char* ends(const Op& op, const Observation& want, const Observation& got);
  /// Whether a Relation ends it.
  [[nodiscard]] bool ends_by_relation(const Op& op, const Observation& want,
                                      const Observation& got);
  [[nodiscard]] bool any() const { return conventions_->any(); }
  /// The conventions that made an answer agree so far, in the order of their names in the list.
  [[nodiscard]] const std::vector<std::string_view>& used() const { return used_; }

 private:
  struct Named {
    const ConventionInfo* info;
    std::unique_ptr<Relation> relation;
  };

  const Conventions* conventions_;
  const CacheKind* kind_;
  std::vector<Named> relations_;
  std::vector<std::string_view> used_;
};

/// Whether the reference makes the choices of a cache with these conventions.
[[nodiscard]] bool chooses(const Conventions& conventions, const CacheKind& kind);

}  // namespace kvo
