// reference/events/infera.hpp: kind `infera`: for each worker a set of chained hashes, and a map
// from the engine's keys to them (EV-80 to EV-85).
#pragma once

#include <map>
#include <optional>
#include <set>

#include "reference/events/contents.hpp"

namespace kvo::events {

class InferaFollower final : public Follower {
 public:
  InferaFollower(const Config& config, QuirkSet<Quirk> quirks);

  [[nodiscard]] Status apply(const Engine& engine, const Event& event) override;
  void leave(std::int64_t worker, std::optional<std::int64_t> rank) override;
  [[nodiscard]] Matches query(const Prompt& prompt) override;
  [[nodiscard]] Result<std::int64_t> size() const override;

 private:
  struct Holder {
    std::set<PrefixId> held;
    std::map<Key, PrefixId> keys;
    std::map<Key, std::int64_t> copies;  ///< without kOneRemovalEnds
  };

  [[nodiscard]] Engine owner_of(const Engine& engine) const;
  [[nodiscard]] Space space_of(const std::string& lora, const std::string& salt) const;
  void stored(Holder& holder, const Event& event);
  void removed(Holder& holder, const Keys& keys);

  Config config_;
  QuirkSet<Quirk> quirks_;
  Contents contents_;
  std::map<Engine, Holder> holders_;
};

}  // namespace kvo::events
