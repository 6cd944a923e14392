// tools/reports/found_or_added.hpp: lists of rows that are filled while something is counted.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace kvo::tools {

/// The row that has these members in common with `fresh`. If there is none, `fresh` is added.
template <class Row, class... Members>
Row& found_or_added(std::vector<Row>& rows, Row fresh, const Members&... members) {
  const auto known = std::ranges::find_if(rows, [&](const Row& row) {
    return ((std::invoke(members, row) == std::invoke(members, fresh)) && ...);
  });
  return known != rows.end() ? *known : rows.emplace_back(std::move(fresh));
}

}  // namespace kvo::tools
