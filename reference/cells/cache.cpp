#include "reference/cells/cache.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "reference/contract/values/mark.hpp"

namespace kvo::cells {
namespace {

Status check_cells(const KvOptions& options, std::string_view field, std::int64_t size) {
  if (const Status checked = check_in(field, size, 1, kMostCells); !checked) return checked;
  if (size * options.streams() > kMostCells)
    return fail(Code::kOutOfRange, fmt::format("{} {} in {} streams is above {} cells", field, size,
                                               options.streams(), kMostCells));
  return {};
}

Status check_saved_streams(const std::vector<SavedStream>& streams, const KvOptions& options,
                           bool whole) {
  for (std::size_t s = 0; s < streams.size(); ++s)
    for (std::size_t c = 0; c < streams[s].size(); ++c) {
      const SavedCell& cell = streams[s][c];
      if (cell.pos < 0)
        return refused(fmt::format("saved cell {} of stream {}: position {}", c, s, cell.pos));
      for (const std::int64_t seq : cell.seqs) {
        const bool lives_here = options.unified || seq == static_cast<std::int64_t>(s);
        if (seq < 0 || seq >= options.n_seq_max || (whole && !lives_here))
          return refused(fmt::format("saved cell {} of stream {}: sequence {}", c, s, seq));
      }
      if (std::ranges::adjacent_find(cell.seqs, std::greater_equal()) != cell.seqs.end())
        return refused(fmt::format("saved cell {} of stream {}: sequences not ascending", c, s));
    }
  return {};
}

// Whether a range is one that the original takes for a full one (LC-66).
bool counts_as_full(std::int64_t end, std::int64_t size) {
  return end <= 0 || end + 1 >= size;
}

}  // namespace

std::int64_t bytes_of(const SavedState& state, std::int64_t layers) {
  const auto size = [](const auto& list) { return static_cast<std::int64_t>(list.size()); };
  std::int64_t bytes = 0;
  for (const auto* half : {&state.base, &state.window}) {
    if (half->empty()) continue;
    bytes += 4;
    for (const SavedStream& stream : *half) {
      bytes += 4;
      if (stream.empty()) continue;
      bytes += 8 + layers * 2 * (12 + 8 * size(stream));
      for (const SavedCell& cell : stream) bytes += 8 + 4 * size(cell.seqs);
    }
  }
  return bytes;
}

Status check_options(const KvOptions& options) {
  if (const auto checked = check_in("n_seq_max", options.n_seq_max, 1, kSequences); !checked)
    return checked;
  if (const Status checked = check_cells(options, "size", options.size); !checked) return checked;
  if (options.size_window)
    if (const auto checked = check_cells(options, "size_swa", *options.size_window); !checked)
      return checked;
  if (const Status checked = check_in("n_pad", options.n_pad, 1, kMostCells); !checked)
    return checked;
  if (options.size % options.n_pad != 0)
    return fail(Code::kOutOfRange,
                fmt::format("size {} is no multiple of n_pad {}", options.size, options.n_pad));
  if (options.window.type != WindowType::kNone)
    return check_in("n_swa", options.window.size, 1, kMaxPosition);
  return {};
}

Status KvCache::named(std::int64_t seq) const {
  if (seq < 0 || seq >= sequences()) return refused(fmt::format("sequence {}", seq));
  return {};
}

Status KvCache::decode(const Batch& batch, const SeeUbatch& see) {
  if (const Status checked = check_batch(batch); !checked) return checked;
  if (batch.abort_at && (is_pair() || *batch.abort_at < 0))
    return refused(fmt::format("abort_at {}", *batch.abort_at));
  const std::int64_t cells = std::max(options_.size, options_.size_window.value_or(0));
  if (static_cast<std::int64_t>(batch.tokens()) * cells > kMostMaskEntries)
    return refused(fmt::format("masks of {} tokens and {} cells", batch.tokens(), cells));
  return do_decode(batch, see);
}

Result<std::vector<std::int32_t>> KvCache::find_slot(const Batch& batch, Half half,
                                                     bool adjacent) const {
  if (const Status checked = check_batch(batch); !checked) return checked.error();
  if (!batch.positions) return refused("find_slot without positions");
  if (half == Half::kWindow && !is_pair()) return refused("no window half");
  if (half == Half::kWindow) KVO_MARK("cells.iswa", "searched the window");
  if (!options_.unified &&
      std::ranges::adjacent_find(batch.sequences, std::not_equal_to()) != batch.sequences.end())
    return refused("find_slot of several sequences in streams");
  return do_find_slot(batch, half, adjacent);
}

Result<bool> KvCache::seq_rm(std::int64_t seq, std::int32_t p0, std::int32_t p1) {
  if (seq < -1 && has(Quirk::kOnlyMinusOneIsAny)) return refused(fmt::format("sequence {}", seq));
  if (seq >= 0)
    if (const Status checked = named(seq); !checked) return checked.error();
  do_seq_rm(seq < 0 ? -1 : static_cast<std::int32_t>(seq), range_of(p0, p1));
  return true;
}

Status KvCache::seq_cp(std::int64_t src, std::int64_t dst, std::int32_t p0, std::int32_t p1) {
  for (const std::int64_t seq : {src, dst}) {
    if (const Status checked = named(seq); !checked) return checked;
    if (seq >= options_.n_seq_max && !has(Quirk::kCopyBeyondMost))
      return refused(fmt::format("sequence {} of {}", seq, options_.n_seq_max));
  }
  if (src == dst) return {};
  const auto from = static_cast<std::int32_t>(src);
  const auto to = static_cast<std::int32_t>(dst);
  if (options_.unified) return do_seq_share(from, to, range_of(p0, p1));
  if (has(Quirk::kCopyIgnoresRange)) {
    for (const std::int64_t size : {options_.size, options_.size_window.value_or(options_.size)})
      if (!counts_as_full(p0, size) || !counts_as_full(p1, size))
        return refused(fmt::format("range {}, {} is not full", p0, p1));
  } else if (p0 > 0 || (p1 >= 0 && !covers(from, p1))) {
    KVO_MARK_IN(Profile::kDocumented, "cells.kv cells.iswa", "part copy refused");
    return fail(Code::kNotSupported, fmt::format("range {}, {} leaves out some of it", p0, p1));
  }
  return do_seq_copy(from, to);
}

Status KvCache::seq_keep(std::int64_t seq) {
  if (const Status checked = named(seq); !checked) return checked;
  do_seq_keep(static_cast<std::int32_t>(seq));
  return {};
}

Status KvCache::check_shift() const {
  if (can_shift() || has(Quirk::kUnequalHalvesMove)) return {};
  KVO_MARK_IN(Profile::kDocumented, "cells.iswa", "halves of different sizes stay");
  return fail(Code::kNotSupported, "the halves have different sizes");
}

Status KvCache::seq_add(std::int64_t seq, std::int32_t p0, std::int32_t p1, std::int32_t delta) {
  if (const Status checked = named(seq); !checked) return checked;
  const Range range = range_of(p0, p1);
  if (delta == 0 || range.begin == range.end) return {};
  if (const Status checked = check_shift(); !checked) return checked;
  return do_seq_add(static_cast<std::int32_t>(seq), range, delta);
}

Status KvCache::seq_div(std::int64_t seq, std::int32_t p0, std::int32_t p1, std::int32_t d) {
  if (const Status checked = named(seq); !checked) return checked;
  const Range range = range_of(p0, p1);
  if (d == 1 || range.begin == range.end) return {};
  if (d < 1 && !has(Quirk::kDivisorUnchecked)) return refused(fmt::format("d {}", d));
  if (const Status checked = check_shift(); !checked) return checked;
  return do_seq_div(static_cast<std::int32_t>(seq), range, d);
}

Result<Extremes> KvCache::seq_pos(std::int64_t seq) const {
  if (const Status checked = named(seq); !checked) return checked.error();
  return do_seq_pos(static_cast<std::int32_t>(seq));
}

Result<SavedState> KvCache::state_save(std::int64_t seq, bool partial) {
  if (partial && !is_pair()) return refused("partial without a window half");
  if (seq != -1)
    if (const Status checked = named(seq); !checked) return checked.error();
  return do_state_save(static_cast<std::int32_t>(seq), partial);
}

Status KvCache::state_load(const SavedState& state, std::int64_t seq, bool partial) {
  if (partial && !is_pair()) return refused("partial without a window half");
  if (state.partial != partial) return refused("a state of other halves");
  if (seq < -1 || seq >= options_.n_seq_max) return refused(fmt::format("sequence {}", seq));
  const auto streams = static_cast<std::size_t>(options_.streams());
  if (state.base.size() != (partial ? 0 : streams) ||
      state.window.size() != (is_pair() ? streams : 0))
    return refused("a state of other streams");
  for (const auto* half : {&state.base, &state.window})
    if (const Status checked = check_saved_streams(*half, options_, seq == -1); !checked)
      return checked;
  return do_state_load(state, static_cast<std::int32_t>(seq));
}

}  // namespace kvo::cells
