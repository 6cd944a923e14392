// reference/events/llmd.hpp: kind `llmd`: an index from blocks to the pods that hold them
// (EV-70 to EV-79).
#pragma once

#include <compare>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/events/contents.hpp"

namespace kvo::events {

class LlmdFollower final : public Follower {
 public:
  LlmdFollower(const Config& config, QuirkSet<Quirk> quirks);

  [[nodiscard]] Status apply(const Engine& engine, const Event& event) override;
  void leave(std::int64_t worker, std::optional<std::int64_t> rank) override;
  void resubscribe(std::int64_t worker, std::optional<std::int64_t> rank) override;
  [[nodiscard]] Matches query(const Prompt& prompt) override;

 private:
  /// A pod in a tier and a group.
  struct Entry {
    Engine pod;
    std::string tier;
    std::optional<std::int64_t> group;
    friend bool operator==(const Entry&, const Entry&) = default;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  struct Block {
    std::vector<Entry> entries;         ///< the least recently stored first
    std::list<PrefixId>::iterator age;  ///< its place in ages_
  };

  [[nodiscard]] Engine pod_of(const Engine& engine) const;
  [[nodiscard]] bool is_named(const Engine& pod, std::int64_t worker,
                              std::optional<std::int64_t> rank) const;
  void stored(const Event& event, const Entry& entry);
  void add(PrefixId block, const Entry& entry);
  void removed(const Event& event, const Entry& entry);
  void take_out(const Engine& pod, bool counts);
  Block* touch(PrefixId block);

  Config config_;
  Contents contents_;
  Groups groups_;
  std::map<PrefixId, Block> blocks_;
  std::list<PrefixId> ages_;  ///< the least recently used first
  /// What each engine's key stands for: one map for all pods.
  std::map<Key, std::vector<PrefixId>> keys_;
  std::map<std::pair<Entry, Key>, std::int64_t> counts_;
  QuirkSet<Quirk> quirks_;
};

}  // namespace kvo::events
