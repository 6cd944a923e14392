// properties/runner/oracle.hpp: what judges a subject by its own history, without a reference.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "properties/runner/reuse.hpp"
#include "reference/contract/subject/subject.hpp"

namespace kvo {

/// How much an oracle could say, in units of its own (rows of batches, for instance).
struct OracleCounts {
  std::uint64_t judged = 0;
  std::uint64_t skipped = 0;
};

/// The history of one session. It sees every operation with what the subject answered.
class Oracle {
 public:
  Oracle() = default;
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;
  virtual ~Oracle() = default;

  /// Takes note of an operation; words when what was shown contradicts the history.
  [[nodiscard]] virtual std::optional<std::string> check(const Op& op, const Observation& seen) = 0;
  /// Sentences about the last operation of a script, where the subject's result `got` differs from
  /// the wanted one; check() has taken note of all before it.
  [[nodiscard]] virtual std::vector<std::string> explain(std::span<const Op> /*script*/,
                                                         const Observation& /*want*/,
                                                         const Observation& /*got*/) const {
    return {};
  }
  /// So far.
  [[nodiscard]] virtual OracleCounts counts() const { return counts_; }

  /// From now on the history keeps why prompts were not reused. Before the first operation.
  /// Returns whether it can.
  virtual bool keep_lookups() { return false; }
  /// Those so far.
  [[nodiscard]] virtual std::span<const Lookup> lookups() const { return {}; }

  using Words = std::optional<std::string>;

 protected:
  /// Nothing can be said of this answer.
  Words skip() {
    ++counts_.skipped;
    return std::nullopt;
  }
  /// This answer was judged: the words if something is wrong with it.
  Words judged(Words words = std::nullopt) {
    ++counts_.judged;
    return words;
  }

  OracleCounts counts_;
};

/// Makes the oracle of a case; null for a cache kind that has none, whatever the setup.
using MakeOracle = std::unique_ptr<Oracle> (*)(const CacheKind& kind, const Setup& setup);

}  // namespace kvo
