// reference/events/dynamo.hpp: kind `dynamo`: decoder, cursor and normalizer before the tree of
// kind `radix`, and an index for each lower tier (EV-65 to EV-69).
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "reference/events/contents.hpp"
#include "reference/events/tree.hpp"

namespace kvo::events {

class DynamoFollower final : public Follower {
 public:
  DynamoFollower(const Config& config, QuirkSet<Quirk> quirks);

  [[nodiscard]] Status apply(const Engine& engine, const Event& event) override;
  [[nodiscard]] Delivered deliver(const Engine& engine, std::int64_t seq, const Batch& batch,
                                  const Replay& replay) override;
  void leave(std::int64_t worker, std::optional<std::int64_t> rank) override;
  [[nodiscard]] Matches query(const Prompt& prompt) override;

 private:
  /// A lower tier. An edge has the name that the first engine gave it; others that name it
  /// differently are not on it.
  struct Lower {
    using Place = std::pair<std::optional<Key>, ContentId>;  ///< key before, content
    struct Edge {
      Key key = 0;
      std::set<Engine> engines = {};
    };
    std::map<Place, Edge> edges = {};
    std::map<Engine, std::map<Key, Place>> blocks = {};

    void take_out(const Engine& engine, const Place& place);
    void clear(const Engine& engine);
  };
  /// The salt under which an engine stored a key; none: it stored it under several.
  using Salts = std::map<Key, std::optional<std::string>>;

  [[nodiscard]] std::optional<Event> normalized(const Engine& engine, Tier tier,
                                                const Event& event);
  [[nodiscard]] static bool take_salt(Salts& salts, Event& event);
  void lower_stored(Lower& lower, const Engine& engine, const Event& event);

  Config config_;
  Contents contents_;
  TreeFollower device_;
  std::array<Lower, 3> lower_;
  Groups groups_;
  std::map<Engine, Salts> salts_;
  std::map<Engine, std::int64_t> cursors_;
};

}  // namespace kvo::events
