// reference/events/positional.hpp: kind `positional`: a map from positions and contents to engines,
// which is probed (EV-60 to EV-63).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "reference/events/contents.hpp"

namespace kvo::events {

class PositionalFollower final : public Follower {
 public:
  PositionalFollower(const Config& config, QuirkSet<Quirk> quirks);

  [[nodiscard]] Status apply(const Engine& engine, const Event& event) override;
  void leave(std::int64_t worker, std::optional<std::int64_t> rank) override;
  [[nodiscard]] Matches query(const Prompt& prompt) override;
  [[nodiscard]] Result<std::int64_t> handover() override;

 private:
  using Place = std::pair<std::int64_t, ContentId>;  ///< position, content
  using Holders = std::set<Engine>;
  /// What the first event that names a key says of it.
  struct Named {
    std::optional<Key> parent;
    ContentId content;
  };
  /// A query under way: the engines that hold all positions so far, and how deep others came.
  struct Walk {
    std::vector<const Holders*> at;  ///< the engines found at each position; null: none
    Holders active;
    std::map<Engine, std::int64_t> depths = {};
    /// Active engines that are not found at a position end there.
    void drop(std::size_t position) {
      std::erase_if(active, [&](const Engine& engine) {
        if (at[position] != nullptr && at[position]->contains(engine)) return false;
        depths[engine] = static_cast<std::int64_t>(position);
        return true;
      });
    }
    [[nodiscard]] bool same_number(std::size_t position) const {
      return (at[position] != nullptr ? at[position]->size() : 0) == active.size();
    }
  };

  [[nodiscard]] Status stored(const Engine& engine, const Event& event);
  [[nodiscard]] Status removed(const Engine& engine, const Keys& keys);
  void take_out(const Engine& engine, Key key, const Place& place);
  void clear(const Engine& engine);
  [[nodiscard]] std::optional<PrefixId> chain_of(Key key);
  static void scan(Walk& walk, std::size_t from, std::size_t to);
  void bisect(Walk& walk, std::size_t last) const;

  Config config_;
  QuirkSet<Quirk> quirks_;
  Contents contents_;
  std::map<Place, std::map<Key, Holders>> index_;
  std::map<Engine, std::map<Key, Place>> blocks_;
  std::map<std::pair<Engine, Key>, std::int64_t> copies_;  ///< without kOneRemovalEnds
  std::map<Key, Named> named_;
  std::map<Key, PrefixId> chains_;
};

}  // namespace kvo::events
