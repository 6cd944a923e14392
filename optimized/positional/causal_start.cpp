// start_forward: eviction, cells for the batch, visible range and mask (OK-16 to OK-41).
#include <algorithm>
#include <utility>

#include "optimized/positional/causal_cache.hpp"

namespace kvo::optimized {

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

}  // namespace kvo::optimized
