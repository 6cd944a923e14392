#include "reference/layered/vector_cache.hpp"

#include <algorithm>
#include <string>

namespace kvo::layered {

Result<std::unique_ptr<Cache>> VectorCache::make(const Geometry& geometry,
                                                 std::optional<std::uint64_t> max_seq_len,
                                                 Mode mode) {
  if (mode == Mode::kDocumented && !entry_elements(geometry, mode))
    return entry_elements(geometry, mode).error();
  const auto reserved =
      max_seq_len ? reserved_elements(geometry, *max_seq_len, mode) : Result<std::uint64_t>(0);
  if (!reserved) return reserved.error();
  auto cache = std::make_unique<VectorCache>(geometry, mode);
  for (Layer& layer : cache->layers_) {
    layer.k.reserve(*reserved);
    layer.v.reserve(*reserved);
  }
  return cache;
}

Status VectorCache::append(std::uint64_t layer, std::span<const float> k,
                           std::span<const float> v) {
  const bool documented = mode_ == Mode::kDocumented;
  if (documented && layer >= layers_.size()) return no_layer(layer);
  if (mode_ != Mode::kRelease) {  // The length checks are debug assertions (RS-4).
    const auto entry = entry_elements(geometry_, mode_);
    if (!entry) return entry.error();
    const Code code = documented ? Code::kBadShape : Code::kPrecondition;
    if (k.size() != *entry) return fail(code, "k");
    if (v.size() != *entry) return fail(code, "v");
  }
  if (layer >= layers_.size()) return no_layer(layer);
  Layer& to = layers_[layer];
  if (documented && to.pending != 0)
    return fail(Code::kPrecondition, "layer " + std::to_string(layer) + " has this token already");
  if (to.v.capacity() < to.v.size() + v.size())
    to.v.reserve(std::max(2 * to.v.capacity(), to.v.size() + v.size()));
  to.k.insert(to.k.end(), k.begin(), k.end());
  to.v.insert(to.v.end(), v.begin(), v.end());
  ++to.pending;
  return {};
}

Status VectorCache::advance() {
  if (mode_ == Mode::kDocumented)
    for (const Layer& layer : layers_)
      if (layer.pending != 1) return fail(Code::kPrecondition, "a layer lacks this token");
  for (Layer& layer : layers_) layer.pending = 0;
  ++len_;
  return {};
}

Result<std::span<const float>> VectorCache::k(std::uint64_t layer) const {
  if (layer >= layers_.size()) return no_layer(layer);
  return std::span<const float>(layers_[layer].k);
}

Result<std::span<const float>> VectorCache::v(std::uint64_t layer) const {
  if (layer >= layers_.size()) return no_layer(layer);
  return std::span<const float>(layers_[layer].v);
}

void VectorCache::clear() {
  for (Layer& layer : layers_) {
    layer.k.clear();
    layer.v.clear();
    layer.pending = 0;
  }
  len_ = 0;
}

Error VectorCache::no_layer(std::uint64_t layer) const {
  return fail(mode_ == Mode::kDocumented ? Code::kOutOfRange : Code::kPrecondition,
              "layer " + std::to_string(layer) + " of " + std::to_string(layers_.size()));
}

}  // namespace kvo::layered
