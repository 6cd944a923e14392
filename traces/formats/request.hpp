// traces/formats/request.hpp: one request of a trace, whatever the format it was written in.
//
// Words    block   `block_size` tokens of a prompt (512 in Mooncake's traces); the last may be
//                  partial. Equal ids mean the same prompt up to and including that block.
#pragma once

#include <cstdint>
#include <vector>

#include <boost/describe/class.hpp>

namespace kvo::traces {

/// Largest prompt or answer that a trace may claim, in tokens; more is taken for a damaged file.
inline constexpr std::int64_t kMaxTokens = std::int64_t{1} << 40;

/// What a client asked of a service, and when.
struct Request {
  /// Microseconds since the trace began; below zero only where rows with absolute stamps stand
  /// before their predecessors.
  std::int64_t arrival_us = 0;
  std::int64_t input_tokens = 0;   ///< prompt, 0 to kMaxTokens
  std::int64_t output_tokens = 0;  ///< answer, 0 to kMaxTokens
  /// One a block of the prompt, in order; none if the format has no ids.
  std::vector<std::uint64_t> block_ids = {};
  std::uint64_t line = 0;  ///< where it stood in its file, counted from 1

  friend bool operator==(const Request&, const Request&) = default;
};

BOOST_DESCRIBE_STRUCT(Request, (), (arrival_us, input_tokens, output_tokens, block_ids, line))

}  // namespace kvo::traces
