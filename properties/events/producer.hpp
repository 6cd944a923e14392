// properties/events/producer.hpp: engines that announce what their caches hold: the references of
// `prefix.blocks` (vLLM), `groups.blocks` (vLLM with a hybrid model) and `prefix.radix` (SGLang),
// driven by requests.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/contract/subject/subject.hpp"
#include "reference/events/cache.hpp"

namespace kvo::events {

/// Names of blocks. Engines that share one call the same content alike (EV-2).
class KeyNames {
 public:
  explicit KeyNames(Key first = 0) : next_(first) {}
  /// The name of the block with these tokens behind the block of that name.
  Key name(std::optional<Key> parent, const std::vector<std::int64_t>& tokens,
           const std::string& space);

 private:
  std::map<std::tuple<std::optional<Key>, std::vector<std::int64_t>, std::string>, Key> names_;
  Key next_;
};

/// One engine.
class Producer {
 public:
  Producer(std::shared_ptr<KeyNames> names, std::int64_t block_size)
      : names_(std::move(names)), block_size_(block_size) {}
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;
  virtual ~Producer() = default;

  /// Each returns what the engine announces of it. @{
  /// Looks a prompt up and computes the rest, if there is space; the request runs from then on.
  [[nodiscard]] virtual Batch serve(const Prompt& prompt) = 0;
  /// Adds output to the oldest running request, and ends it.
  [[nodiscard]] virtual Batch finish(const std::vector<std::int64_t>& output) = 0;
  /// Takes the key of one block off, or evicts: whatever the engine offers.
  [[nodiscard]] virtual Batch evict(const Prompt& prompt, std::int64_t block) = 0;
  /// Empties the cache, if nothing runs.
  [[nodiscard]] virtual Batch clear() = 0;
  /// @}
  /// Leading blocks of a prompt that the cache itself holds (EV-4).
  [[nodiscard]] virtual std::int64_t held(const Prompt& prompt) = 0;

 protected:
  /// An event as a session shows it.
  struct Shown {
    EventKind kind = EventKind::kCleared;
    std::vector<std::int64_t> keys = {};  ///< by number in the session
    std::optional<std::int64_t> parent = std::nullopt;
    std::vector<std::int64_t> tokens = {};
    std::optional<std::int64_t> group = std::nullopt;
    std::optional<std::string> spec = std::nullopt;
  };
  template <class Event>
  [[nodiscard]] static Shown shown_of(const Event& event) {
    Shown shown{.kind = static_cast<EventKind>(event.kind)};
    if (event.keys) shown.keys.assign(event.keys->begin(), event.keys->end());
    if (event.tokens) shown.tokens.assign(event.tokens->begin(), event.tokens->end());
    if (event.parent && event.parent->has_value()) shown.parent = **event.parent;
    return shown;
  }
  /// Those since the last time.
  [[nodiscard]] virtual std::vector<Shown> shown_events();

  [[nodiscard]] Observation apply(const Op& op);
  [[nodiscard]] Batch end_all();
  [[nodiscard]] Batch take_events(const Prompt& of);
  [[nodiscard]] std::int64_t block_size() const { return block_size_; }

  std::unique_ptr<Session> session_;
  Probe probe_;
  std::vector<std::pair<std::int64_t, Prompt>> running_;
  std::int64_t next_request_ = 0;

 private:
  std::shared_ptr<KeyNames> names_;
  std::int64_t block_size_;
  std::map<std::int64_t, Key> keys_;  ///< by the number in the session
};

/// vLLM: `blocks` of the pool, the null block included.
[[nodiscard]] std::unique_ptr<Producer> make_blocks_producer(std::shared_ptr<KeyNames> names,
                                                             std::int64_t block_size,
                                                             std::int64_t blocks);
/// vLLM with two groups of layers over one pool: full attention, and a window of 2 blocks and a
/// token.
[[nodiscard]] std::unique_ptr<Producer> make_groups_producer(std::shared_ptr<KeyNames> names,
                                                             std::int64_t block_size,
                                                             std::int64_t blocks);
/// SGLang: pages of the pool.
[[nodiscard]] std::unique_ptr<Producer> make_radix_producer(std::shared_ptr<KeyNames> names,
                                                            std::int64_t block_size,
                                                            std::int64_t pages);

}  // namespace kvo::events
