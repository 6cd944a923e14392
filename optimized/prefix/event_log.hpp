// optimized/prefix/event_log.hpp: events that wait to be taken, in three lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "optimized/memory/growth.hpp"
#include "reference/prefix/cache.hpp"

namespace kvo::optimized {

/// An event has no lists of its own here, so that room can be made for many before one is told.
class EventLog {
 public:
  /// Room for so many. Throws std::bad_alloc; nothing has changed then.
  void reserve(std::size_t events, std::size_t keys, std::size_t tokens) {
    make_room(rows_, events);
    make_room(keys_, keys);
    make_room(tokens_, tokens);
  }
  /// Begins an event; keys and tokens that are added next are its own.
  void begin(prefix::EventKind kind, std::optional<prefix::Key> parent = std::nullopt) noexcept {
    rows_.push_back({kind, parent, keys_.size(), tokens_.size()});
  }
  void add_key(const prefix::Key& key) noexcept { keys_.push_back(key); }
  void add_tokens(prefix::TokensView tokens) noexcept {
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  }
  /// Whether the last event is of this kind.
  [[nodiscard]] bool last_is(prefix::EventKind kind) const {
    return !rows_.empty() && rows_.back().kind == kind;
  }
  /// Requires  a key of the last event.
  [[nodiscard]] const prefix::Key& last_key() const { return keys_.back(); }

  /// All events, which are no longer in the log: valid until the next take. Their lists take the
  /// memory of those before. Throws std::bad_alloc; nothing has changed then.
  [[nodiscard]] std::span<const prefix::Event> take() {
    if (taken_.size() < rows_.size()) taken_.resize(rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Row next =
          i + 1 < rows_.size() ? rows_[i + 1] : Row{{}, {}, keys_.size(), tokens_.size()};
      const auto part = [](const auto& list, std::size_t begin, std::size_t end) {
        return std::span(list).subspan(begin, end - begin);
      };
      const auto keys = part(keys_, rows_[i].first_key, next.first_key);
      const auto tokens = part(tokens_, rows_[i].first_token, next.first_token);
      prefix::Event& event = taken_[i];
      event.kind = rows_[i].kind;
      event.keys.assign(keys.begin(), keys.end());
      event.parent = rows_[i].parent;
      event.tokens.assign(tokens.begin(), tokens.end());
    }
    const auto taken = std::span<const prefix::Event>(taken_).first(rows_.size());
    rows_.clear();
    keys_.clear();
    tokens_.clear();
    return taken;
  }

 private:
  struct Row {
    prefix::EventKind kind = prefix::EventKind::kCleared;
    std::optional<prefix::Key> parent = std::nullopt;
    std::size_t first_key = 0;
    std::size_t first_token = 0;
  };
  std::vector<Row> rows_;
  std::vector<prefix::Key> keys_;
  prefix::Tokens tokens_;
  std::vector<prefix::Event> taken_;  ///< the last ones that were taken come first
};

}  // namespace kvo::optimized
