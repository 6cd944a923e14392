#include "reference/positional/causal_cache.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "reference/contract/values/mark.hpp"

namespace kvo::positional {
namespace {

// Kinds whose scripts must reach a mark.
constexpr char kAny[] =  // NOLINT: an argument of a template
    "positional.causal positional.swa positional.swa_mem positional.chunked positional.wrapper";
constexpr char kWindowed[] = "positional.swa positional.swa_mem positional.wrapper";  // NOLINT

std::int64_t rounded_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::size_t row_elements(const Tensor& stored) {
  return static_cast<std::size_t>(stored.shape[1] * stored.shape[2]);
}

std::byte* row_of(Tensor& stored, std::size_t cell) {
  return stored.bytes.data() + cell * row_elements(stored) * dtype_bytes(stored.dtype);
}

/// Stores a row of all heads, head by head (OK-46).
void store(const StorageFormat& format, std::span<const float> row, Tensor& stored,
           std::size_t cell) {
  const auto dim = static_cast<std::size_t>(stored.shape[2]);
  for (std::size_t i = 0; i < row.size(); i += dim)
    show_stored(format, row.subspan(i, dim), row_of(stored, cell) + i * dtype_bytes(stored.dtype));
}

}  // namespace

void CausalCache::CellRange::extend(std::int64_t cell) {
  low = std::min(low, cell);
  high = std::max(high, cell);
}

bool CausalCache::State::owns(std::int64_t sequence, std::size_t cell) const {
  return cells[cell].owners.contains(sequence);
}

std::int32_t CausalCache::State::last_position(std::int64_t sequence) const {
  std::int32_t last = -1;
  for (const Cell& cell : cells)
    if (cell.owners.contains(sequence)) last = std::max(last, cell.position);
  return last;
}

void CausalCache::State::record(std::int64_t sequence) {
  ranges.erase(sequence);
  for (std::size_t cell = 0; cell < cells.size(); ++cell)
    if (owns(sequence, cell)) ranges[sequence].extend(static_cast<std::int64_t>(cell));
}

Result<std::unique_ptr<Cache>> CausalCache::make(const CacheOptions& options) {
  const MemberOptions& member = options.members.front();
  if (member.window < 0 || member.memory < 0) return refused("window, memory: below 0");
  return std::make_unique<CausalCache>(options, member);
}

CausalCache::CausalCache(const CacheOptions& options, MemberOptions member)
    : Cache(options.quirks), options_(std::move(member)), backend_(options.backend) {}

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

Status CausalCache::do_init(const InitOptions& arguments) {
  const std::int64_t window = options_.window == 0 ? kMaxPosition : options_.window;  // OK-10
  std::int64_t memory = options_.memory == 0 ? window : options_.memory;
  if (memory != kMaxPosition && arguments.max_sequences > 1 && window != kMaxPosition)
    memory = std::max(memory, window + 1);                  // OK-11
  if (memory >= arguments.capacity) memory = kMaxPosition;  // OK-12
  if (memory < window)                                      // OK-13
    return refused("sliding window memory (" + std::to_string(memory) +
                   ") must be at least as large as the window (" + std::to_string(window) + ")");
  const std::int64_t wanted = memory == kMaxPosition  // OK-14
                                  ? arguments.max_sequences * arguments.capacity
                                  : arguments.max_sequences * memory + arguments.max_batch;
  const std::int64_t padding = effective().cache_padding;
  if (wanted > kMaxPosition || padding > kMaxPosition || rounded_up(wanted, padding) > kMaxPosition)
    return refused("max_sequences * capacity: too many cells");
  state_.cells.resize(static_cast<std::size_t>(rounded_up(wanted, padding)));
  window_ = window;
  memory_ = memory;
  max_batch_ = arguments.max_batch;
  storage_ = arguments.storage;
  return {};
}

// ---- start_forward, set_causal ----

void CausalCache::evict(State& next, const Lows& lows) const {
  const auto ranges = next.ranges;
  for (const auto& [sequence, range] : ranges) {
    const auto low = lows.find(sequence);
    const std::int64_t newest = low != lows.end()
                                    ? std::int64_t{low->second}  // OK-18
                                    : std::int64_t{1} + std::max(0, next.last_position(sequence));
    for (Cell& cell : next.cells)  // OK-19
      if (cell.position < newest - memory_ && cell.owners.erase(sequence) > 0)
        KVO_MARK(kWindowed, "window exceeded");
    next.record(sequence);
  }
}

CausalCache::CellRange CausalCache::provisional_range(const State& state, const Lows& lows) const {
  CellRange range;
  for (const auto& [sequence, low] : lows) {
    const auto recorded = state.ranges.find(sequence);
    if (!bounded() && recorded != state.ranges.end()) {  // OK-17
      range.extend(recorded->second.low);
      range.extend(recorded->second.high);
    }
    for (std::size_t cell = 0; bounded() && cell < state.cells.size(); ++cell)  // OK-20
      if (state.owns(sequence, cell) && state.cells[cell].position >= low - window_)
        range.extend(static_cast<std::int64_t>(cell));
  }
  return range;
}

void CausalCache::insert(State& next, Pass& pass) {
  for (std::size_t i = 0; i < pass.targets.size(); ++i) {  // OK-23
    const auto cell = static_cast<std::int64_t>(pass.targets[i]);
    next.cells[pass.targets[i]] = {pass.positions[i], {pass.sequences[i]}};
    next.ranges[pass.sequences[i]].extend(cell);
    pass.range.extend(cell);
  }
}

Status CausalCache::start(State& next, const Batch& batch) const {
  Pass pass{.positions = {batch.positions.begin(), batch.positions.end()},
            .sequences = {batch.sequences.begin(), batch.sequences.end()},
            .reserve = batch.reserve};
  if (batch.reserve) {  // OK-27
    pass.range = {0, std::ssize(next.cells) - 1};
  } else {
    Lows lows;
    for (std::size_t i = 0; i < batch.positions.size(); ++i) {
      std::int32_t& low = lows.try_emplace(batch.sequences[i], kMaxPosition).first->second;
      low = std::min(low, batch.positions[i]);
    }
    if (bounded()) evict(next, lows);
    pass.range = provisional_range(next, lows);
    const std::size_t wanted = std::max<std::size_t>(batch.positions.size(), 1);
    for (std::size_t cell = 0; cell < next.cells.size() && pass.targets.size() < wanted; ++cell)
      if (next.cells[cell].owners.empty()) pass.targets.push_back(cell);  // OK-21
    if (pass.targets.size() < wanted)                                     // OK-22, OK-29
      return fail(Code::kFull, "no room for " + std::to_string(wanted) + " of " +
                                   std::to_string(next.cells.size()) + " cells");
    if (batch.positions.empty()) return refused("positions: none");  // OK-29
    insert(next, pass);
    for (const std::size_t cell : pass.targets)
      if (!state_.cells[cell].owners.empty()) KVO_MARK(kWindowed, "ring of cells reused");
    const std::int64_t padding = effective().cache_padding;  // OK-25
    if (pass.range.low % padding != 0 || (pass.range.high + 1) % padding != 0)
      KVO_MARK(kAny, "padding rounded the range");
    pass.range.low -= pass.range.low % padding;
    pass.range.high = rounded_up(pass.range.high + 1, padding) - 1;
  }
  pass.mask = mask(next, pass, {});  // OK-39
  next.pass = std::move(pass);
  return {};
}

Status CausalCache::do_start_forward(const Batch& batch) {
  State next = state_;
  Status done = start(next, batch);
  const bool full = failed_with(done, Code::kFull);
  if (done || (full && has(Quirk::kFullEvicts))) std::swap(state_, next);  // OK-22
  return done;
}

std::vector<CausalCache::Run> CausalCache::State::runs(std::int64_t sequence,
                                                       const CellRange& range) const {
  std::vector<Run> runs;
  for (std::int64_t cell = range.low; cell <= range.high; ++cell) {
    if (!owns(sequence, static_cast<std::size_t>(cell))) continue;
    const std::int64_t position = cells[static_cast<std::size_t>(cell)].position;
    const bool next = !runs.empty() && runs.back().cell + runs.back().length == cell &&
                      runs.back().position + runs.back().length == position;
    if (!next) runs.push_back({cell, position, 0});
    ++runs.back().length;
  }
  return runs;
}

std::shared_ptr<const Tensor> CausalCache::mask(const State& state, const Pass& pass,
                                                const std::vector<std::int64_t>& except) const {
  const DType dtype = dtype_of(effective().mask_dtype);  // OK-36
  const auto bytes = static_cast<std::int64_t>(dtype_bytes(dtype));
  Tensor hidden = make_tensor({pass.range.size()}, dtype);
  for (std::size_t at = 0; at < hidden.bytes.size(); at += dtype_bytes(dtype))
    store_element(dtype, -std::numeric_limits<float>::infinity(), &hidden.bytes[at]);
  std::map<std::int64_t, std::vector<Run>> owned;  // OK-31 (a)
  for (const std::int64_t sequence : pass.sequences)
    if (!owned.contains(sequence)) owned[sequence] = state.runs(sequence, pass.range);
  auto made = std::make_shared<Tensor>();
  made->shape = {std::ssize(pass.positions), pass.range.size()};  // OK-30
  made->dtype = dtype;
  std::vector<std::byte>& mask = made->bytes.own();
  mask.reserve(pass.positions.size() * hidden.bytes.size());
  for (std::size_t row = 0; row < pass.positions.size(); ++row) {
    const std::int64_t own = pass.positions[row];
    const bool ahead = std::ranges::count(except, static_cast<std::int64_t>(row)) > 0;  // OK-38
    const std::int64_t last = ahead ? kMaxPosition : own;                               // OK-31 (b)
    std::int64_t first = own - window_;  // OK-31 (d), (c)
    if (options_.chunk > 0) first = std::max(first, own - own % options_.chunk);
    const auto columns = mask.insert(mask.end(), hidden.bytes.begin(), hidden.bytes.end());
    for (const Run& run : owned.at(pass.sequences[row])) {
      const std::int64_t from = std::max(first, run.position);
      if (options_.chunk > 0 && from > run.position)
        KVO_MARK("positional.chunked positional.wrapper", "chunk boundary crossed");
      const std::int64_t end = std::min(last + 1, run.position + run.length);
      const std::int64_t column = run.cell + from - run.position - pass.range.low;
      if (from < end) std::fill_n(columns + column * bytes, (end - from) * bytes, std::byte{0});
    }
  }
  return made;
}

Status CausalCache::do_set_causal(std::span<const std::int64_t> except, bool with_context) {
  Pass pass = state_.pass;
  pass.except.assign(except.begin(), except.end());
  // OK-40: the original compares with the list given last, whether it was applied or not.
  const auto& last = has(Quirk::kListNeverApplied) ? state_.pass.except : state_.pass.mask_except;
  if (pass.except != last && with_context) {
    pass.mask = mask(state_, pass, pass.except);  // OK-41
    pass.mask_except = pass.except;
  }
  std::swap(state_.pass, pass);
  return {};
}

// ---- Rows ----

Status CausalCache::do_set_layer(std::int64_t layer) {
  layer_ = layer;
  return {};
}

Status CausalCache::do_put(const Rows& k, const Rows& v) {
  const Pass& pass = state_.pass;
  if (k.tokens != std::ssize(pass.positions))  // OK-45
    return refused("inconsistent batch sizes (layer: " + std::to_string(layer_) +
                   ", batch size: " + std::to_string(pass.positions.size()) +
                   " layer batch size: " + std::to_string(k.tokens) + ")");
  const std::int64_t count = std::ssize(state_.cells);
  const Shape k_shape{count, k.heads, k.dim};
  const Shape v_shape{count, v.heads, v.dim};
  if (!state_.layers.contains(layer_)) {  // OK-43
    if (!element_count(k_shape) || !element_count(v_shape)) return fail(Code::kOutOfMemory);
    Layer fresh{std::make_shared<Tensor>(make_tensor(k_shape, dtype_of(storage_.type))),
                std::make_shared<Tensor>(make_tensor(v_shape, dtype_of(storage_.type)))};
    state_.layers.emplace(layer_, std::move(fresh));
  }
  const Layer& layer = state_.layers.at(layer_);
  if (layer.k->shape != k_shape || layer.v->shape != v_shape)
    return refused("k, v: other rows than before in layer " + std::to_string(layer_));
  if (pass.reserve) return {};                                       // OK-27
  for (std::size_t token = 0; token < pass.targets.size(); ++token)  // OK-44
    for (const auto& [rows, stored] : {std::pair(&k, layer.k), std::pair(&v, layer.v)}) {
      const std::size_t width = row_elements(*stored);
      store(storage_, rows->values.subspan(token * width, width), *stored, pass.targets[token]);
    }
  return {};
}

Result<Shown> CausalCache::do_get() {
  const Pass& pass = state_.pass;
  const auto found = state_.layers.find(layer_);
  if (found == state_.layers.end())  // OK-49
    return refused("layer " + std::to_string(layer_) + " has no storage");
  const auto rows = [&](Tensor& stored) {  // OK-47
    StridedView view = view_of(stored);
    view.shape[0] = pass.range.size();
    if (!pass.range.empty()) view.data = row_of(stored, static_cast<std::size_t>(pass.range.low));
    return view;
  };
  Shown shown{
      .k = rows(*found->second.k), .v = rows(*found->second.v), .mask = view_of(*pass.mask)};
  if (effective().permuted_v)  // OK-48
    for (Shape* axes : {&shown.v->shape, &shown.v->strides})
      std::rotate(axes->begin(), axes->begin() + 1, axes->end());
  return shown;
}

// ---- copy_prefix, can_resume, remove ----

Status CausalCache::do_copy_prefix(std::int64_t source, std::int64_t target, std::int32_t length) {
  State next = state_;
  for (Cell& cell : next.cells) {  // OK-51
    const bool shares = cell.owners.contains(source) && cell.position < length;
    cell.owners.erase(target);
    // OK-54: the original looks for the source after the target is gone, even if both are one.
    if (shares && (source != target || !has(Quirk::kCopyOntoItselfEmpties)))
      cell.owners.insert(target);
    if (shares && source != target) KVO_MARK(kAny, "shared cells");
  }
  next.record(target);
  std::swap(state_, next);
  return {};
}

bool CausalCache::resumable(const State& state, std::int64_t sequence,
                            std::int64_t position) const {
  std::set<std::int64_t> owned;
  for (std::size_t cell = 0; cell < state.cells.size(); ++cell)
    if (state.owns(sequence, cell)) owned.insert(state.cells[cell].position);
  std::int64_t first = std::max<std::int64_t>(0, position - window_);
  if (!bounded() && has(Quirk::kAnythingResumes)) return true;                   // OK-55
  if (bounded() && owned.empty() && has(Quirk::kNothingToResume)) return false;  // OK-57
  if (bounded() && !owned.empty() && has(Quirk::kHolesUnnoticed))                // OK-56, OK-58
    return first >= *owned.begin() && position <= *owned.rbegin() + 1;
  if (position < 0) return false;
  if (options_.chunk > 0) first = std::max(first, position - position % options_.chunk);
  const auto seen = std::distance(owned.lower_bound(first), owned.lower_bound(position));
  return seen == position - first;  // documented: all that a token there would see
}

Result<bool> CausalCache::do_can_resume(std::int64_t sequence, std::int32_t position) const {
  return resumable(state_, sequence, position);
}

Status CausalCache::cut(State& next, std::int64_t sequence, std::int32_t begin, std::int32_t end) {
  for (std::size_t c = 0; c < next.cells.size(); ++c) {  // OK-60
    Cell& cell = next.cells[c];
    if (!next.owns(sequence, c)) continue;
    if (cell.position >= begin && cell.position < end) {
      cell.owners.erase(sequence);
    } else if (cell.position >= end) {
      if (cell.owners.size() > 1) return shared_later_cell();  // OK-67
      cell.position += begin - end;
    }
  }
  next.record(sequence);  // OK-61, OK-62
  return {};
}

Status CausalCache::do_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) {
  if (begin > end && !has(Quirk::kInvertedRangeMovesUp))  // OK-68
    return fail(Code::kOutOfRange, "begin > end");
  if (begin == end && !has(Quirk::kEmptyRangeShifts)) return {};  // OK-68
  bool moves = false;
  for (std::size_t cell = 0; cell < state_.cells.size(); ++cell) {
    const std::int64_t position = state_.cells[cell].position;
    if (!state_.owns(sequence, cell) || position < end) continue;
    moves = true;
    const std::int64_t then = position + begin - end;
    if (then < 0 || then >= kMaxPosition)
      return refused("begin, end: positions leave their domain");
  }
  State next = state_;
  if (Status done = cut(next, sequence, begin, end); !done) {
    if (has(Quirk::kSharedHalfRemoved)) std::swap(state_, next);
    return done;
  }
  Status done;
  const bool left = next.ranges.contains(sequence);
  if (end != kMaxPosition && left && (moves || has(Quirk::kNothingToMoveRefused)))  // OK-61, OK-63
    done = shift_keys(next, sequence, begin, end);
  if (done || has(Quirk::kPositionsMoveFirst)) std::swap(state_, next);  // OK-64, OK-66
  return done;
}

