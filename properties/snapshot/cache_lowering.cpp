// Requests as operations of snapshot.kv, .rotating and .recurrent: slots share one cache, which
// holds one sequence.
//
// Policy. When another slot has its turn, the sequence in the cache is put away in a snapshot, the
// cache is freed, and the other one is brought back. `kv` puts away what it has not put away yet,
// so that a sequence is a chain of snapshots, of which the last two are merged while the later one
// is as long as the other; the others take one of the whole and close the one before. A draft is
// taken back by restore without a snapshot where the rules allow that: always in `kv`, in a ring
// until it is full. Otherwise a snapshot taken before the draft is restored, and the accepted
// tokens are appended anew. A sequence that begins in the cache gets a new one, elsewhere nothing
// until its first append. One that ends closes its snapshots; `kv` first splits the last one and
// looks at what the halves bring back. The window of a ring is half of what the mean sequence
// holds. A ring that was full shows its tokens in an order that depends on how they came, so that
// only the reference says what must be seen.

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/replay/engine.hpp"
#include "properties/snapshot/lowering.hpp"
#include "reference/snapshot/operations.hpp"

namespace kvo::snapshot {
namespace {

using replay::LoweringInput;

constexpr std::string_view kPutAway = "sequence put away and brought back";
constexpr std::string_view kMerged = "snapshots merged";
constexpr std::string_view kSplit = "snapshot split";
constexpr std::string_view kRewound = "draft taken back without a snapshot";
constexpr std::string_view kFromSnapshot = "draft taken back by a snapshot";
constexpr std::string_view kFull = "ring full";

/// What the lowerings share. A kind says how tokens are appended, what a read must show, and which
/// drafts need a snapshot.
class CacheStream : public replay::SequenceOps {
 public:
  explicit CacheStream(const LoweringInput& input)
      : SequenceOps(input), sequences_(static_cast<std::size_t>(slots())) {
    emit(New{});
  }

 protected:
  using Rows = std::span<const replay::TaggedRow>;

  /// A snapshot by its number, and its tokens.
  struct Parked {
    std::int64_t handle;
    std::int64_t from;
    std::int64_t to;
    [[nodiscard]] std::int64_t tokens() const { return to - from; }
  };
  struct Sequence {
    std::int64_t longest = 0;                    ///< that it was
    std::vector<Parked> parked = {};             ///< each begins where the one before ends
    std::optional<Parked> saved = std::nullopt;  ///< before the draft
  };

  /// Emits what adds the last rows to the cache, which has `rows` then.
  virtual void add(Rows rows, std::size_t before) = 0;
  /// Emits a look at all that the cache holds.
  virtual void show(Rows rows, std::int64_t longest) = 0;
  /// Whether tokens of a draft that begins now can be taken back without a snapshot.
  [[nodiscard]] virtual bool rewinds(std::int64_t length) const = 0;
  /// Whether a snapshot may hold the last tokens alone.
  [[nodiscard]] virtual bool in_parts() const { return false; }
  /// Tags of a token.
  [[nodiscard]] virtual std::int64_t tags() const { return width(); }

