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
#include "properties/runner/oracle.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "properties/contract_parts.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/values/attention.hpp"
#include "reference/contract/values/numeric.hpp"
#include "reference/positional/operations.hpp"
#include "reference/positional/wrapper_cache.hpp"

namespace kvo::positional {

namespace {

/// The smallest position that a batch has of each of its sequences.
std::map<std::int64_t, std::int64_t> lows_of(const StartForward& pass) {
  std::map<std::int64_t, std::int64_t> lows;
  for (std::size_t i = 0; i < pass.seqs.size() && i < pass.positions.size(); ++i) {
    std::int64_t& low = lows.try_emplace(pass.seqs[i], kMaxPosition).first->second;
    low = std::min<std::int64_t>(low, pass.positions[i]);
  }
  return lows;
}

// ---- how a difference of a get is explained ----

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
  Past(const CacheKind& kind, const Setup& setup)
      : session_(make_subject(kind, "followed", "of an explanation", reference_of(kind))
                     .open(setup)
                     .value()) {}

  void follow(const Op& op) {
    (void)session_->apply(op, probe_);
    if (const auto* pass = op.as<StartForward>()) started(*pass);
    if (const auto* chosen = op.as<SetLayerType>()) member_ = chosen->type;
    if (const auto* put = op.as<Put>()) stored(*put);
  }
  /// The member that get goes to; null where it has no positions.
  [[nodiscard]] const CausalCache* member() const {
    if (member_ < 0) return nullptr;
    return causal_member(*dynamic_cast<const CacheOfCase&>(*session_).cache,
                         static_cast<std::size_t>(member_));
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
  void started(const StartForward& op) {
    pass_ = op;
    member_ = 0;
    if (op.reserve) return;
    for (const auto& [sequence, low] : lows_of(op)) lows_[sequence] = low;
  }
  void stored(const Put& op) {
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

  std::unique_ptr<Session> session_;
  Probe probe_;
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

/// Sentences about the first cell of the last operation of `script`, a get, that `got` shows
/// otherwise than `want`. The script's own reference says what its cells hold.
std::vector<std::string> explain_get(const CacheKind& kind, const Setup& setup,
                                     std::span<const Op> script, const Get::Returns& want,
                                     const Get::Returns& got) {
  if (!want.k.has_value() || !want.mask.has_value() || !got.k.has_value() || !got.mask.has_value())
    return {};
  Past past(kind, setup);
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

// ---- the tokens of one causal cache, from what was put alone ----
//
// Nothing here knows of cells: a sequence is a list of tokens, a token its position and the rows
// put for it. What a cache may have given up, or what a failed call left unknown, is marked, and
// rows of the batch that might see such tokens are skipped.

constexpr double kUnseen = -std::numeric_limits<double>::infinity();
constexpr std::int64_t kQueriesPerHead = 2;

// The n-th element of every query: in [-1, 1), without a pattern that rows could share.
double query_element(std::size_t n) {
  constexpr std::uint32_t kMultiplier = 2'654'435'761U;
  constexpr std::uint32_t kHalf = 0x8000U;
  const std::uint32_t mixed = (static_cast<std::uint32_t>(n) + 1U) * kMultiplier;
  return static_cast<double>(mixed >> 16U) / kHalf - 1.0;
}

// Keys that were never moved are copies, and only sums in another order differ. Each move rounds.
// A group with an offset may be rounded anew when it is stored anew beside one that moves (OK-65).
double tolerance(const StorageFormat& storage, std::uint64_t shifts) {
  constexpr double kSums = 1e-9;
  constexpr double kMovedF32 = 1e-5;
  constexpr double kRoundings = 4;
  // By type: of f16, bf16 and f8 the distance between neighbours of 1, of q8 and q4 more than that
  // of two codes where the largest element is 1.
  constexpr std::array kEpsilons{kMovedF32, 0x1p-10, 0x1p-7, 0x1p-3, 0x1p-2, 0x1p-6, 0x1p-2};
  if (shifts == 0 && !storage.offset) return kSums;
  if (storage.type == StorageType::kF32) return kMovedF32;
  const double epsilon = kEpsilons.at(static_cast<std::size_t>(storage.type));
  return kRoundings * epsilon * static_cast<double>(1 + shifts);
}

float largest(std::span<const float> values) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::abs(value));
  return most;
}

// [cell][kv_head][head_dim], whatever the order in memory (OK-48).
StridedView values_by_cell(const Tensor& v, bool permuted) {
  StridedView view = view_of(v);
  if (!permuted) return view;
  return {{v.shape[2], v.shape[0], v.shape[1]},
          {view.strides[2], view.strides[0], view.strides[1]},
          v.dtype,
          v.bytes.data()};
}

std::string numbers_text(const Shape& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "[" : ", ") + std::to_string(size);
  return text + "]";
}

/// One layer of a token, rounded to the storage type.
struct TokenRows {
  std::vector<float> k = {};  ///< [heads * k_dim]
  std::vector<float> v = {};  ///< [heads * v_dim]
  std::int64_t heads = 0;
  std::int32_t put_at = 0;   ///< the token's position when they were put
  std::uint64_t shifts = 0;  ///< moves since then
};

/// A token, shared by the sequences that hold it (OK-2).
struct Token {
  std::int32_t position = 0;
  bool doubtful = false;  ///< a failed remove may have moved it (OK-66, OK-67)
  std::map<std::int64_t, TokenRows> layers = {};
};

/// The tokens of one cache, and what each row of the present pass must see.
class MemberTokens {
 public:
  /// `member` as in the config, before OK-10.
  MemberTokens(MemberOptions member, bool documented)
      : member_(std::move(member)), documented_(documented) {}

