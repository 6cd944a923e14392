#include "reference/snapshot/slots_change.hpp"

#include <algorithm>

namespace kvo::snapshot {
RowForm RowForm::of(const Array& rows) {
  return {rows.view.shape[0], rows.view.shape[1], rows.view.shape[3], rows.view.dtype, rows.codes};
}

Status rows_fit(const Pair& rows, const RowForm* k, const RowForm* v, QuirkSet<Quirk> quirks) {
  const bool silent = quirks.has(Quirk::kMisfitIsSilent);
  if (rows.k.view.shape.size() != kArrayAxes || rows.v.view.shape.size() != kArrayAxes)
    return fail(silent ? Code::kPrecondition : Code::kBadShape, "axes");
  if (silent) return {};
  const RowForm given_k = RowForm::of(rows.k);
  const RowForm given_v = RowForm::of(rows.v);
  const bool alike = tokens_of(rows.k) == tokens_of(rows.v) && given_k.batch == given_v.batch &&
                     given_k.heads == given_v.heads;
  if (!alike || (k != nullptr && (!k->same_shape(given_k) || !v->same_shape(given_v))))
    return fail(Code::kBadShape, "k, v");
  return {};
}

// ---- SlotsChange ----

void SlotsChange::start(const Array& like) {
  form_ = RowForm::of(like);
  size_ = 0;
  parts_ = {};
}

bool SlotsChange::extend(const Array& like, std::int64_t count) {
  if (count < 0 || !form_->same_shape(RowForm::of(like))) return false;
  if (wider(like.view.dtype, form_->type)) form_->type = like.view.dtype;
  size_ += count;
  return true;
}

void SlotsChange::keep(std::int64_t begin, std::int64_t end) {
  begin = bound(begin, size_);
  end = std::max(bound(end, size_), begin);
  size_ = end - begin;
  for (Part& part : parts_) {
    const std::int64_t size = part.size();
    part.end = part.begin + std::clamp<std::int64_t>(end, 0, size);
    part.begin += std::clamp<std::int64_t>(begin, 0, part.size());
    begin = std::max<std::int64_t>(begin - size, 0);
    end = std::max<std::int64_t>(end - size, 0);
  }
}

void SlotsChange::rotate(std::int64_t at) {
  at = bound(at, size_);
  parts_ = {Part{at, size_}, Part{0, at}};
}

bool SlotsChange::put(std::int64_t begin, std::int64_t end, const Array& rows) {
  begin = bound(begin, size_);
  const std::int64_t count = std::max<std::int64_t>(bound(end, size_) - begin, 0);
  const std::int64_t given = tokens_of(rows);
  if (!form_->same_shape(RowForm::of(rows)) || (given != count && given != 1)) return false;
  put_begin_ = begin;
  put_end_ = begin + count;
  rows_ = &rows;
  return true;
}

void SlotsChange::show(std::int64_t end) {
  shown_ = bound(end, size_);
}

// ---- the rules ----

void append_rows(SidesChange& sides, std::int64_t offset, const Array& k, const Array& v) {
  const std::int64_t end = offset + tokens_of(k);
  const bool full = !sides.k.exists() || end > sides.k.size();
  const auto side = [&](SlotsChange& change, const Array& rows) {
    if (full) {
      if (!change.exists()) {
        change.start(rows);
      } else if (offset % kGrowth != 0) {
        change.keep(0, offset);
      }
      (void)change.extend(rows, (tokens_of(rows) + kGrowth - 1) / kGrowth * kGrowth);
    }
    (void)change.put(offset, end, rows);  // MR-A6
    change.show(end);
  };
  side(sides.k, k);
  side(sides.v, v);
}

void write_chunk(SidesChange& sides, RingPlace& place, const Array& k, const Array& v,
                 QuirkSet<Quirk> quirks) {
  const bool drops = place.offset <= place.window || quirks.has(Quirk::kChunkDropsOlder);
  const bool orders = sides.k.exists() && place.idx < sides.k.size();
  const std::int64_t size = orders && drops ? place.idx : sides.k.size();
  const std::int64_t idx = orders ? size : place.idx;
  const std::int64_t excess = std::max<std::int64_t>(idx - place.window + 1, 0);
  const auto side = [&](SlotsChange& change, const Array& rows) {
    if (!change.exists()) {
      change.start(rows);
    } else {
      if (orders && drops) change.keep(0, place.idx);
      if (orders && !drops) change.rotate(place.idx);
      change.keep(excess, size);
    }
    const std::int64_t begin = change.size();
    if (change.extend(rows, tokens_of(rows))) (void)change.put(begin, change.size(), rows);
    change.show(change.size());
  };
  side(sides.k, k);
  side(sides.v, v);
  place.offset += tokens_of(k);
  place.idx = place.seen = sides.k.size();
}

void write_single(SidesChange& sides, RingPlace& place, const Array& k, const Array& v,
                  QuirkSet<Quirk> quirks) {
  const std::int64_t held = sides.k.size();
  const bool exists = sides.k.exists();
  const bool grows = !exists || (place.offset >= held && held < place.window);
  const bool is_short = exists && place.offset > held && !quirks.has(Quirk::kShortRing);
  const std::int64_t filled = is_short ? held : place.offset;
  const auto grow = [&](SlotsChange& change, const Array& rows) {
    if (!exists) change.start(rows);
    if (grows) (void)change.extend(rows, std::min(kGrowth, place.window - filled));
  };
  grow(sides.k, k);
  grow(sides.v, v);
  if (grows) place.idx = filled;
  const std::int64_t slots = sides.k.size();
  if (slots > place.window) {
    sides.k.keep(slots - place.window, slots);
    sides.v.keep(slots - place.window, slots);
    place.idx = place.window;
  }
  if (place.idx >= place.window) place.idx = 0;
  const std::int64_t end = place.idx + tokens_of(k);
  (void)sides.k.put(place.idx, end, k);  // MR-A6
  (void)sides.v.put(place.idx, end, v);
  place.offset += tokens_of(k);
  sides.k.show(place.offset);
  sides.v.show(place.offset);
  place.idx = end;
  place.seen = std::min(place.offset, place.window);
}

}  // namespace kvo::snapshot
