// reference/events/contents.hpp: numbers for the contents of blocks, exact in the place of hashes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "reference/events/cache.hpp"

namespace kvo::events {

/// Number of a content; of a prefix, that is a chain of contents from the start: the same numbers
/// exactly for the same contents.
using ContentId = std::int64_t;
using PrefixId = std::int64_t;
inline constexpr PrefixId kStart = -1;  ///< the empty prefix

struct Space {
  std::string lora = {};
  std::string salt = {};
  friend auto operator<=>(const Space&, const Space&) = default;
};

class Contents {
 public:
  /// The content of a block: its tokens and its namespace (EV-40).
  ContentId content(std::span<const std::int64_t> tokens, const Space& space) {
    return contents_.try_emplace({{tokens.begin(), tokens.end()}, space}, std::ssize(contents_))
        .first->second;
  }
  /// The prefix that ends with this content behind that prefix.
  PrefixId prefix(PrefixId before, ContentId content) {
    return prefixes_.try_emplace({before, content}, std::ssize(prefixes_)).first->second;
  }
  /// The contents of the whole blocks of a list of tokens; at most so many.
  std::vector<ContentId> blocks(std::span<const std::int64_t> tokens, std::int64_t block_size,
                                const Space& space, std::size_t most = ~std::size_t{0}) {
    std::vector<ContentId> all;
    const auto size = static_cast<std::size_t>(block_size);
    for (std::size_t at = 0; at + size <= tokens.size() && all.size() < most; at += size)
      all.push_back(content(tokens.subspan(at, size), space));
    return all;
  }
  /// The prefixes of a prompt, one a whole block.
  std::vector<PrefixId> prefixes(std::span<const std::int64_t> tokens, std::int64_t block_size,
                                 const Space& space, PrefixId before = kStart) {
    std::vector<PrefixId> all;
    for (const ContentId one : blocks(tokens, block_size, space))
      all.push_back(before = prefix(before, one));
    return all;
  }

 private:
  std::map<std::tuple<std::vector<std::int64_t>, Space>, ContentId> contents_;
  std::map<std::pair<PrefixId, ContentId>, PrefixId> prefixes_;
};

/// Where a copy is (EV-7); no value: the medium is unknown.
enum class Tier : std::uint8_t { kDevice, kHost, kDisk, kExternal };
[[nodiscard]] std::optional<Tier> tier_of(const Event& event);

/// Whether layers of that kind are the main ones (EV-6).
[[nodiscard]] bool is_main(const std::string& spec);

/// What is known of the groups of each engine: events of others than the main ones are dropped
/// (EV-65).
class Groups {
 public:
  /// Takes note of the kind of a group. Returns  whether the event counts.
  bool takes(const Engine& engine, const Event& event);
  /// Whether an event gave the kind of the group.
  [[nodiscard]] bool is_known(const Engine& engine, std::int64_t group) const {
    return main_.contains({engine, group});
  }
  void forget(std::int64_t worker, std::optional<std::int64_t> rank);

 private:
  std::map<std::pair<Engine, std::int64_t>, bool> main_;
};

/// Erases the entries of a map from engines that are those of a worker, or of one rank.
template <class Map>
void erase_engines(Map& map, std::int64_t worker, std::optional<std::int64_t> rank) {
  std::erase_if(map, [&](const auto& entry) {
    return entry.first.worker == worker && (!rank || entry.first.rank == *rank);
  });
}

/// Whether answers of the kind are by rank, and not pooled (EV-3).
[[nodiscard]] inline bool answers_by_rank(Form form, const Config& config) {
  if (form == Form::kLlmd) return config.identity == Identity::kEndpoint;
  if (form == Form::kInfera) return config.multiplexed;
  return form != Form::kChain;
}

/// Whether llm-d-router reads numbers of batches, and requests replays (EV-78).
[[nodiscard]] inline bool llmd_asks(const Config& config) {
  return config.asks && answers_by_rank(Form::kLlmd, config);
}

/// `blocks` as results show it.
[[nodiscard]] inline std::optional<std::int64_t> shown(std::int64_t blocks) {
  return blocks > 0 ? std::optional(blocks) : std::nullopt;
}

}  // namespace kvo::events
