#include "reference/contract/device/host_device.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace kvo {
namespace {

// Buffers lie far apart, so that an offset that runs off one does not reach another.
constexpr std::uint64_t kSpacing = std::uint64_t{1} << 36U;

Error bad_pointer() {
  return fail_other("bad_pointer");
}

}  // namespace

std::byte* HostDevice::host_address(DevicePtr ptr, std::int64_t bytes, bool /*written*/) {
  auto buffer = buffers_.upper_bound(ptr.address);
  if (buffer == buffers_.begin() || bytes < 0) return nullptr;
  --buffer;
  const std::uint64_t offset = ptr.address - buffer->first;
  const std::uint64_t size = buffer->second.size();
  const bool inside = offset <= size && static_cast<std::uint64_t>(bytes) <= size - offset;
  if (!inside) return nullptr;
  static std::byte none{};  // an empty buffer has no bytes to point to
  return size == 0 ? &none : buffer->second.data() + offset;
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

Status HostDevice::known(Stream stream) const {
  return streams_.contains(stream.id) ? Status() : fail_other("bad_stream");
}

Status HostDevice::to_device_async(DevicePtr dst, std::span<const std::byte> src, Stream stream) {
  if (Status found = known(stream); !found) return found;
  std::byte* const to = host_address(dst, static_cast<std::int64_t>(src.size()), true);
  if (to == nullptr) return bad_pointer();
  std::ranges::copy(src, to);
  return {};
}

Status HostDevice::to_host_async(std::span<std::byte> dst, DevicePtr src, Stream stream) {
  if (Status found = known(stream); !found) return found;
  const std::byte* const from = host_address(src, static_cast<std::int64_t>(dst.size()), false);
  if (from == nullptr) return bad_pointer();
  std::copy_n(from, dst.size(), dst.begin());
  return {};
}

Status HostDevice::copy_async(DevicePtr dst, DevicePtr src, std::int64_t bytes, Stream stream) {
  if (Status found = known(stream); !found) return found;
  std::byte* const to = host_address(dst, bytes, true);
  const std::byte* const from = host_address(src, bytes, false);
  if (to == nullptr || from == nullptr) return bad_pointer();
  std::memmove(to, from, static_cast<std::size_t>(bytes));
  return {};
}

Status HostDevice::launch(const Job& job, Stream stream) {
  if (Status found = known(stream); !found) return found;
  Job mapped = job;
  if (!mapped.touch(*this)) return bad_pointer();
  for (std::int64_t item = 0; item < mapped.items(); ++item) mapped.run(item);
  return {};
}

Result<Stream> HostDevice::create_stream() {
  streams_.insert(next_id_);
  return Stream{next_id_++};
}

Status HostDevice::destroy(Stream stream) {
  if (stream == Stream{}) return fail_other("bad_stream");
  return streams_.erase(stream.id) == 1 ? Status() : fail_other("bad_stream");
}

Result<Event> HostDevice::create_event() {
  events_.insert(next_id_);
  return Event{next_id_++};
}

Status HostDevice::destroy(Event event) {
  return events_.erase(event.id) == 1 ? Status() : fail_other("bad_event");
}

Status HostDevice::record(Event event, Stream stream) {
  if (!events_.contains(event.id)) return fail_other("bad_event");
  return known(stream);
}

Status HostDevice::wait(Stream stream, Event event) {
  return record(event, stream);  // what was recorded has happened
}

Status HostDevice::synchronize(Stream stream) {
  return known(stream);
}

}  // namespace kvo
