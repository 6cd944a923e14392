// properties/campaign/orders.hpp: orders of operations that chance seldom draws, as text.
//
// A script of random operations follows a planned order now and then. The orders of a contract are
// in properties/CONTRACT/orders.txt, in the notation of docs/cases.md for operations:
//
//   kind cells.kv                        whose orders follow
//   order shifted_then_saved weight 2    its label, and how often it is drawn beside the others; in
//                                        one profile only where `original` or `documented` follows
//   choose_two                           calls a word of the script
//   needs window > 0                     without it, the script gives the order up
//   let n any(1, 3)                      a value for the rest of the order; `if` may follow
//   seq_add seq a, p0 n, p1 -1, delta 2  draws an operation; arguments may be computed
//   clear | seq_rm seq a                 one of them, each as likely
//   rows if full else state              by a condition
//   3 times ... end, for i 1 to 3 ...    repeated steps
//
// Conditions and arguments are sums and products of integers, of values of the script, of `let`,
// and of any(LOW, HIGH), which is drawn, min(A, B) and max(A, B). A condition compares two of them
// with <, <=, >, >=, = or !=, or is true where a value is not 0.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "properties/campaign/generator.hpp"
#include "traces/io/embedded_file.hpp"
#include "traces/io/trace_error.hpp"

namespace kvo {

/// What calling a word of a script gives.
struct WordResult {
  bool possible = true;              ///< false: the order ends here
  std::optional<Op> operation = {};  ///< to be drawn
  std::int64_t value = 0;            ///< of a word that is part of a condition or an argument
};

/// A member of a script that orders may name.
struct OrderWord {
  std::string_view name;
  std::size_t arguments;  ///< integers
  bool is_value;          ///< may be part of a condition or an argument
  bool is_step;           ///< may be a step
  WordResult (*call)(void* script, std::span<const std::int64_t> arguments);
};

namespace detail {

template <class Given>
WordResult word_result(Given given) {
  if constexpr (std::is_same_v<Given, bool>)
    return {.possible = given, .value = given ? 1 : 0};
  else if constexpr (std::is_integral_v<Given>)
    return {.value = static_cast<std::int64_t>(given)};
  else if constexpr (std::is_same_v<Given, Op>)
    return {.operation = std::move(given)};
  else {
    const bool possible = given.has_value();
    return {.possible = possible, .operation = std::move(given)};
  }
}

template <auto member, class Script, class Given, class... Arguments>
constexpr OrderWord method_word(std::string_view name) {
  return {.name = name,
          .arguments = sizeof...(Arguments),
          .is_value = std::is_integral_v<Given>,
          .is_step = !std::is_integral_v<Given> || std::is_same_v<Given, bool>,
          .call = [](void* script, std::span<const std::int64_t> arguments) {
            return [&]<std::size_t... I>(std::index_sequence<I...> /*all*/) {
              auto& called = *static_cast<Script*>(script);
              if constexpr (std::is_void_v<Given>) {
                (called.*member)(static_cast<Arguments>(arguments[I])...);
                return WordResult();
              } else {
                return word_result((called.*member)(static_cast<Arguments>(arguments[I])...));
              }
            }
            (std::index_sequence_for<Arguments...>());
          }};
}
template <auto member, class Script, class Given, class... Arguments>
constexpr OrderWord word_of(std::string_view name, Given (Script::* /*method*/)(Arguments...)) {
  return method_word<member, Script, Given, Arguments...>(name);
}
template <auto member, class Script, class Given, class... Arguments>
constexpr OrderWord word_of(std::string_view name,
                            Given (Script::* /*method*/)(Arguments...) const) {
  return method_word<member, Script, Given, Arguments...>(name);
}
template <auto member, class Script, class Value>
requires std::is_integral_v<Value>
constexpr OrderWord word_of(std::string_view name, Value Script::* /*value*/) {
  return {.name = name,
          .arguments = 0,
          .is_value = true,
          .is_step = false,
          .call = [](void* script, std::span<const std::int64_t> /*none*/) {
            return WordResult{.value =
                                  static_cast<std::int64_t>(static_cast<Script*>(script)->*member)};
          }};
}

}  // namespace detail

/// A word that stands for a member of a script: an integer; a method with integer arguments that
/// returns an integer or a bool (a value, a bool also a step that is possible or not), nothing, an
/// Op, or a std::optional<Op> (no operation: the step is not possible).
template <auto member>
constexpr OrderWord order_word(std::string_view name) {
  return detail::word_of<member>(name, member);
}

/// A script while it follows an order.
struct OrderScript {
  void* script;
  Draw* draw;
};

/// An order, which a script may follow.
class Order {
 public:
  struct Step;

  Order(std::string label, std::uint64_t weight, std::optional<Profile> only,
        std::vector<Step> steps);

  /// Reached when its last operation was observed.
  [[nodiscard]] std::string_view label() const { return label_; }
  [[nodiscard]] std::uint64_t weight() const { return weight_; }
  [[nodiscard]] bool is_of(Profile profile) const { return !only_ || *only_ == profile; }

 private:
  friend class FollowedOrder;
  std::string label_;
  std::uint64_t weight_;
  std::optional<Profile> only_;
  std::shared_ptr<const std::vector<Step>> steps_;
};
using Orders = std::vector<Order>;

/// How far a script has followed an order.
class FollowedOrder {
 public:
  explicit FollowedOrder(const Order& order) : order_(&order) {}

  /// The next operation; nothing where a step is not possible, and after the last.
  [[nodiscard]] std::optional<Op> next(const OrderScript& script);
  /// Whether next() has given the last operation.
  [[nodiscard]] bool is_complete() const;
  [[nodiscard]] const Order& order() const { return *order_; }

 private:
  const Order* order_;
  std::size_t at_ = 0;                                            ///< step
  std::map<std::string, std::int64_t, std::less<>> values_ = {};  ///< of `let`
};

/// The orders of `kind` in a text; those of other kinds are not read.
/// `words` lives as long as the orders.
/// Errors   file, line and word, and what is allowed: an unknown operation, argument or word;
///          a wrong number of arguments; a weight that is not positive; two orders of a name; an
///          order that does not end with an operation; a loop without `end`
[[nodiscard]] traces::TraceResult<Orders> read_orders(std::string_view name, std::string_view text,
                                                      const CacheKind& kind,
                                                      std::span<const OrderWord> words);

/// All files of orders: properties/CONTRACT/orders.txt.
[[nodiscard]] std::span<const traces::EmbeddedFile> order_files();
/// Those of the contract's orders.txt. A text that read_orders refuses ends the program.
[[nodiscard]] Orders orders_of(const CacheKind& kind, std::span<const OrderWord> words);

}  // namespace kvo
