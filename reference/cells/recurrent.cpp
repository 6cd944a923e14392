#include "reference/cells/recurrent.hpp"

#include <fmt/format.h>

#include "reference/contract/values/mark.hpp"

namespace kvo::cells {

Status check_options(const RecurrentOptions& options) {
  if (const Status checked = check_in("n_seq_max", options.n_seq_max, 1, kSequences); !checked)
    return checked;
  return check_in("n_rs_seq", options.n_rs_seq, 0, kMostTokens);
}

Status RecurrentMemory::named(std::int64_t seq) const {
  if (seq < 0 || seq >= options_.n_seq_max) return refused(fmt::format("sequence {}", seq));
  return {};
}

Status RecurrentMemory::decode(const Batch& batch, const SeeStates& see) {
  if (const Status checked = check_batch(batch); !checked) return checked;
  if (!batch.causal || batch.abort_at) return refused("causal or abort_at");
  return do_decode(batch, see);
}

Result<bool> RecurrentMemory::seq_rm(std::int64_t seq, std::int32_t p0, std::int32_t p1) {
  const Range range = range_of(p0, p1);
  if (seq >= options_.n_seq_max) {
    if (has(Quirk::kBeyondMostIsFalse)) return false;
    return refused(fmt::format("sequence {}", seq));
  }
  if (seq >= 0) return do_seq_rm(static_cast<std::int32_t>(seq), range);
  if (has(Quirk::kAnyIsNeverRemoved)) return false;
  if (range.begin >= range.end) return true;
  if (range.begin != 0 || range.end != kMaxPosition) return false;
  for (std::int32_t each = 0; each < options_.n_seq_max; ++each) {
    if (seq_pos(each) != Extremes())
      KVO_MARK_IN(Profile::kDocumented, "cells.recurrent", "any removed");
    do_seq_rm(each, range);
  }
  return true;
}

void RecurrentMemory::seq_cp(std::int64_t src, std::int64_t dst, std::int32_t /*p0*/,
                             std::int32_t /*p1*/) {
  if (src == dst || !named(src) || !named(dst)) return;
  do_seq_cp(static_cast<std::int32_t>(src), static_cast<std::int32_t>(dst));
}

Status RecurrentMemory::seq_keep(std::int64_t seq) {
  if (const Status checked = named(seq); !checked) return checked;
  do_seq_keep(static_cast<std::int32_t>(seq));
  return {};
}

Status RecurrentMemory::seq_add(std::int64_t seq, std::int32_t p0, std::int32_t p1,
                                std::int32_t delta) {
  if (const Status checked = named(seq); !checked) return checked;
  const Range range = range_of(p0, p1);
  if (delta == 0 || range.begin == range.end) return {};
  return do_seq_add(static_cast<std::int32_t>(seq), range, delta);
}

Status RecurrentMemory::seq_div(std::int64_t seq, std::int32_t p0, std::int32_t p1,
                                std::int32_t d) {
  if (const Status checked = named(seq); !checked) return checked;
  const Range range = range_of(p0, p1);
  if (d == 1 || range.begin == range.end) return {};
  if (d < 1 && !has(Quirk::kDivisorUnchecked)) return refused(fmt::format("d {}", d));
  return do_seq_div(static_cast<std::int32_t>(seq), range, d);
}

}  // namespace kvo::cells
