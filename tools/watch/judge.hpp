// tools/watch/judge.hpp: what a stream of events contradicts by itself, without the truth.
//
// Laws G1 to G6 of EV-15 are judged as far as they show in the stream. Whoever joins a stream late
// does not know the blocks that were stored before: what hangs on these is counted, not judged.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/watch/wire.hpp"

namespace kvo::tools {

/// Something that was found in a stream, how often, and where first.
struct StreamFinding {
  std::string law;     ///< "G3"; empty: none of EV-15
  std::string what;    ///< "tokens do not fit keys"
  bool fault = false;  ///< of the producer; else of the network, or a remark
  std::int64_t count = 0;
  std::int64_t worker = 0;
  std::int64_t batch = 0;  ///< number of the first one
  std::string first = {};  ///< "key 4: 3 tokens, block_size 16"
};
BOOST_DESCRIBE_STRUCT(StreamFinding, (), (law, what, fault, count, worker, batch, first))

/// What became of the number of a batch.
enum class Arrival : std::uint8_t {
  kNext,      ///< it is the first one, or follows the last
  kGap,       ///< batches before it are missing
  kRepeated,  ///< it came before
  kRestart,   ///< the numbering began again: the engine is a new one, and empty
};

class StreamJudge {
 public:
  /// `block_size`: the size that a follower expects; none: that of the first event.
  explicit StreamJudge(std::optional<std::int64_t> block_size) : block_size_(block_size) {}

  /// What the number says, before the batch is applied. `batch`: to tell a restart.
  [[nodiscard]] Arrival arrival(const events::Engine& engine, std::int64_t number,
                                const WireBatch& batch) const;
  /// The first number that is missing before this one. Requires  arrival is kGap.
  [[nodiscard]] std::int64_t first_missing(const events::Engine& engine) const {
    return engines_.at(engine).last + 1;
  }
  /// Judges a batch and applies it, unless it is repeated. `replayed`: it is an answer to a
  /// request.
  void apply(const events::Engine& engine, std::int64_t number, const WireBatch& batch,
             bool replayed);
  /// A message that is no batch.
  void undecodable(std::int64_t worker, std::int64_t number, const std::string& problem);
  /// The publisher had a replay that begins with its first batch, so nothing is unknown.
  void joined_from_start(const events::Engine& engine) { engines_[engine].from_start = true; }

  /// How many of these blocks the engine holds, from the first one on.
  [[nodiscard]] std::int64_t held_of(const events::Engine& engine,
                                     const std::vector<events::Key>& keys) const;
  /// Whether all that it announced is of one group of layers, and on the device. Else it may have
  /// to compute again what some group or tier holds.
  [[nodiscard]] bool is_plain(const events::Engine& engine) const {
    return engines_.at(engine).plain;
  }
  /// What the engine reuses is not what it announced, or it does not say so.
  void reuses(const events::Engine& engine, bool otherwise, const std::string& what);

  [[nodiscard]] const std::vector<StreamFinding>& findings() const { return findings_; }

  /// What is believed of an engine.
  struct Held {
    std::int64_t batches = 0;
    std::int64_t events = 0;
    std::int64_t first = 0;  ///< number of the first batch
    std::int64_t last = -1;
    bool maps = false;
    std::size_t keys = 0;         ///< that are held
    std::size_t more_copies = 0;  ///< of these, with two copies or more (EV-14)
  };
  [[nodiscard]] std::map<events::Engine, Held> held() const;
  [[nodiscard]] std::optional<std::int64_t> block_size() const { return block_size_; }

 private:
  struct Key {
    std::int64_t copies = 0;
    std::optional<events::Key> parent = std::nullopt;
    std::int64_t children = 0;  ///< that are held
    std::uint64_t content = 0;
    bool placed = false;  ///< its content is known
  };
  struct Engine {
    std::int64_t batches = 0;
    std::int64_t events = 0;
    std::int64_t first = 0;
    std::int64_t last = -1;
    bool maps = false;
    bool from_start = false;
    bool plain = true;
    std::unordered_map<events::Key, Key> keys = {};
    std::map<std::int64_t, std::string> groups = {};  ///< kinds by group
  };
  struct Now {
    events::Engine engine;
    std::int64_t batch;
  };

  void find(const Now& now, const std::string& law, const std::string& what, bool fault,
            const std::string& first, std::int64_t count = 1);
  void stored(Engine& engine, const Now& now, const events::Event& event);
  void removed(Engine& engine, const Now& now, const events::Event& event);
  void group_of(Engine& engine, const Now& now, const events::Event& event);

  std::optional<std::int64_t> block_size_;
  std::map<events::Engine, Engine> engines_ = {};
  std::vector<StreamFinding> findings_ = {};
};

}  // namespace kvo::tools
