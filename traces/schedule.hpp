// traces/schedule.hpp: requests as the sequence of cache actions of an engine with continuous
// batching.
//
// Policy, version 2. Time moves in steps. In each step the arrived requests fill free slots in
// order of arrival; then every running sequence, slot by slot, appends its next chunk of the
// prompt, or, its prompt done, one token. Every `draft_every`-th decode step of a sequence is
// speculative: it appends `draft_tokens` and takes back those that were rejected. A sequence is
// read when its prompt is done, every `read_every` decode steps, and at its end. When an append
// fails for want of room the sequence is preempted: it ends, and starts over once another one has
// ended. Of every `cancel_every` requests the last one is cancelled after the first chunk of its
// prompt, if there are more.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include <boost/describe/class.hpp>

#include "traces/random.hpp"
#include "traces/request.hpp"

namespace kvo::traces {

/// Everything that the actions depend on beside the requests. All lengths in tokens.
struct SchedulePolicy {
  std::int64_t version = 2;
  std::int64_t scale = 1;          ///< lengths are divided by it, rounding up
  std::int64_t max_running = 8;    ///< slots
  std::int64_t chunk_tokens = 64;  ///< most of a prompt that one step appends
  std::int64_t draft_every = 4;    ///< decode steps from one draft to the next; 0: no drafts
  std::int64_t draft_tokens = 4;
  std::int64_t read_every = 32;    ///< decode steps from one read to the next
  std::int64_t cancel_every = 16;  ///< requests; 0: none is cancelled
  std::int64_t step_us = 20'000;   ///< microseconds of the trace that one step stands for
};
BOOST_DESCRIBE_STRUCT(SchedulePolicy, (),
                      (version, scale, max_running, chunk_tokens, draft_every, draft_tokens,
                       read_every, cancel_every, step_us))

enum class ActionKind : std::uint8_t {
  kBegin,     ///< an empty sequence takes the slot
  kAppend,    ///< `tokens` more
  kMark,      ///< a draft follows: what cannot be cut is saved here
  kTruncate,  ///< back to `tokens` in all, at least those of the mark
  kRead,      ///< all rows are looked at
  kEnd,       ///< the slot is free again
  kStep,      ///< every running sequence had its turn
};

struct Action {
  ActionKind kind = ActionKind::kBegin;
  std::int64_t slot = 0;
  std::int64_t tokens = 0;
  friend bool operator==(const Action&, const Action&) = default;
};

/// `tokens` divided by `scale`, rounded up.
[[nodiscard]] std::int64_t scaled(std::int64_t tokens, std::int64_t scale);

/// The actions of some requests, one by one.
class Schedule {
 public:
  /// `requests` must outlive the schedule. The seed decides how many drafted tokens are rejected.
  Schedule(std::span<const Request> requests, const SchedulePolicy& policy, std::uint64_t seed);

  /// The next action, or nothing when every request is done.
  [[nodiscard]] std::optional<Action> next();
  /// The append that next() gave last did not fit; its sequence is preempted.
  void append_failed(std::int64_t slot);

  [[nodiscard]] const SchedulePolicy& policy() const { return policy_; }
  /// What a slot runs; it must run something.
  [[nodiscard]] const Request& running(std::int64_t slot) const;
  /// The first tokens of the slot's prompt are there already: they are not appended. To be called
  /// after its kBegin and before the next action.
  void skip(std::int64_t slot, std::int64_t tokens);
  /// Ends the slot's sequence for good.
  void give_up(std::int64_t slot);

  /// Sequences that were preempted, and requests given up because they did not fit alone.
  [[nodiscard]] std::uint64_t preempted() const { return preempted_; }
  [[nodiscard]] std::uint64_t given_up() const { return given_up_; }

 private:
  struct Running {
    std::size_t request = 0;
    std::int64_t prompt = 0;  ///< tokens still to append
    std::int64_t answer = 0;  ///< tokens still to decode
    std::int64_t length = 0;
    std::int64_t decoded = 0;  ///< decode steps so far
    bool cancelled = false;
  };

  void step();
  bool admit();
  void run(std::int64_t slot, Running& sequence);
  void decode(std::int64_t slot, Running& sequence);
  void end(std::int64_t slot);
  void push(ActionKind kind, std::int64_t slot, std::int64_t tokens = 0);
  [[nodiscard]] bool idle() const;

  std::span<const Request> requests_;
  SchedulePolicy policy_;
  Random random_;
  std::deque<std::size_t> waiting_;
  std::vector<std::optional<Running>> slots_;
  std::deque<Action> actions_;
  std::int64_t now_us_ = 0;
  std::size_t next_slot_ = 0;  ///< the slot whose turn it is within a step
  bool admitted_ = false;      ///< those that begin with this step have begun
  bool acted_ = false;         ///< somebody did something in this step
  bool may_admit_ = true;      ///< false after a preemption, until a sequence has ended
  std::uint64_t preempted_ = 0;
  std::uint64_t given_up_ = 0;
};

}  // namespace kvo::traces
