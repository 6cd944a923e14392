// The oracle of the positional caches, from the
// definitions alone.
//
// For every sequence of every member it keeps the tokens with what was put for them, and at each
// get recomputes attention over what each row of the batch must see (OK-31), with keys moved by the
// shift function from where they were put to where they are. An encoder must show, bit by bit, what
// was put last (OK-73).
// Judged   every row of every get that succeeds, also in reserve passes, except
// Skipped  rows that may see a token which bounded memory may have given up (OK-18, OK-19), or one
//          whose rows were never put in that layer (OK-44); all rows of a pass whose mask was built
//          anew after a copy_prefix or remove (OK-41: the visible range is that of before); layers
//          of an encoder with reserve puts only (OK-76); rows that overflow their storage type. In
//          the original also what errors leave unknown until the sequence is cleared or copied
//          onto: after a remove (OK-66, OK-67), and in a wrapper after a start_forward (OK-83), for
//          the sequences of its batch.
// Unseen   by attention: keys where a token sees one row only, an equal change of all keys that it
//          sees, and moves below the tolerance: 1e-5 of the largest value in f32, in f16 and bf16
//          4 epsilon for the put and for each move. Rows that never moved have 1e-9.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "properties/positional/followed_cache.hpp"
#include "properties/positional/tokens.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/positional/operations.hpp"

namespace kvo::positional {

// ---- how a difference of a get is explained ----

struct ExplainedCase {
  const CacheKind& kind;
  const Setup& setup;
};

namespace {

std::string text(std::int64_t number) {
  return std::to_string(number);
}
std::string token_text(std::int64_t position, std::int64_t sequence) {
  return "position " + text(position) + " of sequence " + text(sequence);
}

/// A row that was put, and for which token.
struct PutRow {
  std::int64_t position = 0;
  std::int64_t sequence = 0;
  std::vector<float> k = {};
};

/// What the operations before the get have done, by their arguments and the reference's cells.
class Past {
 public:
  explicit Past(const ExplainedCase& explained)
      : cache_(explained.kind, explained.setup, /*notes=*/false) {}

  void follow(const Op& op) {
    visit_op(Ops(), op, [&](const auto& operation) { note(operation); });
  }
  /// The member that get goes to; null where it has no positions.
  [[nodiscard]] const CausalCache* member() const {
    return member_ >= 0 ? cache_.causal(static_cast<std::size_t>(member_)) : nullptr;
  }
  [[nodiscard]] const StartForward& pass() const { return pass_; }
  /// The newest row of these elements; nothing where none was put, or two tokens have them.
  [[nodiscard]] std::optional<PutRow> owner_of(const std::vector<float>& k) const {
    std::optional<PutRow> found;
    for (const PutRow& row : puts_) {
      if (row.k != k) continue;
      if (found && (found->position != row.position || found->sequence != row.sequence))
        return std::nullopt;
      found = row;
    }
    return found;
  }
  /// Positions of a sequence below the result may have been evicted, since its batch of `low`.
  [[nodiscard]] std::optional<std::int64_t> low_of(std::int64_t sequence) const {
    const auto found = lows_.find(sequence);
    return found != lows_.end() ? std::optional(found->second) : std::nullopt;
  }

 private:
  template <class T>
  void note(const T& op) {
    cache_.follow(op);
  }
  void note(const StartForward& op) {
    (void)cache_.follow(op, /*full=*/false);
    pass_ = op;
    member_ = 0;
    std::map<std::int64_t, std::int64_t> lows;
    for (std::size_t i = 0; i < op.seqs.size() && i < op.positions.size(); ++i) {
      const auto [at, fresh] = lows.try_emplace(op.seqs[i], op.positions[i]);
      if (!fresh) at->second = std::min<std::int64_t>(at->second, op.positions[i]);
    }
    if (!op.reserve)
      for (const auto& [sequence, low] : lows) lows_[sequence] = low;
  }
  void note(const SetLayerType& op) {
    cache_.follow(op);
    member_ = op.type;
  }
  void note(const Put& op) {
    cache_.follow(op);
    const std::size_t tokens = pass_.positions.size();
    if (pass_.reserve || op.k.dtype != DType::kF32 || tokens == 0) return;
    const std::span<const float> all = op.k.floats();
    const std::size_t width = all.size() / tokens;
    for (std::size_t i = 0; i < tokens && i < pass_.seqs.size(); ++i)
      puts_.push_back({.position = pass_.positions[i],
                       .sequence = pass_.seqs[i],
                       .k = {all.begin() + static_cast<std::ptrdiff_t>(i * width),
                             all.begin() + static_cast<std::ptrdiff_t>((i + 1) * width)}});
  }

