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
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
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
      : SequenceOps(input), slots_(static_cast<std::size_t>(input.schedule.max_running)) {
    emit(New{});
  }

  void saw(const Op& /*op*/, const Observation& /*seen*/, Labels& labels) override {
    labels.insert(reached_.begin(), reached_.end());
    reached_.clear();
  }

 protected:
  /// A snapshot by its number, and the tokens that it stands for.
  struct Parked {
    std::int64_t handle;
    std::int64_t from;
    std::int64_t to;
    [[nodiscard]] std::int64_t tokens() const { return to - from; }
  };
  struct Sequence {
    std::int64_t length = 0;
    std::int64_t longest = 0;                    ///< that it was
    std::vector<std::uint64_t> rows = {};        ///< the first tag of each token's row
    std::vector<Parked> parked = {};             ///< each begins where the one before ends
    std::optional<Parked> saved = std::nullopt;  ///< before the draft
  };

  /// Emits what adds tokens to the cache. The rows are noted already.
  virtual void add(const Sequence& sequence, std::span<const std::uint64_t> rows) = 0;
  /// Emits a look at all that the cache holds.
  virtual void show(const Sequence& sequence) = 0;
  /// Whether tokens of a draft that begins now can be taken back without a snapshot.
  [[nodiscard]] virtual bool rewinds(const Sequence& sequence) = 0;
  [[nodiscard]] std::int64_t draft_tokens() { return schedule().policy().draft_tokens; }
  /// Whether a snapshot may hold the last tokens alone.
  [[nodiscard]] virtual bool in_parts() const { return false; }
  /// Elements of a row.
  [[nodiscard]] virtual std::int64_t width() const = 0;

  void begin(std::int64_t slot) final {
    if (current_ == slot) emit(New{});
    at(slot) = {};
  }
  void append(std::int64_t slot, std::int64_t tokens) final {
    enter(slot);
    Sequence& own = at(slot);
    const std::size_t before = own.rows.size();
    for (std::int64_t token = 0; token < tokens; ++token) {
      own.rows.push_back(last_tag_ + 1);
      last_tag_ += static_cast<std::uint64_t>(width());
    }
    own.length += tokens;
    own.longest = std::max(own.longest, own.length);
    add(own, std::span(own.rows).subspan(before));
  }
  void save(std::int64_t slot) final {
    enter(slot);
    Sequence& own = at(slot);
    if (own.saved) emit(Close{own.saved->handle});
    own.saved.reset();
    rewinds_ = rewinds(own);
    if (!rewinds_ && own.length > 0) own.saved = {taken(0), 0, own.length};
    draft_at_ = own.length;
  }
  void reject(std::int64_t slot, std::int64_t tokens) final {
    Sequence& own = at(slot);
    const std::int64_t accepted = own.length - tokens - draft_at_;
    if (rewinds_) {
      reach(kRewound);
      cut(own, own.length - tokens);
      return restore(std::nullopt, own.length);
    }
    cut(own, draft_at_);
    if (own.saved) {
      reach(kFromSnapshot);
      restore(own.saved->handle, own.saved->to);
    } else {
      emit(Free{});
    }
    if (accepted > 0) append(slot, accepted);
  }
  void read(std::int64_t slot) final {
    enter(slot);
    show(at(slot));
  }
  void end(std::int64_t slot) final {
    enter(slot);
    Sequence& own = at(slot);
    emit(Offset{}, {own.length});
    if (in_parts() && !own.parked.empty()) {
      put_away(own);
      split_last(own);
      bring_back(own);
      show(own);
    }
    for (const Parked& one : own.parked) emit(Close{one.handle});
    if (own.saved) emit(Close{own.saved->handle});
    own = {};
  }

  void reach(std::string_view label) { reached_.insert(label); }

 private:
  Sequence& at(std::int64_t slot) { return slots_[static_cast<std::size_t>(slot)]; }

  static void cut(Sequence& sequence, std::int64_t length) {
    sequence.length = length;
    sequence.rows.resize(static_cast<std::size_t>(length));
  }

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
    if (current_ >= 0) put_away(at(current_));
    current_ = slot;
    if (!at(slot).parked.empty()) reach(kPutAway);
    bring_back(at(slot));
  }

  void bring_back(const Sequence& sequence) {
    emit(Free{});
    for (const Parked& one : sequence.parked) restore(one.handle, one.to);
  }

  void put_away(Sequence& sequence) {
    std::vector<Parked>& parked = sequence.parked;
    const std::int64_t from = in_parts() && !parked.empty() ? parked.back().to : 0;
    if (sequence.length == from) return;
    if (!in_parts())
      for (const Parked& one : std::exchange(parked, {})) emit(Close{one.handle});
    parked.push_back({taken(from), from, sequence.length});
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

  std::vector<Sequence> slots_;
  std::int64_t current_ = -1;  ///< slot whose sequence is in the cache
  std::int64_t draft_at_ = 0;  ///< tokens before the draft
  bool rewinds_ = false;       ///< it is taken back without a snapshot
  std::int64_t last_handle_ = 0;
  std::uint64_t last_tag_ = 0;
  Labels reached_ = {};
};

// ---- kv, rotating ----

/// Rows are tags by token, head and element.
class RowsStream final : public CacheStream {
 public:
  RowsStream(const LoweringInput& input, std::optional<std::int64_t> window)
      : CacheStream(input), window_(window) {}

