// The oracle of contract `mlx_lm`: the tokens that each row was given say what the next tokens must
// see of it, whatever slots hold them.
//
// Judged   in kv, concatenate, chunked, rotating with keep 0, batch_kv, batch_rotating: a mask and
//          the update of as many tokens right after it. For each token of each row, the slots of
//          the result that the mask shows must hold the row's tokens in their order, or the last
//          ones of the window. Without a mask (chunked) the result must be the row's last tokens.
//          In prompt_lru: what fetch found, and the rest, are the prompt.
// Skipped  updates without a mask of theirs; quantized rows; caches after what leaves them without
//          a promise: failed operations, rows of another type or size than the first, shared
//          arrays, negative trims, trims of padding, kept slots, windows wider than the ring; in
//          profile original also a trimmed full ring, chunks on a ring of a batch (ML-55), and
//          stores of chunked caches (ML-22).
#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/mlx_lm/operations.hpp"

namespace kvo::mlx_lm {
namespace {

using Words = std::optional<std::string>;

// The row of one token: the bytes of its keys and its values, as given.
struct Token {
  std::vector<std::byte> k;
  std::vector<std::byte> v;
  friend bool operator==(const Token&, const Token&) = default;
};

// A sequence: what it was given, and the columns to come that are no tokens.
struct Sequence {
  std::vector<Token> tokens = {};
  std::int64_t padding = 0;                           ///< columns still to come at the left
  std::optional<std::int64_t> coming = std::nullopt;  ///< tokens before padding at the right
  std::int64_t trailing = 0;                          ///< columns of that padding that came

  [[nodiscard]] bool waits() const { return padding > 0; }
};

// What all rows of a cache have in common. Others are converted, or broadcast over the heads and
// elements of rows that are stored already.
struct Form {
  DType type;
  std::int64_t heads;
  std::int64_t k_size;  ///< elements of a head
  std::int64_t v_size;
  friend bool operator==(const Form&, const Form&) = default;
};

struct History {
  std::string kind;
  std::int64_t window = 0;  ///< of a ring; 0: all tokens
  std::vector<Sequence> rows = {};
  bool known = true;  ///< false: nothing can be said of it any more
  std::int64_t columns = 0;
  bool single_last = false;                 ///< the last update had one token
  std::optional<Form> form = std::nullopt;  ///< of all rows so far
};

// The bytes of token j of row b, all heads.
std::vector<std::byte> bytes_of_token(const Tensor& rows, std::int64_t b, std::int64_t j) {
  const std::int64_t size = rows.shape[3] * std::int64_t(dtype_bytes(rows.dtype));
  std::vector<std::byte> bytes;
  for (std::int64_t h = 0; h < rows.shape[1]; ++h) {
    const auto from = rows.bytes.begin() + ((b * rows.shape[1] + h) * rows.shape[2] + j) * size;
    bytes.insert(bytes.end(), from, from + size);
  }
  return bytes;
}
Token token_of(const Tensor& k, const Tensor& v, std::int64_t b, std::int64_t j) {
  return {bytes_of_token(k, b, j), bytes_of_token(v, b, j)};
}

class TokensOracle final : public Oracle {
 public:
  TokensOracle(Config config, Profile profile)
      : config_(std::move(config)), original_(profile == Profile::kOriginal) {}

  [[nodiscard]] Words check(const Op& op, const Observation& seen) override {
    Words words;
    visit_op(Ops(), op, [&](const auto& operation) {
      using T = std::decay_t<decltype(operation)>;
      if (seen.error) {
        if (!original_) return;  // nothing has changed
        if constexpr (requires { operation.cache; }) (void)forget(operation.cache);
        if constexpr (requires { operation.other; }) (void)forget(operation.other);
        return;
      }
      if constexpr (requires { operation.cache; })
        if (!has(operation.cache)) words = "there is no cache " + std::to_string(operation.cache);
      if constexpr (requires { operation.other; })
        if (!has(operation.other)) words = "there is no cache " + std::to_string(operation.other);
      if (words) return;
      if constexpr (requires { note(operation, seen.as<typename T::Returns>()); })
        words = note(operation, seen.as<typename T::Returns>());
    });
    if (op.as<MakeMask>() == nullptr) masked_.reset();
    return words;
  }

