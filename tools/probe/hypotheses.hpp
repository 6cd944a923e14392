// tools/probe/hypotheses.hpp: what an engine would answer if its cache had a certain fault.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/probe/rows.hpp"
#include "tools/probe/plans.hpp"

namespace kvo::tools {

/// A text that the engine has answered, and the rows that are right for it.
struct AnsweredText {
  std::size_t request;  ///< its number
  std::vector<probe::Token> tokens;
  probe::Rows rows;
};

/// A fault that a cache may have with a request, and the tokens that it would make.
struct Hypothesis {
  std::string_view fault;  ///< "stale tail", "lost prefix", ..
  std::string detail;      ///< what is wrong: "rows 48 to 63 of request 3"
  std::vector<probe::Token> tokens;
};

/// Calls `visit` with each fault that other texts allow, until it returns true. `number`: of the
/// request, whose own text is no other. `all` false: only the first one of each kind and text.
void each_hypothesis(const probe::Tables& tables, const ProbeRequest& request, std::size_t number,
                     const std::deque<AnsweredText>& answered, bool all,
                     const std::function<bool(const Hypothesis& hypothesis)>& visit);

}  // namespace kvo::tools
