#include "optimized/positional/encoder_cache.hpp"

#include <string>

namespace kvo::optimized {

Result<std::unique_ptr<positional::Cache>> PositionalEncoderCache::make(
    const positional::CacheOptions& options) {
  return std::make_unique<PositionalEncoderCache>(options.backend, options.quirks);
}

Status PositionalEncoderCache::prepare_init(const positional::InitOptions& arguments) {
  next_ = state_;
  if (arguments.max_sequences > 1)  // OK-70
    return fail(Code::kPrecondition,
                "encoder cache does not support multiple sequences; requested: " +
                    std::to_string(arguments.max_sequences));
  if (config().cache_padding > 1)
    return fail(Code::kPrecondition, "encoder cache is unable to enforce requested CachePadding (" +
                                         std::to_string(config().cache_padding) + ")");
  return {};
}

Status PositionalEncoderCache::prepare_start(const positional::Batch& batch) {
  next_ = state_;
  next_.reserve = batch.reserve;
  // OK-71: the original lets a reserve pass set it as well.
  if (batch.multimodal.empty() || (documented() && batch.reserve)) return {};
  const auto last = static_cast<std::size_t>(batch.multimodal.back());
  next_.remembered = Entry{batch.positions[last], batch.sequences[last]};
  return {};
}

Status PositionalEncoderCache::prepare_copy(std::int64_t /*source*/, std::int64_t /*target*/,
                                            std::int32_t /*length*/) {
  return fail(Code::kPrecondition, "encoder cache does not support multiple sequences");  // OK-77
}

Status PositionalEncoderCache::prepare_remove(std::int64_t sequence, std::int32_t begin,
                                              std::int32_t end) {
  next_ = state_;
  if (covers(sequence, begin, end)) next_.cached = false;
  return {};
}

bool PositionalEncoderCache::covers(std::int64_t sequence, std::int32_t begin,
                                    std::int32_t end) const {
  const std::optional<Entry>& stored = state_.stored;
  if (!stored && documented()) return begin <= 0 && end == positional::kMaxPosition;
  // OK-75: the original takes any sequence, and position 0 when there was no entry.
  const Entry entry = stored.value_or(Entry{0, sequence});
  return (!documented() || entry.sequence == sequence) && begin <= entry.position &&
         entry.position < end;
}

void PositionalEncoderCache::commit_unwound(const positional::Batch& batch) noexcept {
  commit();
  for (std::size_t i = 0; i < batch.positions.size(); ++i)
    if (covers(batch.sequences[i], batch.positions[i], positional::kMaxPosition))
      state_.cached = false;
}

Status PositionalEncoderCache::do_set_layer(std::int64_t layer) {
  layer_ = layer;
  return {};
}

Status PositionalEncoderCache::do_put(const positional::Rows& k, const positional::Rows& v) {
  const LayerRows::Form form{k.heads, k.dim, v.dim};
  const LayerRows::Plan plan{k.tokens, {}, config().permuted_v};  // OK-73
  Layer& layer = layers_.try_emplace(layer_, plan, form).first->second;
  if (layer.tokens != k.tokens || layer.rows.form() != form)
    return fail(Code::kPrecondition,
                "k, v: other rows than before in layer " + std::to_string(layer_));
  if (state_.reserve) return {};  // OK-76
  layer.rows.put_all(k.values, v.values);
  layer.written = true;
  state_.stored = state_.remembered;  // OK-72
  state_.cached = true;
  return {};
}

Result<positional::Shown> PositionalEncoderCache::do_get() {
  const auto found = layers_.find(layer_);
  // OK-76: documented shows nothing of a layer that only had reserve puts.
  if (found == layers_.end() || (documented() && !found->second.written))
    return positional::Shown{};
  Layer& layer = found->second;
  const CellRange all{0, layer.tokens - 1};
  return positional::Shown{layer.rows.k(all), layer.rows.v(all), std::nullopt};
}

}  // namespace kvo::optimized