 private:
  // ---- What succeeded ----

  Words note(const New& op, const CacheMade& made) {
    History history{.kind = op.kind};
    const bool ring = op.kind == "rotating" || op.kind == "batch-rotating";
    if (ring) history.window = op.max_size.value_or(config_.max_size);
    history.known = op.kind != "arrays" && op.kind != "quantized";
    if (op.kind == "rotating" && op.keep.value_or(config_.keep) > 0) history.known = false;
    if (ring && history.window < 1) history.known = false;
    history.rows.resize(1);
    if (op.kind.starts_with("batch")) {
      history.rows.clear();
      for (const std::int64_t padding :
           op.left_padding ? *op.left_padding : config_.left_padding.value_or(Ints()))
        history.rows.push_back({.padding = padding});
    }
    return put(made.cache, std::move(history));
  }
  Words note(const MakeMask& op, const MaskReturns& returns) {
    masked_.emplace(Masked{op.cache, op.N, op.window_size.value, returns.mask});
    return {};
  }
  Words note(const Update& op, const UpdateReturns& returns) {
    History& cache = of(op.cache);
    if (!follow(cache, op)) return skip();
    const auto* k = std::get_if<Tensor>(&returns.k.held);
    const auto* v = std::get_if<Tensor>(&returns.v.held);
    if (k == nullptr || v == nullptr) return "no rows were returned";
    const bool ring_of_batch = cache.kind == "batch-rotating" && op.k.shape[2] > 1 && original_ &&
                               std::exchange(was_single_, false);
    if (ring_of_batch) return skip();
    if (cache.kind == "chunked") return judged(judge_last(cache, op, *k, *v));
    if (!masked_ || masked_->cache != op.cache || masked_->queries != op.k.shape[2] ||
        masked_->queries == 0)
      return skip();
    if (cache.window > 0 && masked_->window && *masked_->window > cache.window) return skip();
    if (cache.window > 0 && masked_->window && *masked_->window == 0) return skip();
    return judged(judge(cache, op, *k, *v));
  }
  Words note(const Trim& op, const TrimReturns& returns) {
    History& cache = of(op.cache);
    if (returns.n < 0) return forget(op.cache);
    if (returns.n == 0) return {};
    if (original_ &&
        (cache.kind == "concatenate" || (cache.window > 0 && cache.columns >= cache.window)))
      return forget(op.cache);
    cache.columns -= returns.n;
    for (Sequence& row : cache.rows) {
      if (row.coming || std::ssize(row.tokens) < returns.n) return forget(op.cache);
      row.tokens.resize(row.tokens.size() - static_cast<std::size_t>(returns.n));
    }
    return {};
  }
  Words note(const Copy& op, const CacheMade& made) {
    if (Words words = put(made.cache, of(op.cache))) return words;
    return op.deep ? Words() : both(op.cache, made.cache);
  }
  Words note(const FromState& op, const CacheMade& made) {
    if (Words words = put(made.cache, of(op.cache))) return words;
    return both(op.cache, made.cache);
  }
  Words note(const Merge& op, const KindMade& made) {
    if (!std::ranges::all_of(op.caches, [&](std::int64_t number) { return has(number); }))
      return "a batch of caches that are not there";
    History batch{.kind = made.kind, .window = of(op.caches.front()).window};
    for (const std::int64_t number : op.caches) {
      const History& part = of(number);
      batch.known = batch.known && part.known && part.kind != "arrays";
      if (!batch.form) batch.form = part.form;
      if (part.form && part.form != batch.form) batch.known = false;
      batch.columns = std::max(batch.columns, part.columns);
      if (!part.rows.empty()) batch.rows.push_back(part.rows.front());
    }
    return put(made.cache, std::move(batch));
  }
  Words note(const Extract& op, const KindMade& made) {
    const History& batch = of(op.cache);
    History single{
        .kind = made.kind, .window = batch.window, .known = batch.known, .form = batch.form};
    const std::int64_t row = op.idx < 0 ? op.idx + std::ssize(batch.rows) : op.idx;
    // A slice from -1 to 0 is empty (ML-43).
    if (op.idx < 0 || row >= std::ssize(batch.rows)) single.known = false;
    single.rows.push_back(single.known ? batch.rows[static_cast<std::size_t>(row)] : Sequence());
    Sequence& own = single.rows.front();
    if (own.coming || own.padding > 0) single.known = false;
    single.columns = std::ssize(own.tokens);
    return put(made.cache, std::move(single));
  }
  Words note(const ToQuantized& /*op*/, const CacheMade& made) {
    return put(made.cache, {.kind = "quantized", .known = false});
  }
  Words note(const MaybeTrimFront& op, const FrontReturns& returns) {
    of(op.cache).columns = returns.offset - returns.start_position;
    return {};
  }
  Words note(const Filter& op, const Nothing& /*returns*/) {
    History& cache = of(op.cache);
    std::vector<Sequence> rows;
    for (const std::int64_t index : op.indices) {
      const std::int64_t row = index < 0 ? index + std::ssize(cache.rows) : index;
      if (row < 0 || row >= std::ssize(cache.rows)) return forget(op.cache);
      rows.push_back(cache.rows[static_cast<std::size_t>(row)]);
    }
    cache.rows = std::move(rows);
    // Padding that is still to come is taken off as well: columns fall below 0 (ML-43).
    const bool below = !cache.rows.empty() && std::ranges::all_of(cache.rows, &Sequence::waits);
    if (announced(cache) || below) return forget(op.cache);
    return {};
  }
  Words note(const Extend& op, const Nothing& /*returns*/) {
    const History other = of(op.other);
    History& cache = of(op.cache);
    cache.known = cache.known && other.known && cache.window == other.window &&
                  (!cache.form || !other.form || cache.form == other.form);
    if (!cache.form) cache.form = other.form;
    cache.columns = std::max(cache.columns, other.columns);
    cache.rows.insert(cache.rows.end(), other.rows.begin(), other.rows.end());
    if (announced(cache) || (cache.columns > 0 && waits(cache))) return forget(op.cache);
    return {};
  }
  Words note(const Prepare& op, const Nothing& /*returns*/) {
    History& cache = of(op.cache);
    const auto fits = [&](const Ints& list) { return list.size() == cache.rows.size(); };
    if (op.left_padding) {
      if (!fits(*op.left_padding)) return forget(op.cache);
      for (std::size_t row = 0; row < cache.rows.size(); ++row)
        cache.rows[row].padding += (*op.left_padding)[row];
    }
    if (!op.right_padding || std::ranges::max(*op.right_padding) <= 0) return {};
    if (!op.lengths || !fits(*op.lengths) || !fits(*op.right_padding) || announced(cache) ||
        waits(cache))
      return forget(op.cache);
    for (std::size_t row = 0; row < cache.rows.size(); ++row) {
      cache.rows[row].coming = (*op.lengths)[row];
      cache.rows[row].trailing = -(*op.right_padding)[row];
    }
    return {};
  }
  Words note(const Finalize& op, const Nothing& /*returns*/) {
    History& cache = of(op.cache);
    for (Sequence& row : cache.rows) {
      if (row.coming && (row.trailing != 0 || *row.coming != 0)) return forget(op.cache);
      row.coming.reset();
    }
    return {};
  }