  /// Fixes window and memory (OK-10 to OK-12).
  void init(const Init& init) {
    storage_ = storage_of(init);
    if (member_.window == 0) member_.window = kMaxPosition;
    if (member_.memory == 0) member_.memory = member_.window;
    if (member_.memory != kMaxPosition && init.max_sequences > 1 && member_.window != kMaxPosition)
      member_.memory = std::max(member_.memory, member_.window + 1);
    if (member_.memory >= init.capacity) member_.memory = kMaxPosition;
  }

  /// A start_forward that succeeded (OK-16).
  void started(const StartForward& pass) {
    targets_.clear();
    if (!pass.reserve) {
      give_up(pass);
      for (std::size_t i = 0; i < pass.positions.size(); ++i) {
        targets_.push_back(std::make_shared<Token>(Token{.position = pass.positions[i]}));
        sequences_[pass.seqs[i]].tokens.push_back({targets_.back()});
      }
    }
    rows_.clear();
    for (std::size_t i = 0; i < pass.positions.size(); ++i)
      rows_.push_back({.sequence = pass.seqs[i], .position = pass.positions[i]});
    except_.clear();
    built_with_.clear();
    disturbed_ = unknown_ = false;
    rebuild();
  }

  /// One that failed with its evictions done (OK-22); `unwound` if members may have dropped tokens
  /// of the batch (OK-83).
  void failed(const StartForward& pass, bool unwound) {
    give_up(pass);
    disturbed_ = true;
    if (!unwound) return;
    for (const std::int64_t number : pass.seqs) {
      const auto found = sequences_.find(number);
      if (found != sequences_.end()) found->second.unknown = true;
    }
  }

  void put(std::int64_t layer, const Put& rows) {
    const std::span<const float> k = rows.k.floats();
    const std::span<const float> v = rows.v.floats();
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      TokenRows put{.heads = rows.k.shape[1], .put_at = targets_[i]->position};
      const std::size_t k_size = k.size() / targets_.size();
      const std::size_t v_size = v.size() / targets_.size();
      put.k = stored(k.subspan(i * k_size, k_size), put.heads);
      put.v = stored(v.subspan(i * v_size, v_size), put.heads);
      targets_[i]->layers[layer] = std::move(put);
    }
  }

  void set_causal(const SetCausal& call) {
    const bool with_context = call.ctx.value_or(true);
    if (documented_) {
      if (!with_context || call.except == built_with_) return;
      except_ = built_with_ = call.except;
      rebuild();
      return;
    }
    if (call.except == except_) return;
    except_ = call.except;
    if (with_context) rebuild();
  }

