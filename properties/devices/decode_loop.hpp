// properties/devices/decode_loop.hpp: decode loops from a graph, beside the reference that takes
// the same steps one by one.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "cuda/decode/decode_graph.hpp"
#include "reference/contract/device/simulated/watched_subject.hpp"
#include "reference/contract/values/quirk.hpp"

namespace kvo::devices {

/// What is captured, and how.
struct DecodeLoop {
  enum class Cache : std::uint8_t { kDevice, kTensor, kHalfTensor };
  std::string name;  ///< for the tests
  Cache cache = Cache::kDevice;
  Profile profile = Profile::kDocumented;
  cuda::DecodeGraph::Launches launches = cuda::DecodeGraph::Launches::kEach;
  friend std::ostream& operator<<(std::ostream& out, const DecodeLoop& loop) {
    return out << loop.name;
  }
};
/// All combinations.
[[nodiscard]] std::vector<DecodeLoop> decode_loops();

/// Captures a decode step of a cache on the device and plays a random script: replays, also past
/// max_seq_len, steps and rows of the host between them, truncate, reset, sync_counter, and the end
/// of the cache while the graph lives. Expects counters, lengths and contents of the reference, and
/// no report, in each of 100 scripts, on the device that `open` opens for it. What is wrong fails
/// the GoogleTest test that calls it. Returns the replays.
std::int64_t expect_decode_loops_to_agree(
    const DecodeLoop& loop, const std::function<Result<WatchedDevice>(std::uint64_t seed)>& open);

}  // namespace kvo::devices