  // ---- Helpers ----

  History& of(std::int64_t cache) { return *caches_.at(static_cast<std::size_t>(cache)); }
  [[nodiscard]] bool has(std::int64_t cache) const {
    return cache >= 0 && cache < std::ssize(caches_);
  }
  Words put(std::int64_t cache, History history) {
    if (cache != std::ssize(caches_)) return "a new cache has number " + std::to_string(cache);
    caches_.push_back(std::make_shared<History>(std::move(history)));
    return {};
  }
  Words forget(std::int64_t cache) {
    if (has(cache)) of(cache).known = false;
    return {};
  }
  Words both(std::int64_t one, std::int64_t other) {
    (void)forget(one);
    return forget(other);
  }
  static bool announced(const History& cache) {
    return std::ranges::any_of(cache.rows,
                               [](const Sequence& row) { return row.coming.has_value(); });
  }
  static bool waits(const History& cache) {
    return std::ranges::any_of(cache.rows, &Sequence::waits);
  }

  // Adds the columns of an update. False: nothing can be said of its result.
  bool follow(History& cache, const Update& op) {
    if (!cache.known) return false;
    const Form form{op.k.dtype, op.k.shape[1], op.k.shape[3], op.v.shape[3]};
    if (!cache.form) cache.form = form;
    positions_.clear();
    const bool fits = op.k.shape[0] == std::ssize(cache.rows) && op.v.shape[0] == op.k.shape[0] &&
                      op.v.shape[1] == op.k.shape[1] && op.v.shape[2] == op.k.shape[2] &&
                      op.v.dtype == op.k.dtype && form == cache.form;
    // A chunk without tokens drops one of a full ring (ML-11).
    if (!fits || op.k.shape[2] == 0) return cache.known = false;
    was_single_ = std::exchange(cache.single_last, op.k.shape[2] == 1);
    for (std::int64_t b = 0; b < op.k.shape[0]; ++b) {
      Sequence& row = cache.rows[static_cast<std::size_t>(b)];
      for (std::int64_t j = 0; j < op.k.shape[2]; ++j) {
        positions_.push_back(-1);
        if (row.padding > 0) {
          --row.padding;
        } else if (row.coming && *row.coming == 0) {
          ++row.trailing;
        } else {
          if (row.coming) --*row.coming;
          positions_.back() = std::ssize(row.tokens);
          row.tokens.push_back(token_of(op.k, op.v, b, j));
        }
      }
    }
    cache.columns += op.k.shape[2];
    return true;
  }

