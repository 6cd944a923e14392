#include "reference/dynamic/layers.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "reference/contract/values/mark.hpp"
#include "reference/dynamic/quantized_attention.hpp"
#include "reference/dynamic/static_attention.hpp"

namespace kvo::dynamic {
namespace {

constexpr std::int64_t kMostLayers = 4096;

std::unique_ptr<Attention> full_attention(const ListOptions& options, QuirkSet<Quirk> quirks) {
  switch (options.storing) {
    case Storing::kDynamic:
      return std::make_unique<DynamicAttention>(quirks);
    case Storing::kStatic:
      return std::make_unique<StaticAttention>(quirks, options.max_cache_len);
    case Storing::kQuantizedIdentity:
      return std::make_unique<QuantizedAttention>(quirks, options.residual_length);
    case Storing::kQuantizedFp8:
      return std::make_unique<Fp8Attention>(quirks);
  }
  return nullptr;
}

std::unique_ptr<Attention> sliding_attention(const ListOptions& options, std::int64_t window,
                                             QuirkSet<Quirk> quirks) {
  if (options.storing == Storing::kStatic)
    return std::make_unique<StaticSlidingAttention>(quirks, window, options.max_cache_len);
  return std::make_unique<SlidingAttention>(quirks, window);
}

Layer layer_of(LayerType type, const ListOptions& options, QuirkSet<Quirk> quirks) {  // HF-3
  switch (type) {
    case LayerType::kFullAttention:
    case LayerType::kIndexedAttention:
      return {std::nullopt, full_attention(options, quirks)};
    case LayerType::kSlidingAttention:
      return {std::nullopt, sliding_attention(options, options.sliding_window, quirks)};
    case LayerType::kChunkedAttention:
      return {std::nullopt, sliding_attention(options, options.chunk, quirks)};
    case LayerType::kConv:
    case LayerType::kLinearAttention:
      return {LinearState(quirks), nullptr};
    case LayerType::kHybrid:
      return {LinearState(quirks), full_attention(options, quirks)};
    case LayerType::kHybridSliding:
      return {LinearState(quirks), sliding_attention(options, options.sliding_window, quirks)};
    case LayerType::kMoe:
    case LayerType::kMlp:
    case LayerType::kDummy:
      break;
  }
  return {std::nullopt, nullptr};
}

Error not_linear() {
  return fail(Code::kNotSupported, "layer: it has no linear state");
}

}  // namespace

// ---- Layer ----

Layer::Layer(const Layer& other)
    : linear_(other.linear_), attention_(other.attention_ ? other.attention_->clone() : nullptr) {}

Result<KeysValues> Layer::update(const Tensor* k, const Tensor* v, Writes& writes) {
  if (!linear_ && !attention_ && k == nullptr) return KeysValues{};  // HF-51
  if (!attention_) return fail(Code::kNotSupported, "layer: it stores no keys and values");
  if (k == nullptr) return fail(Code::kPrecondition, "k, v: null is for layers without a cache");
  return attention_->update(*k, *v, writes);
}

// HF-54. A static layer has no crop: in profile original, that of its linear state is the only one.
Status Layer::crop(std::int64_t tokens_to_remove, QuirkSet<Quirk> quirks) {
  const bool halved = is_static_hybrid() && quirks.has(Quirk::kStaticHybridHalfCropped);
  if (linear_ && (halved || !is_static_hybrid()))
    if (Status done = linear_->crop(tokens_to_remove); !done) return done;
  return attention_ && !halved ? attention_->crop(tokens_to_remove) : Status();
}

Status Layer::reorder(std::span<const std::int64_t> beams) {
  if (linear_)
    if (Status done = linear_->reorder(beams); !done) return done;
  return attention_ ? attention_->reorder(beams) : Status();
}

Status Layer::no_batch(std::string_view operation) const {
  if (!linear_) return {};  // HF-51
  return fail(Code::kNotSupported, "a linear layer has no " + std::string(operation));
}

Status Layer::repeat(std::int64_t repeats) {
  return attention_ ? attention_->repeat(repeats) : no_batch("batch_repeat_interleave");
}

Status Layer::select(std::span<const std::int64_t> indices) {
  return attention_ ? attention_->select(indices) : no_batch("batch_select_indices");
}

void Layer::reset(Writes& writes) {
  if (linear_) linear_->reset();
  if (attention_) attention_->reset(writes);
}

void Layer::record_past() {
  if (linear_) linear_->record_past();
  if (attention_) attention_->record_past();
}

Status Layer::initialize(std::int64_t batch, std::int64_t heads, std::int64_t dim) {
  return takes_initialization() ? attention_->initialize(batch, heads, dim) : Status();
}

Result<LayerState> Layer::state() const {
  if (attention_) return attention_->state();
  if (linear_) return fail(Code::kNotSupported, "a linear layer has neither keys nor values");
  return LayerState{.initialized = true};  // HF-51
}

std::int64_t Layer::max_length() const {
  return attention_ && !linear_ ? attention_->max_length() : -1;
}

bool Layer::is_croppable(QuirkSet<Quirk> quirks) const {
  if (is_static_hybrid() && !quirks.has(Quirk::kStaticHybridHalfCropped)) return false;
  if (linear_) return linear_->is_croppable();
  return !attention_ || attention_->is_croppable();
}

std::optional<std::int64_t> Layer::batch_size(bool recorded) const {
  if (recorded) return attention_ ? attention_->recorded_batch() : std::nullopt;
  if (attention_)
    if (const auto stored = attention_->stored_batch()) return stored;
  return linear_ ? linear_->stored_batch() : std::nullopt;
}

// ---- Layers ----

Layers::Layers(const ListOptions& options, QuirkSet<Quirk> quirks)
    : quirks_(quirks), lazy_(options.lazy) {
  for (const LayerType type : options.layers) layers_.push_back(layer_of(type, options, quirks));
}

Result<std::size_t> Layers::index_of(std::int64_t layer) const {  // HF-2
  const std::int64_t index = layer < 0 ? layer + count() : layer;
  if (index < 0 || index >= count())
    return fail(Code::kOutOfRange,
                "layer " + std::to_string(layer) + " of " + std::to_string(count()));
  return static_cast<std::size_t>(index);
}

Result<const Layer*> Layers::at(std::int64_t layer) const {
  const auto index = index_of(layer);
  if (!index) return index.error();
  return &layers_[*index];
}

Result<std::size_t> Layers::linear_at(std::int64_t layer) const {
  auto index = index_of(layer);
  if (index && layers_[*index].linear() == nullptr) return not_linear();
  return index;
}

Result<KeysValues> Layers::update(std::int64_t layer, const Tensor* k, const Tensor* v,
                                  Writes& writes) {
  if (lazy_) {
    if (layer >= kMostLayers)
      return fail(Code::kPrecondition, "layer " + std::to_string(layer) + ", below 4096");
    while (count() <= layer)
      layers_.emplace_back(std::nullopt, std::make_unique<DynamicAttention>(quirks_));
  }
  const auto index = index_of(layer);
  if (!index) return index.error();
  return layers_[*index].update(k, v, writes);
}

Status Layers::crop(std::int64_t tokens_to_remove) {
  for (Layer& layer : layers_)
    if (Status done = layer.crop(tokens_to_remove, quirks_); !done) {
      if (&layer != &layers_.front()) KVO_MARK("dynamic.dynamic", "a later layer refused a crop");
      return done;
    }
  return {};
}

Status Layers::reorder(std::span<const std::int64_t> beams) {
  for (Layer& layer : layers_)
    if (Status done = layer.reorder(beams); !done) return done;
  return {};
}

Status Layers::repeat(std::int64_t repeats) {
  for (Layer& layer : layers_)
    if (Status done = layer.repeat(repeats); !done) return done;
  return {};
}

Status Layers::select(std::span<const std::int64_t> indices) {
  for (Layer& layer : layers_)
    if (Status done = layer.select(indices); !done) return done;
  return {};
}

void Layers::reset(Writes& writes) {
  for (Layer& layer : layers_) layer.reset(writes);
}

void Layers::record_past() {
  for (Layer& layer : layers_) layer.record_past();
}

Status Layers::initialize(std::int64_t batch, std::int64_t heads, std::int64_t dim) {
  for (Layer& layer : layers_)
    if (Status done = layer.initialize(batch, heads, dim); !done) return done;
  return {};
}

Result<const Attention*> Layers::counted(std::int64_t layer) const {  // HF-4
  if (layer >= count()) return nullptr;
  const auto found = at(layer);
  if (!found) return found.error();
  if ((*found)->attention() != nullptr) return (*found)->attention();
  if (layer == 0)
    for (const Layer& other : layers_)
      if (other.attention() != nullptr) return other.attention();
  return fail(Code::kNotSupported, "layer: it counts no tokens");
}

Result<std::int64_t> Layers::max_length(std::optional<std::int64_t> layer) const {  // HF-4
  if (layer) {
    if (*layer >= count()) return -1;
    const auto found = at(*layer);
    if (!found) return found.error();
    return (*found)->max_length();
  }
  if (layers_.empty() && quirks_.has(Quirk::kNoMaximumOfNothing))
    return fail_other("max() arg is an empty sequence");
  std::int64_t most = -1;
  for (const Layer& one : layers_) {
    const bool unbounded = one.attention() != nullptr && one.max_length() == -1;
    if (unbounded && !quirks_.has(Quirk::kUnboundedIgnored)) return -1;
    most = std::max(most, one.max_length());
  }
  return most;
}

Result<bool> Layers::has_previous(std::optional<std::int64_t> layer) const {  // HF-52
  if (layer) {
    if (*layer >= count()) return false;
    const auto index = linear_at(*layer);
    if (!index) return index.error();
    return linear(*index).has_previous();
  }
  for (auto last = layers_.rbegin(); last != layers_.rend(); ++last)
    if (last->linear() != nullptr) return last->linear()->has_previous();
  return not_linear();
}

Result<Properties> Layers::properties() const {  // HF-5
  Properties all{.is_croppable = true, .is_compileable = !layers_.empty()};
  bool initialized = true;
  bool any = false;
  std::string batches;
  bool differ = false;
  for (const Layer& layer : layers_) {
    all.is_sliding.push_back({layer.is_sliding()});
    all.is_croppable = all.is_croppable && layer.is_croppable(quirks_);
    all.is_compileable = all.is_compileable && layer.is_compileable();
    if (layer.takes_initialization()) {
      any = true;
      initialized = initialized && layer.attention()->state().initialized;
    }
    if (const auto batch = layer.batch_size(quirks_.has(Quirk::kBatchSizeStale))) {
      if (batches.empty()) all.batch_size = *batch;
      differ = differ || *batch != all.batch_size;
      batches += (batches.empty() ? "" : ", ") + std::to_string(*batch);
    }
  }
  if (differ)
    return fail_other("The batch size is not consistent across layers: [" + batches + "]");
  all.is_initialized = any && initialized;
  return all;
}

}  // namespace kvo::dynamic