  FollowedCache cache_;
  StartForward pass_ = {};
  std::int64_t member_ = 0;
  std::map<std::int64_t, std::int64_t> lows_ = {};
  std::vector<PutRow> puts_ = {};
};

/// The elements of a cell, whose axis is the first.
std::vector<float> row_of(const Tensor& tensor, std::int64_t cell) {
  const std::int64_t width = tensor.elements() / std::max<std::int64_t>(tensor.shape[0], 1);
  std::vector<float> row;
  for (std::int64_t i = 0; i < width; ++i)
    row.push_back(load_element(
        tensor.dtype, tensor.bytes.data() +
                          static_cast<std::size_t>(cell * width + i) * dtype_bytes(tensor.dtype)));
  return row;
}

bool is_seen(const Tensor& mask, std::int64_t token, std::int64_t cell) {
  const auto at = static_cast<std::size_t>(token * mask.shape[1] + cell);
  return !std::isinf(load_element(mask.dtype, mask.bytes.data() + at * dtype_bytes(mask.dtype)));
}

/// Which positions of a sequence stay, and the oldest of them.
std::string limit_text(const Past& past, const CausalCache& cache, std::int64_t sequence) {
  const CausalCache::Cell* oldest = nullptr;
  for (const CausalCache::Cell& cell : cache.cells())
    if (cell.owners.contains(sequence) && (oldest == nullptr || cell.position < oldest->position))
      oldest = &cell;
  const auto low = past.low_of(sequence);
  std::string line = "sequence " + text(sequence) + ": ";
  if (!low || cache.memory() == kMaxPosition)
    line += "no position is to be evicted";
  else
    line += "positions from " + text(std::max<std::int64_t>(*low - cache.memory(), 0)) +
            " on stay (its last batch began at " + text(*low) + ", memory " + text(cache.memory()) +
            ")";
  if (oldest != nullptr)
    line += "; the oldest is position " + text(oldest->position) + " in cell " +
            text(oldest - cache.cells().data());
  return line;
}

void add_limits(const Past& past, const CausalCache& cache, std::vector<std::string>& lines) {
  std::set<std::int64_t> owners;
  for (const CausalCache::Cell& cell : cache.cells())
    owners.insert(cell.owners.begin(), cell.owners.end());
  for (const std::int64_t sequence : owners) lines.push_back(limit_text(past, cache, sequence));
}

/// The cell of a token of the last pass.
std::optional<std::int64_t> cell_of(const CausalCache& cache, const PutRow& token) {
  for (std::size_t cell = 0; cell < cache.cells().size(); ++cell)
    if (cache.cells()[cell].position == token.position &&
        cache.cells()[cell].owners.contains(token.sequence))
      return static_cast<std::int64_t>(cell);
  return std::nullopt;
}

// A token in another cell means that other cells were free. Then the lines say which were to stay.
void add_row(const Past& past, const CausalCache& cache, std::int64_t cell,
             const std::vector<float>& shown, std::vector<std::string>& lines) {
  const auto other = past.owner_of(shown);
  const auto due = other ? cell_of(cache, *other) : std::nullopt;
  if (due && *due != cell) {
    lines.push_back(token_text(other->position, other->sequence) + " was to be in cell " +
                    text(*due) + "; the subject has it in another: other cells were free");
    return add_limits(past, cache, lines);
  }
  const CausalCache::Cell& held = cache.cells()[static_cast<std::size_t>(cell)];
  lines.push_back("cell " + text(cell) +
                  (held.owners.empty()
                       ? " is free"
                       : " holds " + token_text(held.position, *held.owners.begin())) +
                  "; the subject shows another row there");
}

void add_sight(const Past& past, const CausalCache& cache, std::int64_t token, std::int64_t cell,
               bool wanted, std::vector<std::string>& lines) {
  const auto at = static_cast<std::size_t>(token);
  if (at >= past.pass().positions.size() || at >= past.pass().seqs.size()) return;
  const std::int64_t own = past.pass().positions[at];
  const CausalCache::Cell& held = cache.cells()[static_cast<std::size_t>(cell)];
  std::string line = token_text(own, past.pass().seqs[at]) +
                     (wanted ? " must see " : " must not see ") + "position " +
                     text(held.position) + " in cell " + text(cell) +
                     (wanted ? ", and does not" : ", and does");
  if (cache.window() != kMaxPosition)
    line += ": its window holds positions " +
            text(std::max<std::int64_t>(own - cache.window(), 0)) + " to " + text(own);
  lines.push_back(std::move(line));
}

void add_range(const Past& past, const CausalCache& cache, std::int64_t shown,
               std::vector<std::string>& lines) {
  const CausalCache::CellRange range = cache.visible();
  const std::set<std::int64_t> batch(past.pass().seqs.begin(), past.pass().seqs.end());
  for (const std::int64_t sequence : batch) {
    std::string positions;
    for (std::int64_t cell = range.low; cell <= range.high; ++cell) {
      const CausalCache::Cell& held = cache.cells()[static_cast<std::size_t>(cell)];
      if (held.owners.contains(sequence))
        positions += (positions.empty() ? "" : ", ") + text(held.position);
    }
    lines.push_back("cells " + text(range.low) + " to " + text(range.high) +
                    " are to be shown, with positions " + positions + " of sequence " +
                    text(sequence) + "; the subject shows " + text(shown));
    lines.push_back(limit_text(past, cache, sequence));
  }
}

}  // namespace

/// Sentences about the first cell of the last operation of `script`, a get, that `got` shows
/// otherwise than `want`. The script's own reference says what its cells hold.
std::vector<std::string> explain_get(const ExplainedCase& explained, std::span<const Op> script,
                                     const Get::Returns& want, const Get::Returns& got) {
  if (!want.k.has_value() || !want.mask.has_value() || !got.k.has_value() || !got.mask.has_value())
    return {};
  Past past(explained);
  for (const Op& op : script) past.follow(op);
  const CausalCache* cache = past.member();
  if (cache == nullptr || cache->visible().size() != want.k->shape[0]) return {};
  std::vector<std::string> lines;
  if (got.k->shape.size() != want.k->shape.size() || got.k->shape[0] != want.k->shape[0]) {
    add_range(past, *cache, got.k->shape.empty() ? 0 : got.k->shape[0], lines);
    return lines;
  }
  const std::int64_t low = cache->visible().low;
  for (std::int64_t cell = 0; cell < want.k->shape[0]; ++cell)
    if (got.k->shape == want.k->shape && row_of(*want.k, cell) != row_of(*got.k, cell)) {
      add_row(past, *cache, low + cell, row_of(*got.k, cell), lines);
      return lines;
    }
  if (want.mask->shape != got.mask->shape) return lines;
  for (std::int64_t token = 0; token < want.mask->shape[0]; ++token)
    for (std::int64_t cell = 0; cell < want.mask->shape[1]; ++cell)
      if (is_seen(*want.mask, token, cell) != is_seen(*got.mask, token, cell)) {
        add_sight(past, *cache, token, low + cell, is_seen(*want.mask, token, cell), lines);
        return lines;
      }
  return lines;
}

// ---- the oracle ----

namespace {

// Elements in the order of the shape with its first axis last: [n][h][d] as [h][d][n] (OK-74).
Tensor tokens_last(const Tensor& v) {
  const StridedView view = view_of(v);
  return materialize({{v.shape[1], v.shape[2], v.shape[0]},
                      {view.strides[1], view.strides[2], view.strides[0]},
                      v.dtype,
                      v.bytes.data()});
}

// The layers of an encoder.
class EncoderLayers {
 public:
  void started(bool reserve) { reserve_ = reserve; }
  void put(std::int64_t layer, const Put& rows) {
    if (!reserve_) layers_[layer] = rows;
    if (reserve_) layers_.try_emplace(layer);
  }
  [[nodiscard]] std::optional<std::string> shown(std::int64_t layer, const Get::Returns& shown,
                                                 bool permuted_v) {
    const auto found = layers_.find(layer);
    if (found != layers_.end() && !found->second) return std::nullopt;
    ++counts_.judged;
    if (shown.mask.has_value()) return "an encoder shows a mask";
    if (found == layers_.end()) {
      if (!shown.k.has_value() && !shown.v.has_value()) return std::nullopt;
      return "layer " + std::to_string(layer) + " shows rows and has none";
    }
    const Put& put = *found->second;
    if (shown.k != Nullable<Tensor>(put.k) ||
        shown.v != Nullable<Tensor>(permuted_v ? tokens_last(put.v) : put.v))
      return "layer " + std::to_string(layer) + " does not show what was put last";
    return std::nullopt;
  }
  [[nodiscard]] const OracleCounts& counts() const { return counts_; }

