// properties/prefix/history.hpp: what the histories of both caches of `prefix` share.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "properties/prefix/misses.hpp"
#include "properties/runner/oracle.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/prefix/blocks.hpp"
#include "reference/prefix/radix.hpp"

namespace kvo::prefix {

/// The history of a cache whose requests are Known; contract `groups` has one, too. Derived has an
/// overload `observe` for each operation. It takes the operation, then its results, unless they are
/// Nothing, then the request, if it wants it. Failed operations and unknown requests are skipped.
/// An overload that also judges failures takes the Observation in the place of the results.
template <class Derived, class Ops, class Config, class Known, class Quirk = prefix::Quirk>
class History : public Oracle {
 public:
  History(Config config, QuirkSet<Quirk> quirks) : config_(std::move(config)), quirks_(quirks) {}

  [[nodiscard]] Words check(const Op& op, const Observation& seen) override {
    Words words;
    visit_op(Ops(), op, [&](const auto& operation) {
      if (misses_) misses_->begin(request_of(operation), shows(operation));
      if (!seen.unsupported) words = route(operation, seen);
    });
    return words;
  }
  bool keep_lookups() override {
    misses_.emplace();
    return true;
  }
  [[nodiscard]] std::span<const Lookup> lookups() const override {
    return misses_ ? misses_->lookups() : std::span<const Lookup>();
  }

 protected:
  Words lose_track() {
    lost_ = true;
    return skip();
  }
  /// Judges the operation: the words unless `holds`.
  Words expect(bool holds, std::string words) {
    return judged(holds ? Words() : Words(std::move(words)));
  }
  [[nodiscard]] bool has(Quirk quirk) const { return quirks_.has(quirk); }

  Config config_;
  QuirkSet<Quirk> quirks_;
  std::map<std::int64_t, Known> requests_ = {};
  bool lost_ = false;  ///< nothing more can be said, but by an overload of `look`
  std::optional<Misses> misses_ = std::nullopt;  ///< once lookups are kept

 private:
  template <class T>
  static std::optional<std::int64_t> request_of(const T& op) {
    if constexpr (requires { std::int64_t(op.request); })
      return op.request;
    else
      return std::nullopt;
  }
  // Whether Derived says that the operation only shows what the one before has done.
  template <class T>
  static bool shows(const T& /*op*/) {
    if constexpr (requires { Derived::template kShows<T>; })
      return Derived::template kShows<T>;
    else
      return false;
  }
  Known* known_of(const auto& op) {
    const auto found = requests_.find(op.request);
    return found != requests_.end() ? &found->second : nullptr;
  }
  template <class T>
  Words route(const T& op, const Observation& seen) {
    auto& self = static_cast<Derived&>(*this);
    constexpr bool kJudgesFailures = requires(Known & known) {
      self.observe(op, seen, known);
    }
    || requires {
      self.observe(op, seen);
    };
    const auto call = [&](const auto&... results) -> Words {
      if constexpr (requires(Known & known) { self.observe(op, results..., known); }) {
        Known* const known = known_of(op);
        return known ? self.observe(op, results..., *known) : skip();
      } else {
        return self.observe(op, results...);
      }
    };
    if constexpr (requires { self.look(op, seen); })
      if (lost_) return self.look(op, seen);
    if (lost_ || (seen.error && !kJudgesFailures)) return skip();
    if constexpr (kJudgesFailures)
      return call(seen);
    else if constexpr (std::same_as<typename T::Returns, Nothing>)
      return call();
    else
      return call(seen.as<typename T::Returns>());
  }
};

[[nodiscard]] std::unique_ptr<Oracle> blocks_history(const BlocksConfig& config,
                                                     QuirkSet<Quirk> quirks);
[[nodiscard]] std::unique_ptr<Oracle> radix_history(const RadixConfig& config,
                                                    QuirkSet<Quirk> quirks);

}  // namespace kvo::prefix