Status CausalCache::shift_keys(State& next, std::int64_t sequence, std::int32_t begin,
                               std::int32_t end) const {
  if (!options_.shift) return fail(Code::kNotSupported, "no shift function");  // OK-66
  if (bounded() && !has(Quirk::kWindowIncomplete) &&                           // OK-60
      !resumable(next, sequence, std::int64_t{1} + next.last_position(sequence)))
    return fail(Code::kNotSupported, "the window would be incomplete");
  const auto moved = [&](std::int64_t c) {
    const auto cell = static_cast<std::size_t>(c);
    return next.owns(sequence, cell) && next.cells[cell].position >= begin;
  };
  for (auto& [number, layer] : next.layers) layer.k = std::make_shared<Tensor>(*layer.k);
  const CellRange range = next.ranges.at(sequence);
  for (std::int64_t group = range.low; group <= range.high; group += max_batch_) {  // OK-65
    CellRange trimmed;
    for (std::int64_t c = group; c < std::min(group + max_batch_, range.high + 1); ++c)
      if (moved(c)) trimmed.extend(c);
    if (trimmed.empty()) continue;
    std::vector<std::int32_t> offsets;
    for (std::int64_t c = trimmed.low; c <= trimmed.high; ++c) {
      offsets.push_back(moved(c) ? begin - end : 0);
      if (!moved(c) && next.owns(sequence, static_cast<std::size_t>(c)))
        KVO_MARK(kAny, "kept cells between moved ones");
    }
    for (const auto& [number, layer] : next.layers) {
      const std::size_t width = row_elements(*layer.k);
      const std::byte* const rows = row_of(*layer.k, static_cast<std::size_t>(trimmed.low));
      std::vector<float> keys(offsets.size() * width);
      const DType dtype = layer.k->dtype;
      for (std::size_t i = 0; i < keys.size(); ++i)
        keys[i] = load_element(dtype, rows + i * dtype_bytes(dtype));
      const Shape shape{trimmed.size(), layer.k->shape[1], layer.k->shape[2]};
      if (Status done = options_.shift(number, shape, keys, offsets); !done) return done;  // OK-66
      for (std::size_t i = 0; i < offsets.size(); ++i)  // documented: only rows that move
        if (offsets[i] != 0 || has(Quirk::kForeignRowsConverted))
          store(storage_, std::span(keys).subspan(i * width, width), *layer.k,
                static_cast<std::size_t>(trimmed.low) + i);
    }
  }
  return {};
}

}  // namespace kvo::positional
