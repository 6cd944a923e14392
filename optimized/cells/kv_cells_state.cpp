// Saved states (LC-70 to LC-76).
#include <algorithm>
#include <array>

#include "optimized/cells/kv_cells_cache.hpp"

namespace kvo::optimized {

using cells::Quirk;

cells::SavedState KvCellsCache::do_state_save(std::int32_t seq, bool partial) {
  cells::SavedState state{.partial = partial};
  const auto save = [&](const CellHalf& half, std::vector<cells::SavedStream>& streams) {
    for (std::int32_t i = 0; i < half.streams(); ++i)
      streams.push_back(half.saved(i, seq, options().n_seq_max));
  };
  if (!partial) save(halves_.front(), state.base);
  if (is_pair()) save(halves_.back(), state.window);
  // Nothing allocates from here on.
  if (!has(Quirk::kSavedBeforeUpdate)) update();
  const auto fill = [](const CellHalf& half, std::vector<cells::SavedStream>& streams) {
    for (std::size_t i = 0; i < streams.size(); ++i)
      half.fill_rows(streams[i], static_cast<std::int32_t>(i));
  };
  fill(halves_.front(), state.base);
  fill(halves_.back(), state.window);
  return state;
}

Status KvCellsCache::do_state_load(const cells::SavedState& state, std::int32_t seq) {
  return seq < 0 ? load_whole(state) : load_sequence(state, seq);
}

// Puts the cells of all saved streams into a sequence; false: no room, or a lie.
bool KvCellsCache::load_half(CellHalf& half, const std::vector<cells::SavedStream>& saved,
                             std::int32_t seq, std::vector<std::int32_t>& slots) noexcept {
  std::size_t begin = 0;
  for (const cells::SavedStream& stream : saved) {
    if (stream.empty()) continue;
    half.remove(seq, 0, cells::kMaxPosition);
    const auto its = std::span<std::int32_t>(slots).subspan(begin, stream.size());
    begin += stream.size();
    if (std::ranges::any_of(stream, [](const auto& cell) { return cell.seqs.size() != 1; }))
      return false;
    if (!half.restore(stream, seq, its)) return false;
  }
  if (begin == 0 && !has(Quirk::kEmptyStateChangesNothing))
    half.remove(seq, 0, cells::kMaxPosition);
  return true;
}

Status KvCellsCache::load_sequence(const cells::SavedState& state, std::int32_t seq) {
  const std::array<const std::vector<cells::SavedStream>*, 2> saved{&state.base, &state.window};
  const std::size_t first = state.partial ? 1 : 0;
  std::array<std::int64_t, 2> heads{};
  for (std::size_t h = first; h < halves_.size(); ++h) {
    std::size_t total = 0;
    for (const cells::SavedStream& stream : *saved[h]) total += stream.size();
    slots_[h].resize(std::max(slots_[h].size(), total));
    halves_[h].table_of(seq).reserve(seq, total);
    halves_[h].reserve_journal(total, true);
    heads[h] = halves_[h].head(halves_[h].stream_of(seq));
  }
  std::size_t failed = halves_.size();
  for (std::size_t h = first; h < failed; ++h) {
    halves_[h].keep_journal(true);
    if (!load_half(halves_[h], *saved[h], seq, slots_[h])) failed = h;
    halves_[h].stop_journal();
  }
  if (failed < halves_.size()) {
    for (std::size_t h = first; h <= failed; ++h) {
      if (has(h == failed ? Quirk::kFailedLoadRemoves : Quirk::kHalfLoaded)) continue;
      halves_[h].undo(0);
      halves_[h].set_head(halves_[h].stream_of(seq), heads[h]);
    }
    if (has(Quirk::kFailedLoadRemoves)) halves_[failed].remove(seq, 0, cells::kMaxPosition);
    return fail_other("restore_failed");
  }
  for (std::size_t h = first; h < halves_.size(); ++h) {
    std::size_t begin = 0;
    for (const cells::SavedStream& stream : *saved[h]) {
      halves_[h].restore_rows(
          stream, halves_[h].stream_of(seq),
          std::span<const std::int32_t>(slots_[h]).subspan(begin, stream.size()));
      begin += stream.size();
    }
  }
  return {};
}

Status KvCellsCache::load_whole(const cells::SavedState& state) {
  const std::array<const std::vector<cells::SavedStream>*, 2> saved{&state.base, &state.window};
  const std::size_t first = state.partial ? 1 : 0;
  std::size_t failed = halves_.size();
  for (std::size_t h = halves_.size(); h-- > first;)
    for (std::size_t s = 0; s < saved[h]->size(); ++s) {
      if (std::ssize((*saved[h])[s]) > halves_[h].size()) failed = h;
      halves_[h].reserve_whole((*saved[h])[s], static_cast<std::int32_t>(s));
    }
  const bool fits = failed == halves_.size();
  for (std::size_t h = first; h < failed && (fits || has(Quirk::kHalfLoaded)); ++h) {
    halves_[h].clear(true);
    for (std::int32_t s = 0; s < halves_[h].streams(); ++s)
      halves_[h].put_whole((*saved[h])[static_cast<std::size_t>(s)], s, fits);
  }
  if (fits) return {};
  if (has(Quirk::kFailedLoadRemoves)) halves_[failed].clear(true);
  return fail_other("restore_failed");
}

}  // namespace kvo::optimized