  void begin(std::int64_t slot) final {
    if (current_ == slot) emit(New{});
    at(slot) = {};
  }
  void append(std::int64_t slot, std::int64_t tokens) final {
    enter(slot);
    const std::size_t before = rows(slot).size();
    for (std::int64_t token = 0; token < tokens; ++token) {
      rows(slot).push_back({last_tag_ + 1, static_cast<std::uint64_t>(policy().head_dim)});
      last_tag_ += static_cast<std::uint64_t>(tags());
    }
    at(slot).longest = std::max(at(slot).longest, length(slot));
    add(rows(slot), before);
  }
  void save(std::int64_t slot) final {
    enter(slot);
    Sequence& own = at(slot);
    if (own.saved) emit(Close{own.saved->handle});
    own.saved.reset();
    rewinds_ = rewinds(length(slot));
    draft_at_ = length(slot);
    if (!rewinds_ && draft_at_ > 0) own.saved = {taken(0), 0, draft_at_};
  }
  void reject(std::int64_t slot, std::int64_t tokens) final {
    const std::int64_t left = length(slot) - tokens;
    cut(slot, rewinds_ ? left : draft_at_);
    if (rewinds_) {
      reach(kRewound);
      return restore(std::nullopt, left);
    }
    if (const auto& saved = at(slot).saved) {
      reach(kFromSnapshot);
      restore(saved->handle, saved->to);
    } else {
      emit(Free{});
    }
    if (left > draft_at_) append(slot, left - draft_at_);
  }
  void read(std::int64_t slot) final {
    enter(slot);
    show(rows(slot), at(slot).longest);
  }
  void end(std::int64_t slot) final {
    enter(slot);
    Sequence& own = at(slot);
    emit(Offset{}, {length(slot)});
    if (in_parts() && !own.parked.empty()) {
      put_away(slot);
      split_last(own);
      bring_back(own);
      show(rows(slot), own.longest);
    }
    for (const Parked& one : own.parked) emit(Close{one.handle});
    if (own.saved) emit(Close{own.saved->handle});
    own = {};
    cut(slot, 0);
  }

 private:
  Sequence& at(std::int64_t slot) { return sequences_[static_cast<std::size_t>(slot)]; }

  // Numbers are given in order, one to each snapshot that holds something (MR-1).
  std::int64_t taken(std::int64_t from) {
    emit(Take{from});
    return ++last_handle_;
  }
  void restore(Nullable<std::int64_t> handle, std::int64_t target) {
    emit(Restore{handle, target}, {true, target});
  }

  void enter(std::int64_t slot) {
    if (current_ == slot) return;
    if (current_ >= 0) put_away(current_);
    current_ = slot;
    if (!at(slot).parked.empty()) reach(kPutAway);
    bring_back(at(slot));
  }

  void bring_back(const Sequence& sequence) {
    emit(Free{});
    for (const Parked& one : sequence.parked) restore(one.handle, one.to);
  }

  void put_away(std::int64_t slot) {
    std::vector<Parked>& parked = at(slot).parked;
    const std::int64_t from = in_parts() && !parked.empty() ? parked.back().to : 0;
    if (length(slot) == from) return;
    if (!in_parts())
      for (const Parked& one : std::exchange(parked, {})) emit(Close{one.handle});
    parked.push_back({taken(from), from, length(slot)});
    while (parked.size() > 1 && parked.back().tokens() >= parked[parked.size() - 2].tokens()) {
      reach(kMerged);
      const Parked last = parked.back();
      parked.pop_back();
      emit(Merge{parked.back().handle, last.handle});
      parked.back() = {++last_handle_, parked.back().from, last.to};
    }
  }

  // The halves take its place.
  void split_last(Sequence& sequence) {
    const Parked whole = sequence.parked.back();
    if (whole.tokens() < 2) return;
    reach(kSplit);
    const std::int64_t middle = whole.from + whole.tokens() / 2;
    emit(Split{whole.handle, middle});
    sequence.parked.back() = {++last_handle_, whole.from, middle};
    sequence.parked.push_back({++last_handle_, middle, whole.to});
  }

  std::vector<Sequence> sequences_;
  std::int64_t current_ = -1;  ///< slot whose sequence is in the cache
  std::int64_t draft_at_ = 0;  ///< tokens before the draft
  bool rewinds_ = false;       ///< it is taken back without a snapshot
  std::int64_t last_handle_ = 0;
  std::uint64_t last_tag_ = 0;
};

ShowState::Returns state_with(std::pair<Tensor, Tensor> tensors) {
  return {std::vector<Nullable<Tensor>>{std::move(tensors.first), std::move(tensors.second)}};
}

// ---- kv, rotating ----

/// Rows are tags by token, head and element.
class RowsStream final : public CacheStream {
 public:
  explicit RowsStream(const LoweringInput& input, bool ring = false) : CacheStream(input) {
    if (ring) window_ = ring_window(input);
  }