  // The last tokens of the only row are the result (ML-20).
  static Words judge_last(const History& cache, const Update& /*op*/, const Tensor& k,
                          const Tensor& v) {
    const auto& tokens = cache.rows.front().tokens;
    if (k.shape[2] != cache.columns || cache.columns > std::ssize(tokens))
      return "the result has " + std::to_string(k.shape[2]) + " slots";
    for (std::int64_t j = 0; j < k.shape[2]; ++j)
      if (token_of(k, v, 0, j) != tokens[tokens.size() - std::size_t(k.shape[2] - j)])
        return "slot " + std::to_string(j) + " does not hold its token";
    return {};
  }

  // Whether query i of row b sees slot j of n.
  [[nodiscard]] bool sees(std::int64_t b, std::int64_t i, std::int64_t j, std::int64_t n) const {
    const auto* mask = std::get_if<Tensor>(&masked_->mask.held);
    if (mask == nullptr) return j <= n - masked_->queries + i;
    const auto at = [&](std::int64_t row) {
      return mask->bytes[static_cast<std::size_t>(row * n + j)] != std::byte{0};
    };
    if (mask->shape.size() == 1) return at(0);
    return at(mask->shape.size() == 2 ? i : b * masked_->queries + i);
  }

  [[nodiscard]] Words judge(const History& cache, const Update& op, const Tensor& k,
                            const Tensor& v) const {
    const std::int64_t n = k.shape[2];
    if (const auto* mask = std::get_if<Tensor>(&masked_->mask.held))
      if (mask->shape.back() != n)
        return "the mask has " + std::to_string(mask->shape.back()) + " columns, the result " +
               std::to_string(n);
    for (std::int64_t b = 0; b < op.k.shape[0]; ++b) {
      const Sequence& row = cache.rows[static_cast<std::size_t>(b)];
      for (std::int64_t i = 0; i < op.k.shape[2]; ++i) {
        const std::int64_t position = positions_[static_cast<std::size_t>(b * op.k.shape[2] + i)];
        if (position < 0) continue;  // padding
        std::int64_t least = 0;
        if (masked_->window || cache.window > 0)
          least = position + 1 - masked_->window.value_or(cache.window);
        std::vector<Token> want(row.tokens.begin() + std::max<std::int64_t>(least, 0),
                                row.tokens.begin() + position + 1);
        std::vector<Token> got;
        for (std::int64_t j = 0; j < n; ++j)
          if (sees(b, i, j, n)) got.push_back(token_of(k, v, b, j));
        // A ring holds them in no order.
        const bool same = cache.window > 0 ? std::ranges::is_permutation(want, got) : want == got;
        if (!same)
          return "token " + std::to_string(i) + " of row " + std::to_string(b) + " sees " +
                 std::to_string(got.size()) + " slots, but not the " + std::to_string(want.size()) +
                 " tokens up to its own";
      }
    }
    return {};
  }

