// properties/snapshot/cache_script.hpp: what random scripts of one cache share, whatever its kind.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "properties/campaign/script_generator.hpp"
#include "reference/snapshot/operations.hpp"

namespace kvo::snapshot {

/// Base of a script whose cases have one cache. Derived has, beside what ScriptGenerator requires,
///   Op age();   an operation of a long life
template <class Derived, class Ops, class Label>
class CacheScript : public ScriptGenerator<Derived, Ops, Label> {
 protected:
  using Generator = ScriptGenerator<Derived, Ops, Label>;

  CacheScript(std::uint64_t seed, Scale scale) : Generator(seed), scale_(scale) {}
  using Generator::draw;

  [[nodiscard]] std::optional<Op> choose() final {
    if (!begun_) return Op::of(New{});
    offset_ = shown().cache()->offset();
    if (scale_ == Scale::kLong && !this->has_plan() && !this->follows_plan() && !draw().percent(2))
      return static_cast<Derived&>(*this).age();
    return Generator::choose();
  }

  // Steps.
  Op state() { return Op::of(ShowState{}); }
  Op offset() { return Op::of(Offset{}); }
  Op free() { return Op::of(Free{}); }
  Op merge() { return Op::of(Merge{any(), any()}); }
  Op close() { return Op::of(Close{some()}); }

  /// The case of the reference. Requires  a cache was made.
  [[nodiscard]] const ShownCase& shown() const { return this->template reference<ShownCase>(); }
  [[nodiscard]] std::int64_t snapshots() const { return std::ssize(shown().snapshots()); }
  [[nodiscard]] const Snapshot* snapshot(const Nullable<std::int64_t>& number) const {
    if (!number.has_value() || *number < 1 || *number > snapshots()) return nullptr;
    return shown().snapshots()[static_cast<std::size_t>(*number - 1)].get();
  }
  [[nodiscard]] bool is_closed(const Nullable<std::int64_t>& number) const {
    return snapshot(number) != nullptr && snapshot(number)->closed();
  }
  /// The tokens of a snapshot.
  struct Range {
    std::int64_t from;
    std::int64_t to;
  };
  /// Nothing: no snapshot has that number, or it is closed.
  [[nodiscard]] std::optional<Range> range_of(const Nullable<std::int64_t>& number) const {
    if (snapshot(number) == nullptr || is_closed(number)) return std::nullopt;
    const Content content = snapshot(number)->content();
    const std::int64_t end = content.to.value_or(content.offset.value_or(0));
    // Merged unchecked, one may begin after its end (MR-15).
    return Range{std::min(content.from.value_or(0), end), end};
  }
  /// A number that is null in one case of ten. Now and then it names a closed snapshot, or none.
  [[nodiscard]] Nullable<std::int64_t> any() {
    if (snapshots() == 0 || draw().percent(10)) return std::nullopt;
    return some();
  }
  /// As any(), but never null.
  [[nodiscard]] std::int64_t some() {
    const std::int64_t last = snapshots();
    if (last == 0 || draw().percent(2)) return last + 1;
    for (int tries = 0; tries < 4; ++tries) {
      const std::int64_t number = draw().between(1, last);
      if (!is_closed(number) || draw().percent(8)) return number;
    }
    return last;
  }
  /// The whole last snapshot of the order, restored.
  [[nodiscard]] std::optional<Op> last_restored() const {
    const auto range = last_ ? range_of(*last_) : std::nullopt;
    if (!range) return std::nullopt;
    return Op::of(Restore{*last_, range->to});
  }

  Scale scale_;
  bool begun_ = false;
  std::int64_t offset_ = 0;           ///< of the reference's cache, before the operation
  std::optional<std::int64_t> last_;  ///< snapshot of the order that is followed
};

}  // namespace kvo::snapshot
