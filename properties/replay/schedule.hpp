// properties/replay/schedule.hpp: requests as the steps of an engine with continuous batching.
//
// Policy, version 4. Time moves in steps. In each step the arrived requests fill free slots in
// order of arrival, of every `burst` all with the first one; then every running sequence, slot by
// slot, appends its next chunk of the prompt, or, its prompt done, one token. Every
// `draft_every`-th decode step of a sequence is speculative: it appends `draft_tokens` and takes
// back those that were rejected. A sequence is read when its prompt is done, every `read_every`
// decode steps, and at its end. When an append fails for want of room the sequence is preempted: it
// ends, and starts over once another one has ended. Of every `cancel_every` requests the last one
// is cancelled after the first chunk of its prompt, if there are more.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <boost/describe/class.hpp>

#include "reference/contract/values/random.hpp"
#include "traces/formats/request.hpp"

namespace kvo::replay {

using traces::Request;

/// Everything that the steps depend on beside the requests. All lengths in tokens.
struct SchedulePolicy {
  std::int64_t version = 4;
  std::int64_t scale = 1;          ///< lengths are divided by it, rounding up
  std::int64_t max_running = 8;    ///< slots
  std::int64_t chunk_tokens = 64;  ///< most of a prompt that one step appends
  std::int64_t draft_every = 4;    ///< decode steps from one draft to the next; 0: no drafts
  std::int64_t draft_tokens = 4;
  std::int64_t read_every = 32;    ///< decode steps from one read to the next
  std::int64_t cancel_every = 16;  ///< requests; 0: none is cancelled
  std::int64_t step_us = 20'000;   ///< microseconds of the trace that one step stands for
  std::int64_t burst = 1;          ///< requests that arrive together; 1: each when the trace says
};
BOOST_DESCRIBE_STRUCT(SchedulePolicy, (),
                      (version, scale, max_running, chunk_tokens, draft_every, draft_tokens,
                       read_every, cancel_every, step_us, burst))

/// What one sequence does in a step, in the order of the members. It either appends or ends.
struct Turn {
  std::int64_t slot = 0;
  bool draft = false;       ///< what is appended is speculative; what cannot be cut is saved first
  std::int64_t append = 0;  ///< tokens
  std::int64_t rejected = 0;  ///< of the tokens just appended, the last ones: they are taken back
  bool read = false;          ///< all rows are looked at
  bool end = false;           ///< the slot is free again
  friend bool operator==(const Turn&, const Turn&) = default;
};

/// What an engine does between two looks at its queue. Whoever carries it out takes out of it what
/// is done, sequence by sequence or as one batch; a preemption changes the rest.
struct Step {
  std::deque<std::int64_t> begins;  ///< slots that new sequences take; before all turns
  std::deque<Turn> turns;           ///< one for each running sequence, by slot

  [[nodiscard]] bool empty() const { return begins.empty() && turns.empty(); }
  friend bool operator==(const Step&, const Step&) = default;
};

/// `tokens` divided by `scale`, rounded up.
[[nodiscard]] std::int64_t scaled(std::int64_t tokens, std::int64_t scale);

/// The steps of some requests, one by one.
class Schedule {
 public:
  /// `requests` must outlive the schedule, in order of arrival. The seed decides how many drafted
  /// tokens are rejected.
  Schedule(std::span<const Request> requests, const SchedulePolicy& policy, std::uint64_t seed);

  /// Plans the next step, in place of what is left of the current one. False when every request is
  /// done; else the step is not empty.
  [[nodiscard]] bool next();
  /// What is left of the current step.
  [[nodiscard]] Step& step() { return step_; }

  /// From now on a preempted sequence that starts over has what it decoded behind its prompt, as
  /// part of it: an engine knows these tokens, and has lost their rows only.
  void keep_decoded() { keeps_decoded_ = true; }
  /// The first tokens of the prompt are there already: the slot's turn appends what follows them.
  /// Requires  the slot's sequence begins in this step, its turn has not been taken out of it, and
  ///           the prompt is longer than `tokens`.
  void skip(std::int64_t slot, std::int64_t tokens);
  /// The append of the slot's turn did not fit. The sequence is preempted, or, when no other one
  /// runs, given up: the step goes on with its end, in place of its turn.
  void preempt(std::int64_t slot);
  /// Ends the slot's sequence for good: the step goes on with its end, in place of its turn.
  void give_up(std::int64_t slot);

  [[nodiscard]] const SchedulePolicy& policy() const { return policy_; }
  /// What a slot runs in this step. Requires  it runs something.
  [[nodiscard]] const Request& running(std::int64_t slot) const;
  /// Tokens that the slot's sequence has behind its prompt, by keep_decoded. Requires  as running.
  [[nodiscard]] std::int64_t decoded_before(std::int64_t slot) const;
  /// Sequences that were preempted, and requests given up because they did not fit alone.
  [[nodiscard]] std::uint64_t preempted() const { return preempted_; }
  [[nodiscard]] std::uint64_t given_up() const { return given_up_; }

 private:
  struct Running {
    std::size_t request = 0;
    std::int64_t prompt = 0;  ///< tokens still to append
    std::int64_t answer = 0;  ///< tokens still to decode
    std::int64_t length = 0;
    std::int64_t decoded = 0;         ///< decode steps since it began
    std::int64_t decoded_before = 0;  ///< tokens of the prompt that the request's has not
    bool cancelled = false;
    bool ended = false;  ///< in this step
  };

  void admit();
  /// When the request arrives: with the first one of its burst.
  [[nodiscard]] std::int64_t arrival_us(std::size_t request) const;
  [[nodiscard]] Turn plan(std::int64_t slot, Running& sequence);
  void plan_decode(Turn& turn, Running& sequence);
  void end_now(std::int64_t slot);
  /// Null: nothing runs in the slot.
  [[nodiscard]] Running* sequence_of(std::int64_t slot);
  [[nodiscard]] bool idle() const;

  std::span<const Request> requests_;
  SchedulePolicy policy_;
  traces::Random random_;
  std::deque<std::size_t> waiting_;
  bool keeps_decoded_ = false;
  std::map<std::size_t, std::int64_t> decoded_ = {};  ///< tokens, by preempted request
  std::vector<std::optional<Running>> slots_;
  Step step_;
  std::int64_t now_us_ = 0;
  bool may_admit_ = true;  ///< false after a preemption, until a sequence has ended
  std::uint64_t preempted_ = 0;
  std::uint64_t given_up_ = 0;
};

}  // namespace kvo::replay