 protected:
  void add(const Sequence& sequence, std::span<const std::uint64_t> rows) override {
    auto [k, v] = tagged(rows);
    emit(Update{.k = std::move(k), .v = std::move(v)});
    if (window_ && sequence.length > *window_) reach(kFull);
  }
  void show(const Sequence& sequence) override {
    if (sequence.length == 0 || sequence.longest > window_.value_or(sequence.longest))
      return emit(ShowState{});
    auto [k, v] = tagged(sequence.rows);
    emit(ShowState{}, {std::vector<Nullable<Tensor>>{std::move(k), std::move(v)}});
  }
  [[nodiscard]] bool rewinds(const Sequence& sequence) override {
    return !window_ || sequence.length + draft_tokens() <= *window_;
  }
  [[nodiscard]] bool in_parts() const override { return !window_; }
  [[nodiscard]] std::int64_t width() const override {
    return policy().num_heads * policy().head_dim;
  }

 private:
  // [1, heads, tokens, dim]: what stands for a token is apart by head.
  [[nodiscard]] std::pair<Tensor, Tensor> tagged(std::span<const std::uint64_t> first_tags) const {
    const auto [heads, dim] = std::pair(policy().num_heads, policy().head_dim);
    const Shape shape{1, heads, std::ssize(first_tags), dim};
    std::pair<Tensor, Tensor> made{make_tensor(shape), make_tensor(shape)};
    const auto [keys, values] = std::pair(made.first.floats(), made.second.floats());
    std::size_t at = 0;
    for (std::int64_t head = 0; head < heads; ++head) {
      for (const std::uint64_t first : first_tags) {
        for (std::int64_t i = head * dim; i < (head + 1) * dim; ++i, ++at) {
          keys[at] = tag(first + static_cast<std::uint64_t>(i));
          values[at] = -keys[at];
        }
      }
    }
    return made;
  }

  std::optional<std::int64_t> window_;  ///< absent: no ring
};

// ---- recurrent ----

constexpr std::int64_t kConvTail = 3;
constexpr std::int64_t kHeadVDim = 2;

/// The state after a token is that token's tags.
class StateStream final : public CacheStream {
 public:
  using CacheStream::CacheStream;

 protected:
  void add(const Sequence& sequence, std::span<const std::uint64_t> rows) override {
    auto [conv, delta] = tagged(rows.back());
    emit(ConvState{});
    emit(DeltaState{});
    emit(SetConvState{std::move(conv)});
    emit(SetDeltaState{std::move(delta)});
    emit(Advance{std::ssize(rows)}, {sequence.length});
  }
  void show(const Sequence& sequence) override {
    if (sequence.length == 0) return emit(ShowState{});
    auto [conv, delta] = tagged(sequence.rows.back());
    emit(ShowState{}, {std::vector<Nullable<Tensor>>{std::move(conv), std::move(delta)}});
  }
  [[nodiscard]] bool rewinds(const Sequence& /*sequence*/) override { return false; }
  [[nodiscard]] std::int64_t width() const override { return conv_cells() + delta_cells(); }

 private:
  [[nodiscard]] std::int64_t conv_cells() const { return kConvTail * policy().head_dim; }
  [[nodiscard]] std::int64_t delta_cells() const {
    return policy().num_heads * kHeadVDim * policy().head_dim;
  }
  [[nodiscard]] std::pair<Tensor, Tensor> tagged(std::uint64_t first) const {
    std::pair<Tensor, Tensor> made{
        make_tensor({1, kConvTail, policy().head_dim}),
        make_tensor({1, policy().num_heads, kHeadVDim, policy().head_dim})};
    for (float& cell : made.first.floats()) cell = tag(first++);
    for (float& cell : made.second.floats()) cell = tag(first++);
    return made;
  }
};

// A turn puts away, brings back, adds and looks.
double cache_cost(const LoweringInput& input) {
  return replay::cost_by(input, {.other_calls = 2, .rows_a_request = 1e4});
}

Setup no_setup(const LoweringInput& /*input*/) {
  return {};
}
Setup ring_setup(const LoweringInput& input) {
  return {.config = Record::of(RowsConfig{.max_size = ring_window(input)})};
}
Setup state_setup(const LoweringInput& input) {
  return {.config = Record::of(RecurrentConfig{.conv_tail = kConvTail,
                                               .conv_dim = input.policy.head_dim,
                                               .num_v_heads = input.policy.num_heads,
                                               .head_v_dim = kHeadVDim,
                                               .head_k_dim = input.policy.head_dim})};
}

}  // namespace

std::int64_t ring_window(const LoweringInput& input) {
  constexpr std::int64_t kLeast = 4;
  const std::int64_t tokens = replay::tokens_at(input.requests, input.schedule.scale);
  return std::max(kLeast, tokens / std::ssize(input.requests) / 2);
}

std::vector<replay::Lowering> lowerings() {
  std::vector<replay::Lowering> all = cache_lowerings();
  for (const replay::Lowering& trie : trie_lowerings()) all.push_back(trie);
  return all;
}

std::vector<replay::Lowering> cache_lowerings() {
  return {{.kind = &kv_kind(),
           .setup = no_setup,
           .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
             return std::make_unique<RowsStream>(input, std::nullopt);
           },
           .cost = cache_cost},
          {.kind = &rotating_kind(),
           .setup = ring_setup,
           .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
             return std::make_unique<RowsStream>(input, ring_window(input));
           },
           .cost = cache_cost},
          {.kind = &recurrent_kind(),
           .setup = state_setup,
           .lower = [](const LoweringInput& input) -> std::unique_ptr<OpStream> {
             return std::make_unique<StateStream>(input);
           },
           .cost = cache_cost}};
}

}  // namespace kvo::snapshot
