// properties/prefix/lowering.hpp: what the lowerings to caches of contract `prefix` share.
//
// Policy. A slot runs one request at a time. Its prompt has tokens by block ids
// (properties/replay/prompt_tokens.hpp), what it decodes has tokens that come once. It is looked up
// when its first turn comes, so that nothing is handed out between that and its first places; what
// was hit is not computed. Where a pool has no room the request that was let in last is preempted,
// as engines do, until there is; one that is not let in yet waits. A preempted request keeps what
// it has decoded and is looked up with it.
//
// Contents. Neither kind holds rows, so the lowering does: what is written into a place of the pool
// is a tag that stands for a token and all before it. Two requests may share a place exactly if the
// tags are the same (PX-1). As often as the schedule reads, the places of a request are asked for;
// one that holds other rows than the request's is expected to be -1, so that every subject, the
// reference too, fails there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "properties/replay/engine.hpp"
#include "properties/replay/prompt_tokens.hpp"
#include "reference/prefix/cache.hpp"

namespace kvo::prefix {

/// The parts of lowerings().
[[nodiscard]] std::vector<replay::Lowering> blocks_lowerings();
[[nodiscard]] std::vector<replay::Lowering> radix_lowerings();

/// Labels of cases. @{
inline constexpr std::string_view kHit = "prompt hit in part";
inline constexpr std::string_view kEvicted = "places of another request taken";
inline constexpr std::string_view kWaits = "request not let in for want of room";
inline constexpr std::string_view kThrownOut = "running request preempted";
inline constexpr std::string_view kResumed = "preempted request hit what it had computed";
inline constexpr std::string_view kCancelled = "request cancelled amid its prompt";
/// @}

/// The tokens of a request, with the tags of their rows.
class Text {
 public:
  Text() = default;
  explicit Text(std::span<const Token> tokens) { add(tokens); }

  void add(std::span<const Token> tokens);
  [[nodiscard]] std::int64_t size() const { return std::ssize(tokens_); }
  [[nodiscard]] const Tokens& tokens() const { return tokens_; }
  /// The tag of the row at that position. Requires  position < size().
  [[nodiscard]] std::uint64_t tag(std::int64_t position) const {
    return tags_[static_cast<std::size_t>(position)];
  }

 private:
  Tokens tokens_;
  std::vector<std::uint64_t> tags_;
};

/// Which row each place of a pool holds.
class PlacedRows {
 public:
  explicit PlacedRows(std::int64_t places) : tags_(static_cast<std::size_t>(places)) {}

  /// A place that there is none of holds nothing: whoever hands it out is wrong.
  void write(std::int64_t place, std::uint64_t tag);
  /// A row that nobody asks for, as those of rejected drafts.
  void spoil(std::int64_t place) { write(place, ++spoilt_); }
  [[nodiscard]] bool holds(std::int64_t place, std::uint64_t tag) const;

 private:
  std::vector<std::uint64_t> tags_;
  std::uint64_t spoilt_ = 0;
};

/// The lowering keeps a tag for each of them.
inline constexpr std::int64_t kMostPlaces = std::int64_t{1} << 24U;
/// Tokens of a pool that is too small for all of the case. Tight: for a part of what all slots need
/// at most. Ample: for a part of what all requests of the case have. At least the longest sequence,
/// at most kMostPlaces.
[[nodiscard]] std::int64_t pool_tokens(const replay::LoweringInput& input, bool ample);

/// A draw by the case's seed: each of `count` values comes once in as many cases that follow.
[[nodiscard]] inline std::uint64_t drawn(const replay::LoweringInput& input, std::uint64_t count) {
  return input.seed % count;
}

/// The stream of a kind, turn by turn.
class PrefixStream : public replay::Engine {
 public:
  /// `name`: what the names of figures begin with.
  PrefixStream(const replay::LoweringInput& input, std::string name, std::int64_t places);

  [[nodiscard]] std::vector<Figure> figures() const override;

 protected:
  void lower(replay::Step& step) final;

  struct Running {
    std::size_t request = 0;  ///< index among the requests of the case
    bool looked_up = false;
    bool let_in = false;     ///< has places
    bool preempted = false;  ///< in this step
    bool given_up = false;
    bool looked_at = false;   ///< for the last time
    std::int64_t prompt = 0;  ///< tokens, with those decoded before it was preempted
    std::int64_t rows = 0;    ///< tokens that have places
    std::int64_t hit = 0;     ///< of these, found by the lookup
  };

  // ---- What a kind does ----

  /// The request is new.
  virtual void make(std::int64_t slot) = 0;
  /// Emits the lookup, whose result calls found().
  virtual void look_up(std::int64_t slot) = 0;
  /// Emits the request for the places of a turn, whose result calls granted() or refused().
  virtual void ask(std::int64_t slot, const replay::Turn& turn) = 0;
  /// Emits a look at all places of a request that has some.
  virtual void look(std::int64_t slot) = 0;
  /// The request leaves its slot, for good or `preempted`.
  virtual void leave(std::int64_t slot) = 0;
  /// The case ends.
  virtual void close() = 0;

  // ---- What a kind reports ----

  /// The lookup has found that many tokens. False where no lookup may find so many.
  bool found(std::int64_t slot, std::int64_t tokens);
  /// The turn has its places. Removes it from the step.
  replay::Turn granted(std::int64_t slot);
  /// The pool is too full for the turn.
  void refused(std::int64_t slot);
  /// So many units lost what they held.
  void evicted(std::int64_t units);

  [[nodiscard]] Running& at(std::int64_t slot) { return running_[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] Text& text(std::int64_t slot) { return texts_.at(at(slot).request); }
  /// What operations call the request.
  [[nodiscard]] std::int64_t number(std::int64_t slot) {
    return static_cast<std::int64_t>(at(slot).request) % kMostRequests;
  }
  [[nodiscard]] bool alone() const { return order_.size() < 2; }
  /// Whether the request of a slot has decoded all that the schedule takes for its prompt.
  [[nodiscard]] bool decodes(std::int64_t slot) { return at(slot).rows >= at(slot).prompt; }
  [[nodiscard]] replay::PromptTokens& prompts() { return prompts_; }
  [[nodiscard]] PlacedRows& placed() { return placed_; }

 private:
  void begin(std::int64_t slot);
  void end(const replay::Turn& turn);

  std::string name_;
  replay::PromptTokens prompts_;
  replay::PrefixHits hits_;
  PlacedRows placed_;
  std::vector<Running> running_;                        ///< [slot]
  std::vector<std::int64_t> order_ = {};                ///< slots that run something, as they began
  std::map<std::size_t, Text> texts_ = {};              ///< of requests that have not ended
  std::map<std::size_t, std::int64_t> preempted_ = {};  ///< tokens that had places, by request
  std::int64_t left_;                                   ///< requests that have not ended

  std::int64_t preemptions_ = 0;
  std::int64_t resumed_tokens_ = 0;
  std::int64_t resumed_hit_ = 0;
  std::int64_t evicted_ = 0;
};

/// A lowering of a kind of the contract; `cost` as of replay::cost_by.
template <class Stream, auto kConfig, bool kVariant>
[[nodiscard]] replay::Lowering prefix_lowering(const CacheKind& kind, std::string_view name,
                                               double rows_a_request, std::int64_t windows) {
  return {.kind = &kind,
          .setup = replay::setup_by<kConfig, kVariant>,
          .lower = replay::lower_by<Stream, kVariant>,
          .cost = replay::cost_by(2, rows_a_request),
          .name = name,
          .windows = windows};
}

}  // namespace kvo::prefix
