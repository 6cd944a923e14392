#include "reference/positional/causal_cache.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace kvo::positional {
namespace {

Error refused(std::string detail) {
  return fail(Code::kPrecondition, std::move(detail));
}

std::int64_t rounded_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// The smallest position that a batch has of each of its sequences.
std::map<std::int64_t, std::int32_t> lowest_positions(const Batch& batch) {
  std::map<std::int64_t, std::int32_t> lows;
  for (std::size_t i = 0; i < batch.positions.size(); ++i) {
    const auto [it, fresh] = lows.try_emplace(batch.sequences[i], batch.positions[i]);
    if (!fresh) it->second = std::min(it->second, batch.positions[i]);
  }
  return lows;
}

std::int64_t row_elements(const Tensor& stored) {
  return stored.shape[1] * stored.shape[2];
}

std::byte* row_of(Tensor& stored, std::size_t cell) {
  return stored.bytes.data() +
         cell * static_cast<std::size_t>(row_elements(stored)) * dtype_bytes(stored.dtype);
}

}  // namespace

void CausalCache::CellRange::extend(std::int64_t cell) {
  low = std::min(low, cell);
  high = std::max(high, cell);
}

void CausalCache::CellRange::extend(const CellRange& other) {
  low = std::min(low, other.low);
  high = std::max(high, other.high);
}

std::int32_t CausalCache::Cells::last_position(std::int64_t sequence) const {
  std::int32_t last = -1;
  for (std::size_t cell = 0; cell < cells.size(); ++cell)
    if (owns(sequence, cell)) last = std::max(last, cells[cell].position);
  return last;
}

void CausalCache::Cells::record(std::int64_t sequence) {
  CellRange hull;
  for (std::size_t cell = 0; cell < cells.size(); ++cell)
    if (owns(sequence, cell)) hull.extend(static_cast<std::int64_t>(cell));
  if (hull.empty()) {
    ranges.erase(sequence);
  } else {
    ranges[sequence] = hull;
  }
}

Result<std::unique_ptr<Cache>> CausalCache::make(const CacheSetup& setup) {
  const MemberSetup& member = setup.members.front();
  if (member.window < 0 || member.memory < 0) return refused("window, memory: below 0");
  return std::make_unique<CausalCache>(setup, member);
}

CausalCache::CausalCache(const CacheSetup& setup, MemberSetup member)
    : Cache(setup.profile, setup.quirks), setup_(std::move(member)), backend_(setup.backend) {}

BackendConfig CausalCache::effective() const {  // OK-9
  BackendConfig config = config_.value_or(backend_);
  if (config.cache_padding == 0) config.cache_padding = 1;
  return config;
}

Status CausalCache::do_set_config(const BackendConfig& config, std::optional<std::int64_t> member) {
  if (member) return refused("target: " + std::to_string(*member) + " of a cache of its own");
  if (config_) return refused("config cannot be changed after being previously set");  // OK-8
  config_ = config;
  return {};
}

Status CausalCache::do_init(const InitArguments& arguments) {
  const std::int64_t window = setup_.window == 0 ? kMaxPosition : setup_.window;  // OK-10
  std::int64_t memory = setup_.memory == 0 ? window : setup_.memory;
  if (memory != kMaxPosition && arguments.max_sequences > 1 && window != kMaxPosition)
    memory = std::max(memory, window + 1);                  // OK-11
  if (memory >= arguments.capacity) memory = kMaxPosition;  // OK-12
  if (memory < window)                                      // OK-13
    return refused("sliding window memory (" + std::to_string(memory) +
                   ") must be at least as large as the window (" + std::to_string(window) + ")");
  const std::int64_t wanted = memory == kMaxPosition
                                  ? arguments.max_sequences * arguments.capacity
                                  : arguments.max_sequences * memory + arguments.max_batch;
  const std::int64_t padding = effective().cache_padding;
  if (wanted > kMaxPosition || padding > kMaxPosition || rounded_up(wanted, padding) > kMaxPosition)
    return refused("max_sequences * capacity: too many cells");
  cells_.cells.resize(static_cast<std::size_t>(rounded_up(wanted, padding)));  // OK-14
  window_ = window;
  memory_ = memory;
  max_batch_ = arguments.max_batch;
  dtype_ = arguments.dtype;
  return {};
}

