// traces/figures/generate.hpp: made-up traces of a chat service, the same for the same options
// everywhere.
//
// Clients arrive at random. Some begin a conversation behind one of a few system prompts, others
// send the next turn of one: its prompt is all that was said before and something new. Blocks that
// two prompts share have equal ids, as in Mooncake's traces.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "traces/formats/request.hpp"
#include "traces/io/trace_error.hpp"

namespace kvo::traces {

struct GenerateOptions {
  std::uint64_t seed = 1;
  std::int64_t requests = 300;             ///< 0 to 100 million
  double requests_per_second = 2;          ///< on average, 0.001 to 1 million
  std::int64_t mean_turn_tokens = 700;     ///< new in each prompt, 1 to 2^20
  std::int64_t mean_output_tokens = 250;   ///< answers, 1 to 2^20
  std::int64_t continued_percent = 60;     ///< requests that are a later turn, 0 to 100
  std::int64_t system_prompts = 4;         ///< how many are shared, 0 to 2^20
  std::int64_t mean_system_tokens = 1000;  ///< length of those, 1 to 2^20
  std::int64_t max_input_tokens = 32768;   ///< conversations end before they are longer, to 2^24
  std::int64_t block_size = 512;           ///< tokens a block, 1 to 2^20
};

/// Checks each option against its range, and the blocks of one prompt, 2^20 at most, and of all
/// system prompts, 2^24.
/// Errors   the first that is out of range, as field and value
[[nodiscard]] TraceResult<void> check(const GenerateOptions& options);

/// Makes a trace and gives its requests to `take` one by one; only what open conversations hold is
/// in memory. They are as generate says.
/// Errors   as check, and the first of `take`, which ends it
[[nodiscard]] TraceResult<void> generate_each(
    const GenerateOptions& options, const std::function<TraceResult<void>(const Request&)>& take);

/// Makes a trace: arrivals in order, in whole milliseconds; every prompt and answer has a token;
/// every prompt has ceil(input_tokens / block_size) ids; `line` counts from 1.
/// Errors   as check
[[nodiscard]] TraceResult<std::vector<Request>> generate(const GenerateOptions& options);

}  // namespace kvo::traces