  struct Masked {
    std::int64_t cache;
    std::int64_t queries;
    std::optional<std::int64_t> window;
    Value mask;
  };

  Config config_;
  bool original_;
  std::vector<std::shared_ptr<History>> caches_ = {};
  std::optional<Masked> masked_ = std::nullopt;  ///< by the operation before
  std::vector<std::int64_t> positions_ = {};     ///< of the last update: [row, column]; -1: padding
  bool was_single_ = false;  ///< the update before the last one, of the same cache, had one token
};

// What a store finds is the beginning of the prompt, and the rest is its end (ML-70).
class PromptOracle final : public Oracle {
 public:
  explicit PromptOracle(Profile profile) : original_(profile == Profile::kOriginal) {}

  [[nodiscard]] Words check(const Op& op, const Observation& seen) override {
    const auto* insert = op.as<Insert>();
    if (insert != nullptr && insert->kind == "chunked" && insert->tokens.size() > kChunk)
      slid_ = true;
    if (original_ && slid_) return {};  // ML-22
    const auto* fetch = op.as<Fetch>();
    if (fetch == nullptr || seen.error) return {};
    const auto& found = seen.as<FetchReturns>();
    const auto held = static_cast<std::size_t>(std::ssize(fetch->tokens) - std::ssize(found.rest));
    if (found.rest.size() > fetch->tokens.size() ||
        !std::equal(found.rest.begin(), found.rest.end(),
                    fetch->tokens.begin() + std::ptrdiff_t(held)))
      return judged("the rest is no end of the prompt");
    if (!found.k.has_value())
      return judged(held == 0 ? Words() : Words("nothing holds the beginning of the prompt"));
    if (found.offset && *found.offset != std::ssize(fetch->tokens) - std::ssize(found.rest))
      return judged("it holds " + std::to_string(*found.offset) + " tokens");
    const auto keys = found.k->floats();
    const bool slid = slid_ && keys.size() == kChunk && held > kChunk;
    if (keys.size() != held && !slid)
      return judged("it shows " + std::to_string(keys.size()) + " tokens");
    for (std::size_t i = held - keys.size(); i < held; ++i)
      if (keys[i - (held - keys.size())] != static_cast<float>(fetch->tokens[i]))
        return judged("token " + std::to_string(i) + " is not that of the prompt");
    return judged();
  }

 private:
  static constexpr std::size_t kChunk = 4;

  bool original_;
  bool slid_ = false;  // an entry may be a chunk whose front was dropped
};

}  // namespace

std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup) {
  if (kind.contract != "mlx_lm" || kind.cache == "quantized" || kind.cache == "arrays")
    return nullptr;
  if (kind.cache == "prompt_lru") return std::make_unique<PromptOracle>(setup.profile);
  return std::make_unique<TokensOracle>(setup.config_as<Config>(), setup.profile);
}

}  // namespace kvo::mlx_lm