 private:
  bool reserve_ = false;
  std::map<std::int64_t, std::optional<Put>> layers_;  // none: reserve puts only
  OracleCounts counts_;
};

struct Member {
  bool encoder = false;
  bool permuted_v = false;
  MemberTokens tokens;
  EncoderLayers layers = {};
};

class HistoryOracle final : public Oracle {
 public:
  HistoryOracle(const CacheKind& kind, const Setup& setup)
      : kind_(kind), setup_(setup), documented_(setup.profile == Profile::kDocumented) {
    const bool permuted = backend_of(kind, setup).permuted_v;
    for (const CacheConfig& config : members_of(kind, setup))
      members_.push_back({.encoder = config.cache == MemberKind::kEncoder,
                          .permuted_v = permuted,
                          .tokens = MemberTokens(member_options(config), documented_)});
  }

  [[nodiscard]] std::optional<std::string> check(const Op& op, const Observation& seen) override {
    std::optional<std::string> words;
    visit_op(Ops(), op, [&](const auto& operation) {
      if (seen.error)
        failed(operation, *seen.error);
      else if constexpr (std::is_same_v<decltype(operation), const Get&>)
        words = shown(seen.as<Get::Returns>());
      else
        note(operation);
    });
    return words;
  }

  [[nodiscard]] std::vector<std::string> explain(std::span<const Op> script,
                                                 const Observation& want,
                                                 const Observation& got) const override {
    const bool shown = script.back().as<Get>() != nullptr && !want.error && !got.error;
    return shown ? explain_get({kind_, setup_}, script, want.as<Get::Returns>(),
                               got.as<Get::Returns>())
                 : std::vector<std::string>();
  }

