// reference/events/literal.hpp: the literal follower (EV-32), which the law compares others with.
//
// In profile documented every kind is this one. It counts copies by engine, tier and group, applies
// a batch at most once, and sees a restart and a gap in the numbers. Kind `chain` is this one in
// profile original, too, without counts and with pooled ranks (EV-40 to EV-44).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "reference/events/contents.hpp"

namespace kvo::events {

class LiteralFollower final : public Follower {
 public:
  LiteralFollower(Form form, const Config& config, QuirkSet<Quirk> quirks);

  [[nodiscard]] Status apply(const Engine& engine, const Event& event) override;
  [[nodiscard]] Delivered deliver(const Engine& engine, std::int64_t seq, const Batch& batch,
                                  const Replay& replay) override;
  void leave(std::int64_t worker, std::optional<std::int64_t> rank) override;
  [[nodiscard]] Matches query(const Prompt& prompt) override;
  [[nodiscard]] Result<std::int64_t> size() const override;
  [[nodiscard]] Result<std::int64_t> handover() override;

 private:
  /// A key: what it stands for, and its copies by tier and group.
  struct Place {
    PrefixId prefix = kStart;
    std::string salt = {};
    std::map<std::pair<Tier, std::int64_t>, std::int64_t> copies = {};
  };
  struct Holder {
    std::map<Key, Place> keys;
    std::map<std::pair<Tier, PrefixId>, std::int64_t> held;  ///< keys that stand for it there
  };

  [[nodiscard]] bool has(Quirk quirk) const { return quirks_.has(quirk); }
  [[nodiscard]] Engine owner_of(const Engine& engine) const;
  [[nodiscard]] Status stored(Holder& holder, const Event& event, Tier tier);
  [[nodiscard]] Status removed(Holder& holder, const Event& event, Tier tier);
  void add(Holder& holder, Key key, PrefixId prefix, const std::string& salt,
           std::pair<Tier, std::int64_t> where);
  static void release(Holder& holder, std::pair<Tier, PrefixId> what);
  void drop(Holder& holder, std::map<Key, Place>::iterator key,
            std::pair<Tier, std::int64_t> where);
  void apply_batch(const Engine& engine, const Batch& batch);
  void empty(const Engine& engine);

  Form form_;
  Config config_;
  QuirkSet<Quirk> quirks_;
  Contents contents_;
  Groups groups_;
  std::map<Engine, Holder> holders_;
  std::map<Engine, std::int64_t> cursors_;  ///< number of the last batch of each engine
};

}  // namespace kvo::events