  void copy_prefix(const CopyPrefix& copy) {
    disturbed_ = true;
    Sequence gained;
    if (const auto source = sequences_.find(copy.src); source != sequences_.end()) {
      gained.unknown = source->second.unknown && copy.len > 0;
      for (const Held& held : source->second.tokens)
        if (held.token->position < copy.len) gained.tokens.push_back(held);
    }
    if (copy.src == copy.dst && !documented_) gained = {};
    sequences_[copy.dst] = std::move(gained);
  }

  void removed(const Remove& remove) {
    disturbed_ = true;
    if (remove.begin <= 0 && remove.end == kMaxPosition) {
      sequences_.erase(remove.seq);
      return;
    }
    const auto found = sequences_.find(remove.seq);
    if (found == sequences_.end()) return;
    std::erase_if(found->second.tokens, [&](const Held& held) {
      return held.token->position >= remove.begin && held.token->position < remove.end;
    });
    const std::int32_t offset = remove.end == kMaxPosition ? 0 : remove.begin - remove.end;
    if (offset == 0) return;
    for (Held& held : found->second.tokens) {
      if (held.token->position < remove.end) continue;
      // What this sequence may no longer own, or must not move (OK-67), stays where it is for
      // others.
      if (held.maybe_lost || shared(held.token.get(), remove.seq))
        held.token = std::make_shared<Token>(*held.token);
      held.token->position += offset;
      for (auto& [layer, rows] : held.token->layers) ++rows.shifts;
    }
  }

  /// A remove that may be half done (OK-66, OK-67).
  void remove_failed(const Remove& remove) {
    disturbed_ = true;
    const auto found = sequences_.find(remove.seq);
    if (found == sequences_.end()) return;
    found->second.unknown = true;
    for (const Held& held : found->second.tokens) held.token->doubtful = true;
  }

  /// Words if attention over what is shown differs from attention over the history.
  [[nodiscard]] std::optional<std::string> shown(std::int64_t layer, const Get::Returns& shown,
                                                 bool permuted_v) {
    if (rows_.empty()) return std::nullopt;
    if (!shown.k.has_value() || !shown.v.has_value() || !shown.mask.has_value())
      return "shows no rows or no mask";
    const Shape& mask = shown.mask->shape;
    const Shape& k = shown.k->shape;
    const Shape& v = shown.v->shape;
    if (mask.size() != 2 || k.size() != 3 || v.size() != 3 || mask[0] != std::ssize(rows_) ||
        mask[1] != k[0] || v[permuted_v ? 2 : 0] != k[0] || v[permuted_v ? 0 : 1] != k[1] ||
        k[1] < 1 || k[2] < 1)
      return "shows k " + numbers_text(k) + ", v " + numbers_text(v) + ", mask " +
             numbers_text(mask) + " for " + std::to_string(rows_.size()) + " tokens";
    const auto cells = static_cast<std::size_t>(mask[1]);
    const std::size_t bytes = dtype_bytes(shown.mask->dtype);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const auto past = unknown_ ? std::nullopt : history(rows_[i], layer);
      ++(past ? counts_.judged : counts_.skipped);
      if (!past) continue;
      std::vector<double> row;
      for (std::size_t cell = 0; cell < cells; ++cell)
        row.push_back(double{load_element(shown.mask->dtype,
                                          shown.mask->bytes.data() + (i * cells + cell) * bytes)});
      if (auto words = judge(rows_[i], *past, shown, row, permuted_v))
        return "layer " + std::to_string(layer) + ", row " + std::to_string(i) + ": " + *words;
    }
    return std::nullopt;
  }

  [[nodiscard]] const OracleCounts& counts() const { return counts_; }

