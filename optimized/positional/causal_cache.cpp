#include "optimized/positional/causal_cache.hpp"

#include <algorithm>
#include <utility>

#include "optimized/positional/host_store.hpp"

namespace kvo::optimized {

using positional::kMaxPosition;
using positional::refused;

Result<std::unique_ptr<positional::Cache>> PositionalCausalCache::make(
    const positional::CacheOptions& options) {
  if (options.members.size() != 1) return refused("members: not one");
  return make_over(options, std::make_unique<PositionalHostStore>(options.members.front().shift));
}

Result<std::unique_ptr<positional::Cache>> PositionalCausalCache::make_over(
    const positional::CacheOptions& options, std::unique_ptr<PositionalStore> store) {
  if (options.members.size() != 1) return refused("members: not one");
  const positional::MemberOptions& member = options.members.front();
  if (member.window < 0) return refused("window: " + std::to_string(member.window));
  if (member.memory < 0) return refused("memory: " + std::to_string(member.memory));
  return std::make_unique<PositionalCausalCache>(member, options.backend, options.quirks,
                                                 std::move(store));
}

PositionalCausalCache::PositionalCausalCache(positional::MemberOptions options,
                                             const positional::BackendConfig& backend,
                                             QuirkSet<positional::Quirk> quirks,
                                             std::unique_ptr<PositionalStore> store)
    : PositionalMember(backend, quirks), options_(std::move(options)), store_(std::move(store)) {}

Status PositionalCausalCache::prepare_init(const positional::InitOptions& arguments) {
  const positional::BackendConfig effective = config();
  std::int32_t window = options_.window == 0 ? kMaxPosition : options_.window;  // OK-10
  std::int32_t memory = options_.memory == 0 ? window : options_.memory;
  // OK-11; without a window there is nothing behind it.
  if (memory != kMaxPosition && arguments.max_sequences > 1 && window != kMaxPosition)
    memory = std::max(memory, window + 1);
  if (memory >= arguments.capacity) memory = kMaxPosition;  // OK-12
  if (memory < window)                                      // OK-13
    return refused("sliding window memory (" + std::to_string(memory) +
                   ") must be at least as large as the window (" + std::to_string(window) + ")");
  const bool all = memory == kMaxPosition;
  const std::int64_t wanted =  // OK-14
      arguments.max_sequences * (all ? arguments.capacity : std::int64_t{memory}) +
      (all ? 0 : arguments.max_batch);
  const std::int64_t padding = std::max<std::int64_t>(effective.cache_padding, 1);
  if (wanted > kMaxPosition || padding > kMaxPosition) return refused("max_sequences: many cells");
  const std::int64_t cells = (wanted + padding - 1) / padding * padding;
  if (cells > kMaxPosition) return refused("cache_padding: many cells");
  if (Status fit = store_->check(arguments.storage); !fit) return fit;
  prepared_ = Size{.pool = CellPool(cells),
                   .window = window,
                   .memory = memory,
                   .max_batch = arguments.max_batch,
                   .padding = padding,
                   .permuted_v = effective.permuted_v,
                   .mask_dtype = positional::dtype_of(effective.mask_dtype),
                   .storage = arguments.storage};
  return {};
}

void PositionalCausalCache::commit() noexcept {  // NOLINT(bugprone-exception-escape)
  // Not std::visit, which may throw.
  if (auto* size = std::get_if<Size>(&prepared_)) finish(*size);
  if (auto* start = std::get_if<Start>(&prepared_)) finish(*start);
  if (auto* copy = std::get_if<Copy>(&prepared_)) finish(*copy);
  if (auto* removal = std::get_if<Removal>(&prepared_)) finish(*removal);
  prepared_.emplace<std::monostate>();
}

void PositionalCausalCache::cancel() noexcept {  // NOLINT(bugprone-exception-escape)
  if (std::holds_alternative<Start>(prepared_)) {
    for (const std::int32_t cell : next_.targets) size_.pool.release(cell);
    for (const Trim& trim : trims_) trim.cells->restore(trim.count, size_.pool);
    for (const BatchSequence& sequence : next_.sequences)
      if (sequence.cells != nullptr && sequence.cells->empty()) forget(sequence.name);
  }
  if (const Copy* copy = std::get_if<Copy>(&prepared_))
    if (copy->cells != nullptr && copy->cells->empty()) forget(copy->target);
  if (std::holds_alternative<Removal>(prepared_)) store_->cancel_keys();
  prepared_.emplace<std::monostate>();
}

void PositionalCausalCache::finish(Size& size) noexcept {
  size_ = std::move(size);
  store_->open({.rows = {size_.pool.size(), size_.storage, size_.permuted_v},
                .mask_dtype = size_.mask_dtype,
                .window = size_.window,
                .chunk = options_.chunk});
}

// ---- Sequences ----

SequenceCells* PositionalCausalCache::find(std::int64_t name) {
  const auto found = sequences_.find(name);
  return found == sequences_.end() ? nullptr : &found->second;
}

const SequenceCells* PositionalCausalCache::find(std::int64_t name) const {
  const auto found = sequences_.find(name);
  return found == sequences_.end() ? nullptr : &found->second;
}

SequenceCells* PositionalCausalCache::find_or_make(std::int64_t name) {
  if (SequenceCells* cells = find(name)) return cells;
  return &sequences_.try_emplace(name, size_.pool.next_version()).first->second;
}

void PositionalCausalCache::forget(std::int64_t name) noexcept {
  const auto found = sequences_.find(name);
  if (found == sequences_.end()) return;
  if (found->second.touched) std::erase(touched_, name);
  sequences_.erase(found);
}

void PositionalCausalCache::reserve_touch() {
  if (!bounded() || touched_.size() < touched_.capacity()) return;
  touched_.reserve(2 * touched_.size() + 1);
}

void PositionalCausalCache::touch(std::int64_t name, SequenceCells& cells) noexcept {
  if (bounded() && !std::exchange(cells.touched, true)) touched_.push_back(name);
}

Status PositionalCausalCache::prepare_copy(std::int64_t source, std::int64_t target,
                                           std::int32_t length) {
  reserve_touch();
  prepared_ = Copy{.target = target, .cells = find(target), .shared = {}};
  Copy& copy = *std::get_if<Copy>(&prepared_);
  const SequenceCells* from = find(source);
  // OK-54: the original empties the target before it looks for the source.
  if (from == nullptr || (source == target && !documented())) return {};
  const auto held = from->held();
  const auto behind = std::ranges::lower_bound(held, length, {}, &HeldCell::position);
  copy.shared.assign(held.begin(), behind);
  if (!copy.shared.empty()) copy.cells = find_or_make(target);
  return {};
}

void PositionalCausalCache::finish(Copy& copy) noexcept {
  if (copy.cells == nullptr) return;
  copy.cells->replace(std::move(copy.shared), size_.pool);
  if (copy.cells->empty()) {
    forget(copy.target);
  } else {
    touch(copy.target, *copy.cells);
  }
}

Result<bool> PositionalCausalCache::do_can_resume(std::int64_t sequence,
                                                  std::int32_t position) const {
  const SequenceCells* cells = find(sequence);
  std::int64_t first = std::max<std::int64_t>(0, std::int64_t{position} - size_.window);
  if (documented()) {  // OK-55, OK-57, OK-58
    if (position < 0) return false;
    if (options_.chunk > 0)
      first = std::max<std::int64_t>(first, position - position % options_.chunk);
    return first >= position || (cells != nullptr && cells->covers(first, position));
  }
  if (!bounded()) return true;         // OK-55
  if (cells == nullptr) return false;  // OK-57
  const auto held = cells->held();     // OK-56
  return first >= held.front().position && position <= std::int64_t{held.back().position} + 1;
}

// ---- Rows ----

Status PositionalCausalCache::do_set_layer(std::int64_t layer) {
  layer_ = layer;
  store_->set_layer(layer);
  return {};
}

Status PositionalCausalCache::do_put(const positional::Rows& k, const positional::Rows& v) {
  if (k.tokens != std::ssize(pass_.positions))  // OK-45
    return refused("inconsistent batch sizes (layer: " + std::to_string(layer_) +
                   ", batch size: " + std::to_string(pass_.positions.size()) +
                   " layer batch size: " + std::to_string(k.tokens) + ")");
  const LayerRows::Form form{k.heads, k.dim, v.dim};
  if (store_->form() == nullptr)  // OK-43
    if (Status made = store_->make_rows(form); !made) return made;
  if (*store_->form() != form)
    return refused("k, v: other rows than before in layer " + std::to_string(layer_));
  if (pass_.reserve) return {};  // OK-27
  return store_->put(pass_, k, v);
}

Result<positional::Shown> PositionalCausalCache::do_get() {
  if (store_->form() == nullptr)  // OK-49
    return refused("layer " + std::to_string(layer_) + " has no storage");
  return store_->show(pass_.range);
}

// ---- Invariants ----

std::optional<std::string> PositionalCausalCache::broken_invariant() const {
  std::vector<std::uint32_t> owners(static_cast<std::size_t>(size_.pool.size()));
  std::vector<std::int32_t> positions(owners.size());
  for (const auto& [name, cells] : sequences_) {
    const std::string who = "sequence " + std::to_string(name);
    if (cells.empty()) return who + " owns nothing";
    if (!std::ranges::is_sorted(cells.held(), {}, &HeldCell::position)) return who + " is unsorted";
    for (const HeldCell& held : cells.held()) {
      if (held.cell < 0 || held.cell >= size_.pool.size()) return who + " owns a cell beyond";
      const auto cell = static_cast<std::size_t>(held.cell);
      if (owners[cell]++ > 0 && positions[cell] != held.position)
        return "cell " + std::to_string(cell) + " has two positions";
      positions[cell] = held.position;
    }
    const CellRange hull = hull_of(cells.held());
    const bool inside = cells.range().contains(hull.low) && cells.range().contains(hull.high);
    if (!bounded() && (!inside || (cells.range_is_hull() && hull != cells.range())))
      return who + " has a range that is not its hull";
    if (cells.touched != (std::ranges::count(touched_, name) == 1)) return who + " is listed wrong";
  }
  if (!std::holds_alternative<std::monostate>(prepared_)) return "an operation was left undone";
  return size_.pool.broken(owners);
}

// ---- start_forward: eviction, cells for the batch, visible range and mask (OK-16 to OK-41) ----

// ---- What may fail ----

Status PositionalCausalCache::prepare_start(const positional::Batch& batch) {
  next_.positions.clear();
  next_.sequence_of.clear();
  next_.sequences.clear();
  next_.targets.clear();
  next_.except.clear();
  next_.mask_except.clear();
  next_.reserve = batch.reserve;
  trims_.clear();
  prepared_ = Start();
  collect(batch);
  if (batch.reserve) {
    next_.range = {0, size_.pool.size() - 1};  // OK-27
  } else {
    if (bounded()) trim();
    const std::size_t tokens = next_.positions.size();
    // OK-22; without a free cell an empty batch is told the same (OK-29).
    if (static_cast<std::int64_t>(std::max<std::size_t>(tokens, 1)) > size_.pool.free()) {
      std::get_if<Start>(&prepared_)->full = true;
      return fail(Code::kFull, "no room for " + std::to_string(tokens) + " of " +
                                   std::to_string(size_.pool.size()) + " cells");
    }
    if (tokens == 0) return fail(Code::kPrecondition, "positions: none");
    place();
    next_.range = visible_range();
  }
  Status room = store_->reserve_mask(next_);
  if (!room) cancel();  // in the original an error would have an effect
  return room;
}

void PositionalCausalCache::collect(const positional::Batch& batch) {
  ++passes_;
  const std::size_t tokens = batch.positions.size();
  next_.positions.assign(batch.positions.begin(), batch.positions.end());
  next_.sequence_of.reserve(tokens);
  for (std::size_t i = 0; i < tokens; ++i) {
    const std::int64_t name = batch.sequences[i];
    const bool again = i > 0 && name == batch.sequences[i - 1];
    if (!again) {
      SequenceCells* cells = find(name);
      if (cells == nullptr || cells->pass != passes_) {
        BatchSequence& fresh = next_.sequences.emplace_back();
        fresh.name = name;
        if (cells == nullptr && !batch.reserve) cells = find_or_make(name);
        fresh.cells = cells;
        if (cells != nullptr) {
          cells->pass = passes_;
          cells->in_pass = static_cast<std::uint32_t>(next_.sequences.size() - 1);
        }
      }
      next_.sequence_of.push_back(cells != nullptr
                                      ? cells->in_pass
                                      : static_cast<std::uint32_t>(next_.sequences.size() - 1));
    } else {
      next_.sequence_of.push_back(next_.sequence_of.back());
    }
    BatchSequence& sequence = next_.sequences[next_.sequence_of.back()];
    sequence.low = std::min(sequence.low, batch.positions[i]);
    ++sequence.tokens;
  }
}

void PositionalCausalCache::trim() {
  trims_.reserve(next_.sequences.size() + touched_.size());
  next_touched_.clear();
  next_touched_.reserve(next_.sequences.size());
  const auto evict = [&](std::int64_t name, SequenceCells& cells, std::int64_t low, bool in_batch) {
    const std::size_t count = cells.evict_before(low - size_.memory, size_.pool);
    trims_.push_back({name, &cells, count, in_batch});
  };
  for (const BatchSequence& sequence : next_.sequences)  // OK-18
    evict(sequence.name, *sequence.cells, sequence.low, true);
  // OK-19: what was trimmed so and has not changed since stays as it is.
  for (const std::int64_t name : touched_) {
    SequenceCells& cells = *find(name);
    if (cells.pass == passes_) continue;
    evict(name, cells, std::int64_t{1} + std::max(0, cells.held().back().position), false);
  }
}

void PositionalCausalCache::place() {
  next_.targets.reserve(next_.positions.size());
  for (const BatchSequence& sequence : next_.sequences) sequence.cells->reserve(sequence.tokens);
  for (std::size_t i = 0; i < next_.positions.size(); ++i)  // OK-21
    next_.targets.push_back(size_.pool.take_lowest());
}

CellRange PositionalCausalCache::visible_range() const {
  CellRange range;
  for (const BatchSequence& sequence : next_.sequences) {
    if (bounded()) {  // OK-20
      range.extend(sequence.cells->hull_from(std::int64_t{sequence.low} - size_.window));
    } else {  // OK-17
      range.extend(sequence.cells->range());
    }
  }
  range.extend(next_.targets.front());  // OK-23: they ascend
  range.extend(next_.targets.back());
  range.low -= range.low % size_.padding;  // OK-25
  range.high = (range.high / size_.padding + 1) * size_.padding - 1;
  return range;
}

// ---- What may not ----

void PositionalCausalCache::finish(const Start& start) noexcept {
  if (start.full) {
    next_.targets.clear();
    list_touched();
    for (const Trim& trim : trims_)
      if (trim.cells->empty()) forget(trim.name);
    for (const BatchSequence& sequence : next_.sequences)
      if (const SequenceCells* cells = find(sequence.name); cells != nullptr && cells->empty())
        forget(sequence.name);
    return;
  }
  if (!next_.reserve) insert_batch();
  std::swap(pass_, next_);
  for (BatchSequence& sequence : pass_.sequences)
    if (sequence.cells != nullptr) sequence.version = sequence.cells->version();
  store_->show_mask(pass_, {});
  // The mask needed what was evicted just now.
  for (const Trim& trim : trims_)
    if (trim.in_batch) trim.cells->compact();
}

void PositionalCausalCache::insert_batch() noexcept {
  for (std::size_t i = 0; i < next_.positions.size(); ++i)  // OK-23
    next_.sequences[next_.sequence_of[i]].cells->append({next_.positions[i], next_.targets[i]});
  for (const BatchSequence& sequence : next_.sequences) sequence.cells->settle(size_.pool);
  list_touched();
  for (const Trim& trim : trims_)
    if (!trim.in_batch && trim.cells->empty()) forget(trim.name);
}

void PositionalCausalCache::list_touched() noexcept {
  if (!bounded()) return;
  for (const Trim& trim : trims_) trim.cells->touched = false;
  for (const BatchSequence& sequence : next_.sequences) {
    if (sequence.cells->empty()) continue;
    sequence.cells->touched = true;
    next_touched_.push_back(sequence.name);
  }
  std::swap(touched_, next_touched_);
}

Status PositionalCausalCache::do_set_causal(std::span<const std::int64_t> except,
                                            bool with_context) {
  // OK-40: the original compares with the list given last, whether it was applied or not.
  if (std::ranges::equal(except, documented() ? pass_.mask_except : pass_.except)) return {};
  std::vector<std::int64_t> list(except.begin(), except.end());
  if (!with_context) {
    pass_.except = std::move(list);
    return {};
  }
  std::vector<std::int64_t> built_with = list;
  std::vector<char> ahead(pass_.positions.size(), 0);
  for (const std::int64_t row : except)  // OK-38
    if (row >= 0 && row < std::ssize(ahead)) ahead[static_cast<std::size_t>(row)] = 1;
  if (Status room = store_->reserve_mask(pass_); !room) return room;
  // OK-41: the cells of now.
  bool changed = false;
  for (BatchSequence& sequence : pass_.sequences) {
    sequence.cells = find(sequence.name);
    const std::uint64_t version = sequence.cells != nullptr ? sequence.cells->version() : 0;
    changed = changed || version != sequence.version;
  }
  store_->show_mask(pass_, ahead);
  if (changed) store_->forget_mask();
  pass_.mask_except = std::move(built_with);
  pass_.except = std::move(list);
  return {};
}

// ---- remove: what leaves, what moves, and the keys that the shift function moves (OK-59 to OK-68)
// ----

Status PositionalCausalCache::prepare_remove(std::int64_t sequence, std::int32_t begin,
                                             std::int32_t end) {
  if (documented() && begin >= end) {  // OK-68
    if (begin > end) return fail(Code::kOutOfRange, "begin > end");
    return {};
  }
  SequenceCells* cells = find(sequence);
  if (cells == nullptr) return {};  // OK-61
  reserve_touch();
  prepared_ =
      Removal{.name = sequence, .cells = cells, .begin = begin, .end = end, .limit = std::nullopt};
  Removal& removal = *std::get_if<Removal>(&prepared_);
  if (end == kMaxPosition) return {};
  if (Status fit = refuse_move(*cells, removal); !fit) return fit;
  Status done = documented() ? prepare_documented(removal) : prepare_original(removal);
  if (Status room = store_->reserve_keys(); !room) {
    cancel();  // in the original an error would have an effect
    return room;
  }
  return done;
}

Status PositionalCausalCache::refuse_move(const SequenceCells& cells,
                                          const Removal& removal) const {
  const auto later = cells.from(removal.end);
  if (later.empty()) return {};
  const std::int64_t offset = std::int64_t{removal.begin} - removal.end;
  if (later.front().position + offset >= 0 && later.back().position + offset < kMaxPosition)
    return {};
  return fail(Code::kPrecondition, "begin, end: positions leave their domain");
}

Status PositionalCausalCache::prepare_documented(Removal& removal) {
  const auto later = removal.cells->from(removal.end);
  if (later.empty()) return {};  // OK-66
  const auto shared = [&](const HeldCell& held) { return size_.pool.owners(held.cell) > 1; };
  if (std::ranges::any_of(later, shared)) return positional::shared_later_cell();  // OK-67
  if (!options_.shift) return fail(Code::kNotSupported, "no shift function");      // OK-66
  if (bounded() && !resumable_behind(removal))                                     // OK-60
    return fail(Code::kNotSupported, "the window would be incomplete");
  return shift_keys(removal);
}

Status PositionalCausalCache::prepare_original(Removal& removal) {
  const auto later = removal.cells->from(removal.end);
  for (const HeldCell& held : later)  // OK-67: the scan is by cell
    if (size_.pool.owners(held.cell) > 1)
      removal.limit = std::min(held.cell, removal.limit.value_or(held.cell));
  if (removal.limit) return positional::shared_later_cell();
  const auto held = removal.cells->held();
  const bool nothing_left = later.empty() && removal.begin <= held.front().position;
  if (nothing_left) return {};                                                 // OK-61
  if (!options_.shift) return fail(Code::kNotSupported, "no shift function");  // OK-66
  return shift_keys(removal);
}

bool PositionalCausalCache::resumable_behind(const Removal& removal) const {
  const std::int64_t offset = std::int64_t{removal.begin} - removal.end;
  const auto later = removal.cells->from(removal.end);
  const std::int64_t last = later.back().position + offset;
  const std::int64_t first = std::max<std::int64_t>(0, last + 1 - size_.window);
  // Positions from begin on are those that move there.
  const std::int64_t moved = std::max<std::int64_t>(first, removal.begin);
  return removal.cells->covers(moved - offset, last + 1 - offset) &&
         removal.cells->covers(first, moved);
}

Status PositionalCausalCache::shift_keys(const Removal& removal) {
  const auto later = removal.cells->from(removal.end);
  if (later.empty()) return {};
  std::vector<HeldCell> moved(later.begin(), later.end());
  std::ranges::sort(moved, {}, &HeldCell::cell);
  const std::int64_t offset = std::int64_t{removal.begin} - removal.end;
  // OK-65: groups are counted from the lowest cell that is left.
  CellRange left;
  left.extend(moved.front().cell);
  for (const HeldCell& held : removal.cells->held())
    if (held.position < std::min(removal.begin, removal.end)) left.extend(held.cell);
  for (std::size_t from = 0, to = 0; from < moved.size(); from = to) {
    const std::int64_t group = (moved[from].cell - left.low) / size_.max_batch;
    while (to < moved.size() && (moved[to].cell - left.low) / size_.max_batch == group) ++to;
    // The original stores what lies between them anew.
    const KeyGroup together{.moved = std::span(moved).subspan(from, to - from),
                            .offset = static_cast<std::int32_t>(offset),
                            .all_converted = !documented()};
    if (Status done = store_->prepare_keys(together); !done) return done;
  }
  return {};
}

void PositionalCausalCache::finish(Removal& removal) noexcept {
  store_->commit_keys();
  if (removal.cells == nullptr) return;
  removal.cells->cut(removal.begin, removal.end, removal.limit, size_.pool);
  if (removal.cells->empty()) {
    forget(removal.name);
  } else {
    touch(removal.name, *removal.cells);
  }
}

// NOLINTNEXTLINE(bugprone-exception-escape)
void PositionalCausalCache::commit_unwound(const positional::Batch& batch) noexcept {
  if (!next_.reserve) insert_batch();
  prepared_.emplace<std::monostate>();
  for (std::size_t i = 0; i < batch.positions.size(); ++i) {
    SequenceCells* cells = find(batch.sequences[i]);
    if (cells == nullptr) continue;
    cells->cut(batch.positions[i], kMaxPosition, std::nullopt, size_.pool);
    if (cells->empty()) forget(batch.sequences[i]);
  }
}

}  // namespace kvo::optimized
