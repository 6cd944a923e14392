// properties/campaign/script_generator.hpp: what random scripts of all kinds share.
//
// A script is a weighted table of named steps, each of which draws one operation, and one overload
// of observe() for each operation of the kind, which follows what the reference made of it. An
// operation that the script says nothing about does not compile.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/describe/enumerators.hpp>

#include "properties/campaign/generator.hpp"
#include "properties/campaign/orders.hpp"
#include "reference/contract/subject/dispatch.hpp"

namespace kvo {

/// The words of a label, an enumerator of a described enumeration: kWindowExceeded is "window
/// exceeded". They live as long as the program.
template <DescribedEnum Label>
[[nodiscard]] std::string_view label_text(Label label) {
  static const auto kTexts = [] {
    std::vector<std::string> texts;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<Label>>([&](auto one) {
      const auto index = static_cast<std::size_t>(one.value);
      if (texts.size() <= index) texts.resize(index + 1);
      texts[index] = enumerator_word(one.name);
      for (char& c : texts[index])
        if (c == '_') c = ' ';
      // Numbers are words, too: "more than64 cells" is not one.
      for (std::size_t at = 1; at < texts[index].size(); ++at)
        if (std::isdigit(static_cast<unsigned char>(texts[index][at])) != 0 &&
            std::islower(static_cast<unsigned char>(texts[index][at - 1])) != 0)
          texts[index].insert(at, 1, ' ');
    });
    return texts;
  }();
  return kTexts[static_cast<std::size_t>(label)];
}

template <DescribedEnum Label>
[[nodiscard]] std::vector<std::string_view> label_texts(std::initializer_list<Label> labels) {
  std::vector<std::string_view> texts;
  for (const Label label : labels) texts.push_back(label_text(label));
  return texts;
}

/// Every label but `others`.
template <DescribedEnum Label>
[[nodiscard]] std::vector<std::string_view> label_texts_but(std::initializer_list<Label> others) {
  std::vector<std::string_view> texts;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<Label>>([&](auto one) {
    if (std::ranges::find(others, one.value) == others.end())
      texts.push_back(label_text(one.value));
  });
  return texts;
}

template <class Label>
concept CountsBeyondTwoBytes = requires {
  Label::kCountedBeyondTwoBytes;
};

/// A generator that must reach every label of its enumeration, some in one profile only. It lives
/// long if there is a Label::kCountedBeyondTwoBytes.
template <DescribedEnum Label>
[[nodiscard]] Generator script_generator(const CacheKind& kind,
                                         const std::function<GeneratedCase(const CaseTerms&)>& make,
                                         std::initializer_list<Label> original_only,
                                         std::initializer_list<Label> documented_only) {
  return {.kind = &kind,
          .make = make,
          .original_labels = label_texts_but(documented_only),
          .documented_labels = label_texts_but(original_only),
          .lives_long = CountsBeyondTwoBytes<Label>};
}

/// The generator, whose scripts are of class Script; it must reach the labels of its orders, too,
/// but for those `of_others`: of kinds that share the class.
template <class Script>
[[nodiscard]] Generator with_orders(Generator made,
                                    const std::vector<std::string_view>& of_others = {}) {
  for (const Order& order : Script::orders()) {
    if (std::ranges::find(of_others, order.label()) != of_others.end()) continue;
    if (order.is_of(Profile::kOriginal)) made.original_labels.push_back(order.label());
    if (order.is_of(Profile::kDocumented)) made.documented_labels.push_back(order.label());
  }
  return made;
}

/// A case without config, whose script is a Script of (terms).
template <class Script>
[[nodiscard]] GeneratedCase script_case(const CaseTerms& terms) {
  return {.setup = {.profile = terms.profile}, .ops = std::make_unique<Script>(terms)};
}

/// One way to go on. Swarm weights switch steps off in some cases, unless `always`.
template <class Script>
struct ScriptStep {
  std::uint64_t weight;   ///< how often, beside the other steps
  std::string_view name;  ///< what it does, for readers
  Op (Script::*draw)();
  bool always = false;
};

/// Base of the random scripts of a kind. Derived has
///   static constexpr std::array kSteps{ScriptStep<Derived>{..}, ..};
/// and may have
///   void observe(const T& operation, const Observation& seen);   public; for each T of Ops that it
///                                     learns something from
///   static const CacheKind& order_kind();             whose orders it follows (orders.hpp)
///   static std::span<const OrderWord> order_words();  what these may name
/// which are mixed into the steps of two cases in three. It may plan() operations that come next,
/// reach() labels, and spend() the case's budget: where that is used up, the script ends. A
/// Label::kCountedBeyondTwoBytes is reached where an operation has succeeded more often than 16
/// bits count.
///
/// A case of Scale::kLong follows no orders and is mostly one of its steps, usually the first.
template <class Derived, class Ops, class Label = void>
class ScriptGenerator : public DrawnOps {
 public:
  /// The orders that scripts of this class follow.
  [[nodiscard]] static const Orders& orders() {
    static const Orders kOrders = orders_of(Derived::order_kind(), Derived::order_words());
    return kOrders;
  }

