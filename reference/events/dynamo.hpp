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
  /// One engine's blocks of a lower tier: (key before, content) -> key.
  using Edges = std::map<std::pair<std::optional<Key>, ContentId>, Key>;

  [[nodiscard]] std::optional<Event> normalized(const Engine& engine, const Event& event);
  void lower_stored(Edges& edges, const Event& event);

  Config config_;
  Contents contents_;
  TreeFollower device_;
  std::array<std::map<Engine, Edges>, 3> lower_;
  Groups groups_;
  /// The salts under which each engine stored a key.
  std::map<Engine, std::map<Key, std::set<std::string>>> salts_;
  std::map<Engine, std::int64_t> cursors_;
};

}  // namespace kvo::events
