// reference/prefix/keys_session.hpp: what the sessions share: checks of arguments, and keys as logs
// show them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reference/contract/subject/named_quirks.hpp"
#include "reference/prefix/blocks.hpp"
#include "reference/prefix/cache.hpp"

namespace kvo::prefix {

/// Errors  kPrecondition: below 0 or beyond kMostTokens.
[[nodiscard]] inline Status check_count(const char* name, std::int64_t value) {
  if (value >= 0 && value <= kMostTokens) return {};
  return fail(Code::kPrecondition, std::string(name) + ": " + std::to_string(value));
}

/// Errors  kOutOfRange: a number of the list is outside [begin, end).
[[nodiscard]] inline Status check_numbers(const char* name, IdsView numbers, std::int64_t begin,
                                          std::int64_t end) {
  for (const std::int64_t number : numbers)
    if (number < begin || number >= end)
      return fail(Code::kOutOfRange, std::string(name) + ": " + std::to_string(number));
  return {};
}

/// Ids keys 0, 1, 2 .. in the order in which a case first shows them (PX-10, PX-77). Only what
/// an operation that succeeded has returned is numbered.
class KeyNumbers {
 public:
  std::int64_t number(const Key& key) {
    const auto [known, is_new] = numbers_.try_emplace(key, std::ssize(keys_));
    if (is_new) keys_.push_back(key);
    return known->second;
  }
  [[nodiscard]] Ids numbers(std::span<const Key> keys) {
    Ids all;
    for (const Key& key : keys) all.push_back(number(key));
    return all;
  }
  /// The key of a number, if there is one.
  [[nodiscard]] std::optional<Key> key(std::int64_t number) const {
    if (number < 0 || number >= std::ssize(keys_)) return std::nullopt;
    return keys_[static_cast<std::size_t>(number)];
  }
  /// Events as logs show them; the parent of one is numbered before its keys.
  [[nodiscard]] std::vector<ShownEvent> shown(std::span<const Event> events,
                                              std::int64_t block_size) {
    std::vector<ShownEvent> all;
    for (const Event& event : events) {
      ShownEvent& one = all.emplace_back(ShownEvent{.kind = event.kind});
      if (event.kind == EventKind::kCleared) continue;
      if (event.kind == EventKind::kStored) {
        one.parent.emplace();
        if (event.parent) one.parent = number(*event.parent);
        one.tokens = event.tokens;
        one.block_size = block_size;
      }
      one.keys = numbers(event.keys);
    }
    return all;
  }

 private:
  std::map<Key, std::int64_t> numbers_;
  std::vector<Key> keys_;
};

/// A subject of a kind whose caches come from `make`. `checked` says what they are made with, of a
/// config and quirks, or why not. A Session is made from that and the cache.
template <class Session, class Config, class Make, class Checked>
[[nodiscard]] Subject keyed_subject(const CacheKind& kind, std::string variant, std::string doc,
                                    Make make, Checked checked) {
  const auto open = [make = std::move(make),
                     checked](const Setup& setup) -> Result<std::unique_ptr<kvo::Session>> {
    const auto quirks = quirks_of<Quirk>(setup, kQuirkRows);
    if (!quirks) return quirks.error();
    const auto options = checked(setup.config_as<Config>(), *quirks);
    if (!options) return options.error();
    auto cache = make(*options, *quirks);
    if (!cache) return cache.error();
    return std::make_unique<Session>(*options, std::move(*cache));
  };
  return {.kind = &kind, .variant = std::move(variant), .doc = std::move(doc), .open = open};
}

}  // namespace kvo::prefix
