// properties/events/ledger.hpp: what an engine holds, by counting what it announces (EV-4, EV-14).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "reference/events/contents.hpp"

namespace kvo::events {

/// The cache of one engine, as long as its stream has all that EV-15 asks of it.
class EngineLedger {
 public:
  /// Takes note of an event. `changed` gets each prefix whose copies on the device change, with
  /// their number before and after, in order.
  using Changed = std::function<void(PrefixId prefix, std::int64_t before, std::int64_t after)>;
  void apply(Contents& contents, std::int64_t block_size, const Event& event,
             const Changed& changed = nullptr);

  /// The first guarantee that the stream broke since it was empty: "G2"; empty: none.
  [[nodiscard]] const std::string& broken() const { return broken_; }
  /// Leading blocks of a prompt that it holds on the device.
  [[nodiscard]] std::int64_t held(std::span<const PrefixId> prompt) const;
  [[nodiscard]] bool holds(PrefixId prefix) const { return copies_.contains(prefix); }
  /// The prefixes that it holds, and how many copies of their last block.
  [[nodiscard]] const std::map<PrefixId, std::int64_t>& copies() const { return copies_; }
  /// The prefix that a key stands for.
  [[nodiscard]] std::optional<PrefixId> prefix_of(Key key) const;

 private:
  using Where = std::tuple<Tier, std::int64_t, Key>;

  void break_guarantee(const char* which);
  void change(PrefixId prefix, std::int64_t by, Tier tier, const Changed& changed);

  struct Named {
    PrefixId prefix = kStart;
    std::string salt = {};
    std::int64_t copies = 0;  ///< in all tiers and groups
  };
  std::map<Key, Named> keys_;
  std::map<Where, std::int64_t> counts_;
  std::map<PrefixId, std::int64_t> copies_;
  std::map<std::int64_t, bool> main_;  ///< groups whose kind is known
  std::string broken_;
};

}  // namespace kvo::events
