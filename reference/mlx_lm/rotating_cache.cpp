#include "reference/mlx_lm/rotating_cache.hpp"

#include "reference/contract/values/mark.hpp"
#include "reference/mlx_lm/batch_caches.hpp"

namespace kvo::mlx_lm {
namespace {

// Slots [0, keep) and those from `more` behind them on; all where there is nothing to drop.
Tensor without_oldest(const Tensor& side, std::int64_t keep, std::int64_t more) {
  if (more <= 0) return side;
  return joined(sliced(side, 0, keep), sliced(side, more + keep, side.shape[kSlotAxis]));
}

}  // namespace

Tensor RotatingState::in_time_order(const Tensor& side) const {
  const std::int64_t n = side.shape[kSlotAxis];
  if (idx == n) return side;
  if (idx < offset)
    return joined(joined(sliced(side, 0, keep), sliced(side, idx, n)), sliced(side, keep, idx));
  return sliced(side, 0, idx);
}

CachePtr RotatingCache::copy(bool deep) const {
  RotatingState state = s_;
  if (deep) state.buffers = s_.buffers.cloned();
  return std::make_unique<RotatingCache>(step_, quirks_, std::move(state));
}

// ML-11
void RotatingCache::append_chunk(RotatingState& s, const Array& k, const Array& v) const {
  if (!s.buffers.k) {
    s.buffers = {k, v};
  } else {
    s.buffers.replace([&](const Tensor& side) { return s.in_time_order(side); });
    s.idx = slots(s.buffers.k);
    const std::int64_t more = s.idx - s.max_size + 1;
    if (s.offset > s.max_size) KVO_MARK("mlx_lm.rotating", "chunk on a ring that went round");
    s.buffers.append(*k, *v,
                     [&](const Tensor& side) { return without_oldest(side, s.keep, more); });
  }
  s.offset += slots(k);
  s.idx = slots(s.buffers.k);
}

// ML-13
void RotatingCache::write_single(RotatingState& s, Writes& writes, const Array& k,
                                 const Array& v) const {
  if (!s.buffers.k || (s.offset >= slots(s.buffers.k) && slots(s.buffers.k) < s.max_size)) {
    const std::int64_t more = std::min(step_, s.max_size - s.offset);
    Shape shape_v = k->shape;
    shape_v.back() = v->shape.back();
    s.buffers.append(zero_slots(k->shape, more, k->dtype),
                     zero_slots(std::move(shape_v), more, v->dtype));
    s.idx = s.offset;
  }
  if (const std::int64_t more = slots(s.buffers.k) - s.max_size; more > 0) {
    s.buffers.replace([&](const Tensor& side) { return without_oldest(side, s.keep, more); });
    s.idx = s.max_size;
  }
  if (s.idx == s.max_size) s.idx = s.keep;
  s.buffers.put(writes, s.idx, s.idx + 1, k, v);
  s.offset += 1;
  s.idx += 1;
}

Result<Pair> RotatingCache::update(const Array& k, const Array& v) {
  return attempt([&](RotatingState& s, Writes& writes) {
    if (slots(k) != 1) {
      append_chunk(s, k, v);
      return Pair{{{s.buffers.k}}, {{s.buffers.v}}};
    }
    write_single(s, writes, k, v);
    return s.buffers.first_or_all(s.offset);
  });
}

Result<Pair> RotatingCache::keys_and_values() const {
  return answer([&] { return s_.buffers.first_or_all(s_.offset); });
}

Result<std::int64_t> RotatingCache::trim(std::int64_t n) {
  if (!is_trimmable() && !has(Quirk::kTrimUnguarded)) return 0;
  const std::int64_t taken = trimmed(n, s_.offset, quirks_);
  s_.offset -= taken;
  s_.idx -= taken;
  return taken;
}

// ML-15, N = 1
Value RotatingCache::mask_of_one(std::int64_t window) const {
  if (s_.offset < window || s_.max_size <= window) return {};
  const std::int64_t m = s_.offset < s_.max_size ? s_.offset + 1 : s_.max_size;
  const std::int64_t kept = has(Quirk::kKeptSlotsRoll) ? 0 : std::min(s_.keep, m);
  const std::int64_t next = s_.idx >= s_.max_size ? kept : s_.idx;
  Tensor mask = zeros({m}, DType::kBool);
  const std::int64_t ring = m - kept;
  for (std::int64_t j = 0; j < m; ++j) {
    const std::int64_t to =
        j < kept ? j : kept + ((j - kept + next - kept + 1) % ring + ring) % ring;
    mask.bytes[static_cast<std::size_t>(to)] = std::byte{j >= m - window};
  }
  return mask;
}

Result<Value> RotatingCache::make_mask(std::int64_t queries, std::optional<std::int64_t> window,
                                       bool return_array) const {
  return answer([&]() -> Value {
    if (queries <= 1) return window ? mask_of_one(*window) : Value();
    const std::int64_t wide = window.value_or(0) != 0 ? *window : s_.max_size;
    const std::int64_t before = std::min(s_.max_size - 1, s_.offset);
    if (before + queries > wide || return_array) return Mask{queries, before, &wide}.matrix();
    return "causal";
  });
}

Result<CachePtr> RotatingCache::merge(std::span<const Cache* const> caches) const {
  return answer([&] { return BatchRotatingCache::merged(caches, step_, quirks_); });
}

}  // namespace kvo::mlx_lm
