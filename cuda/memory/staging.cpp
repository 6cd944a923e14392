#include "cuda/memory/staging.hpp"

#include <string>

#include <boost/describe/enum_to_string.hpp>

#include "reference/contract/values/check.hpp"

namespace kvo::cuda {
namespace {

constexpr std::int64_t kWidest = 16;

}  // namespace

Error error_of_device(const Error& error) {
  if (error == fail_other("alloc_failed")) return fail(Code::kOutOfMemory, "device memory");
  return error;
}

Error not_on_device(StorageType type, std::string_view what) {
  return fail(Code::kNotSupported, std::string(what) + ": " +
                                       boost::describe::enum_to_string(type, "") + " on a device");
}

Status store_f32_only(const StorageFormat& storage) {
  if (Status good = check(storage); !good) return good;
  if (storage.type == StorageType::kF32) return {};
  return not_on_device(storage.type);
}

Result<std::shared_ptr<DeviceStorage>> make_cells(const std::shared_ptr<Device>& device,
                                                  std::int64_t count, std::int64_t cell_bytes) {
  auto made = DeviceStorage::make(device, count, cell_bytes);
  if (made) return made;
  // No card has as many bytes as overflow.
  if (made.error() == fail(Code::kPrecondition)) return fail(Code::kOutOfMemory, "device memory");
  return error_of_device(made.error());
}

Staging::~Staging() {
  for (const Event event : {arrived_[0], arrived_[1], worked_})
    if (event.id != 0) (void)device_->destroy(event);
  if (uploads_.id != 0) (void)device_->destroy(uploads_);
}

Status Staging::make_queue() {
  if (uploads_.id == 0) {
    const auto made = device_->create_stream();
    if (!made) return made.error();
    uploads_ = *made;
  }
  for (Event* event : {&arrived_[0], &arrived_[1], &worked_}) {
    if (event->id != 0) continue;
    const auto made = device_->create_event();
    if (!made) return made.error();
    *event = *made;
  }
  return {};
}

Status Staging::reserve(std::int64_t bytes) {
  if (Status made = make_queue(); !made) return error_of_device(made.error());
  if (bytes <= room_bytes_) return {};
  const std::int64_t needed = (bytes + kWidest - 1) / kWidest * kWidest;
  auto larger = make_cells(device_, 2 * (needed / kCellBytes));
  if (!larger) return larger.error();
  rooms_ = std::move(*larger);
  room_bytes_ = needed;
  return {};
}

DevicePtr Staging::room(std::size_t side) const {
  KVO_CHECK(rooms_ && side < arrived_.size());
  return rooms_->ptr() + static_cast<std::int64_t>(side) * room_bytes_;
}

Status Staging::after_work() {
  const Status recorded = device_->record(worked_, Stream());
  return recorded ? device_->wait(uploads_, worked_) : recorded;
}

Status Staging::upload(std::size_t side, DevicePtr to, const HostLanes& from) {
  const bool one_piece = from.lanes == 1 || from.run == from.stride;
  const std::int64_t pieces = one_piece ? 1 : from.lanes;
  const std::int64_t cells = one_piece ? from.lanes * from.run : from.run;
  for (std::int64_t lane = 0; lane < pieces; ++lane) {
    const std::span<const float> piece(from.first + lane * from.stride,
                                       static_cast<std::size_t>(cells));
    const DevicePtr place = to + lane * cells * kCellBytes;
    Status queued = device_->to_device_async(place, std::as_bytes(piece), uploads_);
    if (!queued) return queued;
  }
  return order(side);
}

Status Staging::upload(std::size_t side, DevicePtr to, std::span<const std::byte> from) {
  Status queued = device_->to_device_async(to, from, uploads_);
  return queued ? order(side) : queued;
}

Status Staging::order(std::size_t side) {
  const Status recorded = device_->record(arrived_[side], uploads_);
  return recorded ? device_->wait(Stream(), arrived_[side]) : recorded;
}

Status Staging::synchronize() {
  // An upload that no event was recorded behind is none of the default stream's.
  const Status uploaded = uploads_.id != 0 ? device_->synchronize(uploads_) : Status();
  const Status worked = device_->synchronize(Stream());
  return uploaded ? worked : uploaded;
}

}  // namespace kvo::cuda
