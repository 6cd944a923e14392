#include "reference/mlx_lm/plain_caches.hpp"

#include "reference/contract/values/mark.hpp"
#include "reference/mlx_lm/batch_caches.hpp"
#include "reference/mlx_lm/quantized_cache.hpp"

namespace kvo::mlx_lm {

void Buffers::grow(const Tensor& rows_k, const Tensor& rows_v, std::int64_t offset,
                   std::int64_t step) {
  const std::int64_t tokens = rows_k.shape[kSlotAxis];
  if (k && offset + tokens <= slots(k)) return;
  const std::int64_t more = (step + tokens - 1) / step * step;
  Shape shape_v = rows_k.shape;
  shape_v.back() = rows_v.shape.back();
  const Tensor more_k = zero_slots(rows_k.shape, more, rows_k.dtype);
  const Tensor more_v = zero_slots(std::move(shape_v), more, rows_v.dtype);
  if (k && offset % step != 0) replace([&](const Tensor& side) { return sliced(side, 0, offset); });
  append(more_k, more_v);
}

// ---- kv ----

CachePtr KvCache::copy(bool deep) const {
  return std::make_unique<KvCache>(step_, quirks_,
                                   deep ? KvState{s_.buffers.cloned(), s_.offset} : s_);
}

Result<Pair> KvCache::update(const Array& k, const Array& v) {
  return attempt([&](KvState& s, Writes& writes) {
    const std::int64_t begin = s.offset;
    s.buffers.grow(*k, *v, begin, step_);
    s.offset += slots(k);
    s.buffers.put(writes, begin, s.offset, k, v);
    return s.buffers.first_or_all(s.offset);
  });
}

Result<Pair> KvCache::keys_and_values() const {
  return answer([&] { return s_.buffers.first_or_all(s_.offset); });
}

Result<std::int64_t> KvCache::trim(std::int64_t n) {
  const std::int64_t taken = trimmed(n, s_.offset, quirks_);
  s_.offset -= taken;
  return taken;
}

Result<Value> KvCache::make_mask(std::int64_t queries, std::optional<std::int64_t> window,
                                 bool return_array) const {
  return answer([&] {
    return causal_mask({queries, s_.offset, window ? &*window : nullptr}, return_array);
  });
}

Result<CachePtr> KvCache::merge(std::span<const Cache* const> caches) const {
  return answer([&] { return BatchKvCache::merged(caches, step_, quirks_); });
}

Result<CachePtr> KvCache::to_quantized(std::int64_t group_size, std::int64_t bits) const {
  return answer([&]() -> CachePtr {
    QuantizedState state{.offset = s_.offset, .group_size = group_size, .bits = bits};
    if (s_.buffers.k) {
      state.k = quantized(*s_.buffers.k, group_size, bits);
      state.v = quantized(*s_.buffers.v, group_size, bits);
    }
    return std::make_unique<QuantizedCache>(step_, quirks_, std::move(state));
  });
}

// ---- concatenate ----

CachePtr ConcatenateCache::copy(bool deep) const {
  return std::make_unique<ConcatenateCache>(quirks_,
                                            deep ? KvState{s_.buffers.cloned(), s_.offset} : s_);
}

Result<CachePtr> ConcatenateCache::from_state() const {
  if (!s_.buffers.k && has(Quirk::kEmptyStateRefused))
    return fail(Code::kPrecondition, "there is no buffer");
  const std::int64_t tokens = s_.buffers.k ? slots(s_.buffers.k) : 0;
  return CachePtr(std::make_unique<ConcatenateCache>(quirks_, KvState{s_.buffers, tokens}));
}

Result<Pair> ConcatenateCache::update(const Array& k, const Array& v) {
  return attempt([&](KvState& s, Writes& /*writes*/) {
    if (s.buffers.k)
      s.buffers.append(*k, *v);
    else
      s.buffers = {k, v};
    s.offset = slots(s.buffers.k);
    return Pair{{{s.buffers.k}}, {{s.buffers.v}}};
  });
}

Result<std::int64_t> ConcatenateCache::trim(std::int64_t n) {
  return attempt([&](KvState& s, Writes& /*writes*/) {
    const std::int64_t taken = trimmed(n, s.offset, quirks_);
    s.offset -= taken;
    if (taken > 0 && !has(Quirk::kConcatenateTrimUndone))
      s.buffers.replace([&](const Tensor& side) { return sliced(side, 0, s.offset); });
    return taken;
  });
}

Result<Value> ConcatenateCache::make_mask(std::int64_t queries, std::optional<std::int64_t> window,
                                          bool return_array) const {
  return answer([&] {
    return causal_mask({queries, s_.offset, window ? &*window : nullptr}, return_array);
  });
}

// ---- chunked ----

CachePtr ChunkedCache::copy(bool deep) const {
  ChunkedState state = s_;
  if (deep) state.buffers = s_.buffers.cloned();
  return std::make_unique<ChunkedCache>(step_, quirks_, std::move(state));
}

Result<Pair> ChunkedCache::update(const Array& k, const Array& v) {
  return attempt([&](ChunkedState& s, Writes& writes) {
    const std::int64_t begin = s.offset - s.start;
    s.buffers.grow(*k, *v, begin, step_);
    s.offset += slots(k);
    const std::int64_t end = s.offset - s.start;
    s.buffers.put(writes, begin, end, k, v);
    return s.buffers.first(end);
  });
}

Result<Pair> ChunkedCache::keys_and_values() const {
  return answer([&] { return s_.buffers.first(s_.offset - s_.start); });
}

Result<std::int64_t> ChunkedCache::trim(std::int64_t n) {
  if (!is_trimmable()) return 0;
  const std::int64_t taken = trimmed(n, s_.offset - s_.start, quirks_);
  s_.offset -= taken;
  return taken;
}

Result<std::vector<std::int64_t>> ChunkedCache::maybe_trim_front() {
  return attempt([&](ChunkedState& s, Writes& /*writes*/) {
    const std::int64_t valid = s.offset - s.start;
    const std::int64_t more = valid - s.chunk_size;
    if (s.buffers.k && more > 0) {
      s.start += more;
      s.buffers.replace([&](const Tensor& side) { return sliced(side, more, valid); });
    }
    return std::vector{s.offset, s.start};
  });
}

}  // namespace kvo::mlx_lm
