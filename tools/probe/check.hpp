// tools/probe/check.hpp: sends the probe's texts to an engine, and says what a wrong token is due
// to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/contract/describe/describe.hpp"
#include "reference/probe/tables.hpp"
#include "tools/probe/engine.hpp"
#include "tools/probe/plans.hpp"

namespace kvo::tools {

/// How an engine is tested.
struct ProbeOptions : EngineOptions {
  std::size_t requests = 256;  ///< at least so many, in whole plans
  std::uint64_t seed = 1;
  PlanLimits limits;
  std::vector<std::size_t> kinds = all_plan_kinds();  ///< of plans
  probe::Shape shape;
};

/// Why an answer is wrong.
enum class Cause : std::uint8_t {
  kMemory,      ///< a fault of the cache makes these tokens, or it is right without sharing
  kArithmetic,  ///< it is as wrong without sharing
  kNeither,     ///< it is wrong in another way without sharing
};
BOOST_DESCRIBE_ENUM(Cause, kMemory, kArithmetic, kNeither)

struct WrongAnswer {
  std::uint64_t request = 0;  ///< counted from 0
  std::string plan;
  std::uint64_t token = 0;  ///< the first wrong one, counted from 0
  std::uint32_t want = 0;
  std::uint32_t got = 0;
  Cause cause = Cause::kNeither;
  std::string evidence;  ///< in words
};
BOOST_DESCRIBE_STRUCT(WrongAnswer, (), (request, plan, token, want, got, cause, evidence))

/// A request of a shrunk plan.
struct ShrunkRequest {
  ProbeTokens prompt;
  std::uint64_t tokens = 0;                         ///< that it generates
  std::optional<std::uint64_t> dropped_after = {};  ///< tokens; absent: it gets the whole answer
};
BOOST_DESCRIBE_STRUCT(ShrunkRequest, (), (prompt, tokens, dropped_after))

struct ProbeReport {
  std::uint64_t requests = 0;  ///< with an answer
  std::uint64_t tokens = 0;    ///< of these answers
  std::uint64_t telling = 0;   ///< requests that a fault of reuse would have changed
  std::uint64_t cells = 0;     ///< (layer, head, row) that there were
  std::uint64_t cells_read = 0;
  std::uint64_t wrong_requests = 0;
  std::vector<WrongAnswer> wrong;  ///< the first 20
  /// Sent one after the other, with values that the engine does not know, the last of these is
  /// wrong, as the first wrong answer of cause memory was. Empty: none of them repeats.
  std::vector<ShrunkRequest> shrunk;
  std::uint64_t failed_requests = 0;  ///< without an answer
  std::string failure;                ///< the first one, in words
  std::uint64_t sent = 0;             ///< in all, with those of explaining and shrinking
  std::uint64_t retried = 0;          ///< of these, because the engine was busy
  std::uint64_t dropped = 0;          ///< of these, before the whole answer had come
  std::vector<std::string> skipped;   ///< what was not sent and why
};
BOOST_DESCRIBE_STRUCT(ProbeReport, (),
                      (requests, tokens, telling, cells, cells_read, wrong_requests, wrong, shrunk,
                       failed_requests, failure, sent, retried, dropped, skipped))

/// Runs plans of the chosen kinds in turn. Stops early after 8 requests in a row that failed.
/// Throws UsageError: there is no server, or it serves another model, draws tokens at random, lacks
///         the token that begins a text, or puts something before it.
[[nodiscard]] ProbeReport probe_engine(const ProbeOptions& options);
/// The same with plans of another source, until its end.
[[nodiscard]] ProbeReport probe_engine(const ProbeOptions& options, PlanSource& plans);

}  // namespace kvo::tools
