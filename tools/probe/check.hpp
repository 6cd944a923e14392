// tools/probe/check.hpp: sends the probe's texts to an engine, and says what a wrong token is due
// to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
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
  std::optional<std::size_t> plan_number = std::nullopt;  ///< only this plan, counted from 0
  /// Each request is also sent without sharing. Only what differs from that is a fault of memory.
  bool control = false;
  std::size_t shrink_attempts = 150;  ///< smaller plans that are tried
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
  std::string plan;           ///< its kind
  std::uint64_t plan_number = 0;
  std::uint64_t token = 0;  ///< the first wrong one, counted from 0
  std::uint32_t want = 0;
  std::uint32_t got = 0;
  Cause cause = Cause::kNeither;
  std::string fault;              ///< of probe_faults(): that gives these tokens; empty: none does
  std::vector<std::string> also;  ///< other faults that give them, too
  std::string evidence;           ///< what "request R, token T" begins
};
BOOST_DESCRIBE_STRUCT(WrongAnswer, (),
                      (request, plan, plan_number, token, want, got, cause, fault, also, evidence))

/// A request of a shrunk plan.
struct ShrunkRequest {
  std::uint64_t wave = 0;  ///< requests of one wave are sent at once
  ProbeTokens prompt;
  std::uint64_t tokens = 0;                         ///< that it generates
  std::optional<std::uint64_t> dropped_after = {};  ///< tokens; absent: it gets the whole answer
};
BOOST_DESCRIBE_STRUCT(ShrunkRequest, (), (wave, prompt, tokens, dropped_after))

/// A fault of probe_faults().
struct FaultCount {
  std::string fault;
  std::uint64_t requests = 0;  ///< whose answers it would change
  std::uint64_t named = 0;     ///< of the wrong answers shown: those that it gives
};
BOOST_DESCRIBE_STRUCT(FaultCount, (), (fault, requests, named))

/// Cells of one layer and head at the positions `first` to `last`, of all requests.
struct CellCount {
  std::uint64_t layer = 0;
  std::uint64_t head = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t cells = 0;
  std::uint64_t read = 0;
};
BOOST_DESCRIBE_STRUCT(CellCount, (), (layer, head, first, last, cells, read))

struct ProbeReport {
  std::uint64_t requests = 0;  ///< with an answer
  std::uint64_t tokens = 0;    ///< of these answers
  std::uint64_t telling = 0;   ///< requests that a fault of reuse would have changed
  std::uint64_t cells = 0;     ///< (layer, head, row) that there were
  std::uint64_t cells_read = 0;
  std::vector<FaultCount> faults;
  std::vector<CellCount> coverage;
  std::uint64_t wrong_requests = 0;
  std::uint64_t memory = 0;      ///< of these: wrong by memory
  std::uint64_t arithmetic = 0;  ///< by arithmetic
  std::uint64_t neither = 0;
  std::optional<std::uint64_t> control_wrong = std::nullopt;  ///< requests wrong without sharing
  std::vector<WrongAnswer> wrong;                             ///< the first 20
  /// With values that the engine does not know, a request of the last wave is wrong, as the first
  /// wrong answer of cause memory was. Empty: this does not repeat.
  std::vector<ShrunkRequest> shrunk;
  std::uint64_t failed_requests = 0;  ///< without an answer
  std::string failure;                ///< the first one, in words
  std::uint64_t sent = 0;             ///< in all, with those of explaining and shrinking
  std::uint64_t retried = 0;          ///< of these, because the engine was busy
  std::uint64_t dropped = 0;          ///< of these, before the whole answer had come
  std::vector<std::string> skipped;   ///< what was not sent and why
};
BOOST_DESCRIBE_STRUCT(ProbeReport, (),
                      (requests, tokens, telling, cells, cells_read, faults, coverage,
                       wrong_requests, memory, arithmetic, neither, control_wrong, wrong, shrunk,
                       failed_requests, failure, sent, retried, dropped, skipped))

/// What came of one plan.
struct PlanResult {
  std::size_t number = 0;
  std::string_view kind;
  std::uint64_t requests = 0;  ///< that were sent
  std::uint64_t tokens = 0;    ///< of the answers
  std::uint64_t wrong_requests = 0;
  std::uint64_t failed_requests = 0;
  std::vector<std::string_view> shown;  ///< faults that would change an answer
  std::optional<WrongAnswer> wrong;     ///< the first one
  std::string failure;                  ///< the first one
};
using PlanDone = std::function<void(const PlanResult& result)>;

/// Runs plans of the chosen kinds in turn, and calls `done` after each of them. Stops early after 8
/// requests in a row that failed.
/// Throws UsageError: there is no server, or it serves another model, draws tokens at random, lacks
///         the token that begins a text, or puts something before it.
[[nodiscard]] ProbeReport probe_engine(const ProbeOptions& options, const PlanDone& done = {});
/// The same with plans of another source, until its end.
[[nodiscard]] ProbeReport probe_engine(const ProbeOptions& options, PlanSource& plans,
                                       const PlanDone& done = {});

/// What the plans would show: the report on an engine that answers rightly. Asks no engine.
[[nodiscard]] ProbeReport probe_plans(const ProbeOptions& options);

}  // namespace kvo::tools
