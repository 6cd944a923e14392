#include "properties/generators/positional_model.hpp"

#include <algorithm>
#include <map>

namespace kvo::positional {

void CellModel::init(const Init& init, std::int64_t cache_padding) {
  // A script may ask for any size; only small pools are worth following.
  constexpr std::int64_t kMostCells = 4'096;
  if (member_.window == 0) member_.window = kMaxPosition;
  if (member_.memory == 0) member_.memory = member_.window;
  if (bounded() && init.max_sequences > 1 && member_.window != kMaxPosition)
    member_.memory = std::max(member_.memory, member_.window + 1);
  if (member_.memory >= init.capacity) member_.memory = kMaxPosition;
  padding_ = std::max<std::int64_t>(cache_padding, 1);
  const std::int64_t size = bounded() ? init.max_sequences * member_.memory + init.max_batch
                                      : init.max_sequences * init.capacity;
  const std::int64_t cells = (size + padding_ - 1) / padding_ * padding_;
  cells_.assign(static_cast<std::size_t>(std::clamp<std::int64_t>(cells, 0, kMostCells)), Cell());
}

void CellModel::evict(const StartForward& pass) {
  if (!bounded()) return;
  std::map<std::int64_t, std::int64_t> low;
  for (const Cell& cell : cells_)
    for (const std::int64_t owner : cell.owners)
      low[owner] = std::max(low[owner], std::int64_t{cell.position} + 1);
  std::set<std::int64_t> in_batch;
  for (std::size_t i = 0; i < pass.seqs.size(); ++i) {
    const std::int64_t position = pass.positions[i];
    const bool is_new = in_batch.insert(pass.seqs[i]).second;
    low[pass.seqs[i]] = is_new ? position : std::min(low[pass.seqs[i]], position);
  }
  for (Cell& cell : cells_) {
    if (cell.owners.empty()) continue;
    std::erase_if(cell.owners,
                  [&](std::int64_t owner) { return cell.position < low[owner] - member_.memory; });
    cell.evicted = cell.owners.empty();
  }
}

bool CellModel::fits(const StartForward& pass) const {
  if (pass.reserve) return true;
  CellModel after = *this;
  after.evict(pass);
  const auto free =
      std::ranges::count_if(after.cells_, [](const Cell& cell) { return cell.owners.empty(); });
  return free >= std::ssize(pass.positions);
}

bool CellModel::outside(const Cell& cell, std::int32_t position) const {
  return std::int64_t{cell.position} < std::int64_t{position} - member_.window;
}

bool CellModel::rounded(const StartForward& pass) const {
  std::int64_t first = std::ssize(cells_);
  std::int64_t last = -1;
  for (std::size_t i = 0; i < pass.seqs.size(); ++i)
    for (std::int64_t c = 0; c < std::ssize(cells_); ++c) {
      const Cell& cell = cells_[static_cast<std::size_t>(c)];
      if (!cell.owners.contains(pass.seqs[i])) continue;
      if (bounded() && outside(cell, pass.positions[i])) continue;
      first = std::min(first, c);
      last = std::max(last, c);
    }
  return last >= 0 && (first % padding_ != 0 || (last + 1) % padding_ != 0);
}

PassEffects CellModel::started(const StartForward& pass) {
  PassEffects effects;
  if (pass.reserve) return effects;
  evict(pass);
  auto target = cells_.begin();
  for (std::size_t i = 0; i < pass.positions.size(); ++i) {
    target =
        std::find_if(target, cells_.end(), [](const Cell& cell) { return cell.owners.empty(); });
    if (target == cells_.end()) return effects;
    effects.reused_evicted = effects.reused_evicted || target->evicted;
    *target = {.position = pass.positions[i], .owners = {pass.seqs[i]}};
  }
  for (std::size_t i = 0; i < pass.positions.size(); ++i) {
    const std::int32_t own = pass.positions[i];
    for (const Cell& cell : cells_) {
      if (!cell.owners.contains(pass.seqs[i])) continue;
      if (outside(cell, own)) effects.window_exceeded = true;
      if (member_.chunk > 0 && cell.position < own - own % member_.chunk)
        effects.chunk_crossed = true;
    }
  }
  // In a bounded cache what a window leaves out may have been evicted just now.
  if (bounded() && effects.reused_evicted) effects.window_exceeded = true;
  effects.range_rounded = rounded(pass);
  return effects;
}

bool CellModel::copy_prefix(const CopyPrefix& copy, bool keeps_own) {
  bool shared = false;
  for (Cell& cell : cells_) {
    const bool gains = cell.owners.contains(copy.src) && cell.position < copy.len &&
                       (copy.src != copy.dst || keeps_own);
    cell.owners.erase(copy.dst);
    if (gains) cell.owners.insert(copy.dst);
    shared = shared || (gains && cell.owners.size() > 1);
  }
  return shared;
}

void CellModel::removed(const Remove& remove) {
  for (Cell& cell : cells_) {
    if (!cell.owners.contains(remove.seq)) continue;
    if (cell.position >= remove.begin && cell.position < remove.end) {
      cell.owners.erase(remove.seq);
      cell.evicted = false;
    } else if (cell.position >= remove.end) {
      cell.position += remove.begin - remove.end;
    }
  }
}

bool CellModel::keeps_between(const Remove& remove) const {
  bool moved = false;
  bool kept = false;  // behind a moved one
  for (const Cell& cell : cells_) {
    if (!cell.owners.contains(remove.seq)) continue;
    if (cell.position >= remove.end && kept) return true;
    moved = moved || cell.position >= remove.end;
    kept = kept || (moved && cell.position < remove.begin);
  }
  return false;
}

std::vector<std::int32_t> CellModel::positions(std::int64_t sequence) const {
  std::vector<std::int32_t> positions;
  for (const Cell& cell : cells_)
    if (cell.owners.contains(sequence)) positions.push_back(cell.position);
  std::ranges::sort(positions);
  return positions;
}

std::int32_t CellModel::unshared_from(std::int64_t sequence) const {
  std::int32_t from = 0;
  for (const Cell& cell : cells_)
    if (cell.owners.contains(sequence) && cell.owners.size() > 1)
      from = std::max(from, cell.position + 1);
  const std::vector<std::int32_t> all = positions(sequence);
  return !all.empty() && from > all.back() ? kMaxPosition : from;
}

}  // namespace kvo::positional