 private:
  struct Held {
    std::shared_ptr<Token> token;
    bool maybe_lost = false;  ///< evicted, if the cache evicts as much as it may (OK-18, OK-19)
  };
  struct Sequence {
    std::vector<Held> tokens;
    bool unknown = false;  ///< until it is cleared
  };
  struct BatchRow {
    std::int64_t sequence = 0;
    std::int32_t position = 0;
    bool unknown = false;  ///< its sequence was, or one of those it would see may be lost
    std::vector<std::shared_ptr<Token>> sees = {};
  };
  /// K and V of what a row must see.
  struct History {  // NOLINT(bugprone-exception-escape): as Tensor
    Tensor k;
    Tensor v;
    std::uint64_t shifts = 0;
    float largest_k = 0;
    float largest_v = 0;
  };

  void give_up(const StartForward& pass) {
    if (member_.memory == kMaxPosition) return;
    const auto lowest = lows_of(pass);
    for (auto& [number, sequence] : sequences_) {
      std::int64_t next = 0;
      for (const Held& held : sequence.tokens)
        next = std::max<std::int64_t>(next, held.token->position);
      const auto in_batch = lowest.find(number);
      const std::int64_t low = in_batch != lowest.end() ? in_batch->second : next + 1;
      for (Held& held : sequence.tokens)
        if (held.token->position < low - member_.memory) held.maybe_lost = true;
    }
  }

