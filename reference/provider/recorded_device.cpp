#include "reference/provider/recorded_device.hpp"

#include <algorithm>
#include <utility>

#include "reference/contract/check.hpp"

namespace kvo::provider {
namespace {

using Where = ShownPtr::Where;

constexpr std::size_t kRoom = 64;
constexpr ShownPtr kHost{.where = Where::kHost};

// Counts down to the failing call.
bool strikes(std::int64_t& fault) {
  return fault > 0 && --fault == 0;
}

template <class T>
void make_room_in(std::vector<T>& items, std::size_t more) {
  const std::size_t wanted = items.size() + more;
  if (items.capacity() < wanted) items.reserve(std::max(wanted, 2 * items.capacity()));
}

}  // namespace

void RecordedDevice::begin() {
  calls_.clear();
  make_room(live_.size() + kRoom);
}

ShownPtr RecordedDevice::shown(DevicePtr ptr) const {
  for (const Live& live : live_) {
    const std::uint64_t offset = ptr.address - live.base.address;
    if (ptr.address < live.base.address || offset > static_cast<std::uint64_t>(live.size)) continue;
    ShownPtr found = live.shown;
    found.off = static_cast<std::int64_t>(offset);
    return found;
  }
  return {.off = static_cast<std::int64_t>(ptr.address)};
}

std::vector<std::int64_t> RecordedDevice::live_buffers() const {
  std::vector<std::int64_t> numbers;
  for (const Live& live : live_)
    if (live.shown.where == Where::kBuffer) numbers.push_back(live.shown.buf);
  std::ranges::sort(numbers);
  return numbers;
}

RecordedDevice::Transaction::~Transaction() {
  if (committed_) return;
  std::erase_if(device_.live_, [&](const Live& live) {
    const bool fresh = live.shown.where == Where::kBuffer && live.shown.buf >= next_;
    if (fresh) (void)device_.device_->free(live.base);
    return fresh;
  });
  device_.faults_ = faults_;
  device_.next_ = next_;
  device_.kernels_ = kernels_;
  device_.calls_.clear();
}

RecordedDevice::Source::Source(RecordedDevice& device, Where name,
                               std::span<const std::byte> cells) {
  make_room_in(device.live_, 1);
  const auto size = static_cast<std::int64_t>(cells.size());
  const auto made = device.device_->alloc(size);
  KVO_CHECK(made.has_value());
  device_ = &device;
  ptr_ = *made;
  device.live_.push_back({ptr_, size, {.where = name}});
  const Status copied = device.device_->to_device(ptr_, cells);
  KVO_CHECK(copied.has_value());
}

RecordedDevice::Source::~Source() {
  if (device_ == nullptr) return;
  std::erase_if(device_->live_, [&](const Live& live) { return live.base == ptr_; });
  (void)device_->device_->free(ptr_);
}

void RecordedDevice::make_room(std::size_t more) {
  if (recording_) make_room_in(calls_, more);
}

void RecordedDevice::note(const Call& call) {
  if (recording_) calls_.push_back(call);
}

template <class Run>
Status RecordedDevice::run(Call call, std::int64_t& fault, std::string_view reason,
                           Run&& carry_out) {
  make_room(1);
  const Status done = strikes(fault) ? Status(fail_other(std::string(reason))) : carry_out();
  if (!done) call.error = true;
  note(call);
  return done;
}

template <class Run>
Status RecordedDevice::kernel(const Call& call, Run&& carry_out) {
  if (!kernels_) return fail(Code::kNotSupported, "kernels");
  return run(call, faults_.kernel, "kernel_failed", std::forward<Run>(carry_out));
}

Result<DevicePtr> RecordedDevice::alloc(std::int64_t bytes) {
  make_room_in(live_, 1);
  make_room(live_.size() + 2);  // with it, every live buffer can be freed
  DevicePtr made;
  Call call{.fn = CallName::kAlloc, .size = bytes};
  const auto from_below = [&]() -> Status {
    if (faults_.next_allocs > 0) {
      --faults_.next_allocs;
      return fail_other("alloc_failed");
    }
    const auto got = device_->alloc(bytes);
    if (!got) return got.error();
    made = *got;
    call.buf = next_;
    return {};
  };
  const Status done = strikes(faults_.alloc) ? Status(fail_other("alloc_failed")) : from_below();
  if (!done) call.error = true;
  note(call);
  if (!done) return done.error();
  live_.push_back({made, bytes, {.where = Where::kBuffer, .buf = next_}});
  ++next_;
  return made;
}

Status RecordedDevice::free(DevicePtr ptr) {
  return run({.fn = CallName::kFree, .ptr = shown(ptr)}, faults_.free, "free_failed", [&] {
    const Status done = device_->free(ptr);
    if (done) std::erase_if(live_, [&](const Live& live) { return live.base == ptr; });
    return done;
  });
}

Status RecordedDevice::to_device(DevicePtr dst, std::span<const std::byte> src) {
  const Call call{.fn = CallName::kMemcpy,
                  .size = static_cast<std::int64_t>(src.size()),
                  .dst = shown(dst),
                  .src = kHost,
                  .kind = 0};
  return run(call, faults_.memcpy, "memcpy_failed", [&] { return device_->to_device(dst, src); });
}

Status RecordedDevice::to_host(std::span<std::byte> dst, DevicePtr src) {
  const Call call{.fn = CallName::kMemcpy,
                  .size = static_cast<std::int64_t>(dst.size()),
                  .dst = kHost,
                  .src = shown(src),
                  .kind = 1};
  return run(call, faults_.memcpy, "memcpy_failed", [&] { return device_->to_host(dst, src); });
}

Call RecordedDevice::copying(DevicePtr dst, DevicePtr src, std::int64_t size) const {
  return {.fn = CallName::kMemcpy, .size = size, .dst = shown(dst), .src = shown(src)};
}

Status RecordedDevice::copy(DevicePtr dst, DevicePtr src, std::int64_t bytes) {
  Call call = copying(dst, src, bytes);
  call.kind = 2;
  return run(call, faults_.memcpy, "memcpy_failed", [&] { return device_->copy(dst, src, bytes); });
}

Status RecordedDevice::offset_memcpy(const OffsetCopy& copy) {
  const Call call{.fn = CallName::kOffsetMemcpy,
                  .dst = shown(copy.dst),
                  .src = shown(copy.src),
                  .counter = shown(copy.counter),
                  .dim = copy.dim,
                  .max_seq_len = copy.max_seq_len};
  return kernel(call, [&] { return device_->offset_memcpy(copy); });
}

Status RecordedDevice::increment_counter(DevicePtr counter, std::int32_t delta) {
  const Call call{
      .fn = CallName::kIncrementCounter, .counter = shown(counter), .delta = std::int64_t{delta}};
  return kernel(call, [&] { return device_->increment_counter(counter, delta); });
}

Status RecordedDevice::to_half(DevicePtr dst, DevicePtr src, std::int64_t count) {
  Call call = copying(dst, src, count);
  call.fn = CallName::kToHalf;
  return kernel(call, [&] { return device_->to_half(dst, src, count); });
}

Status RecordedDevice::to_float(DevicePtr dst, DevicePtr src, std::int64_t count) {
  Call call = copying(dst, src, count);
  call.fn = CallName::kToFloat;
  return kernel(call, [&] { return device_->to_float(dst, src, count); });
}

}  // namespace kvo::provider
