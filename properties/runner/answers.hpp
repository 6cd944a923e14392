// properties/runner/answers.hpp: oracles whose unit is an answer.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "properties/runner/oracle.hpp"

namespace kvo {

/// An oracle that judges each answer, or skips it.
class AnswersOracle : public Oracle {
 public:
  using Words = std::optional<std::string>;

  [[nodiscard]] OracleCounts counts() const final { return counts_; }

 protected:
  /// Nothing can be said of this answer.
  [[nodiscard]] Words skip() {
    ++counts_.skipped;
    return std::nullopt;
  }
  /// This answer was judged: the words if something is wrong with it.
  [[nodiscard]] Words judged(Words words = std::nullopt) {
    ++counts_.judged;
    return words;
  }

 private:
  OracleCounts counts_;
};

}  // namespace kvo
