// properties/snapshot/handles.hpp: the snapshots of a script, as its generator knows them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "properties/campaign/generator.hpp"
#include "reference/snapshot/operations.hpp"

namespace kvo::snapshot {

/// What was observed of each snapshot of a case.
class Handles {
 public:
  struct Known {
    std::int64_t from = 0;
    std::int64_t to = 0;
    bool closed = false;
    std::int64_t window = 0;  ///< of the ring that was live when it was taken
  };

  /// A number that is null in one case of ten, and names a closed snapshot or none at all now and
  /// then.
  [[nodiscard]] Nullable<std::int64_t> any(Draw& draw) const {
    if (known_.empty() || draw.percent(10)) return std::nullopt;
    return some(draw);
  }
  /// As any(), but never null.
  [[nodiscard]] std::int64_t some(Draw& draw) const {
    const auto last = static_cast<std::int64_t>(known_.size());
    if (last == 0 || draw.percent(2)) return last + 1;
    for (int tries = 0; tries < 4; ++tries) {
      const std::int64_t number = draw.between(1, last);
      if (!is_closed(number) || draw.percent(8)) return number;
    }
    return last;
  }
  [[nodiscard]] bool is_closed(std::int64_t number) const {
    const auto found = known_.find(number);
    return found != known_.end() && found->second.closed;
  }
  [[nodiscard]] const Known* find(const Nullable<std::int64_t>& number) const {
    if (!number.has_value()) return nullptr;
    const auto found = known_.find(*number);
    return found != known_.end() ? &found->second : nullptr;
  }
  void remember(const Numbered& seen, std::int64_t window = 0) {
    if (!seen.handle.has_value()) return;
    const std::int64_t end = seen.shown.to.value_or(seen.shown.offset.value_or(0));
    // Merged unchecked, one may begin behind its end (MR-15).
    known_[*seen.handle] = {std::min(seen.shown.from.value_or(0), end), end, false, window};
  }
  void close(const Nullable<std::int64_t>& number) {
    if (number.has_value() && known_.contains(*number)) known_[*number].closed = true;
  }
  [[nodiscard]] bool empty() const { return known_.empty(); }
  /// The whole snapshot, restored; nothing without one.
  [[nodiscard]] std::optional<Op> restored(const std::optional<std::int64_t>& number) const {
    const Known* known = number ? find(*number) : nullptr;
    if (known == nullptr) return std::nullopt;
    return Op::of(Restore{*number, known->to});
  }

 private:
  std::map<std::int64_t, Known> known_;
};

}  // namespace kvo::snapshot