  [[nodiscard]] OracleCounts counts() const override {
    OracleCounts sum;
    for (const Member& member : members_) {
      const OracleCounts& own = member.encoder ? member.layers.counts() : member.tokens.counts();
      sum.judged += own.judged;
      sum.skipped += own.skipped;
    }
    return sum;
  }

 private:
  // ---- What succeeded: one overload an operation, but for get, which is judged ----

  void note(const SetConfig& config) {
    for (std::size_t i = 0; i < members_.size(); ++i)
      if (config.target.value_or(static_cast<std::int64_t>(i)) == static_cast<std::int64_t>(i))
        members_[i].permuted_v = config.permuted_v;
  }
  void note(const Init& init) {
    for (Member& member : members_) member.tokens.init(init);
  }
  void note(const StartForward& pass) {
    member_ = 0;
    for (Member& member : members_) {
      member.tokens.started(pass);
      member.layers.started(pass.reserve);
    }
  }
  void note(const SetLayer& chosen) { layer_ = chosen.layer; }
  void note(const SetLayerType& chosen) { member_ = chosen.type; }
  void note(const Put& put) {
    Member* chosen = selected();
    if (chosen == nullptr) return;
    chosen->encoder ? chosen->layers.put(layer_, put) : chosen->tokens.put(layer_, put);
  }
  void note(const SetCausal& call) {
    if (Member* chosen = selected()) chosen->tokens.set_causal(call);
  }
  void note(const CopyPrefix& copy) {
    for (Member& member : members_) member.tokens.copy_prefix(copy);
  }
  void note(const Remove& remove) {
    for (Member& member : members_) member.tokens.removed(remove);
  }
  void note(const OneOf<UnderlyingCache, CanResume, EncoderCached, Close> auto& /*changes none*/) {}

  [[nodiscard]] std::optional<std::string> shown(const Get::Returns& shown) {
    Member* chosen = selected();
    if (chosen == nullptr) return std::nullopt;
    return chosen->encoder ? chosen->layers.shown(layer_, shown, chosen->permuted_v)
                           : chosen->tokens.shown(layer_, shown, chosen->permuted_v);
  }

  // ---- What failed ----

  void failed(const StartForward& pass, const Error& error) {
    if (!half_done(error)) return;
    for (Member& member : members_) member.tokens.failed(pass, members_.size() > 1);
  }
  void failed(const Remove& remove, const Error& error) {
    if (!half_done(error)) return;
    for (Member& member : members_) member.tokens.remove_failed(remove);
  }
  void failed(const OneOf<SetConfig, Init, SetLayer, SetLayerType, UnderlyingCache, Put, Get,
                          SetCausal, CopyPrefix, CanResume, EncoderCached, Close> auto& /*op*/,
              const Error& /*nothing has changed*/) {}

  /// Whether an error of start_forward or remove may have left some of it done (OK-22, OK-66).
  [[nodiscard]] bool half_done(const Error& error) const {
    return !documented_ && (error.code == Code::kFull || error.code == Code::kNotSupported ||
                            error.code == Code::kOther);
  }

  /// The member that put and get go to; null if its number is none.
  [[nodiscard]] Member* selected() {
    const bool exists = member_ >= 0 && member_ < std::ssize(members_);
    return exists ? &members_[static_cast<std::size_t>(member_)] : nullptr;
  }

  const CacheKind& kind_;
  Setup setup_;
  bool documented_;
  std::vector<Member> members_;
  std::int64_t member_ = 0;  // chosen
  std::int64_t layer_ = 0;
};

}  // namespace

std::unique_ptr<Oracle> history_oracle(const CacheKind& kind, const Setup& setup) {
  if (kind.contract != wrapper_kind().contract) return nullptr;
  return std::make_unique<HistoryOracle>(kind, setup);
}

}  // namespace kvo::positional