  void rebuild() {
    unknown_ = disturbed_;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      BatchRow& row = rows_[i];
      row.sees.clear();
      const Sequence& sequence = sequences_[row.sequence];
      row.unknown = sequence.unknown;
      for (const Held& held : sequence.tokens) {
        if (!sees(i, held.token->position)) continue;
        row.sees.push_back(held.token);
        row.unknown = row.unknown || held.maybe_lost;
      }
    }
  }

  [[nodiscard]] bool sees(std::size_t row, std::int32_t position) const {
    const std::int32_t own = rows_[row].position;
    const bool ahead = std::ranges::find(except_, static_cast<std::int64_t>(row)) != except_.end();
    if (position > own && !ahead) return false;
    if (member_.chunk > 0 && position < own - own % member_.chunk) return false;
    return std::int64_t{position} >= std::int64_t{own} - member_.window;
  }

  [[nodiscard]] bool shared(const Token* token, std::int64_t but) const {
    return std::ranges::any_of(sequences_, [&](const auto& other) {
      return other.first != but && !other.second.unknown &&
             std::ranges::any_of(other.second.tokens, [&](const Held& held) {
               return held.token.get() == token && !held.maybe_lost;
             });
    });
  }

  /// A row of `heads` heads, as the cache shows it once it is stored.
  [[nodiscard]] std::vector<float> stored(std::span<const float> row, std::int64_t heads) const {
    const std::size_t dim = row.size() / static_cast<std::size_t>(heads);
    std::vector<float> shown(row.size());
    std::vector<std::byte> bytes(stored_bytes(storage_, dim));
    for (std::size_t i = 0; i < row.size(); i += dim) {
      encode(storage_, row.subspan(i, dim), bytes.data());
      decode(storage_, bytes.data(), std::span(shown).subspan(i, dim));
    }
    return shown;
  }

  [[nodiscard]] std::optional<History> history(const BatchRow& row, std::int64_t layer) const {
    if (row.unknown) return std::nullopt;
    History history;
    std::vector<float> k;
    std::vector<float> v;
    Shape one{0, 0, 0};  // heads, elements of k, elements of v: those of the first token
    for (const auto& token : row.sees) {
      const auto rows = token->layers.find(layer);
      if (token->doubtful || rows == token->layers.end()) return std::nullopt;
      const TokenRows& put = rows->second;
      const Shape own{put.heads, std::ssize(put.k), std::ssize(put.v)};
      if (k.empty()) one = own;
      const auto keys = keys_now(*token, layer);
      if (own != one || !keys) return std::nullopt;
      k.insert(k.end(), keys->begin(), keys->end());
      v.insert(v.end(), put.v.begin(), put.v.end());
      history.shifts = std::max(history.shifts, put.shifts);
    }
    if (row.sees.empty()) return history;
    const std::int64_t tokens = std::ssize(row.sees);
    history.k = tensor_of({tokens, one[0], one[1] / one[0]}, k);
    history.v = tensor_of({tokens, one[0], one[2] / one[0]}, v);
    history.largest_k = largest(k);
    history.largest_v = largest(v);
    // Overflowed in the storage type, as far moves do in f16: attention says nothing then.
    const auto overflowed = [](float value) { return !std::isfinite(value); };
    if (std::ranges::any_of(k, overflowed) || std::ranges::any_of(v, overflowed))
      return std::nullopt;
    return history;
  }

  [[nodiscard]] std::optional<std::vector<float>> keys_now(const Token& token,
                                                           std::int64_t layer) const {
    const TokenRows& rows = token.layers.at(layer);
    std::vector<float> keys = rows.k;
    const std::array<std::int32_t, 1> offset{token.position - rows.put_at};
    if (offset[0] == 0 && rows.shifts == 0) return keys;
    const Shape shape{1, rows.heads, std::ssize(keys) / rows.heads};
    if (member_.shift == nullptr || !member_.shift(layer, shape, keys, offset)) return std::nullopt;
    return stored(keys, rows.heads);
  }

  [[nodiscard]] std::optional<std::string> judge(const BatchRow& row, const History& history,
                                                 const Get::Returns& shown,
                                                 std::span<const double> mask, bool permuted_v) {
    const StridedView k = view_of(*shown.k);
    const StridedView v = values_by_cell(*shown.v, permuted_v);
    std::vector<double> query(static_cast<std::size_t>(kQueriesPerHead * k.shape[1] * k.shape[2]));
    // Logits of the order of 1, so that every row has its share in what comes out.
    const double scale = history.largest_k > 0 ? 1.0 / double{history.largest_k} : 1.0;
    for (std::size_t i = 0; i < query.size(); ++i) query[i] = query_element(i) * scale;

    const std::vector<double> got = attention({query, k, v, mask});
    std::vector<double> want(got.size());
    if (!row.sees.empty()) {
      const Shape one_k{history.k.shape[1], history.k.shape[2]};
      const Shape one_v{history.v.shape[1], history.v.shape[2]};
      if (one_k != Shape{k.shape[1], k.shape[2]} || one_v != Shape{v.shape[1], v.shape[2]})
        return "shows rows of k " + numbers_text({k.shape[1], k.shape[2]}) + " and v " +
               numbers_text({v.shape[1], v.shape[2]}) + ", put were " + numbers_text(one_k) +
               " and " + numbers_text(one_v);
      const std::vector<double> all(row.sees.size(), 0.0);
      want = attention({query, view_of(history.k), view_of(history.v), all});
    }
    const double allowed = tolerance(storage_, history.shifts) * double{history.largest_v};
    for (std::size_t i = 0; i < want.size(); ++i) {
      // Not <=: a NaN that was shown is a difference, too.
      if (std::abs(got[i] - want[i]) <= allowed) continue;
      const auto visible =
          std::ranges::count_if(mask, [](double element) { return element != kUnseen; });
      return "sequence " + std::to_string(row.sequence) + " at position " +
             std::to_string(row.position) + ": attention over the " + std::to_string(visible) +
             " rows shown gives " + std::to_string(got[i]) + ", over the " +
             std::to_string(row.sees.size()) + " of its history " + std::to_string(want[i]) +
             " (element " + std::to_string(i) + ")";
    }
    return std::nullopt;
  }

  MemberOptions member_;
  bool documented_;
  StorageFormat storage_;
  std::map<std::int64_t, Sequence> sequences_;
  // The pass.
  std::vector<std::shared_ptr<Token>> targets_;  // empty in a reserve pass
  std::vector<BatchRow> rows_;
  std::vector<std::int64_t> except_;
  std::vector<std::int64_t> built_with_;  // documented: the list that the mask knows
  bool disturbed_ = false;                // sequences have changed since the pass began
  bool unknown_ = false;                  // the mask was rebuilt after that
  OracleCounts counts_;
};

// ---- the oracle ----

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
    return shown
               ? explain_get(kind_, setup_, script, want.as<Get::Returns>(), got.as<Get::Returns>())
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
