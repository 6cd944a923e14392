// optimized/prefix/namespaces.hpp: namespaces by number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "optimized/memory/growth.hpp"
#include "reference/prefix/radix.hpp"

namespace kvo::optimized {

/// Each namespace has one number as long as anybody uses it (PX-63).
class Namespaces {
 public:
  using Id = std::uint32_t;
  static constexpr Id kNone = ~Id{0};
  struct Words {
    std::optional<std::string> extra = std::nullopt;
    std::string salt = {};  ///< empty: none
  };

  [[nodiscard]] Id find(const prefix::Namespace& space) const {
    const auto known = ids_.find(Parts{space.extra, space.salt});
    return known == ids_.end() ? kNone : known->second;
  }
  /// The number of a namespace, which gains a user. Throws std::bad_alloc; nothing has changed.
  Id use(const prefix::Namespace& space) {
    if (const Id known = find(space); known != kNone) {
      ++rows_[known].users;
      return known;
    }
    if (ids_.size() >= sweep_at_) sweep();
    if (unused_.empty()) {
      make_room(rows_, 1);
      make_room(unused_, rows_.capacity());
    }
    Words words{space.extra ? std::optional<std::string>(*space.extra) : std::nullopt,
                std::string(space.salt)};
    const auto placed = ids_.emplace(std::move(words), kNone).first;
    if (unused_.empty()) {
      unused_.push_back(static_cast<Id>(rows_.size()));
      rows_.emplace_back();
    }
    placed->second = unused_.back();
    unused_.pop_back();
    rows_[placed->second] = {&placed->first, 1};
    return placed->second;
  }
  void use_again(Id space) noexcept { ++rows_[space].users; }
  /// A user goes; the number stays until many have nobody left.
  void leave(Id space) noexcept { --rows_[space].users; }
  [[nodiscard]] const Words& words(Id space) const { return *rows_[space].words; }

 private:
  using Parts = std::pair<std::optional<std::string_view>, std::string_view>;
  struct Less {
    using is_transparent = void;
    static Parts parts(const Parts& of) { return of; }
    static Parts parts(const Words& of) {
      return {of.extra ? std::optional<std::string_view>(*of.extra) : std::nullopt, of.salt};
    }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return parts(a) < parts(b);
    }
  };
  struct Row {
    const Words* words = nullptr;
    std::size_t users = 0;
  };
  void sweep() noexcept {
    std::erase_if(ids_, [&](const auto& id) {
      if (rows_[id.second].users > 0) return false;
      unused_.push_back(id.second);
      return true;
    });
    sweep_at_ = std::max(kLeastSweep, 2 * ids_.size());
  }

  static constexpr std::size_t kLeastSweep = 64;
  std::map<Words, Id, Less> ids_;
  std::vector<Row> rows_;
  std::vector<Id> unused_;  ///< with room for all
  std::size_t sweep_at_ = kLeastSweep;
};

}  // namespace kvo::optimized
