// What is not start_forward or remove.
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

}  // namespace kvo::optimized