// ---- start_forward ----

std::int64_t CausalCache::kept_from(const Cells& held, std::int64_t sequence,
                                    std::optional<std::int32_t> low) const {
  if (low) return *low - memory_;                                                // OK-18
  return std::int64_t{1} + std::max(0, held.last_position(sequence)) - memory_;  // OK-19
}

void CausalCache::evict(Cells& held, const std::map<std::int64_t, std::int32_t>& lows) const {
  const auto ranges = held.ranges;
  for (const auto& [sequence, range] : ranges) {
    const auto low = lows.find(sequence);
    const std::int64_t first =
        kept_from(held, sequence, low == lows.end() ? std::nullopt : std::optional(low->second));
    for (Cell& cell : held.cells)
      if (cell.position < first) cell.owners.erase(sequence);
    held.record(sequence);
  }
}

CausalCache::CellRange CausalCache::provisional_range(
    const Cells& held, const std::map<std::int64_t, std::int32_t>& lows) const {
  CellRange range;
  for (const auto& [sequence, low] : lows) {
    if (!bounded()) {  // OK-17
      const auto recorded = held.ranges.find(sequence);
      if (recorded != held.ranges.end()) range.extend(recorded->second);
      continue;
    }
    for (std::size_t cell = 0; cell < held.cells.size(); ++cell)  // OK-20
      if (held.owns(sequence, cell) && held.cells[cell].position >= low - window_)
        range.extend(static_cast<std::int64_t>(cell));
  }
  return range;
}

std::vector<std::size_t> CausalCache::free_cells(const Cells& held, std::size_t most) const {
  std::vector<std::size_t> found;
  for (std::size_t cell = 0; cell < held.cells.size() && found.size() < most; ++cell)  // OK-21
    if (held.cells[cell].owners.empty()) found.push_back(cell);
  return found;
}

CausalCache::Change CausalCache::started(const Batch& batch) const {
  Change change{.cells = cells_};
  Cells& held = change.cells;
  Pass pass{.positions = {batch.positions.begin(), batch.positions.end()},
            .sequences = {batch.sequences.begin(), batch.sequences.end()},
            .reserve = batch.reserve};
  if (batch.reserve) {  // OK-27
    pass.range = {0, std::ssize(held.cells) - 1};
  } else {
    const auto lows = lowest_positions(batch);
    if (bounded()) evict(held, lows);
    pass.range = provisional_range(held, lows);
    const std::size_t wanted = batch.positions.size();
    pass.targets = free_cells(held, std::max<std::size_t>(wanted, 1));
    if (pass.targets.size() < std::max<std::size_t>(wanted, 1)) {  // OK-22, OK-29
      change.outcome = fail(Code::kFull, "no room for " + std::to_string(wanted) + " of " +
                                             std::to_string(held.cells.size()) + " cells");
      change.kept_by = Quirk::kFullEvicts;
      return change;
    }
    if (wanted == 0) return {.outcome = refused("positions: none")};  // OK-29
    for (std::size_t i = 0; i < wanted; ++i) {                        // OK-23
      const auto cell = static_cast<std::int64_t>(pass.targets[i]);
      held.cells[pass.targets[i]] = {pass.positions[i], {pass.sequences[i]}};
      held.ranges[pass.sequences[i]].extend(cell);
      pass.range.extend(cell);
    }
    const std::int64_t padding = effective().cache_padding;  // OK-25
    pass.range.low -= pass.range.low % padding;
    pass.range.high = rounded_up(pass.range.high + 1, padding) - 1;
  }
  pass.mask = mask(held, pass, {});
  change.pass = std::move(pass);
  return change;
}

bool CausalCache::Look::ahead() const {
  return std::ranges::find(except, static_cast<std::int64_t>(row)) != except.end();
}

