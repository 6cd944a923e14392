// tools/watch/wire.hpp: batches of KV-cache events as engines publish them (EV-20, EV-25).
//
// A message has three frames: topic, number of the batch (8 bytes, big endian), payload. The
// payload is msgpack: [time, events, rank or nil]. An event is a map with `type`, or an array whose
// first element is the type, and whose others are the fields in order. Source   vLLM
// vllm/distributed/kv_events.py (0.12.0 arrays, 0.33.0 maps); SGLang
//          sglang/srt/disaggregation/kv_events.py (0.5.23).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>

#include "reference/events/cache.hpp"

namespace kvo::tools {

/// Names of blocks, numbered in the order of appearance. An engine's names are 64 bits, signed or
/// not, or bytes, of which the last 8 count.
class KeyNumbers {
 public:
  /// No more names than this are distinguished: memory stays bounded.
  static constexpr std::size_t kMost = std::size_t{1} << 22U;

  /// Nothing where there are too many.
  [[nodiscard]] std::optional<events::Key> number(std::uint64_t name);
  [[nodiscard]] std::size_t size() const { return numbers_.size(); }

 private:
  std::unordered_map<std::uint64_t, events::Key> numbers_;
};

struct WireBatch {
  std::int64_t rank = 0;
  events::Batch events = {};
  bool maps = false;                  ///< whether an event is a map; else all are arrays
  std::set<std::string> unread = {};  ///< fields that are not read: "BlockStored.colour"
};

/// The batch of a payload, or what is wrong with it: "events[2].block_size: -1: at least 1".
/// Events after the first wrong one are not read: such a batch is dropped whole.
[[nodiscard]] std::variant<WireBatch, std::string> decoded(std::string_view payload,
                                                           KeyNumbers& keys);

/// The number of a batch, from its frame; nothing where that has not 8 bytes. -1 ends a replay.
[[nodiscard]] std::optional<std::int64_t> batch_number(std::string_view frame);
/// Such a frame.
[[nodiscard]] std::string number_frame(std::int64_t number);

}  // namespace kvo::tools
