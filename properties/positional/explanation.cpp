#include "properties/positional/explanation.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "properties/positional/followed_cache.hpp"
#include "reference/contract/subject/dispatch.hpp"
#include "reference/contract/values/numeric.hpp"

namespace kvo::positional {
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

}  // namespace kvo::positional