bool CausalCache::visible(const Look& look) const {
  const std::int64_t own = look.own();
  return look.owned() && (look.seen() <= own || look.ahead()) &&
         (setup_.chunk <= 0 || look.seen() >= own - own % setup_.chunk) &&
         look.seen() >= own - window_;
}

Tensor CausalCache::mask(const Cells& held, const Pass& pass,
                         const std::vector<std::int64_t>& except) const {
  const DType dtype = dtype_of(effective().mask_dtype);
  const std::size_t width = dtype_bytes(dtype);
  Tensor made = make_tensor({std::ssize(pass.positions), pass.range.size()}, dtype);
  std::byte* to = made.bytes.data();
  for (std::size_t row = 0; row < pass.positions.size(); ++row)
    for (std::int64_t cell = pass.range.low; cell <= pass.range.high; ++cell, to += width)
      if (!visible({held, pass, except, row, static_cast<std::size_t>(cell)}))
        store_element(dtype, -std::numeric_limits<float>::infinity(), to);
  return made;
}

Status CausalCache::do_start_forward(const Batch& batch) {
  return settle(started(batch));
}

Status CausalCache::do_set_causal(std::span<const std::int64_t> except, bool with_context) {
  std::vector<std::int64_t> list(except.begin(), except.end());
  // OK-40: the original compares with the list given last, whether it was applied or not.
  const bool same = list == (has(Quirk::kListNeverApplied) ? pass_.except : pass_.mask_except);
  if (!same && with_context) {
    std::vector<std::int64_t> built_with = list;
    pass_.mask = mask(cells_, pass_, list);
    pass_.mask_except = std::move(built_with);
  }
  pass_.except = std::move(list);
  return {};
}

// ---- Rows ----

Status CausalCache::do_set_layer(std::int64_t layer) {
  layer_ = layer;
  return {};
}

Status CausalCache::do_put(const Rows& k, const Rows& v) {
  if (k.tokens != std::ssize(pass_.positions))  // OK-45
    return refused("inconsistent batch sizes (layer: " + std::to_string(layer_) +
                   ", batch size: " + std::to_string(pass_.positions.size()) +
                   " layer batch size: " + std::to_string(k.tokens) + ")");
  const std::int64_t count = std::ssize(cells_.cells);
  const Shape k_shape{count, k.heads, k.dim};
  const Shape v_shape{count, v.heads, v.dim};
  auto found = layers_.find(layer_);
  if (found == layers_.end()) {  // OK-43
    if (!element_count(k_shape) || !element_count(v_shape)) return fail(Code::kOutOfMemory);
    Layer layer{make_tensor(k_shape, dtype_), make_tensor(v_shape, dtype_)};
    found = layers_.emplace(layer_, std::move(layer)).first;
  }
  Layer& layer = found->second;
  if (layer.k.shape != k_shape || layer.v.shape != v_shape)
    return refused("k, v: other rows than before in layer " + std::to_string(layer_));
  if (pass_.reserve) return {};  // OK-27
  store(pass_, k, layer.k);
  store(pass_, v, layer.v);
  return {};
}

void CausalCache::store(const Pass& pass, const Rows& rows, Tensor& stored) const {
  const auto width = static_cast<std::size_t>(row_elements(stored));
  const std::size_t bytes = dtype_bytes(stored.dtype);
  for (std::size_t token = 0; token < pass.targets.size(); ++token) {
    std::byte* to = row_of(stored, pass.targets[token]);
    for (std::size_t i = 0; i < width; ++i)  // OK-46
      store_element(stored.dtype, rows.values[token * width + i], to + i * bytes);
  }
}

Result<Shown> CausalCache::do_get() {
  const auto found = layers_.find(layer_);
  if (found == layers_.end())  // OK-49
    return refused("layer " + std::to_string(layer_) + " has no storage");
  const auto rows = [&](Tensor& stored) {
    StridedView view = view_of(stored);
    view.shape[0] = pass_.range.size();
    if (!pass_.range.empty()) view.data = row_of(stored, static_cast<std::size_t>(pass_.range.low));
    return view;
  };
  Shown shown{.k = rows(found->second.k), .v = rows(found->second.v), .mask = view_of(pass_.mask)};
  if (effective().permuted_v) {  // OK-48
    for (Shape* axes : {&shown.v->shape, &shown.v->strides})
      std::rotate(axes->begin(), axes->begin() + 1, axes->end());
  }
  return shown;
}

