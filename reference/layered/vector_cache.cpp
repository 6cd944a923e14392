#include "reference/layered/vector_cache.hpp"

#include <algorithm>
#include <string>

namespace kvo::layered {

Result<std::unique_ptr<Cache>> VectorCache::make(const Geometry& geometry,
                                                 std::optional<std::uint64_t> max_seq_len,
                                                 const Behaviour& behaviour) {
  if (!behaviour.quirks.has(Quirk::kSizesUnchecked)) {  // RS-1: else nothing is computed yet
    const auto entry = entry_elements(geometry, behaviour);
    if (!entry) return entry.error();
  }
  const auto reserved =
      max_seq_len ? reserved_elements(geometry, *max_seq_len, behaviour) : Result<std::uint64_t>(0);
  if (!reserved) return reserved.error();
  auto cache = std::make_unique<VectorCache>(geometry, behaviour);
  for (Layer& layer : cache->layers_) {
    layer.k.reserve(stored_bytes_of(geometry, *reserved, behaviour.storage));
    layer.v.reserve(stored_bytes_of(geometry, *reserved, behaviour.storage));
  }
  return cache;
}

// RS-4 (a) to (c): in the original these are debug assertions.
Status VectorCache::check_lengths(const Append& op) const {
  const bool unchecked = has(Quirk::kLengthsUnchecked);
  if (unchecked && behaviour_.build == Build::kRelease) return {};
  const auto entry = entry_elements(geometry_, behaviour_);
  if (!entry) return entry.error();
  const Code code = unchecked ? Code::kPrecondition : Code::kBadShape;
  if (op.k.floats().size() != *entry) return fail(code, "k");
  if (op.v.floats().size() != *entry) return fail(code, "v");
  return {};
}

std::vector<std::byte> VectorCache::stored(std::span<const float> entry) const {
  std::vector<std::byte> bytes(stored_bytes_of(geometry_, entry.size(), behaviour_.storage));
  // Of floats every element stands for itself, so that a row of f32 may be of any length.
  const std::uint64_t dim = in_groups(behaviour_.storage.type) ? geometry_.head_dim : 1;
  store_rows(behaviour_.storage, static_cast<std::int64_t>(dim), entry, bytes.data());
  return bytes;
}

Status VectorCache::append(const Append& op) {
  if (!has(Quirk::kLayerAborts) && op.layer >= layers_.size()) return no_layer(op.layer);
  if (Status checked = check_lengths(op); !checked) return checked;
  if (op.layer >= layers_.size()) return no_layer(op.layer);  // RS-4 (d)
  Layer& to = layers_[op.layer];
  if (!has(Quirk::kSecondAppendTaken) && to.pending != 0)
    return fail(Code::kPrecondition,
                "layer " + std::to_string(op.layer) + " has this token already");
  const std::vector<std::byte> key = stored(op.k.floats());
  const std::vector<std::byte> value = stored(op.v.floats());
  std::vector<std::byte> moved;  // V moves when K has its memory
  if (to.v.capacity() < to.v.size() + value.size()) {
    moved.reserve(std::max(2 * to.v.capacity(), to.v.size() + value.size()));
    moved.assign(to.v.begin(), to.v.end());
  }
  to.k.insert(to.k.end(), key.begin(), key.end());
  if (moved.capacity() > 0) to.v.swap(moved);
  to.v.insert(to.v.end(), value.begin(), value.end());
  ++to.pending;
  return {};
}

Status VectorCache::advance() {
  if (!has(Quirk::kAdvanceUnchecked))
    for (const Layer& layer : layers_)
      if (layer.pending != 1) return fail(Code::kPrecondition, "a layer lacks this token");
  for (Layer& layer : layers_) layer.pending = 0;
  ++len_;
  return {};
}

Result<std::span<const std::byte>> VectorCache::k(const Keys& op) const {
  if (op.layer >= layers_.size()) return no_layer(op.layer);
  return std::span<const std::byte>(layers_[op.layer].k);
}

Result<std::span<const std::byte>> VectorCache::v(const Values& op) const {
  if (op.layer >= layers_.size()) return no_layer(op.layer);
  return std::span<const std::byte>(layers_[op.layer].v);
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
  return fail(has(Quirk::kLayerAborts) ? Code::kPrecondition : Code::kOutOfRange,
              "layer " + std::to_string(layer) + " of " + std::to_string(layers_.size()));
}

}  // namespace kvo::layered
