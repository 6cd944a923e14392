// reference/events/llmd.hpp: kind `llmd`: an index from blocks to the pods that hold them
// (EV-70 to EV-79).
#pragma once

#include <compare>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/events/contents.hpp"

namespace kvo::events {

/// At most so many values by keys; the least recently used go first.
template <class K, class V>
class RecentlyUsed {
 public:
  explicit RecentlyUsed(std::int64_t most) : most_(most) {}

  /// The value of a key, which is then the most recently used one; nullptr: there is none.
  V* touch(const K& key) {
    const auto known = values_.find(key);
    if (known == values_.end()) return nullptr;
    ages_.splice(ages_.end(), ages_, known->second.age);
    return &known->second.value;
  }
  /// As touch, but makes the value if there is none. Returns it, and whether another one went.
  std::pair<V*, bool> make(const K& key) {
    if (V* const known = touch(key)) return {known, false};
    const bool is_full = std::ssize(values_) >= most_;
    if (is_full) erase(K(ages_.front()));
    ages_.push_back(key);
    Aged& made = values_[key];
    made.age = std::prev(ages_.end());
    return {&made.value, is_full};
  }
  void erase(const K& key) {
    const auto known = values_.find(key);
    ages_.erase(known->second.age);
    values_.erase(known);
  }
  /// The least recently used first.
  [[nodiscard]] std::vector<K> keys() const { return {ages_.begin(), ages_.end()}; }
  /// The value of a key that there is, without a use of it.
  [[nodiscard]] V& at(const K& key) { return values_.at(key).value; }

 private:
  struct Aged {
    V value = {};
    typename std::list<K>::iterator age = {};
  };

  std::int64_t most_;
  std::map<K, Aged> values_;
  std::list<K> ages_;
};

class LlmdFollower final : public Follower {
 public:
  LlmdFollower(const Config& config, QuirkSet<Quirk> quirks);

  [[nodiscard]] Status apply(const Engine& engine, const Event& event) override;
  [[nodiscard]] Delivered deliver(const Engine& engine, std::int64_t seq, const Batch& batch,
                                  const Replay& replay) override;
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
  using Entries = std::vector<Entry>;  ///< the least recently stored first
  /// The router's subscriber of an engine (EV-78). Numbers are absent before the first one.
  struct Stream {
    std::optional<std::int64_t> last = {};  ///< that was applied
    std::optional<std::int64_t> live = {};  ///< that came, other than by a replay
    bool asks = true;                       ///< no replay has failed
    bool joins_late = false;                ///< the engine's batches went to another one before
  };

  [[nodiscard]] Engine pod_of(const Engine& engine) const;
  [[nodiscard]] bool is_named(const Engine& pod, std::int64_t worker,
                              std::optional<std::int64_t> rank) const;
  [[nodiscard]] bool takes(const Engine& pod, const Event& event);
  void stored(const Event& event, const Entry& entry);
  void stored_without_tokens(const Event& event, const Entry& entry);
  void name(const Event& event, const std::vector<PrefixId>& blocks);
  void count(const Event& event, const Entry& entry);
  void add(PrefixId block, const Entry& entry);
  void removed(const Event& event, const Entry& entry);
  template <class Of>
  void take_out(PrefixId block, const Of& of);
  void take_out(const Engine& pod, bool counts);

  Config config_;
  Contents contents_;
  Groups groups_;
  RecentlyUsed<PrefixId, Entries> blocks_;
  /// What each engine's key stands for: one map for all pods.
  RecentlyUsed<Key, std::vector<PrefixId>> keys_;
  std::map<std::pair<Entry, Key>, std::int64_t> counts_;
  std::map<Engine, Stream> streams_;
  QuirkSet<Quirk> quirks_;
};

}  // namespace kvo::events
