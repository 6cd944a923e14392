// Requests as operations of mlx_lm.kv and mlx_lm.rotating: a slot is a cache of its own.
//
// Policy. A turn updates the cache, in one chunk or token by token. A draft is taken back by trim
// where that is possible: always in `kv`, in a ring until it is full. Otherwise a deep copy that
// was made before the draft takes the cache's place, and the accepted tokens are added anew. The
// next sequence of a slot has the same cache, trimmed to nothing, or a new one where it cannot be
// trimmed. The window of a ring is half of what the mean sequence holds. A ring that was full shows
// its tokens in an order that depends on how they came, so that only the reference says what must
// be seen.
#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/replay/engine.hpp"
#include "reference/mlx_lm/operations.hpp"

namespace kvo::mlx_lm {
namespace {

using replay::LoweringInput;

constexpr std::string_view kTrimmed = "draft trimmed";
constexpr std::string_view kFromCopy = "draft taken back by a copy";
constexpr std::string_view kFull = "ring full";

Config ring_config(const LoweringInput& input) {
  constexpr std::int64_t kLeast = 4;
  const std::int64_t half = input.tokens() / std::ssize(input.requests) / 2;
  return {.max_size = std::max(kLeast, half)};
}

class CachesStream final : public replay::SequenceOps {
 public:
  explicit CachesStream(const LoweringInput& input, bool ring = false)
      : SequenceOps(input), slots_(static_cast<std::size_t>(slots())) {
    if (ring) window_ = ring_config(input).max_size;
  }

 protected:
  [[nodiscard]] Shape shape(std::int64_t tokens) const override {
    return {1, policy().num_heads, tokens, policy().head_dim};
  }
  [[nodiscard]] std::int64_t heads() const override { return policy().num_heads; }

  void begin(std::int64_t slot) override {
    Slot& own = at(slot);
    if (own.cache && trimmable(own.held)) {
      emit(Trim{*own.cache, own.held}, {own.held});
    } else {
      emit(New{.kind = window_ ? "rotating" : "kv"}, {next_});
      own.cache = next_++;
    }
    own.held = 0;
    emit(Offset{*own.cache}, {Value(std::int64_t{0})});
  }
  void append(std::int64_t slot, std::int64_t tokens) override {
    auto [k, v] = grow(slot, 0, tokens);
    emit(MakeMask{*at(slot).cache, tokens});
    emit_append(slot, Update{*at(slot).cache, std::move(k), std::move(v)});
    at(slot).held += tokens;
    if (window_ && at(slot).held > *window_) reach(kFull);
  }
  void save(std::int64_t slot) override {
    Slot& own = at(slot);
    own.copy.reset();
    own.copied = own.held;
    if (trimmable(own.held + input().schedule.draft_tokens)) return;
    emit(Copy{*own.cache, true}, {next_});
    own.copy = next_++;
  }
  void reject(std::int64_t slot, std::int64_t tokens) override {
    Slot& own = at(slot);
    const std::int64_t left = own.held - tokens;
    if (!own.copy) {
      reach(kTrimmed);
      emit(Trim{*own.cache, tokens}, {tokens});
      cut(slot, left);
      own.held = left;
      return;
    }
    reach(kFromCopy);
    own.cache = *std::exchange(own.copy, std::nullopt);
    own.held = own.copied;
    cut(slot, own.copied);
    if (left > own.copied) append(slot, left - own.copied);
  }
  void read(std::int64_t slot) override {
    const Slot& own = at(slot);
    emit(Offset{*own.cache}, {Value(own.held)});
    if (own.held == 0) return;
    if (window_) return emit(KeysAndValues{*own.cache});
    auto [k, v] = tensors(rows(slot));
    emit(KeysAndValues{*own.cache}, {std::move(k), std::move(v)});
  }
  void end(std::int64_t slot) override {
    emit(ShowInfo{*at(slot).cache});
    cut(slot, 0);
  }

 private:
  struct Slot {
    std::optional<std::int64_t> cache = std::nullopt;
    std::int64_t held = 0;                            ///< tokens
    std::optional<std::int64_t> copy = std::nullopt;  ///< before the draft
    std::int64_t copied = 0;                          ///< its tokens
  };
  Slot& at(std::int64_t slot) { return slots_[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] bool trimmable(std::int64_t held) const { return !window_ || held < *window_; }

  std::vector<Slot> slots_;
  std::optional<std::int64_t> window_ = std::nullopt;  ///< absent: no ring
  std::int64_t next_ = 0;                              ///< number of the next cache
};

}  // namespace

std::vector<replay::Lowering> lowerings() {
  const auto cost = replay::cost_by(2, 1e4);
  return {{&kind_of("kv"), replay::no_setup, replay::lower_by<CachesStream>, cost},
          {&kind_of("rotating"), replay::setup_by<ring_config>,
           replay::lower_by<CachesStream, true>, cost}};
}

}  // namespace kvo::mlx_lm
