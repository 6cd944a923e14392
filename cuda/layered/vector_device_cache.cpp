#include "cuda/layered/vector_device_cache.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <boost/describe/enum_to_string.hpp>

#include "reference/contract/values/thrown.hpp"

namespace kvo::cuda {

using layered::Behaviour;
using layered::Build;
using layered::Cache;
using layered::Geometry;
using layered::Quirk;

namespace {

std::int64_t bytes_of(std::uint64_t cells) {
  return static_cast<std::int64_t>(cells) * kCellBytes;
}

}  // namespace

Result<std::unique_ptr<Cache>> VectorDeviceCache::make(const std::shared_ptr<Device>& device,
                                                       const Geometry& geometry,
                                                       std::optional<std::uint64_t> max_seq_len,
                                                       const Behaviour& behaviour) {
  if (behaviour.storage.type != StorageType::kF32)
    return fail(Code::kNotSupported,
                std::string("storage: ") +
                    boost::describe::enum_to_string(behaviour.storage.type, "") + " on a device");
  if (!behaviour.quirks.has(Quirk::kSizesUnchecked)) {
    const auto entry = layered::entry_elements(geometry, behaviour);
    if (!entry) return entry.error();
  }
  std::uint64_t reserved = 0;
  if (max_seq_len) {
    const auto elements = layered::reserved_elements(geometry, *max_seq_len, behaviour);
    if (!elements) return elements.error();
    reserved = *elements;
  }
  auto cache = std::make_unique<VectorDeviceCache>(device, geometry, behaviour);
  if (reserved == 0) return cache;
  for (Layer& layer : cache->layers_) {
    for (Side& side : layer.sides) {
      if (Status there = cache->reserve(side, reserved); !there) return there.error();
      side.largest = reserved;
    }
  }
  return cache;
}

Status VectorDeviceCache::append(const layered::Append& op) {
  const std::array<std::span<const float>, 2> rows{op.k.floats(), op.v.floats()};
  if (Status checked = check(op.layer, rows[0], rows[1]); !checked) return checked;
  Layer& to = layers_[op.layer];
  if (Status there = staging_.reserve(0); !there) return there;
  for (const std::size_t which : {0U, 1U}) {
    Side& side = to.sides[which];
    if (Status there = reserve(side, side.size + rows[which].size()); !there) return there;
  }
  Status stored = staging_.carry_out([&]() -> Status {
    for (const std::size_t which : {0U, 1U}) {
      const Side& side = to.sides[which];
      if (rows[which].empty()) continue;
      const DevicePtr end = side.cells->ptr() + bytes_of(side.size);
      Status queued = staging_.upload(which, end, std::as_bytes(rows[which]));
      if (!queued) return queued;
    }
    return {};
  });
  if (!stored) return stored;
  for (const std::size_t which : {0U, 1U}) {
    Side& side = to.sides[which];
    side.size += rows[which].size();
    side.largest = std::max(side.largest, side.size);
  }
  ++to.pending;
  return {};
}

Status VectorDeviceCache::check(std::uint64_t layer, std::span<const float> k,
                                std::span<const float> v) const {
  if (!has(Quirk::kLayerAborts) && layer >= layers_.size()) return no_layer(layer);
  const bool unchecked = has(Quirk::kLengthsUnchecked);
  if (!unchecked || behaviour_.build == Build::kDebug) {
    const auto entry = layered::entry_elements(geometry_, behaviour_);
    if (!entry) return entry.error();
    const Code code = unchecked ? Code::kPrecondition : Code::kBadShape;
    if (k.size() != *entry) return fail(code, "k");
    if (v.size() != *entry) return fail(code, "v");
  }
  if (layer >= layers_.size()) return no_layer(layer);
  if (layers_[layer].pending > 0 && !has(Quirk::kSecondAppendTaken))
    return fail(Code::kPrecondition, "appended");
  return {};
}

Status VectorDeviceCache::copy(const DeviceStorage& to, const Side& from) const {
  if (from.size == 0) return {};
  Status queued = device_->copy(to.ptr(), from.cells->ptr(), bytes_of(from.size));
  return queued ? device_->synchronize(Stream()) : queued;
}

Status VectorDeviceCache::reserve(Side& side, std::uint64_t needed) const {
  if (needed <= side.capacity) return {};
  const std::uint64_t capacity = std::max(needed, 2 * side.capacity);
  auto larger = make_cells(device_, static_cast<std::int64_t>(capacity));
  if (!larger) return larger.error();
  if (Status copied = copy(**larger, side); !copied) return copied;
  side.cells = std::move(*larger);
  side.capacity = capacity;
  return {};
}

Status VectorDeviceCache::advance() {
  if (!has(Quirk::kAdvanceUnchecked) &&
      std::ranges::any_of(layers_, [](const Layer& layer) { return layer.pending != 1; }))
    return fail(Code::kPrecondition, "a layer lacks this token");
  for (Layer& layer : layers_) layer.pending = 0;
  ++len_;
  return {};
}

Result<std::span<const std::byte>> VectorDeviceCache::side(std::uint64_t layer,
                                                           std::size_t which) const {
  if (layer >= layers_.size()) return no_layer(layer);
  const Side& from = layers_[layer].sides[which];
  std::vector<float>& shown = from.shown;
  shown.reserve(from.largest);
  const std::size_t known = shown.size();
  if (known < from.size) {
    shown.resize(from.size);
    const auto fresh = std::as_writable_bytes(std::span(shown).subspan(known));
    Status read = device_->to_host(fresh, from.cells->ptr() + bytes_of(known));
    if (!read) {
      shown.resize(known);
      return error_of_device(read.error());
    }
  }
  return std::as_bytes(std::span(shown));
}

void VectorDeviceCache::clear() {
  for (Layer& layer : layers_) {
    for (Side& side : layer.sides) {
      side.size = 0;
      side.shown.clear();
    }
    layer.pending = 0;
  }
  len_ = 0;
}

std::unique_ptr<Cache> VectorDeviceCache::clone() const {
  auto made = std::make_unique<VectorDeviceCache>(device_, geometry_, behaviour_);
  made->len_ = len_;
  for (std::uint64_t layer = 0; layer < layers_.size(); ++layer) {
    made->layers_[layer].pending = layers_[layer].pending;
    for (const std::size_t which : {0U, 1U}) {
      const Side& from = layers_[layer].sides[which];
      Side& to = made->layers_[layer].sides[which];
      if (from.size == 0) continue;
      demand(made->reserve(to, from.size));
      demand(made->copy(*to.cells, from));
      to.size = to.largest = from.size;
    }
  }
  return made;
}

Error VectorDeviceCache::no_layer(std::uint64_t layer) const {
  return fail(has(Quirk::kLayerAborts) ? Code::kPrecondition : Code::kOutOfRange,
              "layer " + std::to_string(layer) + " of " + std::to_string(layers_.size()));
}

}  // namespace kvo::cuda
