#include "reference/contract/device/device.hpp"

#include <array>

#include "reference/contract/values/thrown.hpp"

namespace kvo {
namespace {

constexpr std::int64_t kCellBytes = sizeof(float);

}  // namespace

std::string_view Work::name() const {
  constexpr std::array<std::string_view, 4> kKinds{"copy to the device", "copy to the host", "copy",
                                                   "fill"};
  return kind == Kind::kJob ? job->type().name : kKinds.at(static_cast<std::size_t>(kind));
}

Status Device::done(Call kind, Stream stream, Event event, Graph graph) {
  const auto carried_out = control({kind, stream, event, graph});
  return carried_out ? Status() : carried_out.error();
}

Status Device::to_device(DevicePtr dst, std::span<const std::byte> src) {
  const Status queued = to_device_async(dst, src, {});
  return queued ? synchronize(Stream()) : queued;
}

Status Device::to_host(std::span<std::byte> dst, DevicePtr src) {
  const Status queued = to_host_async(dst, src, {});
  return queued ? synchronize(Stream()) : queued;
}

Result<std::int64_t> read_counter(Device& device, DevicePtr counter) {
  std::int32_t value = 0;
  const Status done = device.to_host(std::as_writable_bytes(std::span(&value, 1)), counter);
  if (!done) return done.error();
  return std::int64_t{value};
}

Status write_counter(Device& device, DevicePtr counter, std::int64_t value) {
  const auto cell = static_cast<std::int32_t>(value);
  return device.to_device(counter, std::as_bytes(std::span(&cell, 1)));
}

Result<std::shared_ptr<DeviceStorage>> DeviceStorage::make(std::shared_ptr<Device> device,
                                                           std::int64_t count,
                                                           std::int64_t cell_bytes) {
  auto storage = std::make_shared<DeviceStorage>(std::move(device));
  if (const Status done = storage->allocate(count, cell_bytes); !done) return done.error();
  return storage;
}

Status DeviceStorage::allocate(std::int64_t count, std::int64_t cell_bytes) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(count, cell_bytes, &bytes))
    return fail(Code::kPrecondition, "bytes overflow");
  const auto ptr = device_->alloc(bytes);
  if (!ptr) return ptr.error();
  ptr_ = *ptr;
  return {};
}

void DeviceStorage::release() {
  released = true;
  if (ptr_) {
    (void)device_->synchronize(Stream());
    (void)device_->free(ptr_);
  }
  ptr_ = {};
}

void DeviceStorage::read(std::int64_t offset, std::span<float> out) const {
  demand(device_->to_host(std::as_writable_bytes(out), ptr_ + offset * kCellBytes));
}

void DeviceStorage::write(std::int64_t offset, float value) {
  demand(device_->to_device(ptr_ + offset * kCellBytes,
                            std::as_bytes(std::span<const float>(&value, 1))));
}

}  // namespace kvo
