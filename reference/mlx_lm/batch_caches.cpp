#include "reference/mlx_lm/batch_caches.hpp"

#include <functional>

#include "reference/contract/values/mark.hpp"
#include "reference/mlx_lm/rotating_cache.hpp"

namespace kvo::mlx_lm {
namespace {

Ints joined_lists(const Ints& first, const Ints& second) {
  Ints all = first;
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

Ints picked(const Ints& numbers, const Ints& rows) {
  const std::int64_t size = std::ssize(numbers);
  Ints out;
  for (const std::int64_t row : rows) {
    if (row < -size || row >= size) throw Misuse("no such row");
    out.push_back(numbers[static_cast<std::size_t>(row < 0 ? row + size : row)]);
  }
  return out;
}

// max(0, offset - lengths) of each row.
Ints beyond(const Ints& offset, const Ints& lengths) {
  Ints out = sum(offset, lengths, -1);
  for (std::int64_t& number : out) number = std::max<std::int64_t>(number, 0);
  return out;
}

// What one cache gives to a batch.
struct Part {
  const Buffers* buffers;
  std::int64_t length;
  std::function<Tensor(const Tensor&)> tokens;
};

// The tokens of each part at the right of a row of `columns` (ML-42).
Buffers right_justified(const std::vector<Part>& parts, std::int64_t columns) {
  const auto has_buffer = [](const Part& part) { return part.buffers->k != nullptr; };
  const auto first = std::ranges::find_if(parts, has_buffer);
  if (first == parts.end()) throw Misuse("no cache has a buffer");
  const DType type = first->buffers->k->dtype;
  const auto side = [&](Array Buffers::*which) {
    Shape row{1, 0, columns, 0};
    for (const Part& part : parts) {
      if (!has_buffer(part)) continue;
      row[1] = std::max(row[1], ((*part.buffers).*which)->shape[1]);
      row[3] = std::max(row[3], ((*part.buffers).*which)->shape[3]);
    }
    Shape none = row;
    none[0] = 0;
    Tensor all = zeros(std::move(none), type);
    for (const Part& part : parts) {
      Tensor made = zeros(row, type);
      const std::int64_t begin = columns - part.length;
      if (has_buffer(part))
        overwrite(made, begin,
                  fitted(part.tokens(*((*part.buffers).*which)), made, begin, columns, kSlotAxis),
                  kSlotAxis);
      all = joined(all, made, kRowAxis);
    }
    return array_of(std::move(all));
  };
  return {side(&Buffers::k), side(&Buffers::v)};
}

Rows merged_rows(const std::vector<Part>& parts, std::int64_t columns, Ints offsets) {
  Ints padding;
  for (const Part& part : parts) padding.push_back(columns - part.length);
  return {right_justified(parts, columns), std::make_shared<Ints>(std::move(padding)),
          std::move(offsets)};
}

template <class Known>
std::vector<const Known*> all_of_kind(std::span<const Cache* const> caches) {
  std::vector<const Known*> all;
  for (const Cache* cache : caches) {
    all.push_back(dynamic_cast<const Known*>(cache));
    if (all.back() == nullptr) throw Misuse("caches of several kinds");
  }
  return all;
}

}  // namespace

// ---- Rows ----

Rows Rows::padded(const Ints& left_padding) {
  return {{}, std::make_shared<Ints>(left_padding), sum(Ints{0}, left_padding, -1)};
}

Rows Rows::only(const Ints& rows) const {
  Rows out{{}, std::make_shared<Ints>(picked(*padding, rows)), picked(offset, rows)};
  if (buffers.k)
    out.buffers = {array_of(rows_of(*buffers.k, rows)), array_of(rows_of(*buffers.v, rows))};
  return out;
}

void Rows::add_padding(Writes& writes, const Ints& more) {
  if (buffers.k) throw Misuse("left padding can only be added to an empty batch");
  writes.put(padding, sum(*padding, more));
  offset = sum(offset, more, -1);
}

void Rows::move_right(Writes& writes, Ints& current_padding, const Ints& columns) {
  buffers.replace([&](const Tensor& side) { return rotated(side, columns); });
  current_padding = sum(current_padding, columns);
  writes.put(padding, current_padding);
  offset = sum(offset, columns, -1);
}

Rows extended(const Rows& one, std::int64_t idx, const Rows& other, std::int64_t other_idx) {
  if (!one.buffers.k && !other.buffers.k)
    return {{},
            std::make_shared<Ints>(joined_lists(*one.padding, *other.padding)),
            joined_lists(one.offset, other.offset)};
  const std::int64_t end = std::max(idx, other_idx);
  const auto side = [&](Array Buffers::*which) {
    const Array& first = one.buffers.*which;
    const Array& second = other.buffers.*which;
    const std::int64_t all = std::max(first ? slots(first) : 0, second ? slots(second) : 0);
    const auto moved = [&](const Array& array, const Rows& rows, std::int64_t own_idx) {
      Shape shape = (second ? second : first)->shape;
      shape[kRowAxis] = std::ssize(rows.offset);
      const DType type = (one.buffers.k ? one : other).buffers.k->dtype;
      const Tensor own = array ? *array : zero_slots(std::move(shape), 0, type);
      const std::int64_t left = end - own_idx;
      return shifted(own, left, all - own.shape[kSlotAxis] - left);
    };
    return array_of(joined(moved(first, one, idx), moved(second, other, other_idx), kRowAxis));
  };
  return {{side(&Buffers::k), side(&Buffers::v)},
          std::make_shared<Ints>(
              joined_lists(sum(*one.padding, end - idx), sum(*other.padding, end - other_idx))),
          joined_lists(one.offset, other.offset)};
}

// ---- batch-kv ----

CachePtr BatchKvCache::merged(std::span<const Cache* const> caches, std::int64_t step,
                              QuirkSet<Quirk> quirks) {
  std::vector<Part> parts;
  Ints offsets;
  for (const KvCache* cache : all_of_kind<KvCache>(caches)) {
    const KvState& from = cache->contents();
    parts.push_back({&from.buffers, from.offset,
                     [&from](const Tensor& side) { return sliced(side, 0, from.offset); }});
    offsets.push_back(from.offset);
  }
  BatchKvState state{.idx = std::ranges::max(offsets)};
  if (state.idx == 0)
    state.rows = Rows::padded(Ints(offsets.size()));
  else
    state.rows = merged_rows(parts, state.idx, offsets);
  return std::make_unique<BatchKvCache>(step, quirks, std::move(state));
}

CachePtr BatchKvCache::copy(bool deep) const {
  BatchKvState state = s_;
  if (deep) state.rows = s_.rows.cloned();
  return std::make_unique<BatchKvCache>(step_, quirks_, std::move(state));
}

Result<CachePtr> BatchKvCache::from_state() const {
  return CachePtr(std::make_unique<BatchKvCache>(
      step_, quirks_, BatchKvState{s_.rows, s_.idx, {.missing = has(Quirk::kNoteForgotten)}}));
}

Result<Value> BatchKvCache::offset() const {
  return Value(Value::List(s_.rows.offset.begin(), s_.rows.offset.end()));
}

Result<Pair> BatchKvCache::update(const Array& k, const Array& v) {
  return attempt([&](BatchKvState& s, Writes& writes) {
    const std::int64_t begin = s.idx;
    s.rows.buffers.grow(*k, *v, begin, step_);
    s.rows.offset = sum(s.rows.offset, slots(k));
    s.idx += slots(k);
    s.rows.buffers.put(writes, begin, s.idx, k, v);
    return s.rows.buffers.first(s.idx);
  });
}

Result<Pair> BatchKvCache::keys_and_values() const {
  return answer([&] { return s_.rows.buffers.first(s_.idx); });
}

Result<std::int64_t> BatchKvCache::trim(std::int64_t n) {
  return attempt([&](BatchKvState& s, Writes& /*writes*/) {
    const std::int64_t taken = trimmed(n, s.idx, quirks_);
    s.idx -= taken;
    s.rows.offset = sum(s.rows.offset, -taken);
    return taken;
  });
}

Result<Value> BatchKvCache::make_mask(std::int64_t queries, std::optional<std::int64_t> window,
                                      bool /*return_array*/) const {
  return answer([&]() -> Value {
    return Mask{queries, s_.idx, window ? &*window : nullptr}.matrix(*s_.rows.padding);
  });
}

Result<CachePtr> BatchKvCache::extract(std::int64_t row) const {
  return answer([&]() -> CachePtr {
    const std::int64_t padding = picked(*s_.rows.padding, {row}).front();
    KvState state{.buffers = s_.rows.buffers};
    state.buffers.replace([&](const Tensor& side) {
      return sliced(sliced(side, row, row + 1, kRowAxis), padding, s_.idx);
    });
    state.offset = slots(state.buffers.k);
    return std::make_unique<KvCache>(step_, quirks_, std::move(state));
  });
}

Status BatchKvCache::filter(const Ints& rows) {
  return attempt([&](BatchKvState& s, Writes& /*writes*/) {
    if (rows.empty() && has(Quirk::kFilterNeedsRows)) throw Misuse("no rows");
    s.rows = s.rows.only(rows);
    const std::int64_t spare = rows.empty() ? 0 : std::ranges::min(*s.rows.padding);
    if (spare > 0) {
      if (s.rows.buffers.k)
        s.rows.buffers.replace(
            [&](const Tensor& side) { return sliced(side, spare, side.shape[kSlotAxis]); });
      s.idx -= spare;
      s.rows.padding = std::make_shared<Ints>(sum(*s.rows.padding, -spare));
    }
  });
}

Status BatchKvCache::extend(Cache& other) {
  const auto* more = dynamic_cast<const BatchKvCache*>(&other);
  if (more == nullptr) return fail(Code::kPrecondition, "a cache of another kind");
  return attempt([&](BatchKvState& s, Writes& /*writes*/) {
    const bool filled = s.rows.buffers.k || more->s_.rows.buffers.k;
    s.rows = extended(s.rows, s.idx, more->s_.rows, more->s_.idx);
    if (filled) s.idx = std::max(s.idx, more->s_.idx);
  });
}

Status BatchKvCache::prepare(const std::optional<Ints>& left_padding,
                             const std::optional<Ints>& /*lengths*/,
                             const std::optional<Ints>& right_padding) {
  return attempt([&](BatchKvState& s, Writes& writes) {
    if (left_padding) s.rows.add_padding(writes, *left_padding);
    if (right_padding) {
      if (right_padding->empty()) throw Misuse("right_padding is empty");
      if (std::ranges::max(*right_padding) > 0) s.right_padding = {false, right_padding};
    }
  });
}

Status BatchKvCache::finalize() {
  return attempt([&](BatchKvState& s, Writes& writes) {
    if (const Ints* columns = s.right_padding.read()) {
      Ints padding = *s.rows.padding;
      s.rows.move_right(writes, padding, *columns);
      s.right_padding.numbers.reset();
    }
  });
}

// ---- batch-rotating ----

CachePtr BatchRotatingCache::merged(std::span<const Cache* const> caches, std::int64_t step,
                                    QuirkSet<Quirk> quirks) {
  std::vector<Part> parts;
  Ints offsets;
  Ints lengths;
  const auto rings = all_of_kind<RotatingCache>(caches);
  BatchRotatingState state{.max_size = rings.front()->contents().max_size};
  for (const RotatingCache* cache : rings) {
    const RotatingState& from = cache->contents();
    if (from.max_size != state.max_size) throw Misuse("caches of several maximum sizes");
    const std::int64_t length = cache->size();
    parts.push_back({&from.buffers, length, [&from, length](const Tensor& side) {
                       const Tensor all = from.in_time_order(side);
                       return sliced(all, -length, all.shape[kSlotAxis]);
                     }});
    offsets.push_back(from.offset);
    lengths.push_back(length);
  }
  const std::int64_t columns = std::ranges::max(lengths);
  if (columns == 0) {
    state.rows = Rows::padded(Ints(offsets.size()));
  } else {
    state.rows = merged_rows(parts, columns, offsets);
    state.idx = state.count = columns;
  }
  return std::make_unique<BatchRotatingCache>(step, quirks, std::move(state));
}

void BatchRotatingState::bring_into_time_order() {
  if (!rotated) return;
  rows.buffers.replace([&](const Tensor& side) { return rotated_left(side, idx); });
  idx = slots(rows.buffers.k);
  rotated = false;
}

CachePtr BatchRotatingCache::copy(bool deep) const {
  BatchRotatingState state = s_;
  if (deep) state.rows = s_.rows.cloned();
  return std::make_unique<BatchRotatingCache>(step_, quirks_, std::move(state));
}

Result<CachePtr> BatchRotatingCache::from_state() const {
  BatchRotatingState state = s_;
  state.lengths = {.missing = has(Quirk::kNoteForgotten)};
  return CachePtr(std::make_unique<BatchRotatingCache>(step_, quirks_, std::move(state)));
}

Result<Value> BatchRotatingCache::offset() const {
  return Value(Value::List(s_.rows.offset.begin(), s_.rows.offset.end()));
}

// ML-50
void BatchRotatingCache::append_chunk(BatchRotatingState& s, Writes& writes, const Array& k,
                                      const Array& v) const {
  Buffers& buffers = s.rows.buffers;
  if (!buffers.k) {
    buffers = {k, v};
  } else {
    s.bring_into_time_order();
    if (slots(buffers.k) > s.idx)
      buffers.replace([&](const Tensor& side) { return sliced(side, 0, s.idx); });
    Ints padding = *s.rows.padding;
    if (const Ints* lengths = s.lengths.read())
      s.rows.move_right(writes, padding, beyond(s.rows.offset, *lengths));
    const std::int64_t more = std::max<std::int64_t>(s.idx - s.max_size + 1, 0);
    if (more > 0) writes.put(s.rows.padding, sum(padding, -more));
    buffers.append(*k, *v,
                   [&](const Tensor& side) { return sliced(side, more, side.shape[kSlotAxis]); });
  }
  s.rows.offset = sum(s.rows.offset, slots(k));
  s.count += slots(k);
  s.idx = slots(buffers.k);
  buffers.k = clone(buffers.k);  // ML-A1: of a batch ring, keys are a new object
}

// ML-51
void BatchRotatingCache::write_single(BatchRotatingState& s, Writes& writes, const Array& k,
                                      const Array& v) const {
  if (s.lengths.read() != nullptr) throw Misuse("finalize() comes before decoding");
  Buffers& buffers = s.rows.buffers;
  Ints padding = *s.rows.padding;
  if (!buffers.k || (s.count >= slots(buffers.k) && slots(buffers.k) < s.max_size)) {
    const std::int64_t more = std::min(step_, s.max_size - s.count);
    Shape shape_v = k->shape;
    shape_v.back() = v->shape.back();
    buffers.append(zero_slots(k->shape, more, k->dtype),
                   zero_slots(std::move(shape_v), more, v->dtype));
    s.idx = s.count;
  }
  if (const std::int64_t more = slots(buffers.k) - s.max_size; more > 0) {
    buffers.replace([&](const Tensor& side) { return sliced(side, more, side.shape[kSlotAxis]); });
    s.idx = s.max_size;
    padding = sum(padding, -more);
  }
  if (s.idx == s.max_size) {
    s.rotated = true;
    s.idx = 0;
  }
  if (s.rotated) padding = sum(padding, -1);
  writes.put(s.rows.padding, padding);
  const Array before = buffers.k;
  buffers.k = clone(before);
  writes.put(before, s.idx, s.idx + 1, *k);
  buffers.put(writes, s.idx, s.idx + 1, k, v);
  s.rows.offset = sum(s.rows.offset, 1);
  s.count += 1;
  s.idx += 1;
}

Result<Pair> BatchRotatingCache::update(const Array& k, const Array& v) {
  return attempt([&](BatchRotatingState& s, Writes& writes) {
    if (slots(k) != 1) {
      append_chunk(s, writes, k, v);
      return Pair{{{s.rows.buffers.k}}, {{s.rows.buffers.v}}};
    }
    write_single(s, writes, k, v);
    return s.rows.buffers.first_or_all(s.count);
  });
}

Result<Pair> BatchRotatingCache::keys_and_values() const {
  return answer([&] { return s_.rows.buffers.first_or_all(s_.count); });
}

Result<std::int64_t> BatchRotatingCache::trim(std::int64_t n) {
  if (!is_trimmable() && !has(Quirk::kTrimUnguarded)) return 0;
  return attempt([&](BatchRotatingState& s, Writes& /*writes*/) {
    const std::int64_t taken = trimmed(n, s.count, quirks_);
    s.count -= taken;
    s.idx -= taken;
    s.rows.offset = sum(s.rows.offset, -taken);
    return taken;
  });
}

Result<Value> BatchRotatingCache::make_mask(std::int64_t queries,
                                            std::optional<std::int64_t> window,
                                            bool /*return_array*/) const {
  return answer([&]() -> Value {
    const std::int64_t wide = window.value_or(0) != 0 ? *window : s_.max_size;
    const Mask mask{queries, std::min(s_.max_size - 1, s_.count), &wide};
    const bool one_on_a_ring = queries == 1 && (s_.rotated || s_.idx >= s_.max_size);
    // A chunk finds the ring in time order, which ends with its last slot.
    const bool ordered = s_.rotated && queries > 1 && !has(Quirk::kPaddingHidesToken);
    const std::int64_t idx = ordered ? slots(s_.rows.buffers.k) : s_.idx;
    const std::int64_t more = std::max<std::int64_t>(idx - s_.max_size + (queries > 1 ? 1 : 0), 0);
    if (s_.rotated && queries > 1) KVO_MARK("mlx_lm.batch_rotating", "mask of a chunk on a ring");
    Tensor shown = mask.matrix(sum(*s_.rows.padding, -more - (one_on_a_ring ? 1 : 0)));
    if (!one_on_a_ring) return shown;
    const std::int64_t next = s_.idx >= s_.max_size ? 0 : s_.idx;
    const std::int64_t columns = mask.columns();
    Tensor rolled = shown;
    for (std::int64_t row = 0; row < shown.shape[0]; ++row)
      for (std::int64_t j = 0; j < columns; ++j)
        rolled.bytes[static_cast<std::size_t>(row * columns +
                                              ((j + next + 1) % columns + columns) % columns)] =
            shown.bytes[static_cast<std::size_t>(row * columns + j)];
    return rolled;
  });
}

Result<CachePtr> BatchRotatingCache::extract(std::int64_t row) const {
  return answer([&]() -> CachePtr {
    const std::int64_t padding = std::max<std::int64_t>(picked(*s_.rows.padding, {row}).front(), 0);
    RotatingState state{.buffers = s_.rows.buffers,
                        .offset = picked(s_.rows.offset, {row}).front(),
                        .max_size = s_.max_size};
    state.buffers.replace([&](const Tensor& side) {
      const Tensor own = sliced(side, row, row + 1, kRowAxis);
      if (s_.rotated) return sliced(rotated_left(own, s_.idx), padding, s_.max_size);
      return sliced(own, padding, s_.idx);
    });
    state.idx = slots(state.buffers.k);
    return std::make_unique<RotatingCache>(step_, quirks_, std::move(state));
  });
}

Status BatchRotatingCache::filter(const Ints& rows) {
  return attempt([&](BatchRotatingState& s, Writes& /*writes*/) {
    if (rows.empty() && has(Quirk::kFilterNeedsRows)) throw Misuse("no rows");
    s.rows = s.rows.only(rows);
  });
}

Status BatchRotatingCache::extend(Cache& other) {
  auto* more = dynamic_cast<BatchRotatingCache*>(&other);
  if (more == nullptr) return fail(Code::kPrecondition, "a cache of another kind");
  BatchRotatingState theirs = more->s_;
  Status done = attempt([&](BatchRotatingState& s, Writes& /*writes*/) {
    const bool filled = s.rows.buffers.k || theirs.rows.buffers.k;
    if (filled && (s.rotated != theirs.rotated || s.idx != theirs.idx)) {
      s.bring_into_time_order();
      theirs.bring_into_time_order();
    }
    s.rows = extended(s.rows, s.idx, theirs.rows, theirs.idx);
    if (filled) {
      s.idx = std::max(s.idx, theirs.idx);
      s.count = std::max(s.count, theirs.count);
    }
  });
  if (more != this && (done || has(Quirk::kFailureLeavesSteps))) std::swap(more->s_, theirs);
  return done;
}

Status BatchRotatingCache::prepare(const std::optional<Ints>& left_padding,
                                   const std::optional<Ints>& lengths,
                                   const std::optional<Ints>& right_padding) {
  return attempt([&](BatchRotatingState& s, Writes& writes) {
    if (left_padding) s.rows.add_padding(writes, *left_padding);
    if (right_padding) {
      if (right_padding->empty()) throw Misuse("right_padding is empty");
      if (std::ranges::max(*right_padding) > 0) {
        if (!lengths) throw Misuse("right_padding needs lengths");
        s.lengths = {false, sum(*lengths, s.rows.offset)};
      }
    }
  });
}

Status BatchRotatingCache::finalize() {
  return attempt([&](BatchRotatingState& s, Writes& writes) {
    if (const Ints* lengths = s.lengths.read()) {
      Ints padding = *s.rows.padding;
      s.rows.move_right(writes, padding, beyond(s.rows.offset, *lengths));
      s.lengths.numbers.reset();
    }
  });
}

}  // namespace kvo::mlx_lm