// ---- copy_prefix, can_resume, remove ----

CausalCache::Change CausalCache::copied(std::int64_t source, std::int64_t target,
                                        std::int32_t length) const {
  Change change{.cells = cells_};
  for (Cell& cell : change.cells.cells) {  // OK-51
    const bool shares = cell.owners.contains(source) && cell.position < length;
    cell.owners.erase(target);
    // OK-54: the original looks for the source after the target is gone, even if both are one.
    if (shares && (source != target || !has(Quirk::kCopyOntoItselfEmpties)))
      cell.owners.insert(target);
  }
  change.cells.record(target);
  return change;
}

Status CausalCache::do_copy_prefix(std::int64_t source, std::int64_t target, std::int32_t length) {
  return settle(copied(source, target, length));
}

bool CausalCache::resumable(const Cells& held, std::int64_t sequence, std::int64_t position) const {
  std::set<std::int64_t> owned;
  for (std::size_t cell = 0; cell < held.cells.size(); ++cell)
    if (held.owns(sequence, cell)) owned.insert(held.cells[cell].position);
  std::int64_t first = std::max<std::int64_t>(0, position - window_);
  if (!bounded() && has(Quirk::kAnythingResumes)) return true;                   // OK-55
  if (bounded() && owned.empty() && has(Quirk::kNothingToResume)) return false;  // OK-57
  if (bounded() && !owned.empty() && has(Quirk::kHolesUnnoticed))
    return first >= *owned.begin() && position <= *owned.rbegin() + 1;  // OK-56
  // All that a token there would see.
  if (position < 0) return false;
  if (setup_.chunk > 0) first = std::max(first, position - position % setup_.chunk);
  const auto seen = std::distance(owned.lower_bound(first), owned.lower_bound(position));
  return seen == position - first;
}

Result<bool> CausalCache::do_can_resume(std::int64_t sequence, std::int32_t position) const {
  return resumable(cells_, sequence, position);
}

Status CausalCache::cut(Cells& held, std::int64_t sequence, std::int32_t begin,
                        std::int32_t end) const {
  for (std::size_t c = 0; c < held.cells.size(); ++c) {
    if (!held.owns(sequence, c)) continue;
    Cell& cell = held.cells[c];
    if (cell.position >= begin && cell.position < end) {
      cell.owners.erase(sequence);
    } else if (cell.position >= end) {
      if (cell.owners.size() > 1) return shared_later_cell();  // OK-67
      cell.position += begin - end;
    }
  }
  held.record(sequence);  // OK-61, OK-62
  return {};
}

CausalCache::Change CausalCache::removed(std::int64_t sequence, std::int32_t begin,
                                         std::int32_t end) const {
  Change change{.cells = cells_};
  if (begin > end && !has(Quirk::kInvertedRangeMovesUp)) {  // OK-68
    change.outcome = fail(Code::kOutOfRange, "begin > end");
    return change;
  }
  if (begin == end && !has(Quirk::kEmptyRangeShifts)) return change;
  bool moves = false;
  for (std::size_t cell = 0; cell < cells_.cells.size(); ++cell) {
    const std::int64_t position = cells_.cells[cell].position;
    if (!cells_.owns(sequence, cell) || position < end) continue;
    moves = true;
    const std::int64_t then = position + begin - end;
    if (then < 0 || then >= kMaxPosition)
      return {.outcome = refused("begin, end: positions leave their domain")};
  }
  change.outcome = cut(change.cells, sequence, begin, end);
  change.kept_by = Quirk::kSharedHalfRemoved;
  if (!change.outcome) return change;
  const bool left = change.cells.ranges.contains(sequence);
  if (end == kMaxPosition || !left) return change;                  // OK-61, OK-63
  if (!moves && !has(Quirk::kNothingToMoveRefused)) return change;  // OK-66
  change.kept_by = Quirk::kPositionsMoveFirst;
  change.outcome = shift_keys(change, sequence, begin, end);
  return change;
}

