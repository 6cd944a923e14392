#include "reference/positional/encoder_cache.hpp"

#include <algorithm>
#include <utility>

#include "reference/contract/values/mark.hpp"

namespace kvo::positional {
namespace {

Shape shape_of(const Rows& rows) {
  return {rows.tokens, rows.heads, rows.dim};
}

}  // namespace

Result<std::unique_ptr<Cache>> EncoderCache::make(const CacheOptions& options) {
  return std::make_unique<EncoderCache>(options);
}

Status EncoderCache::do_set_config(const BackendConfig& config,
                                   std::optional<std::int64_t> member) {
  if (member) return refused("target: " + std::to_string(*member) + " of a cache of its own");
  if (config_) return refused("config cannot be changed after being previously set");  // OK-8
  config_ = config;
  return {};
}

Status EncoderCache::do_init(const InitOptions& arguments) {  // OK-70
  if (arguments.max_sequences > 1)
    return refused("encoder cache does not support multiple sequences; requested: " +
                   std::to_string(arguments.max_sequences));
  if (effective().cache_padding > 1)
    return refused("encoder cache is unable to enforce requested CachePadding (" +
                   std::to_string(effective().cache_padding) + ")");
  return {};
}

Status EncoderCache::do_start_forward(const Batch& batch) {
  reserve_ = batch.reserve;
  if (!batch.multimodal.empty() && (!batch.reserve || has(Quirk::kReserveRemembered))) {  // OK-71
    const auto last = static_cast<std::size_t>(batch.multimodal.back());
    remembered_ = Entry{batch.positions[last], batch.sequences[last]};
  }
  return {};
}

Status EncoderCache::do_set_layer(std::int64_t layer) {
  layer_ = layer;
  return {};
}

Status EncoderCache::do_put(const Rows& k, const Rows& v) {
  const auto found = layers_.find(layer_);
  const bool fresh = found == layers_.end();
  if (!fresh && (found->second.k->shape != shape_of(k) || found->second.v->shape != shape_of(v)))
    return refused("k, v: other rows than before in layer " + std::to_string(layer_));
  if (reserve_ && !fresh) return {};  // OK-76
  Layer layer{.k = std::make_shared<Tensor>(make_tensor(shape_of(k))),
              .v = std::make_shared<Tensor>(make_tensor(shape_of(v)))};
  if (!reserve_) {
    std::ranges::copy(k.values, layer.k->floats().begin());
    std::ranges::copy(v.values, layer.v->floats().begin());
    layer.written = true;
  }
  layers_.insert_or_assign(layer_, std::move(layer));  // OK-73
  if (reserve_) return {};                             // OK-76
  if (!fresh) KVO_MARK("positional.encoder positional.wrapper", "encoder reput");
  stored_ = remembered_;  // OK-72
  cached_ = true;
  return {};
}

Result<Shown> EncoderCache::do_get() {
  const auto found = layers_.find(layer_);
  if (found == layers_.end() || !(found->second.written || has(Quirk::kReserveShown)))  // OK-76
    return Shown{};
  Shown shown{.k = view_of(*found->second.k), .v = view_of(*found->second.v)};
  if (effective().permuted_v)  // OK-74
    for (Shape* axes : {&shown.v->shape, &shown.v->strides})
      std::rotate(axes->begin(), axes->begin() + 1, axes->end());
  return shown;
}

Status EncoderCache::do_copy_prefix(std::int64_t /*source*/, std::int64_t /*target*/,
                                    std::int32_t /*length*/) {
  return refused("encoder cache does not support multiple sequences");  // OK-77
}

Result<bool> EncoderCache::do_can_resume(std::int64_t /*sequence*/,
                                         std::int32_t /*position*/) const {
  return true;  // OK-77
}

Status EncoderCache::do_remove(std::int64_t sequence, std::int32_t begin, std::int32_t end) {
  if (has(Quirk::kAnySequenceDrops)) {  // OK-75: any sequence, and position 0 without an entry
    const std::int32_t position = stored_ ? stored_->position : 0;
    if (begin <= position && position < end) cached_ = false;
  } else if (stored_) {
    if (stored_->sequence == sequence && begin <= stored_->position && stored_->position < end)
      cached_ = false;
  } else if (begin <= 0 && end == kMaxPosition) {
    cached_ = false;
  }
  return {};
}

Result<bool> EncoderCache::do_encoder_cached() const {
  return cached_;
}

}  // namespace kvo::positional
