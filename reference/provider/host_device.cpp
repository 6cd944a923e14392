#include "reference/provider/host_device.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "reference/contract/half.hpp"

namespace kvo::provider {
namespace {

// Buffers lie far apart, so that an offset that runs off one does not reach another.
constexpr std::uint64_t kSpacing = std::uint64_t{1} << 36U;

constexpr std::int64_t kFloatBytes = sizeof(float);
constexpr std::int64_t kHalfBytes = sizeof(std::uint16_t);

Error bad_pointer() {
  return fail_other("bad_pointer");
}

// Bytes of `count` cells; -1, which lies inside no buffer, when there is no such number.
std::int64_t bytes_of(std::int64_t count, std::int64_t cell_bytes) {
  std::int64_t bytes = 0;
  return __builtin_mul_overflow(count, cell_bytes, &bytes) ? -1 : bytes;
}

void halve(std::byte* dst, const std::byte* src, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    float value = 0;
    std::memcpy(&value, src + i * kFloatBytes, sizeof(value));
    const std::uint16_t half = f16_of(value);
    std::memcpy(dst + i * kHalfBytes, &half, sizeof(half));
  }
}

}  // namespace

std::optional<std::byte*> HostDevice::at(DevicePtr ptr, std::int64_t bytes) {
  auto buffer = buffers_.upper_bound(ptr.address);
  if (buffer == buffers_.begin() || bytes < 0) return std::nullopt;
  --buffer;
  const std::uint64_t offset = ptr.address - buffer->first;
  const std::uint64_t size = buffer->second.size();
  const bool inside = offset <= size && static_cast<std::uint64_t>(bytes) <= size - offset;
  if (!inside) return std::nullopt;
  return buffer->second.data() + offset;
}

Result<DevicePtr> HostDevice::alloc(std::int64_t bytes) {
  if (bytes < 0) return fail_other("alloc_failed");
  const DevicePtr made{next_address_};
  buffers_.emplace(made.address, std::vector<std::byte>(static_cast<std::size_t>(bytes)));
  next_address_ += (static_cast<std::uint64_t>(bytes) / kSpacing + 1) * kSpacing;
  return made;
}

Status HostDevice::free(DevicePtr ptr) {
  return buffers_.erase(ptr.address) == 1 ? Status() : bad_pointer();
}

Status HostDevice::to_device(DevicePtr dst, std::span<const std::byte> src) {
  const auto to = at(dst, static_cast<std::int64_t>(src.size()));
  if (!to) return bad_pointer();
  std::ranges::copy(src, *to);
  return {};
}

Status HostDevice::to_host(std::span<std::byte> dst, DevicePtr src) {
  const auto from = at(src, static_cast<std::int64_t>(dst.size()));
  if (!from) return bad_pointer();
  std::copy_n(*from, dst.size(), dst.begin());
  return {};
}

Status HostDevice::copy(DevicePtr dst, DevicePtr src, std::int64_t bytes) {
  const auto to = at(dst, bytes);
  const auto from = at(src, bytes);
  if (!to || !from) return bad_pointer();
  if (bytes > 0) std::memmove(*to, *from, static_cast<std::size_t>(bytes));
  return {};
}

Status HostDevice::offset_memcpy(const OffsetCopy& copy) {
  std::int32_t position = 0;
  const auto counter = std::as_writable_bytes(std::span(&position, 1));
  if (const Status read = to_host(counter, copy.counter); !read) return read;
  if (position < 0) return bad_pointer();
  if (position >= copy.max_seq_len) return {};
  const std::int64_t bytes = bytes_of(copy.dim, copy.to_half ? kHalfBytes : kFloatBytes);
  std::int64_t offset = 0;
  if (bytes < 0 || __builtin_mul_overflow(position, bytes, &offset)) return bad_pointer();
  return copy.to_half ? to_half(copy.dst + offset, copy.src, copy.dim)
                      : this->copy(copy.dst + offset, copy.src, bytes);
}

Status HostDevice::increment_counter(DevicePtr counter, std::int32_t delta) {
  const auto cell = at(counter, sizeof(std::int32_t));
  if (!cell) return bad_pointer();
  std::uint32_t value = 0;
  std::memcpy(&value, *cell, sizeof(value));
  value += static_cast<std::uint32_t>(delta);
  std::memcpy(*cell, &value, sizeof(value));
  return {};
}

Status HostDevice::to_half(DevicePtr dst, DevicePtr src, std::int64_t count) {
  const auto to = at(dst, bytes_of(count, kHalfBytes));
  const auto from = at(src, bytes_of(count, kFloatBytes));
  if (!to || !from) return bad_pointer();
  halve(*to, *from, count);
  return {};
}

Status HostDevice::to_float(DevicePtr dst, DevicePtr src, std::int64_t count) {
  const auto to = at(dst, bytes_of(count, kFloatBytes));
  const auto from = at(src, bytes_of(count, kHalfBytes));
  if (!to || !from) return bad_pointer();
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, *from + i * kHalfBytes, sizeof(half));
    const float value = f32_of_f16(half);
    std::memcpy(*to + i * kFloatBytes, &value, sizeof(value));
  }
  return {};
}

}  // namespace kvo::provider
