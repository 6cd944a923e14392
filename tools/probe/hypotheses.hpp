// tools/probe/hypotheses.hpp: what an engine would answer if its cache had a certain fault.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "reference/probe/rows.hpp"
#include "tools/probe/plans.hpp"

namespace kvo::tools {

/// A text that the engine has answered, and the rows that are right for it.
struct AnsweredText {
  std::size_t request;  ///< its number
  ProbeTokens tokens;   ///< prompt and answer
  probe::Rows rows;
};

/// A sort of faults that a cache may have.
struct ProbeFault {
  std::string_view name;  ///< "stale tail", "lost prefix", ..
  bool of_reuse = false;  ///< it comes with rows of other requests, or that were stored for them
};
/// In the order in which they are tried. `window`: whether the model has one.
[[nodiscard]] std::vector<ProbeFault> probe_faults(bool window);

/// A request with its answer among others.
struct JudgedAnswer {
  const probe::Tables& tables;
  const ProbeRequest& request;
  std::size_t number;  ///< of the request, whose own text is no other
  std::size_t end;     ///< number of the first request that was sent later
  const ProbeTokens& answer;
  const std::deque<AnsweredText>& answered;
};

/// What makes an answer wrong.
struct Explanation {
  std::string fault;      ///< of probe_faults(): the first one that gives the answer; empty: none
  std::string what;       ///< "a row of request 3 at position 48"
  std::string when;       ///< "prefix reuse": when the fault came into the cache
  std::size_t alike = 0;  ///< how many others of its sort give the answer, too
  std::vector<std::string> also;  ///< other sorts of which one does
  /// Tokens that do not follow from those before them.
  std::size_t wrong_tokens = 0;
};

/// Looks for a fault that gives a wrong answer, token by token. The search is cut after some
/// thousand faults of each sort.
/// Requires  the answer is wrong.
[[nodiscard]] Explanation explain(const JudgedAnswer& wrong);

/// By probe_faults(): whether such a fault would change the answer. A few faults of each sort are
/// tried.
/// Requires  the answer is right.
[[nodiscard]] std::vector<bool> faults_that_show(const JudgedAnswer& right);

}  // namespace kvo::tools