 protected:
  [[nodiscard]] std::optional<Op> choose() override {
    if (spent_ > kCaseBudget) return std::nullopt;
    if (planned_.empty()) {
      if (auto op = of_order()) return op;
      return drawn();
    }
    Op op = std::move(planned_.front());
    planned_.pop_front();
    return op;
  }
  void learn(const Op& op, const Observation& seen) final {
    visit_op(Ops(), op, [&](const auto& operation) {
      auto& self = static_cast<Derived&>(*this);
      if constexpr (requires { self.observe(operation, seen); }) self.observe(operation, seen);
    });
    if (const auto label = std::exchange(completed_, std::nullopt)) DrawnOps::reach(*label);
    if constexpr (CountsBeyondTwoBytes<Label>) {
      constexpr std::uint64_t kTwoBytes = 0xFFFF;
      if (!seen.error && ++times_[&op.kind()] > kTwoBytes) reach(Label::kCountedBeyondTwoBytes);
    }
  }

  explicit ScriptGenerator(std::uint64_t seed) : draw_(seed) {}
  explicit ScriptGenerator(const CaseTerms& terms) : draw_(terms.seed), scale_(terms.scale) {}

  [[nodiscard]] Draw& draw() { return draw_; }
  [[nodiscard]] bool is_large() const { return scale_ == Scale::kLarge; }
  [[nodiscard]] bool is_long() const { return scale_ == Scale::kLong; }
  /// An operation by one of the steps.
  [[nodiscard]] Op drawn() {
    if (weights_.empty()) draw_weights();
    const auto& step = Derived::kSteps[draw_.weighted(weights_)];
    return (static_cast<Derived&>(*this).*step.draw)();
  }
  /// `op` comes before anything is drawn, behind what is planned already.
  template <class T>
  void plan(T op) {
    planned_.push_back(Op::of(std::move(op)));
  }
  void plan(Op op) { planned_.push_back(std::move(op)); }
  /// `op` comes next.
  void plan_next(Op op) { planned_.push_front(std::move(op)); }
  [[nodiscard]] bool has_plan() const { return !planned_.empty(); }

  /// Whether an order is under way.
  [[nodiscard]] bool follows_plan() const { return order_.has_value(); }
  /// How many of 100 drawn operations begin an order instead; else drawn for the case.
  void plan_often(std::uint64_t percent) { plan_percent_ = percent; }

  /// So many cells were looked at or copied.
  void spend(std::uint64_t cells) { spent_ += cells; }

  /// The case has gone through this state, a Label or one of a further enumeration. To be called
  /// from observe().
  template <DescribedEnum State>
  void reach(State state) {
    DrawnOps::reach(label_text(state));
  }

 private:
  void draw_weights() {
    std::vector<std::uint64_t> usual;
    std::vector<bool> always;
    for (const auto& step : Derived::kSteps) {
      usual.push_back(step.weight);
      always.push_back(step.always);
    }
    weights_ = swarm(draw_, std::move(usual), always);
    if (!is_long()) return;
    constexpr std::uint64_t kFirstPercent = 60;
    constexpr std::uint64_t kMostly = 6;  // times all the others
    std::uint64_t& most = weights_[draw_.percent(kFirstPercent) ? 0 : draw_.below(weights_.size())];
    std::uint64_t all = 0;
    for (const std::uint64_t weight : weights_) all += weight;
    most += kMostly * all;
  }

  // The next operation of the order that is under way, or that begins now. What observe() plans
  // after one of them comes before the next, as rows come after a pass.
  std::optional<Op> of_order() {
    if constexpr (requires { Derived::order_words(); }) {
      if (is_long()) return std::nullopt;
      if (!plan_percent_) plan_percent_ = draw_.one_of<std::uint64_t>({0, 3, 15});
      if (!order_) {
        if (!draw_.percent(*plan_percent_)) return std::nullopt;
        std::vector<std::uint64_t> weights;
        for (const Order& order : orders()) weights.push_back(order.weight());
        order_.emplace(orders()[draw_.weighted(weights)]);
      }
      auto op = order_->next({static_cast<Derived*>(this), &draw_});
      if (op && order_->is_complete()) completed_ = order_->order().label();
      if (!op || order_->is_complete()) order_.reset();
      return op;
    }
    return std::nullopt;
  }

  Draw draw_;
  Scale scale_ = Scale::kSmall;
  std::vector<std::uint64_t> weights_;
  std::optional<std::uint64_t> plan_percent_;
  std::optional<FollowedOrder> order_;
  std::optional<std::string_view>
      completed_;  ///< label of the plan whose last operation has been drawn
  std::deque<Op> planned_;
  std::uint64_t spent_ = 0;
  std::map<const OpKind*, std::uint64_t> times_;  ///< that an operation has succeeded
};

}  // namespace kvo
