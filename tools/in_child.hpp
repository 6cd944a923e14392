// tools/in_child.hpp: one described record that a process of its own works out.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <boost/json.hpp>

#include "reference/contract/describe/json.hpp"
#include "reference/contract/describe/parse_json.hpp"
#include "reference/contract/values/check.hpp"
#include "tools/child.hpp"

namespace kvo::tools {

/// A described record as it goes from one process to another.
template <class T>
[[nodiscard]] std::string packed(const T& value) {
  return boost::json::serialize(write_json(value));
}
/// Requires  text that packed<T> gave.
template <class T>
[[nodiscard]] T unpacked(const std::string& text) {
  T value;
  JsonFault fault;
  boost::system::error_code failure;
  KVO_CHECK(read_json(parse_json(text, failure), value, fault));
  return value;
}

/// What make() gives in a process of its own, or how that ended.
template <class T>
[[nodiscard]] std::variant<T, Death> in_child(ChildLimits limits, const std::function<T()>& make) {
  Child child([&make](std::string_view /*request*/) { return packed(make()); }, limits);
  child.ask("");
  if (child.wait() == Child::State::kAnswered) return unpacked<T>(child.take_answer());
  return child.death();
}

}  // namespace kvo::tools
