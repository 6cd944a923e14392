// tools/watch/sequences.hpp: the sequences of tokens whose blocks a stream of events names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "reference/events/cache.hpp"

namespace kvo::tools {

class Sequences {
 public:
  /// No more tokens than this are known: memory stays bounded.
  static constexpr std::int64_t kMostTokens = std::int64_t{1} << 24U;

  /// A sequence up to the end of a block.
  struct Whole {
    std::vector<events::Key> keys = {};  ///< its blocks, the first one first
    std::vector<std::int64_t> tokens = {};
    std::optional<std::string> lora = std::nullopt;
    std::optional<std::string> salt = std::nullopt;
  };

  /// Takes note of the blocks that are stored. Those of another size, or without all their tokens,
  /// stay unknown.
  void note(const events::Batch& batch, std::int64_t block_size);
  /// The sequence that ends with a block; nothing if not all its blocks are known, or more than
  /// 4,096.
  [[nodiscard]] std::optional<Whole> up_to(events::Key last) const;

 private:
  struct Place {
    std::optional<events::Key> before = std::nullopt;
    std::vector<std::int64_t> tokens = {};
    std::optional<std::string> lora = std::nullopt;
    std::optional<std::string> salt = std::nullopt;
  };

  std::unordered_map<events::Key, Place> places_;
  std::int64_t tokens_ = 0;
};

}  // namespace kvo::tools