std::int32_t CausalCache::offset_of(const Cells& held, std::int64_t sequence, std::size_t cell,
                                    std::int32_t begin, std::int32_t end) const {
  return held.owns(sequence, cell) && held.cells[cell].position >= begin ? begin - end : 0;
}

Status CausalCache::shift_keys(Change& change, std::int64_t sequence, std::int32_t begin,
                               std::int32_t end) const {
  const Cells& held = change.cells;
  if (!setup_.shift) return fail(Code::kNotSupported, "no shift function");  // OK-66
  if (bounded() && !has(Quirk::kWindowIncomplete) &&                         // OK-60
      !resumable(held, sequence, std::int64_t{1} + held.last_position(sequence)))
    return fail(Code::kNotSupported, "the window would be incomplete");
  const CellRange range = held.ranges.at(sequence);
  for (std::int64_t group = range.low; group <= range.high; group += max_batch_) {  // OK-65
    const std::int64_t behind = std::min(group + max_batch_, range.high + 1);
    CellRange trimmed;
    for (std::int64_t c = group; c < behind; ++c) {
      const auto cell = static_cast<std::size_t>(c);
      if (held.owns(sequence, cell) && held.cells[cell].position >= begin) trimmed.extend(c);
    }
    if (trimmed.empty()) continue;
    Group shifted{.first = static_cast<std::size_t>(trimmed.low)};
    for (std::int64_t c = trimmed.low; c <= trimmed.high; ++c) {
      const auto cell = static_cast<std::size_t>(c);
      shifted.moved.push_back(held.owns(sequence, cell) && held.cells[cell].position >= begin);
      shifted.offsets.push_back(offset_of(held, sequence, cell, begin, end));
    }
    for (const auto& [number, layer] : layers_)
      if (Status done = shift_group(change, layer, number, shifted); !done) return done;
  }
  return {};
}

Status CausalCache::shift_group(Change& change, const Layer& layer, std::int64_t number,
                                const Group& group) const {
  const auto width = static_cast<std::size_t>(row_elements(layer.k));
  const std::size_t bytes = dtype_bytes(dtype_);
  const Shape shape{std::ssize(group.offsets), layer.k.shape[1], layer.k.shape[2]};
  const std::byte* from = layer.k.bytes.data() + group.first * width * bytes;
  std::vector<float> keys(group.offsets.size() * width);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = load_element(dtype_, from + i * bytes);
  if (Status done = setup_.shift(number, shape, keys, group.offsets); !done) return done;
  for (std::size_t cell = 0; cell < group.offsets.size(); ++cell) {
    if (!group.moved[cell] && !has(Quirk::kForeignRowsConverted)) continue;  // OK-65
    KeyWrite write{
        .layer = number, .cell = group.first + cell, .row = std::vector<std::byte>(width * bytes)};
    for (std::size_t i = 0; i < width; ++i)
      store_element(dtype_, keys[cell * width + i], write.row.data() + i * bytes);
    change.keys.push_back(std::move(write));
  }
  return {};
}

Status CausalCache::do_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) {
  return settle(removed(sequence, begin, end));
}

// ---- Changes ----

void CausalCache::unwind(Change& change, const Batch& batch) {
  for (std::size_t i = 0; i < batch.positions.size(); ++i) {
    for (Cell& cell : change.cells.cells)
      if (cell.position >= batch.positions[i]) cell.owners.erase(batch.sequences[i]);
    change.cells.record(batch.sequences[i]);
  }
}

void CausalCache::commit(Change change) noexcept {  // NOLINT(bugprone-exception-escape)
  cells_ = std::move(change.cells);
  if (change.pass) pass_ = std::move(*change.pass);
  for (const KeyWrite& write : change.keys)
    std::memcpy(row_of(layers_.at(write.layer).k, write.cell), write.row.data(), write.row.size());
}

Status CausalCache::settle(Change change) {
  Status outcome = change.outcome;
  if (outcome || (change.kept_by && has(*change.kept_by))) commit(std::move(change));
  return outcome;
}

}  // namespace kvo::positional
