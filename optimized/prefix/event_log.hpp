// optimized/prefix/event_log.hpp: events that wait to be taken, in three lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

  /// All events, which are gone then.
  [[nodiscard]] std::vector<prefix::Event> take() {
    std::vector<prefix::Event> told;
    told.reserve(rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const bool last = i + 1 == rows_.size();
      const auto end = [&](std::size_t all, std::size_t Row::*from) {
        return static_cast<std::ptrdiff_t>(last ? all : rows_[i + 1].*from);
      };
      const auto keys = keys_.begin();
      const auto tokens = tokens_.begin();
      told.push_back({rows_[i].kind,
                      {keys + static_cast<std::ptrdiff_t>(rows_[i].first_key),
                       keys + end(keys_.size(), &Row::first_key)},
                      rows_[i].parent,
                      {tokens + static_cast<std::ptrdiff_t>(rows_[i].first_token),
                       tokens + end(tokens_.size(), &Row::first_token)}});
    }
    rows_.clear();
    keys_.clear();
    tokens_.clear();
    return told;
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
};

}  // namespace kvo::optimized