 protected:
  [[nodiscard]] Shape shape(std::int64_t tokens) const override {
    return {1, policy().num_heads, tokens, policy().head_dim};
  }
  [[nodiscard]] std::int64_t heads() const override { return policy().num_heads; }

  void add(Rows rows, std::size_t before) override {
    auto [k, v] = tensors(rows.subspan(before));
    emit(Update{.k = std::move(k), .v = std::move(v)});
    if (window_ && std::ssize(rows) > *window_) reach(kFull);
  }
  void show(Rows rows, std::int64_t longest) override {
    if (rows.empty() || longest > window_.value_or(longest)) return emit(ShowState{});
    emit(ShowState{}, state_with(tensors(rows)));
  }
  [[nodiscard]] bool rewinds(std::int64_t length) const override {
    return !window_ || length + input().schedule.draft_tokens <= *window_;
  }
  [[nodiscard]] bool in_parts() const override { return !window_; }

 private:
  std::optional<std::int64_t> window_ = std::nullopt;  ///< absent: no ring
};

// ---- recurrent ----

constexpr std::int64_t kConvTail = 3;
constexpr std::int64_t kHeadVDim = 2;

/// The state after a token is that token's tags.
class StateStream final : public CacheStream {
 public:
  using CacheStream::CacheStream;

 protected:
  void add(Rows rows, std::size_t before) override {
    auto [conv, delta] = state(rows);
    emit(ConvState{});
    emit(DeltaState{});
    emit(SetConvState{std::move(conv)});
    emit(SetDeltaState{std::move(delta)});
    emit(Advance{std::ssize(rows.subspan(before))}, {std::ssize(rows)});
  }
  void show(Rows rows, std::int64_t /*longest*/) override {
    if (rows.empty()) return emit(ShowState{});
    emit(ShowState{}, state_with(state(rows)));
  }
  [[nodiscard]] bool rewinds(std::int64_t /*length*/) const override { return false; }
  [[nodiscard]] std::int64_t tags() const override {
    return kConvTail * policy().head_dim + kHeadVDim * width();
  }

 private:
  [[nodiscard]] std::pair<Tensor, Tensor> state(Rows rows) const {
    std::uint64_t next = rows.back().first;
    std::pair<Tensor, Tensor> made{
        make_tensor({1, kConvTail, policy().head_dim}),
        make_tensor({1, policy().num_heads, kHeadVDim, policy().head_dim})};
    for (Tensor* side : {&made.first, &made.second})
      for (float& cell : side->floats()) cell = tag(next++);
    return made;
  }
};

RowsConfig ring_config(const LoweringInput& input) {
  return {.max_size = ring_window(input)};
}
RecurrentConfig state_config(const LoweringInput& input) {
  return {.sizes = {.conv_tail = kConvTail,
                    .conv_dim = input.policy.head_dim,
                    .num_v_heads = input.policy.num_heads,
                    .head_v_dim = kHeadVDim,
                    .head_k_dim = input.policy.head_dim}};
}

}  // namespace

std::int64_t ring_window(const LoweringInput& input) {
  constexpr std::int64_t kLeast = 4;
  return std::max(kLeast, input.tokens() / std::ssize(input.requests) / 2);
}

std::vector<replay::Lowering> lowerings() {
  using replay::lower_by;
  using replay::setup_by;
  // A turn puts away, brings back, adds and looks.
  const auto cost = replay::cost_by(2, 1e4);
  std::vector<replay::Lowering> all{
      {&kv_kind(), replay::no_setup, lower_by<RowsStream>, cost},
      {&rotating_kind(), setup_by<ring_config>, lower_by<RowsStream, true>, cost},
      {&recurrent_kind(), setup_by<state_config>, lower_by<StateStream>, cost}};
  for (const replay::Lowering& trie : trie_lowerings()) all.push_back(trie);
  return all;
}

}  // namespace kvo::snapshot
